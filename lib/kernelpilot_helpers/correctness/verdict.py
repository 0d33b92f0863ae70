"""``judge``: one raw record in, Correct, Wrong or Broken out. No evidence is never a pass."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kernelpilot_helpers.attempt.raw import Build, Check, Died, Event, Raw, Stats
from kernelpilot_helpers.policy import NUMERICS, Numerics

from . import device, limits, mutation, naming
from .device import FORBIDDEN, LIBRARY
from .naming import Judged
from .outcome import Blame, Broken, Correct, Expectation, Finding, Outcome, Worst, Wrong

WRONG_EVENTS = ("cheat", "policy", "memory", "check")
"""First words of event kinds that are the candidate's fault, worst first."""
BROKEN_EVENTS = ("build", "timeout", "crash", "protocol", "capture")
TALK_EVENTS = ("note", "info", "probe", "suspect", "env")
CANDIDATE = "B"
"""The arm whose kernels and memory accesses are watched."""
LOG_CHARS = 4000
GPU_DEATH = re.compile(r"gpu\.(absent|busy|memory)\b:?\s*(.*)")
"""Last words of an oracle that had no GPU to measure on."""


def _finding(event: Event) -> Finding:
    text = event.detail or event.kind
    if event.kind == LIBRARY:
        text += f"; {FORBIDDEN}"
    text += device.fix_of(event.kind)
    return Finding(code=event.kind, text=text, case_id=event.case_id, arm=event.arm)


def _kind(event: Event) -> str:
    return event.kind.partition(".")[0]


def _reason(findings: Sequence[Finding]) -> str:
    first = findings[0]
    where = f" (case {first.case_id})" if first.case_id and f"case {first.case_id}" not in first.text else ""
    return f"{first.code}: {first.text}{where}"


def _death_words(died: Died) -> tuple[str, str]:
    at = f"in {died.stage}" + (f" of case {died.case_id}" if died.case_id else "")
    if died.timeout:
        return "timeout", f"no answer within the limit {at}"
    if died.signal:
        return "crash.signal", f"{died.signal} {at}"
    if died.stage in ("build", "load"):
        return f"{died.stage}.failed", _last_line(died.log) or f"the {died.stage} step failed"
    if died.stage == "protocol":
        return "protocol.broken", _last_line(died.log) or "the worker answered out of turn"
    left = f"exit status {died.exit} " if died.exit is not None else ""
    return "crash.exit", f"{left}{at}: {_last_line(died.log) or 'no message'}"


def _last_line(log: str) -> str:
    return next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "")[:300]


def _died(died: Died, arm: str, events: Sequence[Event], cheats: Sequence[Finding]) -> Outcome:
    code, text = _death_words(died)
    log = died.log[-LOG_CHARS:]
    if died.stage == "oracle" or not died.arm:
        found = _no_gpu(died) or Finding(
            code="oracle.broken", text=f"the harness or the reference failed: {code}: {text}"
        )
        return Broken(stage="oracle", reason=_reason([found]), blame="harness", findings=(found,), log=log)
    if died.arm != arm:
        found = Finding(code="incumbent.broken", text=f"arm {died.arm}: {code}: {text}", arm=died.arm)
        return Broken(stage=died.stage, reason=_reason([found]), blame="incumbent", findings=(found,), log=log)
    named = [_finding(e) for e in events if _kind(e) == died.stage == "build"]
    death = Finding(code=code, text=text, case_id=died.case_id, arm=arm)
    of_talk = died.stage == "protocol" and any(f.code.startswith("cheat.") for f in cheats)
    if of_talk or any(f.code == "cheat.patched" for f in cheats):
        # Stray bytes or a replaced function are the offence; dying of it does not turn it into an accident.
        return Wrong(reason=_reason(cheats), findings=(*cheats, death))
    if ended := [f for f in cheats if f.code.startswith("cheat.") and _last_line(died.log).startswith(f"{f.code}:")]:
        return Wrong(reason=_reason(ended), findings=(*ended, death))  # the harness ended the arm for it
    found_all = (*named, death, *cheats)
    return Broken(stage=died.stage, reason=_reason(found_all), blame="candidate", findings=found_all, log=log)


