"""The stop gate: a Stop judged by hand, where no hook fires; it allows nothing over a loop that it cannot judge."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from rlcr import loop, registry, repo, stop_hook
from rlcr.command import NoLoop, elsewhere, here, take
from rlcr.loop import Loop
from rlcr.model import sha256
from rlcr.options import CANCEL, RLCR

UNJUDGED = 20
NONE = "no loop of this session is active"


def main(words: list[str]) -> int:
    """Judge a Stop by hand: 0 ``ALLOW:``, 10 ``BLOCK:`` and the reason, 20 when it cannot be judged.

    Without a session id in option or environment it is the loop of the worktree that is judged.
    """
    said: list[dict[str, str] | None] = []
    none = NONE
    try:
        given = take(words, "--session-id", "--transcript-path", "--project-root", flags=("--json",))
        root = Path(given.get("--project-root", ".")).resolve()
        os.chdir(root)
        env = os.environ.get("CLAUDE_CODE_SESSION_ID") or os.environ.get("CODEX_THREAD_ID") or ""
        session = given.get("--session-id", env)
        payload = {"session_id": session, "cwd": str(root), "hook_event_name": "Stop", "rlcr_by": "hand"}
        known = _checked(sha256(session) if session else "", repo.toplevel(root))
        if not stop_hook.main(payload, said.append, known):
            raise ValueError("told to end, so this Stop was not judged")
        none += elsewhere()
    except NoLoop as error:
        none = str(error)
    except (ValueError, OSError, LookupError, repo.GitError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return UNJUDGED
    answer = said[-1] if said else None
    blocked = answer is not None and answer.get("decision") == "block"
    if "--json" in given:
        print(json.dumps(answer or {}))
    elif blocked and answer is not None:
        print(f"BLOCK: {answer['reason']}")
    else:
        print(f"ALLOW: {(answer or {}).get('systemMessage', none)}")
    return 10 if blocked else 0


def _checked(session: str, root: Path | None) -> str:
    """The session (a SHA-256) whose Stop this is. Raises ValueError where the loop here cannot be judged as its own."""
    found = loop.active(root) if root is not None else None
    if found is None and not session:
        found = here()  # says what there is elsewhere
    owner = found.state.session_sha256 if found is not None else ""
    entry = registry.load(session) if session else None
    if found is not None and not owner and (entry is None or entry.loop_dir != str(found.folder)):
        fault = found.faults(None)
        what = f"{fault[0].where}: {fault[0].what}" if fault else "its journal is gone"
        raise ValueError(f"the loop {found.folder} cannot be judged. {what}. See {RLCR} status; to end it: {CANCEL}")
    session = session or owner
    entry = entry or (registry.load(session) if session else None)
    if root is not None and entry is not None and entry.loop_dir and Path(entry.loop_dir).parents[2] != root:
        same = [folder for folder in loop.every(root) if folder.name == Path(entry.loop_dir).name]
        copies = [folder for folder in same if Loop(folder).state.session_sha256 == session]
        if copies:
            raise ValueError(
                f"{copies[0]} is a copy: this session's loop is {entry.loop_dir}. Stop there, or remove the copy"
            )
    if found is not None and owner not in ("", session):
        other = registry.load(owner) or registry.Entry()
        when = other.last_fired or other.last_asked
        last = f"last judged {when} ({other.last_outcome})" if when else "never judged yet"
        raise ValueError(
            f"the loop {found.folder} belongs to another session (sha256:{owner[:16]}, {last}): judge it with that "
            f"session's id, or take it over: {RLCR} adopt --session-id ID"
        )
    return session
