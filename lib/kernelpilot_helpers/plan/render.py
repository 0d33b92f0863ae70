"""A contract and its cases to a plan in the gen-plan layout."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpilot_helpers import tables
from kernelpilot_helpers.contract import Case, Contract, device, timed
from kernelpilot_helpers.plan.criteria import criteria, language, regimes
from kernelpilot_helpers.plan.model import SECTIONS, TASK_COLUMNS, Criterion, Task

_TASKS: tuple[tuple[str, str, tuple[str, ...], str, tuple[str, ...]], ...] = (
    ("T1", "Check the repository, write reference and baseline, lock the contract", ("repo", "krw"), "coding", ()),
    ("T2", "Record where the framework stands and keep it untouched", ("framework",), "analyze", ("T1",)),
    ("T3", "Verify and time the baseline on every case", ("correctness", "benchmark"), "coding", ("T1",)),
    ("T4", "Read sources, note each one, write the research digest", ("research", "sources"), "analyze", ("T1",)),
    ("T5", "Profile the baseline on one representative case, or record why not", ("baseline_profile",), "analyze",
     ("T3",)),
    ("T6", "Choose the language and record the provenance of what seeds the first candidate",
     ("language", "provenance", "from_scratch"), "coding", ("T4",)),
    ("T7", "Bring up a minimal correct candidate under time limits", ("bringup", "correctness"), "coding",
     ("T5", "T6")),
    ("T8", "Improve: one attempt a hypothesis, each with its row", ("attempts", "optimizations", "lineage"), "coding",
     ("T7",)),
    ("T9", "Digest profiles when a trigger asks for one, and answer each with the next attempt", ("digests",),
     "analyze", ("T7",)),
    ("T10", "Expand research after weak rounds; change the route when far off", ("stall", "reassess", "sources"),
     "analyze", ("T8",)),
    ("T11", "Map versions over W and write the dispatcher, or record that one version serves all", ("dispatch",),
     "coding", ("T8",)),
    ("T12", "Write the final inventory and decide to stop", ("inventory", "stop"), "coding", ("T9", "T11")),
)  # fmt: skip

_PROFILE = "`kernelpilot profile --version baseline`"
_ON_GPU = {
    "T5": f"Profile the baseline on one representative case: {_PROFILE}; where ncu cannot run, that records why",
}
"""Tasks that are worded for a GPU."""
_TASK_WORDS = "Every task names the criteria it serves; `coding` tasks change files, `analyze` tasks find out."


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _goal(made: Contract, cases: Sequence[Case]) -> str:
    count = sum(timed(c) for c in cases)
    words = made.task.summary or made.task.api or f"a kernel of kind {made.task.op}"
    kinds = regimes(cases)
    named = ", ".join(f"`{one.id}`" for one in made.baseline)
    beaten = (
        f"its baseline {named}" if len(made.baseline) == 1 else f"the fastest, case by case, of its baselines {named}"
    )
    return (
        f"Make `{made.task.name}` ({words}) at least {made.target.speedup:g} times as fast as {beaten} "
        f"on {made.target.gpu}, by the {made.objective.metric.replace('_', ' ')} over "
        f"{count} timed cases in {len(kinds)} regime{'s' * (len(kinds) > 1)} ({', '.join(kinds)}), and no required "
        "case slower. Correct means: within the locked error limits of the reference on every case, edge case and "
        "held-out case."
    )


def _criterion(item: Criterion) -> str:
    lines = [f"- {item.id} ({item.topic}): {item.text}"]
    for title, tests in (("Positive Tests", item.positive), ("Negative Tests", item.negative)):
        lines.append(f"  - {title}:")
        lines += [f"    - {test}" for test in tests]
    return "\n".join(lines)


def _boundaries(made: Contract) -> str:
    calls = "library calls" if made.policy.library_calls else "kernels of its own, without library calls"
    upper = (
        "A small family of kernels with a tested dispatcher, each version explained by a measurement, and a call path "
        "from the framework."
    )
    lower = (
        "One correct version, confirmed faster than the baseline by the target, with complete records and a fallback."
    )
    can = (
        f"variants below src/{made.task.name}/variants, {calls}, code under {', '.join(made.policy.licences)} with "
        "its provenance"
    )
    cannot = (
        "edits of contract, reference, cases, baseline, tests or benchmarks without an amended lock; results kept "
        "from earlier calls; figures that no run holds"
    )
    return (
        f"### Upper Boundary\n\n{upper}\n\n### Lower Boundary\n\n{lower}\n\n### Allowed Choices\n\n"
        f"- Can use: {can}\n- Cannot use: {cannot}"
    )


def _hints(made: Contract, baseline_profile: str) -> str:
    if baseline_profile:
        profile = f"Baseline profile: {baseline_profile}"
    elif device(made.target) == "cpu":
        profile = (
            "Baseline profile: none yet. On a CPU there is no GPU profiler: "
            "keep the tool's error text in the research digest."
        )
    else:
        profile = f"Baseline profile: none yet; it follows the first timing of the baseline: {_PROFILE}."
    return _bullets(
        [
            f"Language: {language(made)}.",
            profile,
            "Count bytes and operations of one call first: they say how far the baseline is from the roof.",
            "Passes over memory that can be merged usually pay before instruction tuning does.",
        ]
    )


def _sequence() -> str:
    return _bullets(
        [
            "Milestone 1, ground: T1 to T3. The contract is locked and the baseline measured.",
            "Milestone 2, knowledge: T4 to T6. Sources and the baseline's profile say where to begin.",
            "Milestone 3, candidates: T7 to T10. A correct one first, then faster ones, round by round.",
            "Milestone 4, delivery: T11 and T12. Dispatch, inventory, and the decision to stop.",
        ]
    )


def tasks(items: Sequence[Criterion], *, gpu: bool = False) -> tuple[Task, ...]:
    """The task table's rows, aimed at these criteria."""
    by_topic = {item.topic: item.id for item in items}
    said = _ON_GPU if gpu else {}
    return tuple(
        Task(
            id=name,
            description=said.get(name, words),
            targets=tuple(by_topic[t] for t in topics),
            tag=tag,
            depends=depends,
        )
        for name, words, topics, tag, depends in _TASKS
    )


