"""One line: what to do now. Pure, from the same evidence and report that the gate has."""

from __future__ import annotations

from collections.abc import Iterator

from kernelpilot_helpers import plan
from kernelpilot_helpers.contract import device
from kernelpilot_helpers.contract.model import Contract
from kernelpilot_helpers.evidence.model import MISSING, Evidence, LoopFacts
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.decide import decide
from kernelpilot_helpers.gate.done import lane
from kernelpilot_helpers.gate.final_facts import FINAL_PATH, FIX
from kernelpilot_helpers.gate.model import Finding, Report
from kernelpilot_helpers.gate.rules_repo import was_locked
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.records import Fault

PLAN = "kernelpilot plan"
STUB = "raise NotImplementedError("


def next_step(evidence: Evidence, report: Report) -> str:
    """The command to type now, or the edit to make, in one line."""
    return _flat(_before_lock(evidence) or _mend(evidence, report) or _onward(evidence, report))


def _flat(text: str) -> str:
    """One line; the two blanks that set a shell comment off are kept."""
    return "  # ".join(" ".join(part.split()) for part in text.split("  # "))


def _before_lock(evidence: Evidence) -> str:
    contract = evidence.contract
    if isinstance(contract, Fault) and contract.what == MISSING and not evidence.git.commits:
        return "kernelpilot scaffold DIR --task NAME"
    if isinstance(contract, Fault) or not isinstance(evidence.lock, Fault) or was_locked(evidence):
        return ""
    if plan.PATH not in evidence.files:
        return PLAN
    stubs = [path for path in _written_by_hand(contract) if STUB in evidence.files.get(path, "")]
    if stubs:
        return f"write {' and '.join(stubs)}, still a stub; the lock comes after it"
    if device(contract.target) == "gpu":
        named = contract.target.gpu
        which = "an NVIDIA GPU" if named.lower() in ("", "any", "cuda") else f"the {named}"
        return f"kernelpilot lock  # it measures, so on a machine with {which}"
    return "kernelpilot lock"


def _written_by_hand(contract: Contract) -> Iterator[str]:
    specs = (contract.reference.fn, *(one.fn for one in contract.baseline))
    yield from dict.fromkeys(spec.partition(":")[0] for spec in specs)


def _mend(evidence: Evidence, report: Report) -> str:
    """The fix of the first finding that stands in the way; a missing loop comes after what is broken."""
    red = [f for f in report.findings if f.severity != "trend"]
    if not red:
        return ""
    if evidence.loop is None and red[0].severity == "repair" and any(f.rule == "3" for f in red):
        return _set_up(evidence)
    return _set_up(evidence) if red[0].fix == facts.SETUP else _line(red[0])


def _set_up(evidence: Evidence, why: str = "") -> str:
    """The loop's set-up; it reads the plan, which is made again where it is gone."""
    if plan.PATH not in evidence.files:
        return f"{PLAN}  # the loop's set-up reads it"
    return f"{facts.SETUP}  # {why}" if why else facts.SETUP


def _line(found: Finding) -> str:
    return f"{found.fix}  # rule {found.rule}, {found.where}: {found.what}"


def _onward(evidence: Evidence, report: Report) -> str:
    loop = evidence.loop
    over = loop is not None and not loop.active
    if not report.done.met and not (loop is not None and loop.phase == "COMPLETE"):
        if over:
            return _set_up(evidence, f"the loop ended as {loop.phase if loop else ''} and the work is not done")
        return _parked(loop) or _work(evidence, report)
    if FINAL_PATH not in evidence.files:
        return FIX
    final = [f for f in decide(evidence, POLICY, final=True).findings if f.severity != "trend"]
    if final:
        return _line(final[0])
    if loop is not None and over:
        return f"finished: the loop is {loop.phase} and the gate passes; nothing is left to do"
    if loop is not None and loop.phase == "PARKED":
        return _parked(loop)
    if loop is not None and loop.phase == "FINALIZE":
        return _end(loop)
    return "write the round's summary, then stop and let the Stop hook review"


def _parked(loop: LoopFacts | None) -> str:
    """How a parked loop goes on, and why it waits; empty for any other loop."""
    if loop is None or loop.phase != "PARKED":
        return ""
    why = next((stop.reason for stop in reversed(loop.stops) if stop.outcome == "PARKED"), "")
    return f"{facts.RESUME}  # once this is mended: {why or 'the loop is parked'}"


def _end(loop: LoopFacts) -> str:
    page = f"{loop.directory}/finalize-summary.md"
    if loop.finalized:
        return f"{facts.ASK}  # {page} is written; mend what it still names, then stop"
    return f"write {page}, then stop and let the Stop hook accept the end"


def _work(evidence: Evidence, report: Report) -> str:
    """While the target is not met: the next attempt, or what to read before it; then what the finish lane lacks."""
    course = report.course
    if course.kind == "widen":
        return f"{course.lines[0].partition('  # ')[0]}  # {course.why}"
    if any(not words.startswith(tuple(_lane_paths(evidence))) for words in report.done.missing):
        return f'kernelpilot attempt {facts.variants(evidence)}/NAME --motivation "why it should be faster"'
    return report.done.missing[0].rpartition(": ")[2]


def _lane_paths(evidence: Evidence) -> Iterator[str]:
    yield from (words.partition(" ")[0] for words in lane(evidence))
