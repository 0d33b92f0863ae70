"""What ``artifacts/FINAL.md`` says of a GPU beside its benchmark matrix: the deciding run's figures and clocks."""

from __future__ import annotations

from kernelpilot_helpers import tables
from kernelpilot_helpers.evidence import gpu_run
from kernelpilot_helpers.gate.final_facts import FinalFacts, bench_of, cite


def decided_by(facts: FinalFacts) -> str:
    """The line below the result that says which times decided; empty on a CPU and for the baseline."""
    run = facts.best.confirmed_by or ""
    found, bench = facts.evidence.runs.get(run), bench_of(facts.evidence, run)
    words = gpu_run.decided_by(found.gpu, bench) if found and bench else ""
    return f"- Decided by: {words} {cite(run)}" if words else ""


def figures(facts: FinalFacts) -> str:
    """The reported figures of the deciding run, incumbent -> version; empty on a CPU and for the baseline."""
    run = facts.best.confirmed_by or ""
    found, bench = facts.evidence.runs.get(run), bench_of(facts.evidence, run)
    if found is None or bench is None or not any(case.method for case in bench.cases):
        return ""
    columns, body = gpu_run.table(found.gpu, bench)
    head = f"Figures of the deciding run, {facts.best.incumbent} -> {facts.best.version} {cite(run)}"
    clocks = gpu_run.clocks(found.gpu)
    tail = f"\n{clocks} {cite(run)}\n" if clocks else ""
    return f"\n{head}\n\n{tables.render((*columns, 'Run'), [(*line, cite(run)) for line in body])}{tail}"
