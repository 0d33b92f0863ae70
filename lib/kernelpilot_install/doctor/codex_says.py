"""What Codex itself says of hooks, skills and features: asked, never guessed, and without a model.

Asked only where Codex has its user folder already: any start of it writes caches of its own there.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpilot_install.doctor.ask import Answer, ask
from kernelpilot_install.doctor.codex_rpc import QUIET, Server, Unanswered
from kernelpilot_install.places import Places

PROMPT_S = 20.0
_SHOWN = re.compile(r"^- ([^\s:]+(?::[^\s:]+)?): .*\(file: [^\n]*\)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Hook:
    """One entry of ``hooks/list``."""

    key: str
    event: str
    command: str
    trust: str
    """``trusted``, ``untrusted``, ``modified`` or ``managed``."""
    digest: str
    enabled: bool


@dataclass(frozen=True, kw_only=True)
class Skill:
    """One entry of ``skills/list``."""

    name: str
    path: Path
    enabled: bool


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Where Codex is asked from."""

    at: Places
    env: Mapping[str, str]
    folder: Path

    @property
    def program(self) -> str:
        """The client. Raises Unanswered when there is nothing to ask."""
        found = shutil.which("codex", path=self.at.path)
        if found is None:
            raise Unanswered("there is no `codex` on PATH")
        if not self.at.codex.is_dir():
            raise Unanswered(f"it has no folder {self.at.codex} yet")
        return found

    def server(self) -> Server:
        """A started app-server, for a ``with``."""
        return Server(self.program, env=self.env, cwd=self.folder)

    def run(self, *words: str) -> Answer:
        """One command of Codex. Raises Unanswered when it fails."""
        answer = ask([self.program, *QUIET, *words], env=self.env, cwd=self.folder, seconds=PROMPT_S)
        if answer.code != 0:
            raise Unanswered(f"`codex {' '.join(words)}` {answer.why or f'exits {answer.code}: {answer.first}'}")
        return answer


def hooks(server: Server, folder: Path) -> list[Hook]:
    """The hooks of a session that starts in ``folder``. Raises Unanswered."""
    found = []
    for entry in _data(server, "hooks/list", folder):
        for hook in _list(entry, "hooks"):
            found.append(
                Hook(
                    key=str(hook.get("key")),
                    event=str(hook.get("eventName")),
                    command=str(hook.get("command")),
                    trust=str(hook.get("trustStatus")),
                    digest=str(hook.get("currentHash")),
                    enabled=hook.get("enabled") is not False,
                )
            )
    return found


def skills(server: Server, folder: Path) -> tuple[list[Skill], dict[str, str]]:
    """(skills that loaded, path to error of those that did not), as seen from ``folder``. Raises Unanswered."""
    found, errors = [], {}
    for entry in _data(server, "skills/list", folder):
        for skill in _list(entry, "skills"):
            on = skill.get("enabled") is not False
            found.append(Skill(name=str(skill.get("name")), path=Path(str(skill.get("path"))), enabled=on))
        for error in _list(entry, "errors"):
            errors[str(error.get("path"))] = " ".join(str(error.get("message")).split())
    return found, errors


def shown(asking: Asking) -> list[str]:
    """Names in the skill list that the model gets in ``folder``. Raises Unanswered."""
    answer = asking.run("debug", "prompt-input", "hello")
    try:
        items = json.loads(answer.out)
        texts = [part["text"] for item in items for part in item.get("content") or [] if "text" in part]
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise Unanswered("`codex debug prompt-input` prints no list of messages") from None
    return [name for text in texts if "<skills_instructions>" in str(text) for name in _SHOWN.findall(str(text))]


def features(asking: Asking) -> dict[str, bool]:
    """Feature to whether it is on. Raises Unanswered."""
    rows = [line.split() for line in asking.run("features", "list").out.splitlines()]
    return {row[0]: row[-1] == "true" for row in rows if len(row) > 1}


def _data(server: Server, method: str, folder: Path) -> list[dict[str, Any]]:
    params: dict[str, Any] = {"cwds": [str(folder)]}
    if method == "skills/list":
        params["forceReload"] = True
    return _list(server.call(method, params), "data")


def _list(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = holder.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
