"""Every file of a loop that is made from the journal: which there are at a transition, and how they get to disk."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlcr import model, prompts, tracker
from rlcr.files import TooBig, read_regular, replace_file, set_aside
from rlcr.forms import FINAL, FINAL_FORM, contract_form, summary_form
from rlcr.gate import plan_name
from rlcr.journal import Journal, crash
from rlcr.model import Setup, State, Stop
from rlcr.weigh import STALLS

__all__ = [
    "CAP", "FINAL_FORM", "STATE_NAMES", "Pages", "as_bytes", "expected", "pages_of",
    "plans_of", "publish", "renew_tracker", "state_name", "state_text",
]  # fmt: skip

CAP = tracker.CAP
STATE_NAMES = {"FINALIZE": "finalize-state.md", **{t: f"{t.lower()}-state.md" for t in model.TERMINALS}}


@dataclass(frozen=True, kw_only=True)
class Pages:
    """Files of a loop by name: ``owned`` are the runtime's, ``inputs`` are written once for the worker to fill.

    ``aside`` gives the name under which an earlier visit's input is kept, so that it does not speak for this one.
    """

    owned: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    aside: dict[str, str] = field(default_factory=dict)
    plans: tuple[str, ...] = ()
    """Versions of the plan, where the tracker goes over to the newest."""


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
        ("review_started", s.skip_impl or (state.phase not in ("BUILD", "NONE") and state.reviewed_head != "")),
        ("ask_codex_question", False), ("session_id", f"sha256:{state.session_sha256}"), ("agent_teams", False),
        ("privacy_mode", True), ("bitlesson_required", False), ("bitlesson_file", ""),
        ("bitlesson_allow_empty_none", True), ("mainline_stall_count", state.stalls),
        ("last_mainline_verdict", state.mainline),
        ("drift_status", "replan_required" if state.stuck >= STALLS - 1 else "normal"), ("started_at", s.at),
        ("phase", state.phase), ("reviewer", s.reviewer), ("blocks", state.blocks),
        ("exit_reason", state.exit_reason), ("skip_impl", s.skip_impl), ("amendments", len(state.amends)),
    ]  # fmt: skip
    return "---\n" + "".join(f"{key}: {_scalar(value)}\n" for key, value in rows) + "---\n"


def _scalar(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if re.fullmatch(r"[A-Za-z0-9._/-]+(:[A-Za-z0-9._/-]+)*", text) else json.dumps(text)


def start_pages(setup: Setup, plan: str) -> Pages:
    """What a set-up writes, the state file apart."""
    inputs = {tracker.NAME: tracker.page(plan), "round-0-summary.md": summary_form(0)}
    if not setup.skip_impl:
        inputs["round-0-contract.md"] = contract_form(0)
    owned = {"plan.md": plan} if setup.plan else {}
    return Pages(owned={**owned, "round-0-prompt.md": prompts.start_prompt(setup, plan)}, inputs=inputs)


def plans_of(state: State, first: str | None) -> tuple[str, ...]:
    """Every version of the plan's text, the newest last; without the first one where its words are gone."""
    return (*(() if first is None else (first,)), *(a.text for a in state.amends if a.what == "plan"))


def amend_pages(state: State, first: str | None) -> Pages:
    """What an amendment writes: the new plan beside the old ones, and the tracker's fixed part."""
    plans = plans_of(state, first)
    if state.amends[-1].what != "plan":
        return Pages()
    return Pages(owned={plan_name(state): plans[-1]}, plans=plans)


