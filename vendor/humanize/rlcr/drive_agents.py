"""The clients as workers: how a turn is begun without a terminal, and what can be heard in what one prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

GONE = re.compile(
    r"no (?:rollout|conversation|session|thread) found|(?:session|thread|conversation)\b.*not found", re.I
)
"""What a client says of a session that it no longer has."""
_HOOKS_OFF = '{"disableAllHooks":true}'


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What a client's output says of a turn. ``session`` is empty until the client is inside one."""

    session: str = ""
    message: str = ""
    failed: str = ""


class Agent(Protocol):
    """A client that works."""

    own: tuple[str, ...]
    """Words of its command line that only the driver says."""

    def argv(self, program: str, session: str, extra: Sequence[str]) -> list[str]:
        """The command of one turn, whose prompt comes on stdin; an empty session begins a new one."""

    def hear(self, lines: Iterable[bytes]) -> Heard:
        """What the lines of its stdout say, also when they end in the middle of one."""


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class Codex:
    """``codex exec --json`` and ``codex exec --json resume``."""

    own: tuple[str, ...] = (
        "--json",
        "--ephemeral",
        "--worktree",
        "-C",
        "--cd",
        "--output-schema",
        "resume",
        "fork",
        "review",
        "-",
    )

    def argv(self, program: str, session: str, extra: Sequence[str]) -> list[str]:
        """See Agent. The user's words stand before ``resume``: some of them are no words of its own."""
        resume = ["resume", session] if session else []
        return [program, "exec", *extra, "-c", "features.hooks=false", "--json", *resume, "-"]

    def hear(self, lines: Iterable[bytes]) -> Heard:
        """See Agent."""
        heard = Heard()
        for record in _records(lines):
            kind, item = record.get("type"), record.get("item")
            if kind == "thread.started":
                heard = replace(heard, session=_text(record.get("thread_id")))
            elif kind == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
                heard = replace(heard, message=_text(item.get("text")))
            elif kind == "turn.failed":
                error = record.get("error")
                said = error.get("message") if isinstance(error, dict) else error
                heard = replace(heard, failed=f"the turn failed: {said}")
        return heard


class Claude:
    """``claude -p`` with a stream of events, and ``--resume``."""

    own: tuple[str, ...] = (
        "-p", "--print", "--output-format", "--input-format", "--settings", "--session-id", "-r", "--resume", "-c",
        "--continue", "--fork-session", "--no-session-persistence", "--bg", "--background", "-w", "--worktree",
    )  # fmt: skip

    def argv(self, program: str, session: str, extra: Sequence[str]) -> list[str]:
        """See Agent."""
        resume = ["--resume", session] if session else []
        events = ["--output-format", "stream-json", "--verbose"]
        return [program, "-p", *extra, *events, "--settings", _HOOKS_OFF, *resume]

    def hear(self, lines: Iterable[bytes]) -> Heard:
        """See Agent."""
        heard = Heard()
        for record in _records(lines):
            kind, result = record.get("type"), record.get("result")
            if kind == "system" and record.get("subtype") == "init":
                heard = replace(heard, session=_text(record.get("session_id")))
            elif kind == "result":
                bad = record.get("is_error") or record.get("subtype", "success") != "success"
                said = f"{record.get('subtype')}: {result or record.get('errors') or ''}" if bad else ""
                heard = replace(heard, message=_text(result), failed=said)
        return heard


AGENTS: dict[str, Agent] = {"codex": Codex(), "claude": Claude()}