def _no_gpu(died: Died) -> Finding | None:
    words = GPU_DEATH.search(_last_line(died.log))
    return Finding(code=f"gpu.{words[1]}", text=words[2] or "no GPU to measure on") if words else None


def _build_faults(build: Build) -> Iterator[Finding]:
    if not build.ok:
        yield Finding(code="build.failed", text=_last_line(build.log) or "the build failed", arm=build.arm)
        return
    if not build.build_id_ok:
        text = "the loaded library does not carry the id of this source: a stale or foreign binary"
        yield Finding(code="build.stale", text=text, arm=build.arm)
    made = {a.sha256 for a in build.artifacts}
    for path, sha256 in build.loaded:
        if sha256 not in made:
            yield Finding(code="build.foreign", text=f"{path} was loaded but not built here", arm=build.arm)


def _unbuilt(raw: Raw, arm: str) -> Broken | None:
    builds = [b for b in raw.builds if b.arm == arm]
    events = [e for e in raw.events if e.arm == arm and _kind(e) in BROKEN_EVENTS]
    found = [_finding(e) for e in events] + [f for b in builds for f in _build_faults(b)]
    if not builds:
        found.append(Finding(code="evidence.missing", text=f"no build record of arm {arm}", arm=arm))
    if not found:
        return None
    blame: Blame = "candidate" if builds or events else "harness"
    log = "\n".join(b.log for b in builds)[-LOG_CHARS:]
    stage = "capture" if found[0].code.startswith("capture.") else "build"
    return Broken(stage=stage, reason=_reason(found), blame=blame, findings=tuple(found), log=log)


def _offences(raw: Raw, arm: str, expectation: Expectation) -> tuple[Finding, ...]:
    """Events of this arm that make it Wrong: cheats first, then policy, memory and the contract's own check."""
    mine = [e for e in raw.events if e.arm == arm and _kind(e) in WRONG_EVENTS]
    if expectation.library_calls:
        mine = [e for e in mine if e.kind != LIBRARY]
    seen = [_finding(e) for e in mine]
    seen += device.offences(raw, arm, expectation) if arm == CANDIDATE else ()
    return naming.unlike(sorted(seen, key=lambda f: WRONG_EVENTS.index(f.code.partition(".")[0])))


def _unknown(raw: Raw, arm: str) -> Broken | None:
    known = (*WRONG_EVENTS, *BROKEN_EVENTS, *TALK_EVENTS)
    odd = sorted({e.kind for e in raw.events if e.arm == arm and _kind(e) not in known})
    if not odd:
        return None
    found = Finding(code="event.unknown", text=f"this tool does not know the event {', '.join(odd)}", arm=arm)
    return Broken(stage="event", reason=_reason([found]), blame="harness", findings=(found,))


def _missing(checks: Sequence[Check], expectation: Expectation) -> Iterator[Finding]:
    called = {(c.case_id, c.output, c.seed_ix) for c in checks if c.probe == "call"}
    timed = {(c.case_id, c.output) for c in checks if c.probe == "timed"}
    if not expectation.timed_cases and not (expectation.cases and expectation.seeds):
        yield Finding(code="evidence.missing", text="this job asked for no check at all")
    for case in expectation.cases if expectation.seeds else ():
        outputs = expectation.outputs_of(case)
        if not outputs:
            yield Finding(code="evidence.missing", text="the case has no output to compare", case_id=case)
        for out in outputs:
            if lost := [s for s in range(expectation.seeds) if (case, out, s) not in called]:
                text = f"output {out} was not compared for seed {', '.join(map(str, lost))}"
                yield Finding(code="evidence.missing", text=text, case_id=case, output=out)
    for case in expectation.timed_cases:
        for out in expectation.outputs_of(case):
            if (case, out) not in timed:
                text = f"output {out} was not rechecked while it was timed"
                yield Finding(code="evidence.missing", text=text, case_id=case, output=out)


def _finite(values: Iterable[float]) -> float | None:
    kept = [v for v in values if abs(v) < limits.HUGE]
    return max(kept) if kept else None


