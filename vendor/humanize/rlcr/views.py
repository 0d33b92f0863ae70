"""Every file of a loop that is made from the journal, and the forms that the worker fills in."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from rlcr import model
from rlcr.files import replace_file
from rlcr.journal import Journal, crash
from rlcr.model import Setup, State, Stop
from rlcr.step import STALLS, problem_lines

TEMPLATES = Path(__file__).resolve().parent.parent / "prompt-template"
CAP = 1 << 22
SUMMARY_HEADINGS = ("What was done", "Evidence", "What is left", "Risks")
CONTRACT_HEADINGS = (
    "Mainline objective",
    "Target acceptance criteria",
    "Blocking in scope",
    "Queued out of scope",
    "Success criteria",
)
MUTABLE = "## MUTABLE SECTION"
STATE_NAMES = {"FINALIZE": "finalize-state.md", **{t: f"{t.lower()}-state.md" for t in model.TERMINALS}}


@dataclass(frozen=True, kw_only=True)
class Pages:
    """Files of a loop by name: ``owned`` are the runtime's, ``inputs`` are written once for the worker to fill.

    ``aside`` gives the name under which an earlier visit's input is kept, so that it does not speak for this one.
    """

    owned: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    aside: dict[str, str] = field(default_factory=dict)


def state_name(state: State) -> str:
    """Name of the state file in this phase; a parked loop keeps the name that it had."""
    return STATE_NAMES.get(state.parked_from if state.phase == "PARKED" else state.phase, "state.md")


def state_text(state: State) -> str:
    """The state file: known keys in their order, new ones only at the end."""
    s = state.begun
    rows: list[tuple[str, object]] = [
        ("current_round", state.round), ("max_iterations", s.max), ("codex_model", s.model),
        ("codex_effort", s.effort), ("codex_timeout", s.timeout_s), ("push_every_round", False),
        ("full_review_round", s.full_review_round), ("plan_file", s.plan), ("plan_tracked", s.plan_tracked),
        ("start_branch", s.branch), ("base_branch", s.base_branch), ("base_commit", s.base_commit),
        ("review_started", state.phase not in ("BUILD", "NONE") and state.reviewed_head != ""),
        ("ask_codex_question", False), ("session_id", f"sha256:{state.session_sha256}"), ("agent_teams", False),
        ("privacy_mode", True), ("bitlesson_required", False), ("bitlesson_file", ""),
        ("bitlesson_allow_empty_none", True), ("mainline_stall_count", state.stalls),
        ("last_mainline_verdict", state.mainline),
        ("drift_status", "replan_required" if state.stalls >= STALLS - 1 else "normal"), ("started_at", s.at),
        ("phase", state.phase), ("reviewer", s.reviewer), ("blocks", state.blocks),
        ("exit_reason", state.exit_reason),
    ]  # fmt: skip
    return "---\n" + "".join(f"{key}: {_scalar(value)}\n" for key, value in rows) + "---\n"


def _scalar(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if re.fullmatch(r"[A-Za-z0-9._/-]+(:[A-Za-z0-9._/-]+)*", text) else json.dumps(text)


def section(plan: str, words: str) -> str:
    """Everything below the first level-2 heading that begins with one of the words, to the next level-2 heading."""
    out: list[str] = []
    inside = fenced = False
    for line in plan.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if not fenced and re.match(r"##\s", line):
            if inside:
                break
            inside = re.match(rf"##\s+({words})\b", line, re.IGNORECASE) is not None
            continue
        if inside:
            out.append(line)
    return "\n".join(out).strip()


def tracker(plan: str) -> str:
    """``goal-tracker.md``: goal and all criteria word for word, then the tables that the worker keeps."""
    goal = section(plan, "Goal|Objective|Purpose") or "[To be taken from the plan]"
    criteria = section(plan, "Acceptance|Criteria|Requirements") or "[To be taken from the plan]"
    tables = (
        ("#### Plan Evolution Log", ("Round", "Change", "Reason", "Impact on AC")),
        ("#### Active Tasks", ("Task", "Target AC", "Status", "Tag", "Owner", "Notes")),
        ("### Blocking Side Issues", ("Issue", "Discovered Round", "Blocking AC", "Resolution Path")),
        ("### Queued Side Issues", ("Issue", "Discovered Round", "Why Not Blocking", "Revisit Trigger")),
        ("### Completed and Verified", ("AC", "Task", "Completed Round", "Verified Round", "Evidence")),
        ("### Explicitly Deferred",
         ("Task", "Original AC", "Deferred Since", "Justification", "When to Reconsider")),
    )  # fmt: skip
    made = "\n\n".join(f"{h}\n\n| {' | '.join(c)} |\n|{'---|' * len(c)}" for h, c in tables)
    return (
        f"# Goal Tracker\n\n## IMMUTABLE SECTION\n\n### Ultimate Goal\n\n{goal}\n\n### Acceptance Criteria\n\n"
        f"{criteria}\n\n---\n\n{MUTABLE}\n\n### Plan Version: 1\n\n{made}\n"
    )


def form(title: str, headings: tuple[str, ...]) -> str:
    """A form with fixed headings; what stands in a comment does not count as filled in."""
    return f"# {title}\n" + "".join(f"\n## {heading}\n\n<!-- fill in -->\n" for heading in headings)


def summary_form(number: int) -> str:
    """The untouched summary of a round."""
    return form(f"Round {number} summary", SUMMARY_HEADINGS)


def contract_form(number: int) -> str:
    """The untouched contract of a round."""
    return form(f"Round {number} contract", CONTRACT_HEADINGS)


FINAL = "finalize-summary.md"
FINAL_FORM = form("Finalize summary", ("What was made", "Evidence", "What remains"))


def page(name: str, **values: object) -> str:
    """A prompt from its template."""
    text = (TEMPLATES / f"{name}.md").read_text(encoding="utf-8")
    return Template(text).substitute({k: str(v) for k, v in values.items()}).rstrip("\n") + "\n"


def _bullets(lines: tuple[str, ...]) -> str:
    shown = [f"- {' '.join(line.split())[:600]}" for line in lines[:60]]
    more = [f"- and {len(lines) - 60} more"] if len(lines) > 60 else []
    return "\n".join(shown + more) or "- nothing in particular: the goal is not reached yet"


def folder_of(setup: Setup) -> str:
    """The loop's folder, relative to the worktree."""
    return f".humanize/rlcr/{setup.loop}"


