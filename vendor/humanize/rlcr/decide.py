"""Look at a round, run its evidence, ask the reviewer where that is due, and journal the one decision."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlcr import evidence, gate, repo, views
from rlcr.files import TooBig, read_regular, replace_file
from rlcr.journal import crash
from rlcr.loop import Loop, utc_now
from rlcr.model import Ask, Check, Failure, Finding, Opinion, Problem, Reviewed, State, Stop, plain, sha256
from rlcr.step import step

FOR_REVIEW = ".evidence-for-review.json"


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
    return gate.Papers(
        plan_sha256=None if plan is None else sha256(plan),
        summary=text(loop.folder / f"round-{state.round}-summary.md", gate.SUMMARY_CAP),
        contract=text(loop.folder / f"round-{state.round}-contract.md", gate.SUMMARY_CAP),
        final=text(loop.folder / "finalize-summary.md", gate.SUMMARY_CAP), too_big=tuple(big),
    )  # fmt: skip


def decide(loop: Loop, payload: dict[str, Any], tampered: tuple[str, ...], deadline: float) -> State:
    """The state after this Stop; ``deadline`` is of the monotonic clock. Raises Terminated, GitError."""
    lease = loop.folder / "lease.json"
    _lease(lease, "evidence", deadline)
    try:
        stop = _looked(loop, payload, tampered, deadline)
        asked = step(loop.state, stop)[1][0]
        if isinstance(asked, Ask):
            _lease(lease, "review", deadline)
            stop = _reviewed(loop, stop, asked, deadline)
            crash("stop.review")
        stop = replace(stop, problems=(*stop.problems, *_moved(loop, stop)))
        return loop.put(stop, stop.head)
    finally:
        lease.unlink(missing_ok=True)


def _looked(loop: Loop, payload: dict[str, Any], tampered: tuple[str, ...], deadline: float) -> Stop:
    state, root = loop.state, loop.worktree
    s = state.begun
    facts = repo.look(root, s.base_commit)
    written = papers(loop)
    amended = evidence.amended(root, s.evidence)
    problems = (*gate.problems(state, facts, written), *amended)
    crash("stop.gate")
    checks: tuple[Check, ...] = ()
    failure: Failure | None = None
    if not amended:
        checks, failure = evidence.run(root, s.evidence, phase=state.phase, number=state.round, deadline=deadline)
    crash("stop.evidence")
    final = state.phase == "FINALIZE"
    idle = not final and state.work_expected and gate.idle(state, facts)
    return Stop(
        round=state.round, phase=state.phase, head=facts.head, tree=facts.tree,
        summary_sha256=sha256((written.final if final else written.summary) or ""),
        message_sha256=message(payload), problems=problems, checks=checks,
        noop=gate.noop_reason(written.summary) if idle else "", failure=failure, tampered=tampered,
    )  # fmt: skip


def message(payload: dict[str, Any]) -> str:
    """SHA-256 of the worker's last message: the text itself is kept nowhere."""
    said = payload.get("last_assistant_message")
    return sha256(said) if isinstance(said, str) and said else ""


def _lease(path: Path, doing: str, deadline: float) -> None:
    left = round(deadline - time.monotonic())
    text = json.dumps({"pid": os.getpid(), "doing": doing, "since": utc_now(), "left_s": left}, sort_keys=True)
    replace_file(path, (text + "\n").encode())


def _moved(loop: Loop, stop: Stop) -> tuple[Problem, ...]:
    now = repo.look(loop.worktree, loop.state.begun.base_commit)
    same = now.branch == loop.state.begun.branch or any(p.rule == "branch" for p in stop.problems)
    if same and (now.head, now.tree) == (stop.head, stop.tree):
        return ()
    what = "the repository changed while it was judged"
    fix = "let nothing write here during a Stop; ignore or commit what the evidence command writes"
    return (Problem(rule="moved", where=", ".join(now.dirty[:5]) or now.head[:12], what=what, fix=fix),)


def _reviewed(loop: Loop, stop: Stop, asked: Ask, deadline: float) -> Stop:
    from rlcr import review  # noqa: PLC0415 (most Stops need no reviewer)

    state, s = loop.state, loop.state.begun
    proof = [c.stdout_sha256 for c in stop.checks]
    known = [stop.round, asked.phase, stop.head, stop.tree, s.plan_sha256, stop.summary_sha256, proof]
    key = sha256(json.dumps([*known, [f.id for f in state.open]]))
    if state.review is not None and state.review_key == key:
        return replace(stop, verdict=state.review)
    evidence_path = loop.folder / FOR_REVIEW
    facts = {"head": stop.head, "round": stop.round, "phase": stop.phase, "checks": [plain(c) for c in stop.checks]}
    replace_file(evidence_path, json.dumps(facts, indent=1).encode())
    name = "finalize-summary.md" if state.phase == "FINALIZE" else f"round-{stop.round}-summary.md"
    said = review.review(review.Request(
        reviewer=s.reviewer, loop_dir=loop.folder, worktree=loop.worktree, round=stop.round, phase=asked.phase,
        base_commit=s.base_commit, head=stop.head, plan_path=loop.worktree / s.plan,
        summary_path=loop.folder / name, evidence_path=evidence_path,
        prior_open=tuple(review.Finding(**f.__dict__) for f in state.open),
        deadline_s=min(float(s.timeout_s), deadline - time.monotonic()), model=s.model, effort=s.effort,
        full=asked.full,
    ))  # fmt: skip
    if isinstance(said, review.Infra):
        if said.kind == "terminated":
            raise Terminated
        return replace(stop, failure=Failure(kind=f"review-{said.kind}", detail=said.detail[:600]))
    opinion = opinion_of(said)
    loop.put(Reviewed(key=key, verdict=opinion), stop.head)
    return replace(stop, verdict=opinion)


def opinion_of(said: Any) -> Opinion:
    """A reviewer's verdict as the journal keeps it: bounded, and with the criteria that are not met."""
    return Opinion(
        verdict=said.verdict, mainline=said.mainline, unmet=tuple(a.id for a in said.acs if a.status != "met"),
        findings=tuple(
            Finding(id=f.id, priority=f.priority, file=f.file, line=f.line, claim=f.claim[:600], locus=f.locus)
            for f in said.findings[:60]
        ),
        text=said.text[:16000],
    )  # fmt: skip
