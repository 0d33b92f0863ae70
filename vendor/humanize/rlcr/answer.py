"""What the client is told: at most 2 KB, and no key that a client does not know."""

from __future__ import annotations

from pathlib import Path

from rlcr.model import State
from rlcr.options import CANCEL, RLCR
from rlcr.step import BLOCKS_PER_ROUND

REASON_CAP = 2048


def answer(state: State, folder: Path) -> dict[str, str]:
    """The answer that follows from the last decision: a block with its reason, or a word on how the loop ended."""
    last, stop = state.last, state.last_stop
    if state.phase == "PARKED":
        return let_go(state.exit_reason, spent=state.blocks >= BLOCKS_PER_ROUND * state.begun.max)
    if last is None or last.outcome != "block" or not state.active:
        left = "; ".join(_cut(" ".join(item.split()), 160) for item in (last.items[:5] if last else ()))
        text = f"RLCR loop {state.phase}: {state.exit_reason}{': ' if left else ''}{left}{_history(state)}"
        return {"systemMessage": _cut(text, REASON_CAP)}
    page = folder / last.page
    if len(str(page).encode(errors="replace")) > REASON_CAP // 2:
        page = Path(*page.parts[-4:])  # seen from the root of the worktree
    tail = f"\nRead {page} and do what it says."
    room = REASON_CAP - len(tail.encode())
    lines = [last.headline + "."]
    if stop is not None and stop.tampered:
        lines.append(_cut(f"Put back, and on record: {'; '.join(stop.tampered)}.", 400))
    whole = 500 if len(last.items) <= 3 else 240  # a remedy that is cut off cannot be pasted
    for n, item in enumerate(last.items):
        line = "- " + _cut(" ".join(item.split()), whole)
        if sum(len(text.encode()) + 1 for text in (*lines, line)) > room - 40:
            lines.append(f"- and {len(last.items) - n} more")
            break
        lines.append(line)
    short = f"RLCR round {last.round} of {state.begun.max} ({last.phase}): {last.headline}"
    return {"decision": "block", "reason": _cut("\n".join(lines), room) + tail, "systemMessage": _cut(short, 300)}


def _history(state: State) -> str:
    """What a reader of the end must know of the way there: amendments, and files that another hand changed."""
    out = ""
    if state.amends:
        why = "; ".join(_cut(f"{amend.what}: {amend.why}", 120) for amend in state.amends[-3:])
        out += f". Amended {len(state.amends)} times on the way, last: {why}"
    if state.tampers:
        now = state.last_stop.tampered if state.last_stop is not None else ()
        out += f". Changed by another hand: {state.tampers} on record" + (f", now {'; '.join(now)}" if now else "")
    return out


def _cut(text: str, cap: int) -> str:
    """Text as valid UTF-8 of at most ``cap`` bytes."""
    raw = text.encode("utf-8", "replace")
    return raw.decode() if len(raw) <= cap else raw[: cap - 3].decode("utf-8", "ignore") + "..."


def let_go(why: str, *, spent: bool = False) -> dict[str, str]:
    """A parked loop: the turn ends, and the user learns how to go on, where it can."""
    how = f"It cannot be resumed; to end it: {CANCEL}" if spent else f"To go on: {RLCR} resume; to end it: {CANCEL}"
    return {"systemMessage": f"RLCR loop PARKED: {_cut(why, 1200)}. {how}"}


def lost(what: str) -> dict[str, str]:
    """A block that names what is wrong with the loop itself."""
    reason = (
        f"RLCR cannot judge this Stop: {_cut(what, 1200)}\nNothing is counted. Mend it if you can, then stop again."
    )
    return {"decision": "block", "reason": reason, "systemMessage": f"RLCR: {_cut(what, 200)}"}
