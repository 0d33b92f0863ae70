"""What a GPU job shows beside its checks: which kernels ran, what the sanitizer found, which probes were made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kernelpilot_helpers.attempt.raw import Check, KernelUse, Raw
from kernelpilot_helpers.policy import POLICY

from .outcome import Expectation, Finding

LIBRARY = "policy.library_call"
SANITIZER = "memory.sanitizer"
UNFINISHED = "sanitizer.unfinished"
FORBIDDEN = "the library computes it, and policy.library_calls = false in contract.toml forbids that"
NAMED = 3
NAME_CHARS = 60
FIXES = {
    "capture.event_node": "record no external event inside a call; join streams with plain events",
    "capture.legacy_stream": "launch on the current stream (torch.cuda.current_stream()), not on the default one",
    "capture.unjoined": "make the current stream wait for an event recorded on the side stream before returning",
    "capture.sync": "do not wait for the GPU inside a call: no synchronize(), .item(), .cpu(), or print of a tensor",
    "capture.allocation": "take memory once, in prepare(), or from the framework's allocator, not by cudaMalloc",
    "capture.empty": "launch at least one kernel on the current stream; nothing was captured",
    "capture.invalid": "compile, tune and load libraries in prepare() or in the first calls, not while captured",
    "capture.host_node": "launch kernels only: a host function inside a call is work that the GPU's clock cannot see",
    "capture.failed": "run one call under torch.cuda.graph() yourself to see which statement it does not take",
}
"""Reason code -> what to change in the candidate."""


def _program(raw: Raw, arm: str) -> str:
    return next((b.build_key for b in raw.builds if b.arm == arm), "")


def _copied(raw: Raw, arm: str) -> bool:
    """Whether this arm is the program of another one: the baseline may call the library, also when it is arm B."""
    mine = _program(raw, arm)
    return bool(mine) and any(b.build_key == mine for b in raw.builds if b.arm != arm)


def _cases(raw: Raw, arm: str) -> dict[str, list[KernelUse]]:
    found: defaultdict[str, list[KernelUse]] = defaultdict(list)
    for use in raw.inventory:
        if use.arm == arm:
            found[use.case_id].append(use)
    return dict(sorted(found.items()))


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARS else f"{name[: NAME_CHARS - 3]}..."


def _foreign(uses: Sequence[KernelUse]) -> tuple[float, str]:
    """(share of the GPU time in what the arm did not build, the longest of that by name)."""
    total = sum(u.ns for u in uses)
    spent: defaultdict[str, int] = defaultdict(int)
    for use in uses:
        if not use.ours:
            spent[use.name] += use.ns
    longest = sorted(spent, key=lambda name: (-spent[name], name))
    more = f" and {len(longest) - NAMED} more" if len(longest) > NAMED else ""
    named = ", ".join(_short(name) for name in longest[:NAMED]) + more
    if not total:  # names read off a graph have no duration: they say something only where all are the arm's own
        return float(bool(spent)), named
    return sum(spent.values()) / total, named


def _shares(raw: Raw, arm: str) -> Iterator[tuple[str, str]]:
    """(case, words) where too much of the time is not the candidate's own."""
    for case, uses in _cases(raw, arm).items():
        share, named = _foreign(uses)
        if share > POLICY.library_share:
            yield case, f"{share * 100:.0f} % of the GPU time is in what this candidate did not build: {named}"


def offences(raw: Raw, arm: str, expectation: Expectation) -> tuple[Finding, ...]:
    """Errors that the sanitizer found, and cases where the library does the work although the contract forbids it."""
    found = [
        Finding(code=SANITIZER, text=f"{run.tool} found {run.errors} errors", case_id=run.case_id, arm=arm)
        for run in raw.sanitizer
        if run.errors
    ]
    if not expectation.library_calls and not _copied(raw, arm):
        shares = _shares(raw, arm)
        found += [Finding(code=LIBRARY, text=f"{text}; {FORBIDDEN}", case_id=c, arm=arm) for c, text in shares]
    return tuple(found)


def notes(raw: Raw, arm: str, expectation: Expectation) -> tuple[str, ...]:
    """What is no fault and must be said: a sanitizer that did not finish, a library that was allowed to work."""
    unfinished = [
        f"{UNFINISHED}: {run.tool} on case {run.case_id}: {run.note or 'it did not finish'}"
        for run in raw.sanitizer
        if run.errors is None
    ]
    allowed = expectation.library_calls or _copied(raw, arm)
    shares = [f"library.share: case {case}: {text}" for case, text in _shares(raw, arm)] if allowed else []
    return (*unfinished, *shares)


def _probed(raw: Raw, checks: Sequence[Check], arm: str, expectation: Expectation) -> Iterator[Finding]:
    made = {(c.case_id, c.output, c.probe) for c in checks}
    uncaptured = {e.case_id for e in raw.events if e.kind == "note.capture" and e.arm in (arm, "")}
    for case in expectation.cases if expectation.seeds else ():
        captured = expectation.graph and case not in uncaptured and "" not in uncaptured
        for probe in ("graph", "late") if captured else ("late",):
            if lost := [out for out in expectation.outputs_of(case) if (case, out, probe) not in made]:
                text = f"output {', '.join(lost)} was not compared under the probe {probe}"
                yield Finding(code="evidence.missing", text=text, case_id=case, arm=arm)


def missing(raw: Raw, checks: Sequence[Check], arm: str, expectation: Expectation) -> Iterator[Finding]:
    """What a GPU job must hold and does not: probes, inventories, a sanitizer that was asked for."""
    if not expectation.gpu:
        return
    yield from _probed(raw, checks, arm, expectation)
    held = _cases(raw, arm)
    why = next((f" ({e.detail})" for e in raw.events if e.kind == "note.inventory" and e.detail), "")
    unwatched = bool(why) and expectation.library_calls
    for case in expectation.timed_cases:
        if case not in held and not unwatched:
            text = f"nobody saw which kernels a call runs{why}"
            yield Finding(code="evidence.missing", text=text, case_id=case, arm=arm)
    if expectation.sanitized and not raw.sanitizer:
        yield Finding(code="evidence.missing", text="the sanitizer was asked for and did not report", arm=arm)


def fix_of(code: str) -> str:
    """What to change, as a clause for the end of a reason; empty for a code that needs none."""
    return f"; {FIXES[code]}" if code in FIXES else ""
