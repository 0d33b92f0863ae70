"""Why a candidate is wrong, read off which probes failed and which passed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelpilot_helpers.attempt.raw import Check, Stats
from kernelpilot_helpers.policy import Numerics

from . import words
from .limits import Fault, FaultKind, Yard, faults, together, yard
from .outcome import Expectation, Finding

STALE_SHARE = 0.5
"""At least this share of the elements is wrong: a stored answer, not a forgotten corner."""
NEAR_ULP = 16.0
"""A wrong element, an old answer or a missed tile is further off than this in every dtype that is supported."""
HOME_REGIMES = ("gen", "normal")


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """One check with the limits it broke."""

    check: Check
    faults: tuple[Fault, ...]

    @property
    def failed(self) -> bool:
        """Whether anything is wrong with it."""
        return bool(self.faults)

    @property
    def first(self) -> bool:
        """Whether this is the first call that its process made on its case."""
        return self.check.probe == "call" and self.check.call_ix == 0

    @property
    def late(self) -> bool:
        """Whether an earlier call of the same process could have left something behind."""
        return self.check.probe in ("repeat", "bitwise", "timed") or (
            self.check.probe == "call" and self.check.call_ix > 0
        )

    def has(self, kind: FaultKind) -> bool:
        """Whether a fault of this kind is among them."""
        return any(f.kind == kind for f in self.faults)


def weigh(checks: Sequence[Check], numerics: Numerics, expectation: Expectation) -> list[Judged]:
    """Hold each check to the limits, in units of the baseline's error over all calls on that kind of content."""
    groups: defaultdict[tuple[str, str, str], list[Stats]] = defaultdict(list)
    for check in checks:
        if check.stats is not None:
            groups[check.case_id, check.output, check.regime].append(check.stats)
    yards = {key: yard(stats) for key, stats in groups.items()}
    return [
        Judged(check=c, faults=_faults(c, numerics, expectation, yards.get((c.case_id, c.output, c.regime))))
        for c in checks
    ]


def _faults(check: Check, numerics: Numerics, expectation: Expectation, over: Yard | None) -> tuple[Fault, ...]:
    """A ``bitwise`` check passes with an empty note; any other check needs statistics."""
    if check.probe == "bitwise" and check.note:
        return (Fault(kind="tolerance", text=check.note),)
    if check.stats is None:
        text = check.note or "the output could not be compared"
        return () if check.probe == "bitwise" else (Fault(kind="tolerance", text=text),)
    return faults(check.stats, numerics, shape=expectation.shape(check.case_id, check.output), over=over)


def pooled(checks: Iterable[Check], numerics: Numerics, expectation: Expectation) -> list[Finding]:
    """Outputs whose calls are each within the limits and together are not."""
    groups: defaultdict[tuple[str, str], list[Check]] = defaultdict(list)
    for check in checks:
        groups[check.case_id, check.output].append(check)
    found: list[Finding] = []
    for (case, output), members in sorted(groups.items()):
        rows = (expectation.shape(case, output) or (0, 0))[0]
        for fault in together([c.stats for c in members if c.stats is not None], numerics, rows=rows):
            arm = members[0].arm
            found.append(Finding(code="wrong.tolerance", text=fault.text, case_id=case, output=output, arm=arm))
    return found


def _stale(bad: Sequence[Judged]) -> bool:
    late = [j.check for j in bad if j.late]
    if any(c.note.startswith("stale") for c in late):
        return True
    known = [c.where for c in late if c.where is not None]
    return bool(known) and all(w.bad >= STALE_SHARE * w.rows_total * w.cols_total for w in known)


def _only_other_regimes(bad: Sequence[Judged], good: Sequence[Judged]) -> bool:
    if any(j.check.regime in HOME_REGIMES for j in bad):
        return False
    # Content of another regime usually comes in a later call, so a home-regime later call must have passed.
    settled = any(j.first for j in bad) or any(j.late and j.check.regime in HOME_REGIMES for j in good)
    return settled and any(j.check.regime in HOME_REGIMES for j in good)


def _only_edges(bad: Sequence[Judged], good: Sequence[Judged], edges: Iterable[str]) -> bool:
    known = frozenset(edges)
    return all(j.check.case_id in known for j in bad) and any(j.check.case_id not in known for j in good)


def _later_call(bad: Sequence[Judged], good: Sequence[Judged]) -> bool:
    cases = {j.check.case_id for j in bad}
    clean_start = any(j.first and j.check.case_id in cases for j in good)
    return clean_start and not any(j.first for j in bad) and _regular(bad, good)


def _of(cases: Sequence[str], judged: Sequence[Judged]) -> list[Judged]:
    """Those of the first case: what it leaves behind may already spoil the first call of the next one."""
    return [j for j in judged if j.check.case_id in cases]


def _regular(bad: Sequence[Judged], good: Sequence[Judged]) -> bool:
    """Whether some kind of later call is mostly wrong, or just the second one is: an imprecise kernel is neither."""
    late = [j.check for j in bad if j.late]
    if late and {c.call_ix for c in late} == {1}:
        return True
    wrong = Counter((c.case_id, c.output, c.probe) for c in late)
    right = Counter((j.check.case_id, j.check.output, j.check.probe) for j in good if j.late)
    return any(count >= right[key] for key, count in wrong.items())


