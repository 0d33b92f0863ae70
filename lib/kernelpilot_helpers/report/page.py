"""From ``ReportData`` to HTML: every word is chosen here, the template only places it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from kernelpilot_helpers import ledger
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.gate.final_facts import PER_RUN
from kernelpilot_helpers.ledger import BenchFacts, Interval, Row
from kernelpilot_helpers.policy import CPU
from kernelpilot_helpers.report import chart
from kernelpilot_helpers.report.gpu_part import decided_by, gpu_part
from kernelpilot_helpers.report.loop_part import gate_part, loop_part
from kernelpilot_helpers.report.map_part import map_part
from kernelpilot_helpers.report.model import ReportData, RunFacts
from kernelpilot_helpers.units import percent, times

REPORT_PATH = "artifacts/report.html"
ORDER = ("IMPROVED", "SAME", "REGRESSED", "AMBIGUOUS", "WRONG", "BROKEN")
COMMANDS = (
    ("kernelpilot ledger check", "do the rows, their hash chain and the ledgers agree?"),
    (
        'kernelpilot attempt --again --motivation "recheck"',
        "measure the selected variant once more; the row is a recheck",
    ),
    ("kernelpilot gate", "every rule over the evidence: pass, done, findings"),
    ("kernelpilot report", "write this page again from the files"),
)


@cache
def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).with_name("templates"))
    env = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return env.get_template("report.html.j2")


def render(data: ReportData) -> str:
    """The whole page: one file, no script, nothing fetched. Text from candidates is escaped."""
    benches = data.benches()
    try:
        best: Row | None = ledger.best(data.rows, data.epoch)
    except Refused:
        best = None
    tried = [row for row in data.rows if row.kind in ("attempt", "recheck")]
    counts = Counter(str(row.verdict) for row in tried if row.verdict)
    return _template().render(
        task=data.task,
        summary=data.summary,
        note=CPU.note if data.gpu.lower() == "cpu" else "",
        headline=_headline(data, best, benches, n_tried=len(tried)),
        counts=[(word, counts[word]) for word in ORDER if counts[word]],
        attempts=[_line(data, row, benches, best.version if best else "") for row in tried],
        chart=chart.attempts(data.rows),
        legend=chart.legend(),
        best=_best_cases(data, best),
        gpu=gpu_part(data, best),
        wrong=[_explained(data, row) for row in tried if row.verdict in ("WRONG", "BROKEN")],
        env=_environment(data.runs.values()),
        trust=_trust(data),
        faults=data.faults,
        loop_=loop_part(data.evidence),
        gate=gate_part(data.gate),
        tuned=map_part(data.evidence),
        commands=COMMANDS,
    )


def _headline(data: ReportData, best: Row | None, benches: dict[str, BenchFacts], *, n_tried: int) -> dict[str, str]:
    if best is None or best.kind == "baseline":
        lead = "Nothing was attempted yet." if not n_tried else "No attempt was shown to be faster than the baseline."
        return {"lead": lead, "figure": "1.00x", "detail": "", "target": _target(data, None), "by": ""}
    sure = ledger.confidence(best.tier, ledger.row_facts(best, benches))
    over = best.vs_baseline
    return {
        "lead": f"{best.version} is the best version",
        "figure": times(over.speedup) if over else "not known",
        "detail": f"against {_whom(data)}, {ledger.interval(over, sure)}"
        if over
        else "no direct run against the baseline",
        "target": _target(data, over),
        "by": decided_by(data, best),
    }


def _whom(data: ReportData) -> str:
    return "the baseline" if data.baselines == 1 else f"the fastest of {data.baselines} baselines in each case"


def _target(data: ReportData, over: Interval | None) -> str:
    if data.target is None:
        return ""
    goal = f"Target {times(data.target)} of the baseline's speed"
    if over is None:
        return f"{goal}: not shown."
    if over.ci_low >= data.target:
        return f"{goal}: reached; even the lower bound is {times(over.ci_low)}."
    return f"{goal}: not shown; the lower bound is {times(over.ci_low)}."


def _line(data: ReportData, row: Row, benches: dict[str, BenchFacts], best: str) -> dict[str, Any]:
    facts = ledger.row_facts(row, benches)
    sure = ledger.confidence(row.tier, facts)
    return {
        "version": row.version + (" (recheck)" if row.kind == "recheck" else ""),
        "idea": row.motivation.text,
        "verdict": row.verdict or "none",
        "partial": row.partial,
        "mark": "current best" if row.version == best else "selected" if row.status == "selected" else "",
        "reason": row.reason,
        "gain": _figure(row.gain, sure, absent=f"no timing: {_why_untimed(data, row)}"),
        "gain_note": _why_unbacked(data, row) if row.gain else "",
        "vs_baseline": _figure(row.vs_baseline, sure, absent="-"),
        "worst": (facts.worst_case, percent(facts.worst_speedup)) if facts and facts.worst_speedup else ("", "-"),
        "runs": row.runs,
        "commit": row.commit[:10],
    }


def _figure(value: Interval | None, sure: str, *, absent: str) -> tuple[str, str]:
    if value is None:
        return absent, ""
    return percent(value.speedup), f"[{percent(value.ci_low)}, {percent(value.ci_high)}] at {sure}"


def _why_unbacked(data: ReportData, row: Row) -> str:
    run = row.confirmed_by or (row.runs[-1] if row.runs else "")
    if any(data.runs[r].bench for r in ([row.confirmed_by] if row.confirmed_by else row.runs) if r in data.runs):
        return ""
    problems = data.runs[run].problems if run in data.runs else ()
    return f"no readable timing behind it: {problems[0] if problems else f'{run} has no bench.json'}"


def _why_untimed(data: ReportData, row: Row) -> str:
    if row.verdict in ("WRONG", "BROKEN"):
        return "only correct candidates are timed"
    if row.reason.startswith("identical"):
        return "the built program is the incumbent's"
    if row.reason.startswith(ledger.IMPORTED):
        return "imported"
    problems = [what for run in row.runs if run in data.runs for what in data.runs[run].problems]
    return problems[0] if problems else "its runs hold no bench.json"


def _best_cases(data: ReportData, best: Row | None) -> dict[str, Any] | None:
    if best is None or best.kind == "baseline":
        return None
    run = best.confirmed_by or next((r for r in reversed(best.runs) if r in data.runs and data.runs[r].bench), "")
    facts = data.runs.get(run)
    if facts is None or facts.bench is None:
        why = facts.problems[0] if facts and facts.problems else "its run holds no bench.json"
        return {"version": best.version, "run": run, "svg": None, "why": why, "against": best.incumbent}
    svg = chart.cases(best.version, facts.bench.cases)
    far = best.incumbent != ledger.BASELINE
    note = "The figure on top of this page is against the baseline." if far else ""
    return {"version": best.version, "run": run, "svg": svg, "why": "", "against": best.incumbent, "note": note}


def _explained(data: ReportData, row: Row) -> dict[str, Any]:
    found = [data.runs[r].verification for r in row.runs if r in data.runs]
    verification = next((v for v in reversed(found) if v is not None and v.verdict != "Correct"), None)
    return {
        "version": row.version,
        "verdict": row.verdict,
        "reason": row.reason,
        "findings": [(f.code, f.text, f.case_id) for f in verification.findings] if verification else [],
        "log": verification.log[-4000:] if verification else "",
        "missing": "" if verification else "its runs hold no readable verify.json",
    }


def _environment(runs: Iterable[RunFacts]) -> list[tuple[str, str]]:
    seen: dict[str, dict[str, None]] = {}
    for run in runs:
        for key, value in run.env.items():
            if key not in PER_RUN and isinstance(value, (str, int, float, bool)):
                seen.setdefault(key, {})[str(value)] = None
    out: list[tuple[str, str]] = []
    for key in sorted(seen):
        values = list(seen[key])
        more = f" and {len(values) - 3} more" if len(values) > 3 else ""
        out.append((key, "; ".join(values[:3]) + more))
    return out


def _trust(data: ReportData) -> list[tuple[str, str]]:
    floors = [run.floor for run in data.runs.values() if run.floor is not None]
    last = max(floors, key=lambda f: f.at, default=None)
    score = f"{data.mutation_score} wrong programs noticed" if data.mutation_score else "no locked contract"
    if data.survivors:
        score += f"; not noticed: {', '.join(data.survivors)}"
    floor = "no A/A control on record"
    if last is not None:
        fit = "fit for a verdict" if last.fit else f"unfit: {last.reason}"
        floor = f"+-{last.half_width * 100:.2f} %, bias {last.point * 100:+.2f} % ({last.run}; {fit})"
    return [("Mutation score of the task audit", score), ("A/A floor: the baseline against itself", floor)]
