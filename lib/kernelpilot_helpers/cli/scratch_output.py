"""How build, verify, bench and try show what they found: one shape for the four, watermarked as not evidence."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import build_output, common

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kernelpilot_helpers.correctness import Finding
    from kernelpilot_helpers.referee.scratch import Mode, Tried

SHOWN, SHOWN_CASES = 6, 3
PATIENCE_S = 10.0
WATERMARK = "not evidence: no row was written; kernelpilot attempt records"


def run(mode: Mode, variant: str | None, repo: Path, *, as_json: bool) -> int:
    """Do it and print it; exit 1 when the candidate does not build or is wrong."""
    from kernelpilot_helpers.referee import scratch
    from kernelpilot_helpers.referee.floor import utc_now

    lab = _lab(mode, repo)
    with _patience(mode):
        tried = scratch.run(repo, variant, mode=mode, lab=lab, clock=utc_now)
    data = as_object(tried)
    common.emit(data, as_json=as_json, text=words(tried, data))
    return 0 if data["ok"] else 1


@contextlib.contextmanager
def _patience(mode: Mode) -> Iterator[None]:
    """Say on stderr that a build goes on, where it takes long."""
    timer = threading.Timer(PATIENCE_S, click.echo, ["still importing candidate.py ..."], {"err": True})
    timer.daemon = True
    if mode == "build":
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _lab(mode: Mode, repo: Path) -> Any:
    """The task's Python; a build alone needs no framework of it."""
    from kernelpilot_helpers.errors import ToolMissing

    if mode != "build":
        return common.measuring_lab(repo)
    try:
        return common.local_lab(repo)
    except ToolMissing:
        return common.lab_with(common.task_argv(repo))


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
        "ok": _fine(tried) and (verified is None or isinstance(verified, Correct)),
        "correct": None if verified is None else isinstance(verified, Correct),
        "reason": tried.meta.result,
        "verdict": _word(tried),
        "findings": [*tried.faults, *(_finding(f) for f in getattr(verified, "findings", ()))],
        "build": None if build is None else {"ok": build.ok, "seconds": build.seconds, "log": build.log},
        "compiled": build_output.compiled(raw),
        "compilers": [] if build is None else list(dict.fromkeys(a.compiler for a in build.artifacts if a.compiler)),
        "lacking": build_output.lacking(raw),
        "logs": list(tried.logs),
        "kernels": [] if build is None else build_output.kernels(build),
        "against": build_output.against(tried.against),
        "geomean": None if mean is None else {"speedup": mean.speedup, "ci_low": mean.ci_low, "ci_high": mean.ci_high},
        "cases": [
            {"case_id": c.case_id, "speedup": c.speedup, "a_us": c.a_us, "b_us": c.b_us}
            for c in (bench.cases if bench is not None else ())
        ],
    }


def _fine(tried: Tried) -> bool:
    """The candidate was built and nothing died, or only the incumbent that a build is held against."""
    build = next((b for b in tried.raw.builds if b.arm == "B"), None)
    died = tried.raw.died is not None and tried.against is None
    return not died and not tried.faults and (build is None or build.ok)


def _word(tried: Tried) -> str:
    """One word for what came out, worst first."""
    from kernelpilot_helpers.correctness import Broken, Wrong

    if isinstance(tried.verification, Wrong):
        return "WRONG"
    if isinstance(tried.verification, Broken) or not _fine(tried):
        return "BROKEN"
    if tried.verification is not None:
        return "CORRECT"
    if tried.against is not None and tried.against.same:
        return "SAME"
    if tried.against is not None and not build_output.compiled(tried.raw):
        return "IMPORTED"
    return tried.bench.verdict if tried.bench is not None else "BUILT"


def _looks(tried: Tried) -> str:
    """What a big difference at screen tier is called: a few pairs decide nothing, and nobody should miss it."""
    from kernelpilot_helpers import policy

    bench = tried.bench
    if bench is None or bench.tier != policy.SCREEN.name or bench.verdict != "AMBIGUOUS":
        return ""
    margin, point = policy.DEVICES[bench.device].noninferiority, bench.geomean.speedup
    if 1 - margin <= point <= 1 + margin:
        return ""
    return f"; looks {'faster' if point > 1 else 'slower'}; not evidence"


def _finding(found: Finding) -> str:
    named = not found.case_id or f"case {found.case_id}" in found.text
    return f"{found.code}: {found.text}" + ("" if named else f" (case {found.case_id})")


def _findings(tried: Tried) -> list[str]:
    """One line for what is said of several cases, the cases first; what the first line says already is left out."""
    cases: dict[tuple[str, str, str], list[str]] = {}
    for found in getattr(tried.verification, "findings", ()):
        if _finding(found) != tried.meta.result:
            cases.setdefault((found.code, found.text, found.output), []).append(found.case_id)
    lines = []
    for (code, text, output), names in cases.items():
        known = [name for name in dict.fromkeys(names) if name]
        more = f" and {len(known) - SHOWN_CASES} more" if len(known) > SHOWN_CASES else ""
        where = [f"case {', '.join(known[:SHOWN_CASES])}{more}"] if known else []
        where += [f"output {output}"] if output else []
        lines.append(f"{', '.join(where)}: {code}: {text}" if where else f"{code}: {text}")
    rest = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"... and {rest} more: --json lists all"] if rest > 0 else [])]


def words(tried: Tried, data: dict[str, Any]) -> str:
    """The same for a person."""
    from kernelpilot_helpers import units
    from kernelpilot_helpers.correctness import own_frames

    reason = data["reason"].removeprefix(f"{data['verdict']}: ")
    if data["verdict"] == "IMPORTED":
        why = f"this Python has no {' and no '.join(data['lacking'])}" if data["lacking"] else build_output.LATER
        reason = f"nothing was compiled: {why}"
    looks = _looks(tried)
    lines = [f"{data['verdict']} {data['variant']}: {reason}{looks}   [{data['mode']}, {data['id']}]"]
    build = data["build"]
    if build is not None and (data["mode"] == "build" if build["ok"] else not tried.faults):
        lines.append(f"  built in {build['seconds']:.2f} s" if build["ok"] else "  the build failed:")
        lines += [f"    {line}" for line in build_output.shown(build["log"])]
        lines += [f"    the whole log: {path}" for path in data["logs"]]
    if data["mode"] == "build":
        lines += build_output.words(data)
    lines += [f"  {line}" for line in _findings(tried)]
    lines += [
        f"  {c['case_id']:<24} {units.micros(c['a_us']):>10} -> {units.micros(c['b_us']):>10}  "
        f"{units.percent(c['speedup'])}"
        for c in data["cases"]
    ]
    if data["geomean"] is not None:
        lines.append(f"  geomean {units.percent(data['geomean']['speedup'])}")
    died = tried.raw.died
    if (
        died is not None and died.log and (build is None or build["ok"]) and not data["ok"]
    ):  # else the build's log has told it
        lines += [f"    {line}" for line in own_frames(died.log).splitlines()[-12:]]
    lines.append(f"  {WATERMARK}")
    return "\n".join(lines)


def options(function: Any) -> Any:
    """The options that the four share."""
    return click.argument("variant", required=False)(common.repo_option(common.json_option(function)))
