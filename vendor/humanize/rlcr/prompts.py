"""What the worker reads: the prompt of a round, what is to mend, what the reviewer said. Reads its templates only."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from string import Template

from rlcr import tracker
from rlcr.forms import FINAL
from rlcr.gate import folder_of, plan_name
from rlcr.model import Course, Decide, Opinion, Setup, State, Stop
from rlcr.options import RLCR
from rlcr.step import problem_lines
from rlcr.weigh import STALLS

TEMPLATES = Path(__file__).resolve().parent.parent / "prompt-template"
REHEARSE = f"{RLCR} evidence"
"""The command that asks rules and evidence without a Stop."""


def page(name: str, **values: object) -> str:
    """A prompt from its template."""
    text = (TEMPLATES / f"{name}.md").read_text(encoding="utf-8")
    return Template(text).substitute({k: str(v) for k, v in values.items()}).rstrip("\n") + "\n"


def bullets(lines: tuple[str, ...], none: str = "nothing in particular: the goal is not reached yet") -> str:
    """A list of at most 60 lines of at most 600 characters."""
    shown = [f"- {' '.join(line.split())[:600]}" for line in lines[:60]]
    more = [f"- and {len(lines) - 60} more"] if len(lines) > 60 else []
    return "\n".join(shown + more) or f"- {none}"


def start_prompt(setup: Setup, plan: str) -> str:
    """The prompt of round 0, the only one that quotes the plan."""
    common: dict[str, object] = {"max": setup.max, "dir": folder_of(setup), "evidence": REHEARSE}
    common["commands"] = ", ".join(c["name"] for c in setup.evidence.get("commands", ())) or "none are set"
    if setup.skip_impl:
        words = f"the plan `{setup.plan}`, quoted below, says what it is for" if plan else "there is no plan"
        quoted = f"\n---\n\n{plan}" if plan else ""
        return page("round-0-review", base=setup.base_commit, words=words, plan_text=quoted, **common)
    own = " The plan's own tasks stand there already: bring them up to date." if tracker.lifted(plan) else ""
    reviewer = "the evidence alone" if setup.reviewer == "evidence-only" else f"a separate {setup.reviewer} reviewer"
    return page(
        "round-0", plan=setup.plan, branch=setup.branch, reviewer=reviewer, own_tasks=own, plan_text=plan, **common
    )


def finalize_prompt(state: State, aside: Mapping[str, str]) -> str:
    """What to do in FINALIZE, with the evidence as it will be asked there."""
    setup = state.begun
    alone = setup.reviewer == "evidence-only"
    note = " (the reviewer is the evidence alone: there is no code review)" if alone else ""
    after = "Commits made here are not reviewed." if alone else "Commits made here are reviewed before the end."
    if aside:
        after += f" Your earlier summary is kept as `{aside[FINAL]}`; what it says may no longer hold."
    asked = f"RLCR_PHASE=FINALIZE RLCR_ROUND={state.round}"
    lines = [f"{asked} {shlex.join([c['program'], *c['argv'][1:]])}" for c in setup.evidence["commands"]]
    return page(
        "finalize", dir=folder_of(setup), reviewer_note=note, finalize_note=after, evidence=REHEARSE,
        commands="\n".join(lines) or "# no evidence commands are set",
    )  # fmt: skip


def round_prompt(state: State, stop: Stop) -> str:
    """The prompt of the round that a Stop began."""
    setup, last = state.begun, state.last
    if last is None or not state.work_expected:
        return page("code-review", round=state.round, max=setup.max, base=setup.base_commit)
    extra = _course(last.course) + _drift(state, last)
    if state.amends:
        extra += f"\n## Amended while the loop ran\n\n{bullets(amended(state))}\n"
    if stop.verdict is not None and stop.verdict.text:
        extra += f"\n## The review\n\n{stop.verdict.text[:16000]}\n"
    if state.queued:
        extra += (
            "\n## Queued, not blocking\n\n" + bullets(tuple(f"[{f.priority}] {f.claim}" for f in state.queued)) + "\n"
        )
    where = f"`{setup.plan}`" if setup.plan else "none"
    return page(
        "round-n", round=last.round, max=setup.max, phase=last.phase, plan=where, dir=folder_of(setup),
        stands="The plan was amended, see below." if plan_name(state) != "plan.md" else "Both stand unchanged.",
        items=bullets(last.items), extra=extra, evidence=REHEARSE,
    )  # fmt: skip


def _course(course: Course | None) -> str:
    """Where the measured numbers lead."""
    titles = {"widen": "Widen the search", "decide": "A decision is due", "finish": "Finish what is done"}
    if course is None or course.kind not in titles:
        return ""
    count = f" ({course.have} of {course.want})" if course.kind == "widen" and course.want else ""
    lines = f"\n{bullets(course.lines)}\n" if course.lines else ""
    return f"\n## {titles[course.kind]}{count}\n\n{course.why}\n{lines}"


def _drift(state: State, last: Decide) -> str:
    if not last.drift:
        return ""
    why = []
    if state.stalls >= STALLS - 1:
        why.append(f"{state.stalls} reviews in a row saw no progress on the goal")
    if state.repeats >= STALLS - 1:
        same = f": {', '.join(f.id for f in state.open)}" if state.open else ""
        why.append(f"{state.repeats} rounds in a row left the same findings open or changed nothing{same}")
    return (
        f"\n## Drift Recovery Mode\n\n{'; '.join(why)}. One more ends the loop. Leave side issues, choose the one "
        "criterion that matters most, and write in the contract how this round differs from the last ones.\n"
    )


def amended(state: State) -> tuple[str, ...]:
    """What the user changed since set-up, one line each."""
    out, version = [], 1
    for amend in state.amends:
        version += amend.what == "plan"
        name = f"the plan, now `{folder_of(state.begun)}/plan-{version}.md`" if amend.what == "plan" else amend.what
        out.append(f"{name}: {amend.why}")
    return tuple(out)


def gate_text(state: State, stop: Stop) -> str:
    """``round-N-gate.md``: everything that was held against the round at its last Stop, with the remedies."""
    last = state.last
    head = f"# Round {stop.round} ({stop.phase}) at {stop.head[:12]}\n\n{last.headline if last else ''}\n"
    if stop.failure is not None:
        head += f"\n## Not judged\n\n- {stop.failure.kind}: {stop.failure.detail[:2000]}\n"
    lines = problem_lines(stop)
    head += f"\n## To mend\n\n{bullets(lines, 'nothing')}\n"
    if lines:
        head += f"\nTo ask again without a Stop: `{REHEARSE}`\n"
    for check in stop.checks:
        word = "passed" if check.passed else "did not pass"
        head += (
            f"\n## {check.name}: {word}, {'done' if check.met else 'not done'} ({check.seconds:.1f} s)\n\n{check.why}\n"
        )
        rest = check.missing + tuple(f"not evaluated: {line}" for line in check.not_evaluated)
        rest += tuple(
            f"{p.severity} {p.rule} {p.where}: {p.what}"
            for p in check.problems
            if check.passed or p.severity == "trend"
        )
        head += f"\n{bullets(rest)}\n" if rest else ""
    if state.amends:
        head += f"\n## Amended while the loop ran\n\n{bullets(amended(state))}\n"
    if stop.tampered:
        head += f"\n## Changed by another hand\n\n{bullets(stop.tampered)}\n"
    return head


def review_text(stop: Stop, said: Opinion, reviewer: str) -> str:
    """``round-N-review-result.md``: a reviewer's verdict, for people."""
    scope = "everything" if said.full else "open findings, and what changed since the last review"
    found = tuple(f"{f.id} [{f.priority}] {f.file or 'no file'}:{f.line} ({f.locus}): {f.claim}" for f in said.findings)
    return (
        f"# Review of round {stop.round} ({stop.phase}) by {reviewer}, at {stop.head[:12]}\n\n"
        f"- Verdict: {said.verdict}\n- Mainline progress: {said.mainline}\n- Looked at: {scope}\n\n"
        f"## Findings\n\n{bullets(found, 'none')}\n\n"
        f"## Criteria not met\n\n{bullets(said.unmet, 'none')}\n\n"
        f"## In words\n\n{said.text.strip() or 'nothing'}\n"
    )
