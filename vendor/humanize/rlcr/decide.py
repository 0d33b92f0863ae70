"""Look at a round, run its evidence, ask the reviewer where that is due, and journal the one decision."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlcr import ambient, evidence, forms, gate, repo, reviewer, tracker, views
from rlcr.files import TooBig, read_regular, replace_file
from rlcr.journal import crash
from rlcr.loop import Loop, utc_now
from rlcr.model import Ask, Check, Failure, Finding, Gathered, Opinion, Problem, Reviewed, State, Stop, plain, sha256
from rlcr.process import mark
from rlcr.step import step

FOR_REVIEW = ".evidence-for-review.json"
DIFF, DIFF_CAP = ".diff-for-review.patch", 1 << 20
FINDINGS, TOUCHED = 60, 500
"""Findings, and names, that the journal keeps of one verdict."""


class Terminated(BaseException):
    """The client, or a cancel, told us to end."""


def papers(loop: Loop) -> gate.Papers:
    """What the worker wrote for this round."""
    state = loop.state
    big: list[str] = []

    def text(path: Path, cap: int) -> str | None:
        try:
            raw = read_regular(path, cap)
        except TooBig:
            big.append(path.name)
            return ""
        return None if raw is None else raw.decode("utf-8", "replace")

    try:
        plan = read_regular(loop.worktree / state.begun.plan, views.CAP)
    except TooBig:
        plan = b""
    wanted = loop.plan() or ""
    try:
        rows = read_regular(loop.folder / tracker.NAME, tracker.CAP)
    except TooBig:
        big.append(tracker.NAME)
        rows = b""
    return gate.Papers(
        plan_sha256=None if plan is None else sha256(plan),
        summary=text(loop.folder / f"round-{state.round}-summary.md", gate.SUMMARY_CAP),
        contract=text(loop.folder / f"round-{state.round}-contract.md", gate.SUMMARY_CAP),
        final=text(loop.folder / "finalize-summary.md", gate.SUMMARY_CAP),
        tables=None if rows is None else tracker.below(tracker.decoded(rows)[0], wanted),
        criteria=forms.criteria_of(wanted),
        too_big=tuple(big),
    )  # fmt: skip


def decide(loop: Loop, payload: dict[str, Any], tampered: tuple[str, ...], deadline: float) -> State:
    """The state after this Stop; ``deadline`` is of the monotonic clock. Raises Terminated, GitError."""
    lease = loop.folder / "lease.json"
    _lease(lease, "evidence", deadline)
    try:
        stop = looked(loop, loop.state, payload, tampered, deadline)
        asked = step(loop.state, stop)[1][0]
        if isinstance(asked, Ask):
            _lease(lease, "review", deadline)
            stop = _reviewed(loop, stop, asked, deadline)
            crash("stop.review")
        if not any(problem.rule == "moved" for problem in stop.problems):
            stop = replace(stop, problems=(*stop.problems, *moved(loop, stop)))
        return loop.put(stop, stop.head)
    finally:
        lease.unlink(missing_ok=True)


def looked(loop: Loop, state: State, payload: dict[str, Any], tampered: tuple[str, ...], deadline: float) -> Stop:
    """A Stop in ``state`` with everything that is found without a reviewer; nothing is written. Raises GitError."""
    root, s = loop.worktree, state.begun
    facts = repo.look(root, s.base_commit)
    written = papers(loop)
    amended = (*evidence.amended(root, s.evidence), *reviewer.amended(s.evidence, s.reviewer))
    problems = (*gate.problems(state, facts, written), *amended)
    crash("stop.gate")
    checks: tuple[Check, ...] = ()
    failure: Failure | None = None
    if not amended:
        checks, failure = evidence.run(
            root, s.evidence, phase=state.phase, number=state.round, deadline=deadline,
            known=gathered(state, facts),
        )  # fmt: skip
    crash("stop.evidence")
    final = state.phase == "FINALIZE"
    idle = not final and state.work_expected and gate.idle(state, facts)
    return Stop(
        round=state.round, phase=state.phase, head=facts.head, tree=facts.tree,
        summary_sha256=sha256((written.final if final else written.summary) or ""),
        message_sha256=message(payload), problems=problems, checks=checks,
        noop=gate.noop_reason(written.summary) if idle else "", failure=failure, tampered=tampered,
    )  # fmt: skip


def evidence_key(state: State, facts: repo.Facts) -> str:
    """What evidence that was run ahead of a Stop must share with it: commit, files, phase, pins and environment."""
    pins = json.dumps(state.begun.evidence, sort_keys=True)
    return sha256(json.dumps([facts.head, facts.tree, state.phase, sha256(pins), ambient.digest(os.environ)]))


def gathered(state: State, facts: repo.Facts) -> dict[str, Check]:
    """The answers of ``rlcr evidence`` that hold for this Stop, by the name of their command."""
    if state.gathered is None or facts.dirty or facts.hidden or state.gathered.key != evidence_key(state, facts):
        return {}
    return {check.name: check for check in state.gathered.checks}


def message(payload: dict[str, Any]) -> str:
    """SHA-256 of the worker's last message: the text itself is kept nowhere."""
    said = payload.get("last_assistant_message")
    return sha256(said) if isinstance(said, str) and said else ""


