"""How each reviewer is called, and where in what it leaves its final message stands."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rlcr.review import schema
from rlcr.review.child import Ended, run
from rlcr.review.model import Infra, Request

MESSAGE_LIMIT = 1 << 20
"""Bytes of a final message; a longer one is no review."""
PAPERS = "papers"
GUARD = "RLCR_REVIEWER"
"""Set in the reviewer's environment: our Stop hook lets a process that has it go."""
_OWN_SESSION = ("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
_HOOK_FEATURES = ("hooks", "codex_hooks")


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call being made: the program, its request, and a private folder made for this call alone.

    ``program`` is a path, behind the interpreter that runs it where that is not the system's to find.
    """

    program: tuple[str, ...]
    request: Request
    private: Path
    env: Mapping[str, str]
    left_s: float

    @property
    def papers(self) -> Path:
        """Folder of what the reviewer is given to read; absent where it is given nothing."""
        return self.private / PAPERS


class Client(Protocol):
    """A reviewer."""

    def argv(self, call: Call) -> list[str] | Infra:
        """The command; the prompt comes on stdin."""

    def message(self, call: Call, ended: Ended) -> str | Infra:
        """The final message of a child that ended with 0."""


def environment() -> dict[str, str]:
    """Ours, with the guard set and without the marks of the session that we run inside."""
    env = {name: value for name, value in os.environ.items() if name not in _OWN_SESSION}
    env[GUARD] = "1"
    return env


class Codex:
    """``codex exec`` in its read-only sandbox, without the instructions and settings that lie in the repository."""

    def argv(self, call: Call) -> list[str] | Infra:
        """See Client."""
        request = call.request
        hooks_off = _without_hooks(call)
        if isinstance(hooks_off, Infra):
            return hooks_off
        answer = call.private / "schema.json"
        answer.write_text(json.dumps(schema.SCHEMA), encoding="utf-8")
        command = [*call.program, "exec", "--sandbox", "read-only", "--output-schema", str(answer)]
        command += ["--output-last-message", str(_message_path(call)), *hooks_off]
        # Whoever is reviewed can write AGENTS.md, .codex/config.toml and .codex/skills there, and so speak for us.
        place = json.dumps(str(request.worktree), ensure_ascii=False)
        untrusted = f'projects={{{place}={{trust_level="untrusted"}}}}'
        for setting in ("project_doc_max_bytes=0", "skills.include_instructions=false", untrusted):
            command += ["-c", setting]
        if request.model:
            command += ["-m", request.model]
        if request.effort:
            command += ["-c", f"model_reasoning_effort={request.effort}"]
        return [*command, "-C", str(request.worktree), "-"]

    def message(self, call: Call, ended: Ended) -> str | Infra:
        """See Client. Where no message file was written, stdout is the final message."""
        written = _read_new(_message_path(call))
        if isinstance(written, Infra):
            return written
        if written.strip():
            return written
        if ended.cut or len(ended.out) > MESSAGE_LIMIT:
            return Infra(kind="too-large", detail=f"more than {MESSAGE_LIMIT} bytes on stdout and no message file")
        return ended.out.decode(errors="replace")


def _message_path(call: Call) -> Path:
    return call.private / "message.txt"


def _read_new(path: Path) -> str | Infra:
    """A file that did not exist when the call began; empty when there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as bad:
        return Infra(kind="reviewer-error", detail=f"the message file cannot be read: {bad.strerror}")
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return Infra(kind="reviewer-error", detail="the message file is no regular file")
        if facts.st_size > MESSAGE_LIMIT:
            return Infra(kind="too-large", detail=f"the final message has {facts.st_size} bytes")
        return os.read(handle, MESSAGE_LIMIT).decode(errors="replace")
    finally:
        os.close(handle)


def _without_hooks(call: Call) -> list[str] | Infra:
    """``--disable`` for the hook feature under the name this codex lists; nothing when it lists none."""
    ended = run(
        [*call.program, "features", "list"],
        cwd=call.private,
        env=call.env,
        prompt=Path(os.devnull),
        until=time.monotonic() + max(0.1, min(10.0, call.left_s / 4)),
    )
    if ended.how == "terminated":
        return Infra(kind="terminated", detail="we were told to end before the review began")
    names = {line.split()[0] for line in ended.out.decode(errors="replace").splitlines() if line.strip()}
    return next((["--disable", name] for name in _HOOK_FEATURES if name in names), [])


class Claude:
    """``claude -p`` that can only read, with every hook off and without what lies in the repository: see Codex.

    It gets no shell: what plan mode thinks of a command is asked of a server, and without one the whole review is lost.
    """

    def argv(self, call: Call) -> list[str] | Infra:
        """See Client."""
        request = call.request
        command = [*call.program, "-p", "--output-format", "json", "--json-schema", json.dumps(schema.SCHEMA)]
        command += ["--permission-mode", "plan", "--settings", '{"disableAllHooks":true}']
        if call.papers.is_dir():
            command += ["--add-dir", str(call.papers)]
        command += ["--setting-sources", "user", "--strict-mcp-config", "--tools", "Read,Grep,Glob"]
        if request.model:
            command += ["--model", request.model]
        if request.effort:
            command += ["--effort", request.effort]
        return command

    def message(self, call: Call, ended: Ended) -> str | Infra:  # noqa: ARG002 - the protocol's shape
        """See Client. The structured answer where there is one, else the result text."""
        if ended.cut:
            return Infra(kind="too-large", detail="the result on stdout is longer than is kept")
        text = ended.out.decode(errors="replace").strip()
        if not text:
            return ""
        try:
            found = schema.loads(text)
        except schema.Malformed as bad:
            return Infra(kind="bad-json", detail=f"stdout is no result object: {bad}")
        return _from_result(found)


def _from_result(found: object) -> str | Infra:
    if isinstance(found, list):
        found = next((item for item in reversed(found) if isinstance(item, dict) and item.get("type") == "result"), {})
    if not isinstance(found, dict) or found.get("type", "result") != "result":
        return Infra(kind="bad-json", detail="stdout holds no result object")
    subtype, result = found.get("subtype", "success"), found.get("result")
    if found.get("is_error") or subtype != "success":
        return Infra(kind="reviewer-error", detail=f"{subtype}: {str(result)[:200]}")
    answer = found.get("structured_output")
    message = json.dumps(answer) if answer is not None else result if isinstance(result, str) else ""
    if len(message) > MESSAGE_LIMIT:
        return Infra(kind="too-large", detail=f"the final message has {len(message)} characters")
    return message


CLIENTS: dict[str, Client] = {"codex": Codex(), "claude": Claude()}