def _table(rows: Sequence[Task]) -> str:
    cells = [[t.id, t.description, ", ".join(t.targets), t.tag, ", ".join(t.depends) or "-"] for t in rows]
    return tables.render(TASK_COLUMNS, cells).rstrip()


def _decisions(made: Contract) -> str:
    if made.policy.language == "any":
        return (
            "- DEC-1: the language is left open. Default: the baseline's own implementation system. "
            "Decision Status: decided by default; a word from the user changes it."
        )
    return "None: the contract leaves nothing open."


def _notes(made: Contract) -> str:
    return _bullets(
        [
            "Code and comments speak of the kernel, not of this plan: no criterion or task numbers in them.",
            f"Every figure in a text comes from a run; the selected version stands in src/{made.task.name}/current.",
            "The referee commits candidates and evidence: `kernelpilot attempt`, once a hypothesis.",
        ]
    )


def render(made: Contract, cases: Sequence[Case], *, baseline_profile: str = "") -> str:
    """The whole plan as Markdown. ``baseline_profile`` is a digest's id with its headline, or why there is none."""
    items = criteria(made, cases)
    rows = tasks(items, gpu=device(made.target) != "cpu")
    bodies = (
        _goal(made, cases),
        "\n".join(_criterion(item) for item in items),
        _boundaries(made),
        _hints(made, baseline_profile),
        _sequence(),
        f"{_TASK_WORDS}\n\n{_table(rows)}",
        (
            "Both sides of the plan, writer and reviewer, start from the locked contract; criteria follow from it.\n\n"
            "- Convergence Status: converged"
        ),
        _decisions(made),
        _notes(made),
    )
    parts = [f"## {name}\n\n{body}" for name, body in zip(SECTIONS, bodies, strict=True)]
    return f"# Plan: {made.task.name}\n\n" + "\n\n".join(parts) + "\n"