def start_pages(setup: Setup, plan: str) -> Pages:
    """What a set-up writes, the state file apart."""
    commands = ", ".join(c["name"] for c in setup.evidence.get("commands", ())) or "none are set"
    reviewer = "the evidence alone" if setup.reviewer == "evidence-only" else f"a separate {setup.reviewer} reviewer"
    prompt = page(
        "round-0", max=setup.max, plan=setup.plan, dir=folder_of(setup), branch=setup.branch, commands=commands,
        reviewer=reviewer, plan_text=plan,
    )  # fmt: skip
    inputs = {
        "goal-tracker.md": tracker(plan),
        "round-0-summary.md": summary_form(0),
        "round-0-contract.md": contract_form(0),
    }
    return Pages(owned={"plan.md": plan, "round-0-prompt.md": prompt}, inputs=inputs)


def stop_pages(state: State, stop: Stop) -> Pages:
    """What one decided Stop writes, the state file apart."""
    last, setup = state.last, state.begun
    if last is None:
        return Pages()
    base = f"round-{stop.round}"
    result = {"format": "humanize.evidence-result", "version": 1, "phase": stop.phase, "round": stop.round}
    result |= {
        k: v for k, v in model.plain(stop).items() if k in ("at", "head", "tree", "checks", "problems", "failure")
    }
    owned = {f"{base}-gate.md": gate_text(state, stop), f"{base}-evidence.json": _json(result)}
    if stop.verdict is not None:
        owned[f"{base}-verdict.json"] = _json({"reviewer": setup.reviewer, **model.plain(stop.verdict)})
    inputs: dict[str, str] = {}
    aside: dict[str, str] = {}
    if last.page == "finalize-prompt.md":
        aside = _earlier(state)
        owned[last.page] = finalize_prompt(state, aside)
        inputs[FINAL] = FINAL_FORM
    elif last.page.endswith("-prompt.md"):
        owned[last.page] = round_prompt(state, stop)
        inputs[f"round-{last.round}-summary.md"] = summary_form(last.round)
        inputs[f"round-{last.round}-contract.md"] = contract_form(last.round)
    return Pages(owned=owned, inputs=inputs, aside=aside)


def _earlier(state: State) -> dict[str, str]:
    """Where the summary of the last visit to FINALIZE goes; empty at the first visit."""
    if FINAL not in state.files:
        return {}
    visits = 1 + sum(1 for name in state.files if re.fullmatch(r"finalize-summary-\d+\.md", name))
    return {FINAL: f"finalize-summary-{visits}.md"}


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
        "finalize", dir=folder_of(setup), reviewer_note=note, finalize_note=after,
        commands="\n".join(lines) or "# no evidence commands are set",
    )  # fmt: skip


