"""The one call: build the prompt, run the reviewer, judge what it left behind."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rlcr.review import child, logs, papers
from rlcr.review.answer import judge
from rlcr.review.clients import CLIENTS, PAPERS, Call, Client, environment
from rlcr.review.model import Infra, Request, Verdict
from rlcr.review.prompt import prompt_for


def review(request: Request) -> Verdict | Infra:
    """Buy one review. Takes at most ``request.deadline_s`` seconds and a few more for ending a stuck reviewer.

    Writes nothing into the worktree or the loop's folder, reads no result that was there before, raises nothing that
    a reviewer can cause, and leaves no process of its group behind.
    """
    client = CLIENTS.get(request.reviewer)
    if client is None:
        return Infra(kind="unknown-reviewer", detail=f"{request.reviewer!r} is none of {', '.join(sorted(CLIENTS))}")
    found = shutil.which(request.reviewer)
    program = request.program or ((found,) if found else ())
    if not program:
        return Infra(kind="binary-missing", detail=f"no {request.reviewer} on PATH")
    try:
        with tempfile.TemporaryDirectory(prefix="rlcr-review-", ignore_cleanup_errors=True) as private:
            return _review(client, program, request, Path(private))
    except OSError as bad:
        return Infra(kind="start-failed", detail=f"{bad.strerror or bad}: {bad.filename or program[-1]}")
    except (KeyError, ValueError) as bad:
        return Infra(kind="start-failed", detail=f"a prompt template is damaged: {bad}")


def _review(client: Client, program: tuple[str, ...], request: Request, private: Path) -> Verdict | Infra:
    until = time.monotonic() + max(0.0, request.deadline_s - child.GRACE_S)
    given = papers.copy(request, private / PAPERS)
    if isinstance(given, Infra):
        return given
    token = _token(request)
    prompt = private / "prompt.md"
    prompt.write_text(prompt_for(given.request, token=token), encoding="utf-8", errors="replace")
    env = environment()
    call = Call(program=program, request=request, private=private, env=env, left_s=until - time.monotonic())
    argv = client.argv(call)
    if isinstance(argv, Infra):
        return argv
    stem = _log(request, argv, prompt)
    ended = child.run(argv, cwd=request.worktree, env=env, prompt=prompt, until=until, logs=stem)
    failed = _failure(ended, request)
    if failed is not None:
        return failed
    message = client.message(call, ended)
    moved = given.moved()
    if moved is not None:
        return moved
    # The plan is known by its own path, which no criterion may cite.
    judged = replace(request, evidence_path=given.request.evidence_path)
    return message if isinstance(message, Infra) else judge(message, judged, token=token)


def _token(request: Request) -> str:
    """A word that no review has cause to hold; equal for equal requests."""
    return "request-" + hashlib.sha256(repr(request).encode(errors="replace")).hexdigest()[:24]


def _failure(ended: child.Ended, request: Request) -> Infra | None:
    if ended.how == "deadline":
        return Infra(kind="deadline", detail=f"{request.reviewer} was still at work after {request.deadline_s:g} s")
    if ended.how == "terminated":
        return Infra(kind="terminated", detail=f"we were told to end; {request.reviewer} was ended with us")
    if ended.code != 0:
        said = (ended.err.strip() or ended.out.strip()).decode(errors="replace").splitlines()
        return Infra(
            kind="exit-nonzero", detail=f"{request.reviewer} exited {ended.code}: {said[-1][:200] if said else ''}"
        )
    return None


def _log(request: Request, argv: list[str], prompt: Path) -> Path | None:
    """Record the command and the prompt; None when the cache cannot be written, which costs no review."""
    project = _project(request.loop_dir)
    stem = logs.log_stem(project, request.loop_dir.name, number=request.round, reviewer=request.reviewer)
    with suppress(OSError):
        stem.parent.mkdir(parents=True, exist_ok=True)
        for suffix in (".out", ".log"):
            stem.with_name(stem.name + suffix).unlink(missing_ok=True)
        command = f"cd {shlex.quote(str(request.worktree))}\n{shlex.join(argv)} < prompt\n\n"
        text = command + prompt.read_text(encoding="utf-8")
        stem.with_name(stem.name + ".cmd").write_text(text, encoding="utf-8", errors="replace")
        return stem
    return None


def _project(loop_dir: Path) -> Path:
    """The repository whose ``.humanize/rlcr/<loop>`` this is."""
    parents = loop_dir.parents
    return parents[2] if len(parents) > 2 and parents[0].name == "rlcr" else loop_dir.parent