def _remembered(bad: Sequence[Judged]) -> bool:
    """The very first checked call gave what a call before it (the warm-up on a GPU) had answered to other content."""
    first = [j for j in bad if j.first]
    return any(j.check.note.startswith("stale") and not j.has("unwritten") and not j.has("nonfinite") for j in first)


def _kind(bad: Sequence[Judged]) -> tuple[str, str]:
    if any(j.has("unwritten") for j in bad):
        return "wrong.unwritten", "part of the output was never written"
    if any(j.has("nonfinite") for j in bad):
        return "wrong.nonfinite", "NaN or infinity where the reference has none, or the reverse"
    return "wrong.tolerance", ""  # the figures that follow say all


def _near_the_limit(bad: Sequence[Judged]) -> bool:
    """Errors of a few ulp everywhere: draws of luck decide which check fails, and none of them names a cause."""
    if any(j.check.probe == "bitwise" and j.check.note for j in bad):
        return False
    stats = [j.check.stats for j in bad if j.check.stats is not None and not j.check.note.startswith("stale")]
    return len(stats) == len(bad) and all(
        s.nonfinite_equal and not s.unwritten and not s.exact and s.max <= NEAR_ULP for s in stats
    )


def name(bad: Sequence[Judged], good: Sequence[Judged], expectation: Expectation) -> tuple[str, str]:
    """(code, what it means) for the failed checks ``bad``, at least one, beside the passed ones ``good``."""
    if _near_the_limit(bad):
        return "wrong.tolerance", (
            "a precision miss near the limit, which is set by the baseline's own error: sum in double or pairwise"
        )
    if (named := _by_probe(bad)) is not None:
        return named
    if _only_other_regimes(bad, good):
        regimes = ", ".join(sorted({j.check.regime for j in bad}))
        return "wrong.regime", f"right on ordinary content, wrong on: {regimes}"
    if _later_call(bad, good) or _later_call(*(_of(expectation.cases[:1], part) for part in (bad, good))):
        return _second(bad, good)
    if _only_edges(bad, good, expectation.edge_cases):
        cases = ", ".join(sorted({j.check.case_id for j in bad}))
        return "wrong.shape", f"right on the workload's shapes, wrong on edge or held-out ones: {cases}"
    if _remembered(bad):
        return "cheat.cache", "calls on new content give an old answer"
    return _kind(bad)


def _by_probe(bad: Sequence[Judged]) -> tuple[str, str] | None:
    """What is told by the kind of probe alone; None where several kinds failed together.

    ``graph`` and ``late`` are the GPU's: replayed on new content, and queued behind a slow writer of the inputs. A
    timed block is a replay too, so it may fail with them.
    """
    probes = {j.check.probe for j in bad}
    if probes == {"timed"}:
        return "cheat.timed_only", "correct when verified, wrong when timed"
    if probes == {"bitwise"} and all(j.check.note for j in bad):
        return "wrong.nondeterministic", "the same content twice gives different bits"
    if "late" in probes and probes <= {"late", "graph", "timed"}:
        return "wrong.stream", "reads its input before the stream has written it: the kernel runs on another stream"
    if "graph" in probes and probes <= {"graph", "timed"}:
        return "wrong.graph_only", (
            "right when called, wrong when replayed from a graph on new content: something was decided on the host "
            "at capture, or runs on another stream"
        )
    if "element" in probes and probes <= {"element", "timed", "bitwise"}:
        return "cheat.fingerprint", "the output did not follow a change of one element in the middle of an input"
    return None


def _second(bad: Sequence[Judged], good: Sequence[Judged]) -> tuple[str, str]:
    if _stale(bad):
        return "cheat.cache", "the first call is right; later calls on new content give an old answer"
    cases = {j.check.case_id for j in bad}
    wrong = [j.check.call_ix for j in bad if j.late]
    when = words.calls(wrong, [j.check.call_ix for j in good if j.check.case_id in cases])
    head = f"{when}: " if when else ""
    return "wrong.second_call", f"{head}something the first call left behind changes a later one"


def _place(check: Check, expectation: Expectation) -> str:
    axes = expectation.axes.get(check.case_id, {})
    return f"{words.explain(check.where, axes=axes)}: " if check.where is not None else ""


def _example(check: Check) -> str:
    shown = words.example(check.where) if check.where is not None else ""
    return f"; {shown}" if shown else ""


def brief(judged: Judged, expectation: Expectation) -> str:
    """Where one failed check is wrong, by how much first of all, and one example."""
    check = judged.check
    head = f"{check.output} in case {check.case_id}: {_place(check, expectation)}"
    return f"{head}{judged.faults[0].text}{_example(check)}"


def finding(judged: Judged, expectation: Expectation) -> Finding:
    """One failed check as a finding of its own kind, with every limit that it broke."""
    check = judged.check
    code = "wrong.nondeterministic" if check.probe == "bitwise" and check.note else _kind([judged])[0]
    about = f"{check.probe} {check.call_ix}, {check.regime} content, seed {check.seed_ix}"
    told = "; ".join(f.text for f in judged.faults)
    text = f"{_place(check, expectation)}{told} [{about}]{_example(check)}"
    return Finding(code=code, text=text, case_id=check.case_id, output=check.output, arm=check.arm)


def unlike(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding per (code, case, output, arm), the first of each, in order: a timed job repeats itself."""
    kept: dict[tuple[str, str, str, str], Finding] = {}
    for item in found:
        kept.setdefault((item.code, item.case_id, item.output, item.arm), item)
    return tuple(kept.values())
