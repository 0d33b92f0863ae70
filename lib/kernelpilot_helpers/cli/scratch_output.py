"""How build, verify, bench and try show what they found: one shape for the four, watermarked as not evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from pathlib import Path

    from kernelpilot_helpers.referee.scratch import Mode, Tried

WATERMARK = "not evidence: no row was written; kernelpilot attempt records"


def run(mode: Mode, variant: str | None, repo: Path, *, as_json: bool) -> int:
    """Do it and print it; exit 1 when the candidate does not build or is wrong."""
    from kernelpilot_helpers.referee import scratch
    from kernelpilot_helpers.referee.floor import utc_now

    tried = scratch.run(repo, variant, mode=mode, lab=common.local_lab(repo), clock=utc_now)
    data = as_object(tried)
    common.emit(data, as_json=as_json, text=words(tried, data))
    return 0 if data["ok"] else 1


def as_object(tried: Tried) -> dict[str, Any]:
    """The stable object."""
    from kernelpilot_helpers.correctness import Correct

    raw, bench, verified = tried.raw, tried.bench, tried.verification
    build = next((b for b in raw.builds if b.arm == "B"), None)
    mean = bench.geomean if bench is not None else None
    return {
        "id": tried.meta.id,
        "mode": tried.meta.mode,
        "variant": tried.meta.variant,
        "evidence": False,
        "ok": raw.died is None and (build is None or build.ok) and (verified is None or isinstance(verified, Correct)),
        "correct": None if verified is None else isinstance(verified, Correct),
        "reason": tried.meta.result,
        "findings": [f"{f.code}: {f.text}" for f in getattr(verified, "findings", ())],
        "build": None if build is None else {"ok": build.ok, "seconds": build.seconds, "log": build.log},
        "geomean": None if mean is None else {"speedup": mean.speedup, "ci_low": mean.ci_low, "ci_high": mean.ci_high},
        "cases": [
            {"case_id": c.case_id, "speedup": c.speedup, "a_us": c.a_us, "b_us": c.b_us}
            for c in (bench.cases if bench is not None else ())
        ],
    }


def words(tried: Tried, data: dict[str, Any]) -> str:
    """The same for a person."""
    from kernelpilot_helpers import units

    lines = [f"{data['mode']} {data['variant']}: {data['reason']}   [{data['id']}]"]
    build = data["build"]
    if build is not None and (not build["ok"] or data["mode"] == "build"):
        lines.append(f"  built in {build['seconds']:.2f} s" if build["ok"] else "  the build failed:")
        lines += [f"    {line}" for line in build["log"].strip().splitlines()[-20:]]
    lines += [f"  {finding}" for finding in data["findings"][:12]]
    lines += [
        f"  {c['case_id']:<24} {units.micros(c['a_us']):>10} -> {units.micros(c['b_us']):>10}  "
        f"{units.percent(c['speedup'])}"
        for c in data["cases"]
    ]
    if data["geomean"] is not None:
        lines.append(f"  geomean {units.percent(data['geomean']['speedup'])}")
    if tried.raw.died is not None and tried.raw.died.log:
        lines += [f"    {line}" for line in tried.raw.died.log.strip().splitlines()[-12:]]
    lines.append(f"  {WATERMARK}")
    return "\n".join(lines)


def options(function: Any) -> Any:
    """The options that the four share."""
    return click.argument("variant", required=False)(common.repo_option(common.json_option(function)))
