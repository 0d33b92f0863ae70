"""Time and patience: what the loop counts on, against what the clients allow.

The numbers are the loop runtime's own; a test holds them equal, for the installer imports nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelpilot_install import hooks
from kernelpilot_install.doctor.check import Check, Here, edit
from kernelpilot_install.doctor.loop import EVIDENCE
from kernelpilot_install.splice import groups

PATIENCE = 3
"""Equal failures after which the loop parks itself."""
MARGIN_S = 60
LEAST_REVIEW_S = 60
"""The shortest review that is begun."""
DEFAULT_EVIDENCE_S = 900
CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
CLAUDES_OWN_CAP = 8


def caps(here: Here) -> Iterator[Check]:
    """Claude Code ends a turn after so many blocks without a tool call; Codex has no such cap."""
    found = [(where, value) for where, value in _caps(here) if value is not None]
    if not found:
        what = f"{CAP} is not set: {CLAUDES_OWN_CAP} blocks in a row without a tool call, and the loop parks before"
        yield Check(name="cap-claude", status="ok", what=what)
    for where, value in found:
        yield _cap(where, str(value))


def _cap(where: str, value: str) -> Check:
    fix = f"unset {CAP}  # where it is set: {where}; {CLAUDES_OWN_CAP} or more, or 0 for none, is right"
    if not value.strip().isdigit():
        what = f"{where}: {CAP} is {value!r}, which is no number"
        return Check(name="cap-claude", status="warn", what=what, fix=fix)
    cap = int(value)
    if 0 < cap <= PATIENCE:
        what = f"{where}: {CAP} is {cap}: Claude Code ends the turn before the loop can park itself (after {PATIENCE})"
        return Check(name="cap-claude", status="fail", what=what, fix=fix)
    if 0 < cap < CLAUDES_OWN_CAP:
        what = f"{where}: {CAP} is {cap}, below Claude Code's own {CLAUDES_OWN_CAP}: a slow start may be cut off"
        return Check(name="cap-claude", status="warn", what=what, fix=fix)
    return Check(name="cap-claude", status="ok", what=f"{where}: {CAP} is {cap or '0, so there is none'}")


def _caps(here: Here) -> Iterator[tuple[str, Any]]:
    yield "the environment", here.env.get(CAP)
    files = [here.at.claude / "settings.json"]
    files += [here.root / ".claude" / name for name in ("settings.json", "settings.local.json")] if here.root else []
    for path in dict.fromkeys(files):
        if path.is_file():
            value = json.loads(path.read_bytes().strip() or b"{}")
            env = value.get("env") if isinstance(value, dict) else None
            yield str(path), env.get(CAP) if isinstance(env, dict) else None


def order(here: Here, client: str, root: Path) -> Iterator[Check]:
    """The hook's time-out is longer than evidence, the shortest review and the margin together."""
    name, path = f"timeout-{client}", root / hooks.FILES[client]
    launch = here.at.clone / hooks.LAUNCHER
    standing = hooks.standing(groups(hooks.read(path) or b"", where=str(path)))
    given = next((s.data.get("timeout") for s in standing if s.program == launch), hooks.TIMEOUT_S)
    if not isinstance(given, int) or isinstance(given, bool) or given < hooks.TIMEOUT_S:
        what = f"its time-out in {path} is {given!r} s, and the loop plans with {hooks.TIMEOUT_S}: a review is cut off"
        fix = edit(path, f'set "timeout": {hooks.TIMEOUT_S} beside the Stop hook')
        yield Check(name=name, status="fail", what=what, fix=fix)
        return
    evidence = _evidence_s(here)
    left = hooks.TIMEOUT_S - MARGIN_S - evidence
    words = f"hook {given} s, evidence {evidence:g} s, margin {MARGIN_S} s"
    if left < LEAST_REVIEW_S:
        most = hooks.TIMEOUT_S - MARGIN_S - LEAST_REVIEW_S
        what = f"{words}: {max(left, 0):g} s are left for a review, which needs {LEAST_REVIEW_S}"
        fix = edit((here.root or here.folder) / EVIDENCE, f"lower timeout_s until their sum is at most {most}")
        yield Check(name=name, status="fail", what=what, fix=fix)
    else:
        yield Check(name=name, status="ok", what=f"{words}: {left:g} s are left for a review")


def _evidence_s(here: Here) -> float:
    """Seconds that the evidence commands of this worktree may take together; 0 where that is another check's fault."""
    if here.root is None:
        return 0
    try:
        commands = json.loads((here.root / EVIDENCE).read_bytes())["commands"]
        return float(sum(c.get("timeout_s", DEFAULT_EVIDENCE_S) for c in commands))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0