def findings_text(state: State) -> str:
    """``findings.jsonl``: every finding that a reviewer ever made, and what became of it."""
    rows = []
    for known in state.findings:
        row = {"state": known.state, "first": known.first, "last": known.last, **model.plain(known.finding)}
        rows.append(json.dumps(row, sort_keys=True, ensure_ascii=True) + "\n")
    return "".join(rows)


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
    owned = {f"{base}-gate.md": prompts.gate_text(state, stop), f"{base}-evidence.json": _json(result)}
    if stop.verdict is not None:
        owned[f"{base}-verdict.json"] = _json({"reviewer": setup.reviewer, **model.plain(stop.verdict)})
        owned[f"{base}-review-result.md"] = prompts.review_text(stop, stop.verdict, setup.reviewer)
    if state.findings:
        owned["findings.jsonl"] = findings_text(state)
    inputs: dict[str, str] = {}
    aside: dict[str, str] = {}
    if last.page == "finalize-prompt.md":
        aside = _earlier(state)
        owned[last.page] = prompts.finalize_prompt(state, aside)
        inputs[FINAL] = FINAL_FORM
    elif last.page.endswith("-prompt.md"):
        owned[last.page] = prompts.round_prompt(state, stop)
        inputs[f"round-{last.round}-summary.md"] = summary_form(last.round)
        inputs[f"round-{last.round}-contract.md"] = contract_form(last.round)
    return Pages(owned=owned, inputs=inputs, aside=aside)


def _earlier(state: State) -> dict[str, str]:
    """Where the summary of the last visit to FINALIZE goes; empty at the first visit."""
    if FINAL not in state.files:
        return {}
    visits = 1 + sum(1 for name in state.files if re.fullmatch(r"finalize-summary-\d+\.md", name))
    return {FINAL: f"finalize-summary-{visits}.md"}


def _json(record: object) -> str:
    return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def pages_of(state: State, kind: str, plan: str | None) -> Pages:
    """What the transition that led to ``state`` writes, the state file apart; ``plan`` is the first one's text.

    Without it, nothing is written that quotes it. ``cancel``, ``halt``, ``resume`` and ``adopt`` move the state only.
    """
    if kind == "setup":
        return start_pages(state.begun, plan) if plan is not None else Pages()
    if kind == "intent" and state.last_stop is not None:
        return stop_pages(state, state.last_stop)
    if kind == "amend" and state.amends:
        return amend_pages(state, plan)
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
        _write(folder / name, as_bytes(text), ours=name in state.files)
    if made.plans:
        renew_tracker(folder, made.plans)
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


def _write(path: Path, data: bytes, *, ours: bool) -> None:
    """Put a file in place; what another hand put there before us is kept beside it."""
    if not ours and os.path.lexists(path):
        try:
            found = read_regular(path, CAP)
        except TooBig:
            found = None
        if found != data:
            set_aside(path)
    replace_file(path, data)


def renew_tracker(folder: Path, plans: Sequence[str]) -> bool:
    """Put the newest plan's goal and criteria above the worker's tables; whether they stood under no known plan.

    What is written over because it stood under no plan, or was no UTF-8, is kept beside it. A tracker that is too large
    to be read is left alone: nothing passes the gate while it is.
    """
    path = folder / tracker.NAME
    try:
        raw = read_regular(path, CAP) or b""
    except TooBig:
        return False
    found, foreign = tracker.decoded(raw)
    text, strange = tracker.renewed(found, plans)
    if raw and (strange or foreign):
        _copy_aside(path, raw)
    if as_bytes(text) != raw:
        replace_file(path, as_bytes(text))
    return strange


def _copy_aside(path: Path, raw: bytes) -> None:
    """Keep what we are about to write over as ``<name>.by-hand`` (then ``.by-hand-1``, ...), each text once."""
    for n in range(1000):
        target = path.with_name(f"{path.name}.by-hand" + (f"-{n}" if n else ""))
        if not os.path.lexists(target):
            replace_file(target, raw)
            return
        if target.is_file() and target.stat().st_size == len(raw) and read_regular(target, CAP) == raw:
            return
    raise FileExistsError(f"a thousand copies of {path.name} were set aside")


def as_bytes(text: str) -> bytes:
    """Text as it is written to a file."""
    return text.encode("utf-8", "replace")
