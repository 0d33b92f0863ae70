"""The tables of ``artifacts/FINAL.md``. Each line that holds a figure ends in the run or file it was read from."""

from __future__ import annotations

import math
from collections import Counter

from kernelpilot_helpers import ledger, tables
from kernelpilot_helpers.attempt.job import JobCase
from kernelpilot_helpers.correctness import Verification, rms_allowed
from kernelpilot_helpers.dispatcher import TABLE_PATH, ShapeRule
from kernelpilot_helpers.gate.final_facts import (
    PER_RUN,
    FinalFacts,
    bench_of,
    cite,
    direct_run,
    direct_runs,
    ratio,
    reviewer_of,
    sure,
    timed_run,
    verification_of,
)
from kernelpilot_helpers.ledger import Row
from kernelpilot_helpers.policy import CPU, POLICY, Numerics

LOCK = "artifacts/contract.lock.json"
MAP = "artifacts/performance-map.json"


LIMITS = (
    "Few rows may stray further by chance, so their limit is wider; "
    "fewer than 64 elements, or a baseline that other calls show worse, widen it more."
)


def kernel_cells(facts: FinalFacts, row: Row) -> tuple[str, ...]:
    """One kernel: where its files are, by name and by tree."""
    run = timed_run(facts.evidence, row)
    return (
        row.version,
        f"src/{facts.contract.task.name}/variants/{row.variant}",
        row.tree,
        row.commit,
        row.language,
        row.motivation.text,
        ledger.interval(row.gain, sure(facts.evidence, row, run)),
        cite(run),
    )


def rule_cells(number: int, rule: ShapeRule) -> tuple[str, ...]:
    """One rule of the dispatcher."""
    guards = [f"{g.low} <= {g.axis} <= {g.high}" for g in rule.guards]
    guards += [f"{name} = {value}" for name, value in sorted(rule.flags.items())]
    return (
        str(number), rule.regime, " and ".join(guards) or "any", rule.version, rule.variant, rule.tree, rule.why,
        cite(TABLE_PATH),
    )  # fmt: skip


def tuning(facts: FinalFacts) -> str:
    """The performance map: versions by cases, against the baseline."""
    found = facts.evidence.tuning.map
    if found is None:
        return f"No performance map was measured (no {MAP}). Make one: `kernelpilot tune`.\n"
    runs = {v.version: v.run for v in found.variants}
    cells = {(c.case_id, c.version): c for c in found.cells}
    body = []
    for case in found.cases:
        line = [case.case_id, case.regime, "held out" if case.held_out else "required" if case.required else "optional"]
        for version, run in runs.items():
            cell = cells.get((case.case_id, version))
            value = cell.vs_baseline if cell else None
            shown = ratio(value.speedup, value.ci_low, value.ci_high) if value else "not measured"
            line.append(f"{shown} {cite(run)}")
        body.append(line)
    head = f"Speed-up over the baseline, measured {found.at} in epoch {found.epoch} {cite(MAP)}"
    return f"{head}\n\n{tables.render(('Case', 'Regime', 'Kind', *runs), body)}"


def _kind(case: JobCase) -> str:
    words = [word for word, on in (("edge", case.edge), ("held out", case.held_out), ("timed", case.timed)) if on]
    return ", ".join(words) or "verified only"


def _case_verdict(case_id: str, judged: Verification) -> str:
    found = [finding.code for finding in judged.findings if finding.case_id == case_id]
    if found:
        return f"{judged.verdict} ({', '.join(found)})"
    if not any(worst.case_id == case_id for worst in judged.worst):
        return "not checked"
    return judged.verdict


def correctness(facts: FinalFacts) -> str:
    """Case x (seeds, verdict, worst error) of the selected version, edges and held-out shapes included."""
    lock = facts.lock
    survivors = f"; not noticed: {', '.join(lock.survivors)}" if lock.survivors else ""
    audit = f"Task audit: {lock.mutation_score} wrong programs noticed{survivors} {cite(LOCK)}\n"
    found = verification_of(facts.evidence, facts.best)
    if found is None:
        return f"{audit}\nNo verification of {facts.best.version} can be read {cite(facts.best.version)}\n"
    run, judged = found
    body = []
    for case in facts.evidence.cases:
        worst, limit = _rms(facts, case, judged)
        verdict = _case_verdict(case.case_id, judged)
        body.append((case.case_id, _kind(case), str(POLICY.verify_seeds), verdict, worst, limit, cite(run)))
    head = f"{judged.checks} comparisons with the reference of {facts.best.version} {cite(run)}"
    columns = ("Case", "Kind", "Seeds", "Verdict", "Worst rms error over the baseline's", "Limit at least", "Run")
    return f"{audit}\n{head}. {LIMITS}\n\n{tables.render(columns, body)}"


def _rms(facts: FinalFacts, case: JobCase, judged: Verification) -> tuple[str, str]:
    """(worst ratio over the outputs of a case, the limit for as many rows as that output has)."""
    found = [(w.rms_ratio, w.output) for w in judged.worst if w.case_id == case.case_id and w.rms_ratio is not None]
    if not found:
        return "-", "-"
    worst, output = max(found)
    shape = next((tensor.shape for tensor in case.tensors if tensor.name == output), ())
    limits = Numerics(rms_ratio=facts.contract.numerics.rms_ratio)
    return f"{worst:.3g}", f"{rms_allowed(limits, math.prod(shape[:-1])):.3g}"