def worst(checks: Iterable[Check]) -> tuple[Worst, ...]:
    """Worst figures per (case, output) over all checks that carry statistics."""
    groups: defaultdict[tuple[str, str], list[Stats]] = defaultdict(list)
    for check in checks:
        if check.stats is not None:
            groups[check.case_id, check.output].append(check.stats)
    return tuple(
        Worst(
            case_id=case,
            output=out,
            rms_ratio=_finite(s.rms / limits.unit(s) for s in stats),
            group_ratio=_finite(max(s.row_ratio, s.col_ratio, s.tile_ratio) for s in stats),
            max_ulp=_finite(s.max for s in stats),
            bias_ulp=_finite(abs(s.bias) for s in stats),
        )
        for (case, out), stats in sorted(groups.items())
    )


def _incumbent(raw: Raw, arm: str, numerics: Numerics, expectation: Expectation) -> Broken | None:
    """The other arms' own faults: they void the measurement and are not the candidate's."""
    events = [e for e in raw.events if e.arm not in (arm, "") and _kind(e) in ("cheat", "memory")]
    found = [_finding(e) for e in events]
    for other in sorted({c.arm for c in raw.checks} - {arm}):
        timed = [c for c in raw.checks if c.arm == other and c.probe == "timed"]
        judged = naming.weigh(timed, numerics, expectation)
        found += [naming.finding(j, expectation) for j in judged if j.failed]
    if not found:
        return None
    first = found[0]
    reason = f"incumbent.wrong: arm {first.arm}: {first.code}: {first.text}"
    return Broken(stage="call", reason=reason, blame="incumbent", findings=naming.unlike(found))


def _wrong(bad: Sequence[Judged], good: Sequence[Judged], expectation: Expectation) -> Wrong:
    code, meaning = naming.name(bad, good, expectation)
    details = naming.unlike(naming.finding(j, expectation) for j in bad)
    worst_first = max(bad, key=lambda j: j.check.where.bad if j.check.where else 0)
    told = naming.brief(worst_first, expectation)
    text = f"{meaning}; {told}" if meaning else told
    check = worst_first.check
    # The case is in the text already; the named finding speaks of the candidate as a whole.
    named = Finding(code=code, text=text, output=check.output, arm=check.arm)
    return Wrong(reason=_reason([named]), findings=(named, *details))


def judge(raw: Raw, *, arm: str = "B", numerics: Numerics = NUMERICS, expectation: Expectation) -> Outcome:
    """Judge one arm of one raw record.

    The first fault names the reason, all are findings. Order: death, cheats and other offences, a build that is
    not of this source, wrong checks, the incumbent's faults, missing evidence.
    """
    offences = _offences(raw, arm, expectation)
    if raw.died is not None:
        return _died(raw.died, arm, [e for e in raw.events if e.arm == arm], offences)
    checks = [c for c in raw.checks if c.arm == arm]
    judged = naming.weigh(checks, numerics, expectation)
    bad = [j for j in judged if j.failed]
    wrong = _wrong(bad, [j for j in judged if not j.failed], expectation) if bad else None
    if not bad and (drift := naming.pooled(checks, numerics, expectation)):
        wrong = Wrong(reason=_reason(drift), findings=tuple(drift))
    if offences:
        return Wrong(reason=_reason(offences), findings=(*offences, *(wrong.findings if wrong else ())))
    for fault in (_unbuilt(raw, arm), wrong, _unknown(raw, arm), _incumbent(raw, arm, numerics, expectation)):
        if fault is not None:
            return fault
    if missing := (*_missing(checks, expectation), *device.missing(raw, checks, arm, expectation)):
        return Broken(stage="check", reason=_reason(missing), blame="harness", findings=missing)
    notes = tuple(dict.fromkeys(f"{e.kind}: {e.detail}" for e in raw.events if _kind(e) in TALK_EVENTS))
    return Correct(
        worst=worst(checks),
        checks=len(checks),
        mutation_score=mutation.score(raw, numerics=numerics, shapes=expectation.shapes),
        notes=(*notes, *(device.notes(raw, arm, expectation) if arm == CANDIDATE else ())),
    )