def round_prompt(state: State, stop: Stop) -> str:
    """The prompt of the round that a Stop began."""
    setup, last = state.begun, state.last
    if last is None or not state.work_expected:
        return page("code-review", round=state.round, max=setup.max, base=setup.base_commit)
    extra = ""
    if last.drift:
        extra += (
            "\n## Drift Recovery Mode\n\nSeveral reviews in a row saw no progress on the goal; one more ends the loop. "
            "Leave side issues, choose the one criterion that matters most, and write in the contract how this round "
            "differs from the last ones.\n"
        )
    if stop.verdict is not None and stop.verdict.text:
        extra += f"\n## The review\n\n{stop.verdict.text[:16000]}\n"
    if state.queued:
        extra += (
            "\n## Queued, not blocking\n\n" + _bullets(tuple(f"[{f.priority}] {f.claim}" for f in state.queued)) + "\n"
        )
    return page(
        "round-n", round=last.round, max=setup.max, phase=last.phase, plan=setup.plan, dir=folder_of(setup),
        items=_bullets(last.items), extra=extra,
    )  # fmt: skip


def gate_text(state: State, stop: Stop) -> str:
    """``round-N-gate.md``: everything that was held against the round at its last Stop, with the remedies."""
    last = state.last
    head = f"# Round {stop.round} ({stop.phase}) at {stop.head[:12]}\n\n{last.headline if last else ''}\n"
    if stop.failure is not None:
        head += f"\n## Not judged\n\n- {stop.failure.kind}: {stop.failure.detail[:2000]}\n"
    head += "\n## To mend\n\n" + (_bullets(problem_lines(stop)) if problem_lines(stop) else "- nothing") + "\n"
    for check in stop.checks:
        word = "passed" if check.passed else "did not pass"
        head += (
            f"\n## {check.name}: {word}, {'done' if check.met else 'not done'} ({check.seconds:.1f} s)\n\n{check.why}\n"
        )
        rest = check.missing + tuple(f"not evaluated: {line}" for line in check.not_evaluated)
        rest += tuple(f"{p.severity} {p.rule} {p.where}: {p.what}" for p in check.problems if check.passed)
        head += ("\n" + _bullets(rest) + "\n") if rest else ""
    if stop.tampered:
        head += "\n## Changed by another hand\n\n" + _bullets(stop.tampered) + "\n"
    return head


def _json(record: object) -> str:
    return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def pages_of(state: State, kind: str, plan: str | None) -> Pages:
    """What the transition that led to ``state`` writes; without the plan's text, nothing that quotes it."""
    if kind == "setup":
        return start_pages(state.begun, plan) if plan is not None else Pages()
    if kind == "intent" and state.last_stop is not None:
        return stop_pages(state, state.last_stop)
    return Pages()


def expected(journal: Journal, plan: str | None) -> Pages:
    """Every file that the journal accounts for, the current state file included."""
    owned: dict[str, str] = {}
    inputs: dict[str, str] = {}
    for entry in journal.entries:
        made = pages_of(entry.state, entry.record["event"], plan)
        owned |= made.owned
        inputs |= made.inputs
    if journal.state.setup is not None:
        owned[state_name(journal.state)] = state_text(journal.state)
    return Pages(owned=owned, inputs=inputs)


def publish(folder: Path, state: State, made: Pages) -> dict[str, str]:
    """Put a transition's files in place, the state file last; doing it again gives the same bytes.

    Hands back name and SHA-256 of each, with an empty one for what the worker fills in.
    """
    for name, kept in made.aside.items():
        if os.path.lexists(folder / name) and not os.path.lexists(folder / kept):
            (folder / name).rename(folder / kept)
            crash("publish.aside")
    for name, text in made.inputs.items():
        if not (folder / name).exists():
            replace_file(folder / name, as_bytes(text))
    for name, text in made.owned.items():
        replace_file(folder / name, as_bytes(text))
    crash("publish.files")
    name = state_name(state)
    replace_file(folder / name, as_bytes(state_text(state)))
    crash("publish.state")
    for other in ("state.md", *STATE_NAMES.values()):
        if other != name:
            (folder / other).unlink(missing_ok=True)
    for stale in folder.glob(".*.tmp"):
        stale.unlink(missing_ok=True)
    owned = {**made.owned, name: state_text(state)}
    inputs = (*made.inputs, *made.aside.values())
    return {**dict.fromkeys(inputs, ""), **{n: model.sha256(as_bytes(text)) for n, text in owned.items()}}


def as_bytes(text: str) -> bytes:
    """Text as it is written to a file."""
    return text.encode("utf-8", "replace")