def _lease(path: Path, doing: str, deadline: float) -> None:
    left = round(deadline - time.monotonic())
    facts = {"pid": os.getpid(), "mark": mark(os.getpid()), "doing": doing, "since": utc_now(), "left_s": left}
    replace_file(path, (json.dumps(facts, sort_keys=True) + "\n").encode())


def moved(loop: Loop, stop: Stop) -> tuple[Problem, ...]:
    """One problem where the repository is no longer what was judged."""
    now = repo.look(loop.worktree, loop.state.begun.base_commit)
    same = now.branch == loop.state.begun.branch or any(p.rule == "branch" for p in stop.problems)
    if same and (now.head, now.tree) == (stop.head, stop.tree):
        return ()
    return (_moved(", ".join(now.dirty[:5]) or now.head[:12], "the repository changed while it was judged"),)


def _moved(where: str, what: str) -> Problem:
    fix = "let nothing write here during a Stop; ignore or commit what the evidence command writes"
    return Problem(rule="moved", where=where, what=what, fix=fix)


def _reviewed(loop: Loop, stop: Stop, asked: Ask, deadline: float) -> Stop:
    from rlcr import review  # noqa: PLC0415 (most Stops need no reviewer)

    state, s = loop.state, loop.state.begun
    proof = [c.stdout_sha256 for c in stop.checks]
    known = [stop.round, asked.phase, asked.full, stop.head, stop.tree, s.plan_sha256, stop.summary_sha256, proof]
    key = sha256(json.dumps([*known, [f.id for f in state.open]]))
    if state.review is not None and state.review_key == key:
        return replace(stop, verdict=state.review)
    changed_program = reviewer.amended(s.evidence, s.reviewer)
    if changed_program:
        return replace(stop, problems=(*stop.problems, *changed_program))
    evidence_path = loop.folder / FOR_REVIEW
    facts = {"head": stop.head, "round": stop.round, "phase": stop.phase, "checks": [plain(c) for c in stop.checks]}
    measured = json.dumps(facts, indent=1).encode()
    replace_file(evidence_path, measured)
    summary = loop.folder / ("finalize-summary.md" if state.phase == "FINALIZE" else f"round-{stop.round}-summary.md")
    plan = loop.worktree / s.plan if s.plan else loop.folder / tracker.NAME
    changed = () if asked.full else repo.changed(loop.worktree, asked.since, stop.head)
    # Commits that cannot be told apart, or an unknown one, are no scope to keep to.
    full = asked.full or (not changed and asked.since != stop.head)
    _keep_evidence(loop, stop)
    diff, shown = _keep_diff(loop, stop.head, "" if full else asked.since)
    judged = {evidence_path: sha256(measured), diff: shown}
    judged |= {plan: s.plan_sha256} if s.plan else {}
    judged |= {summary: stop.summary_sha256} if stop.summary_sha256 != sha256("") else {}
    said = review.review(review.Request(
        reviewer=s.reviewer, loop_dir=loop.folder, worktree=loop.worktree, round=stop.round, phase=asked.phase,
        base_commit=s.base_commit, head=stop.head, plan_path=plan,
        summary_path=summary, evidence_path=evidence_path, diff_path=diff, sha256=judged,
        planned=bool(s.plan), program=reviewer.argv(s.evidence),
        prior_open=_asked(state.open), queued=_asked(state.queued), full=full, since=asked.since, changed=changed,
        acs=forms.criteria_of(loop.plan() or ""), amends=tuple(f"{a.what}: {a.why}" for a in state.amends),
        deadline_s=min(float(s.timeout_s), deadline - time.monotonic()), model=s.model, effort=s.effort,
    ))  # fmt: skip
    if isinstance(said, review.Infra):
        if said.kind == "terminated":
            raise Terminated
        if said.kind == "moved":
            return replace(stop, problems=(*stop.problems, _moved("what the reviewer reads", said.detail)))
        return replace(stop, failure=Failure(kind=f"review-{said.kind}", detail=said.detail[:600]))
    # What was said of a tree that is another one by now is not kept: it would be used when that tree is back.
    now = moved(loop, stop)
    if now:
        return replace(stop, problems=(*stop.problems, *now))
    opinion = opinion_of(said)
    opinion = replace(opinion, full=full, changed=touched(changed, opinion))
    loop.put(Reviewed(key=key, verdict=opinion), stop.head)
    return replace(stop, verdict=opinion)