def benchmark(facts: FinalFacts) -> str:
    """Times of each baseline and of the selected version, case by case, from the direct runs."""
    known = [direct_run(facts.evidence, facts.best)]
    if facts.several:
        known = list(direct_runs(facts.evidence, facts.best)) or known
    named = [one.id if facts.several else "Baseline" for one in facts.contract.baseline]
    return "\n".join(_direct(facts, run, name) for run, name in zip(known, named, strict=False))


def _direct(facts: FinalFacts, run: str, name: str) -> str:
    bench = bench_of(facts.evidence, run)
    if bench is None:
        return f"There is no direct run of {facts.best.version} against the baseline.\n"
    head = (
        f"{bench.pairs} cross-over pairs, objective {bench.objective}, intervals at "
        f"{sure(facts.evidence, facts.best, run)}; times are medians in us a call {cite(run)}"
    )
    columns = ("Case", "Kind", f"{name} us", f"{facts.best.version} us", "Speed-up [CI]", "Run")
    body = [
        (
            case.case_id,
            "required" if case.required else "optional",
            f"{case.a_us:.2f}",
            f"{case.b_us:.2f}",
            ratio(case.speedup, case.ci_low, case.ci_high),
            cite(run),
        )
        for case in bench.cases
    ]
    return f"{head}\n\n{tables.render(columns, body)}"


def unsupported(facts: FinalFacts) -> str:
    """Where nothing is promised."""
    contract, lines = facts.contract, []
    for name, axis in contract.axes.items():
        if axis.var:
            lines.append(f"- {name} below {axis.var[0]} or above {axis.var[1]} [contract.toml]")
        elif axis.values:
            lines.append(f"- {name} other than {', '.join(map(str, axis.values))} [contract.toml]")
    lines += [f"- shapes that break `{rule}` [contract.toml]" for rule in contract.constraints]
    dtypes = ", ".join(f"{name} {tensor.dtype}" for name, tensor in contract.tensors.items())
    lines.append(f"- dtypes other than {dtypes} [contract.toml]")
    untimed = [case.case_id for case in facts.evidence.cases if not case.timed]
    if untimed:
        lines.append(f"- speed on shapes that are verified but not timed: {', '.join(untimed)} [workloads/cases.jsonl]")
    if facts.evidence.tuning.table:
        lines.append(f"- shapes outside the dispatcher's guards: the baseline runs {cite(TABLE_PATH)}")
    return "\n".join(lines) + "\n"


def rejected(facts: FinalFacts) -> str:
    """How many of each verdict, and every attempt that was not selected."""
    counts = Counter(f"{row.verdict}" for row in facts.tried)
    words = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    head = f"{len(facts.tried)} attempts and rechecks: {words} {cite(ledger.LINEAGE_PATH)}"
    body = []
    for row in facts.tried:
        if row.kind == "attempt" and row.status == "selected":
            continue
        run = timed_run(facts.evidence, row) or (row.runs[-1] if row.runs else "")
        name = f"{row.version} (recheck)" if row.kind == "recheck" else row.version
        body.append((name, str(row.epoch), row.motivation.text, row.verdict or "-", row.reason, cite(run)))
    if not body:
        return f"{head}\n\nNothing was rejected.\n"
    return f"{head}\n\n{tables.render(('Version', 'Epoch', 'Idea', 'Verdict', 'Reason', 'Run'), body)}"


def environment(facts: FinalFacts) -> str:
    """Where the figures of the selected version come from."""
    run = direct_run(facts.evidence, facts.best) or (facts.best.runs[-1] if facts.best.runs else "")
    found = facts.evidence.runs.get(run)
    shown = {
        key: value
        for key, value in sorted((found.env if found else {}).items())
        if key not in PER_RUN | {"boot_id"} and isinstance(value, (str, int, float, bool))
    }
    if not shown:
        return f"{cite(run)} has recorded no environment.\n"
    return "\n".join(f"- {key}: {' '.join(str(value).split())} {cite(run)}" for key, value in shown.items()) + "\n"


def reproduce(facts: FinalFacts) -> str:
    """The commands, from a clone of this repository."""
    commands = ["kernelpilot ledger check    # rows, hash chain, seals and verdicts judged again"]
    if facts.best.kind != "baseline":
        commands += [
            f'kernelpilot attempt {facts.best.variant} --again --motivation "recheck"    # a new row, measured now',
            "kernelpilot report --final    # this page with that row",
        ]
    commands.append("kernelpilot gate --final    # this page against the evidence, and every other rule")
    return "```sh\n" + "\n".join(commands) + "\n```\n"


def unverified(facts: FinalFacts) -> str:
    """What nobody should read into this page."""
    lines = [f"- rule {entry}" for entry in facts.unevaluated]
    if facts.on_cpu:
        lines.append(f"- {CPU.note}")
    reviewer = reviewer_of(facts.evidence)
    # Written before the loop ends, and held against the evidence after it: no word here may depend on its phase.
    if reviewer == "evidence-only":
        lines.append("- The loop's reviewer is evidence-only: it reads no code and adds nothing to what the gate says.")
    elif reviewer:
        lines.append(f"- The loop's reviewer is {reviewer}; its opinion is not evidence.")
    else:
        lines.append("- No loop is on record: no reviewer read the code.")
    if facts.lock.survivors:
        lines.append(f"- A candidate that is wrong like {', '.join(facts.lock.survivors)} would pass {cite(LOCK)}")
    if facts.evidence.tuning.table is None:
        lines.append("- No dispatcher was validated; figures hold for the selected version alone.")
    return "\n".join(lines) + "\n"
