"""Does a reviewer answer at all? Its own call, schema and reader, on a request that needs no thought."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from rlcr.review import child, schema
from rlcr.review.clients import CLIENTS, Call, environment
from rlcr.review.model import Infra, Request

_PROMPT = """\
This is a test of the connection. Read nothing and run nothing. Answer at once, in the given schema, with
verdict "complete", mainline "advanced", no acs, no findings, and this word as text: {word}
"""


def ping(client: str, cwd: Path, seconds: float) -> tuple[bool, str]:
    """(whether the answer fits the strict schema and is one to this request, one line on it).

    Costs one call of the model. ``cwd`` outside of a repository gets an empty one in its place, for Codex wants one.
    Takes at most ``seconds`` and a few more for ending a stuck reviewer; raises nothing that a reviewer can cause.
    """
    if client not in CLIENTS:
        return False, f"{client!r} is none of {', '.join(sorted(CLIENTS))}"
    program = shutil.which(client)
    if program is None:
        return False, f"no {client} on PATH"
    start = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="rlcr-ping-", ignore_cleanup_errors=True) as made:
            said = _call(client, program, Path(made), cwd, seconds)
    except (OSError, subprocess.SubprocessError) as bad:
        return False, f"the call could not be made: {bad}"
    if isinstance(said, Infra):
        return False, f"{said.kind}: {said.detail}"
    return True, f"{client} answered as the schema wants in {time.monotonic() - start:.0f} s"


def _call(client: str, program: str, private: Path, cwd: Path, seconds: float) -> Infra | None:
    """None for a good answer."""
    until = time.monotonic() + max(0.0, seconds - child.GRACE_S)
    word = secrets.token_hex(8)
    prompt = private / "prompt.md"
    prompt.write_text(_PROMPT.format(word=word), encoding="utf-8")
    worktree = cwd if any((p / ".git").exists() for p in (cwd, *cwd.parents)) else _repository(private)
    request = _request(client, worktree, private, seconds)
    env = environment()
    call = Call(program=(program,), request=request, private=private, env=env, left_s=until - time.monotonic())
    argv = CLIENTS[client].argv(call)
    if isinstance(argv, Infra):
        return argv
    ended = child.run(argv, cwd=worktree, env=env, prompt=prompt, until=until)
    if ended.how != "exit":
        return Infra(kind=ended.how, detail=f"no answer within {seconds:g} s")
    if ended.code != 0:
        lines = (ended.err.strip() or ended.out.strip()).decode(errors="replace").splitlines()
        return Infra(kind="exit-nonzero", detail=f"{client} exited {ended.code}: {lines[-1][:200] if lines else ''}")
    message = CLIENTS[client].message(call, ended)
    return message if isinstance(message, Infra) else _judge(message, word)


def _judge(message: str, word: str) -> Infra | None:
    if not message.strip():
        return Infra(kind="empty", detail="it ended without a final message")
    try:
        found = schema.verdict(schema.loads(message.strip()))
    except schema.Malformed as bad:
        return Infra(kind="bad-json", detail=f"{bad}; it opens: {message.strip().splitlines()[0][:100]}")
    if word not in found.text:
        return Infra(kind="no-verdict", detail="the answer is not one to this request: its word is missing")
    return None


def _repository(private: Path) -> Path:
    folder = private / "repo"
    subprocess.run(["git", "init", "-q", str(folder)], check=True, capture_output=True, timeout=30)
    return folder


def _request(client: str, worktree: Path, private: Path, seconds: float) -> Request:
    """What a client's command line is made from; nothing of it is read."""
    nothing = private / "nothing"
    return Request(
        reviewer=client,
        loop_dir=private,
        worktree=worktree,
        round=0,
        phase="BUILD",
        base_commit="",
        head="",
        plan_path=nothing,
        summary_path=nothing,
        evidence_path=nothing,
        prior_open=(),
        deadline_s=seconds,
        model="",
        effort="",
        full=True,
    )