def _keep_diff(loop: Loop, head: str, since: str) -> tuple[Path, str]:
    """What changed, as a file, and its SHA-256: first since the last review, where that is the scope, then in all."""
    spans = [base for base in (since, loop.state.begun.base_commit) if base]
    raw = "\n".join(repo.diff(loop.worktree, base, head) for base in spans).encode("utf-8", "replace")
    if len(raw) > DIFF_CAP:
        raw = raw[:DIFF_CAP] + b"\n... cut here: read the files themselves\n"
    replace_file(loop.folder / DIFF, raw)
    return loop.folder / DIFF, sha256(raw)


def lasting(state: State, stop: Stop) -> tuple[Check, ...]:
    """The passes of a Stop that hold for another one of the same key: those of commands that declare ``cache``."""
    declared = {c["name"] for c in state.begun.evidence["commands"] if c.get("cache")}
    return tuple(check for check in stop.checks if check.passed and check.name in declared)


def _keep_evidence(loop: Loop, stop: Stop) -> None:
    """Journal what the next Stop may use again, should the review fail: what may be long is not run for it twice."""
    state = loop.state
    checks = lasting(state, stop)
    if not checks:
        return
    facts = repo.look(loop.worktree, state.begun.base_commit)
    found = Gathered(key=evidence_key(state, facts), checks=checks)
    if (facts.head, facts.tree) == (stop.head, stop.tree) and state.gathered != found:
        loop.put(found, stop.head)


def touched(changed: tuple[str, ...], said: Opinion) -> tuple[str, ...]:
    """The changed files as the journal keeps them: bounded, those first that a finding names or lies above."""
    named = {f.file.rstrip("/") for f in said.findings if f.file}
    first = [path for path in changed if named & {path, *(str(p) for p in Path(path).parents)}]
    first.sort(key=lambda path: path not in named)
    return tuple(dict.fromkeys((*first, *changed)))[:TOUCHED]


def _asked(found: tuple[Finding, ...]) -> tuple[Any, ...]:
    from rlcr import review  # noqa: PLC0415

    return tuple(review.Finding(**f.__dict__) for f in found)


def opinion_of(said: Any) -> Opinion:
    """A reviewer's verdict as the journal keeps it: bounded, and with the criteria that are not met."""
    gravest = sorted(said.findings, key=lambda f: f.priority)
    return Opinion(
        verdict=said.verdict, mainline=said.mainline,
        unmet=tuple(a.id[:80] for a in said.acs if a.status != "met")[:TOUCHED],
        findings=tuple(
            Finding(
                id=f.id[:80], priority=f.priority, file=f.file[:400], line=f.line, claim=f.claim[:600], locus=f.locus
            )
            for f in gravest[:FINDINGS]
        ),
        text=said.text[:16000],
    )  # fmt: skip
