"""``artifacts/FINAL.md`` as text, from the evidence alone: the same evidence always gives the same bytes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence

from kernelpilot_helpers import ledger, tables
from kernelpilot_helpers.dispatcher import CODE_PATH, TABLE_PATH
from kernelpilot_helpers.gate import done, final_gpu
from kernelpilot_helpers.gate import final_matrices as matrices
from kernelpilot_helpers.gate.final_facts import (
    FINAL_PATH,
    FIX,
    JOURNAL_PATH,
    FinalFacts,
    amendments_of,
    cite,
    direct_run,
    direct_runs,
    figure_faults,
    fine,
    sure,
)
from kernelpilot_helpers.gate.model import Done
from kernelpilot_helpers.policy import CPU
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.units import times

NOTE = "<!-- Generated from the evidence; a change made here is named by the gate. Render again: {} -->"
CLIP = 140


def _task(facts: FinalFacts) -> str:
    contract = facts.contract
    words = " ".join(contract.task.summary.split())
    lines = [
        f"- Name: {contract.task.name} ({contract.task.op})" + (f": {words}" if words else ""),
        f"- Device: {contract.target.gpu} x {contract.target.count} [contract.toml]",
        f"- Target: {times(contract.target.speedup)} of the baseline's speed [contract.toml]",
        f"- Contract epoch: {facts.lock.epoch}, locked {facts.lock.locked_at} [artifacts/contract.lock.json]",
    ]
    return "\n".join([*lines, *_amended(facts)]) + "\n"


def _amended(facts: FinalFacts) -> list[str]:
    """What the work was judged by in the end is not what it began with: each change, and why."""
    if facts.evidence.loop is None:
        return ["- Amended while the loop ran: not known, no loop is on record."]
    said = amendments_of(facts.evidence)
    where = cite(JOURNAL_PATH)
    if not said:
        return [f"- Amended while the loop ran: none, neither plan nor evidence {where}"]
    return [f"- Amended while the loop ran: {words} {where}" for words in said]


def _result(facts: FinalFacts) -> str:
    best, run = facts.best, direct_run(facts.evidence, facts.best)
    if best.kind == "baseline":
        lines = [f"- Selected: the baseline {cite(best.version)}; no attempt was shown to be faster."]
    else:
        lines = [f"- Selected: {best.version}, variant `{best.variant}` {cite(best.version)}"]
    over = best.vs_baseline
    if over is not None:
        shown = ledger.interval(over, sure(facts.evidence, best, run))
        whom = "the fastest baseline of each case" if facts.several else "the baseline"
        told = " ".join(map(cite, direct_runs(facts.evidence, best))) if facts.several else cite(run)
        lines.append(f"- Against {whom}: {times(over.speedup)}, {shown} {told}")
    lines += [decided] if (decided := final_gpu.decided_by(facts)) else []
    lines += [f"- {_target(facts, run)}", f"- {_stop(facts)}"]
    if facts.on_cpu:
        lines.append(f"- {CPU.note}")
    return "\n".join(lines) + "\n"


def _target(facts: FinalFacts, run: str) -> str:
    goal, over = facts.contract.target.speedup, facts.best.vs_baseline
    head = f"Target {times(goal)}"
    if over is None:
        return f"{head}: not met; there is no direct run against the baseline [contract.toml]"
    met, _ = done.target_met(facts.evidence)
    sides = f"the point estimate is {fine(over.speedup)}, the lower bound {fine(over.ci_low)}"
    return f"{head}: {'met' if met else 'not met'}; {sides} {cite(run)}"


def _stop(facts: FinalFacts) -> str:
    reason = " ".join(done.stopped(facts.evidence).split())
    early = " ".join(done.early_stop(facts.evidence).split())
    if not reason and early:
        return f"No stop decision stands: {early} {cite(ledger.LINEAGE_PATH)}"
    return f"Stop decision: {reason} {cite(ledger.LINEAGE_PATH)}" if reason else "No stop decision stands."


def _kernels(facts: FinalFacts) -> str:
    if not facts.kernels:
        return "No attempt was ever selected.\n"
    columns = ("Version", "Directory", "Tree", "Commit", "Language", "Core idea", "Against the incumbent", "Run")
    return tables.render(columns, [matrices.kernel_cells(facts, row) for row in facts.kernels])


def _fallback(facts: FinalFacts) -> str:
    base = next((row for row in reversed(facts.rows) if row.kind == "baseline"), None)
    tree = f", tree `{base.tree}` {cite(base.version)}" if base else ""
    lines = [f"- Baseline {b.id}: `{b.fn}`{tree}" for b in facts.contract.baseline]
    if facts.evidence.tuning.table:
        lines.append("- The dispatcher calls it for every shape that no rule covers.")
    else:
        lines.append("- Without a dispatcher, the caller must use it outside the shapes of W.")
    return "\n".join(lines) + "\n"


def _dispatcher(facts: FinalFacts) -> str:
    table = facts.evidence.tuning.table
    if table is None:
        return "None was generated (no dispatch/table.json). Make one: `kernelpilot dispatch`.\n"
    head = (
        f"Kind: {table.kind}; the first rule that matches wins; fallback: {table.fallback} {cite(TABLE_PATH)}. "
        f"`{CODE_PATH}` needs nothing of KernelPilot."
    )
    columns = ("Rule", "Regime", "Guards", "Version", "Variant", "Tree", "Why", "Source")
    body = [matrices.rule_cells(number, rule) for number, rule in enumerate(table.rules, start=1)]
    return f"{head}\n\n{tables.render(columns, body)}"


SECTIONS: tuple[tuple[str, Callable[[FinalFacts], str]], ...] = (
    ("Task", _task),
    ("Result", _result),
    ("Kernels", _kernels),
    ("Fallback", _fallback),
    ("Dispatcher", _dispatcher),
    ("Tuning", matrices.tuning),
    ("Correctness matrix", matrices.correctness),
    ("Benchmark matrix", lambda facts: matrices.benchmark(facts) + final_gpu.figures(facts)),
    ("Unsupported regimes", matrices.unsupported),
    ("What was tried and rejected", matrices.rejected),
    ("Environment", matrices.environment),
    ("How to reproduce", matrices.reproduce),
    ("Not verified", matrices.unverified),
)
HEADINGS = tuple(title for title, _ in SECTIONS)


def not_finished(said: Done) -> str:
    """The line that an inventory of unfinished work begins with; empty when the work is done.

    >>> not_finished(Done(met=False, why="v001 is short", missing=("the target: x",)))
    'NOT FINISHED: v001 is short; missing: the target: x'
    """
    if said.met:
        return ""
    missing = f"; missing: {'; '.join(said.missing)}" if said.missing else ""
    return " ".join(f"NOT FINISHED: {said.why}{missing}".split())


def final_text(facts: FinalFacts) -> str:
    """The whole page: the sections of ``HEADINGS`` in order, each figure followed by ``[run id]`` or ``[file]``."""
    parts = [NOTE.format(FIX), f"# {facts.contract.task.name}: final inventory"]
    if unfinished := not_finished(done.done(facts.evidence)):
        parts.append(f"**{unfinished}** {cite(ledger.LINEAGE_PATH)}")
    for title, section in SECTIONS:
        parts += [f"## {title}", section(facts).rstrip("\n")]
    return "\n\n".join(parts) + "\n"


def check_final(text: str, facts: FinalFacts) -> list[Fault]:
    """What differs between the page and its evidence: absent sections, changed lines, figures that no run backs."""
    want = final_text(facts).split("\n")
    got = text.split("\n")
    faults = [
        Fault(where=FINAL_PATH, what=f"section missing: {title}", fix=FIX)
        for title in HEADINGS
        if f"## {title}" not in got
    ]
    return [*faults, *_differences(got, want), *figure_faults(facts)]


def _differences(got: Sequence[str], want: Sequence[str]) -> Iterator[Fault]:
    for op, g1, g2, w1, w2 in difflib.SequenceMatcher(None, got, want, autojunk=False).get_opcodes():
        if op == "equal":
            continue
        said, true = _clip(got[g1:g2]), _clip(want[w1:w2])
        what = f"says {said}; the evidence says {true}"
        if op == "delete":
            what = f"says {said}; nothing in the evidence does"
        elif op == "insert":
            what = f"leaves out {true}"
        yield Fault(where=f"{FINAL_PATH}:{g1 + 1} ({_heading(got[: g1 + 1])})", what=what, fix=FIX)


def _clip(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    return repr(text if len(text) <= CLIP else f"{text[:CLIP]}...")


def _heading(lines: Sequence[str]) -> str:
    return next((line[3:] for line in reversed(lines) if line.startswith("## ")), "head")
