"""The evidence commands: pinned at set-up, run by the runtime itself, believed only when they are what was pinned."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rlcr import ambient
from rlcr.files import TooBig, digest_regular, read_regular
from rlcr.model import COURSES, Check, Course, Failure, Problem, sha256
from rlcr.options import HOOK_S, MARGIN_S

PATH = ".humanize/evidence.json"
SEVERITIES = ("block", "repair", "trend")
OUTPUT_CAP = 4 << 20
PROBLEM_CAP = 60
VERSION_S = 30.0
LEAST_REVIEW_S = 60
PIPES_S = 2.0
"""Seconds for which pipes are read on after the command's end: a daemon of its own may hold them for ever."""


class BadEvidence(ValueError):
    """``.humanize/evidence.json`` cannot be used, in words for the user."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A finished command; ``code`` is None when it was killed for time."""

    code: int | None
    out: bytes
    err: str
    seconds: float


def run_group(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> Ran:
    """Run a command in a process group of its own; whatever happens, nothing of the group is left. Raises OSError."""
    start = time.monotonic()
    process = subprocess.Popen(
        list(argv), cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    kept: dict[str, bytes] = {"out": b"", "err": b""}

    def drain(name: str, pipe: IO[bytes]) -> None:
        while chunk := os.read(pipe.fileno(), 1 << 16):
            if len(kept[name]) <= OUTPUT_CAP:
                kept[name] += chunk

    if process.stdout is None or process.stderr is None:
        raise OSError("no pipes")
    readers = [
        threading.Thread(target=drain, args=args, daemon=True)
        for args in (("out", process.stdout), ("err", process.stderr))
    ]
    code: int | None = None
    try:
        for reader in readers:
            reader.start()
        code = process.wait(timeout=max(timeout_s, 0.1))
    except subprocess.TimeoutExpired:
        code = None
    finally:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until = time.monotonic() + PIPES_S
        for reader, pipe in zip(readers, (process.stdout, process.stderr), strict=True):
            reader.join(timeout=max(until - time.monotonic(), 0))
            if not reader.is_alive():
                pipe.close()
    err = kept["err"].decode(errors="replace").strip()[-600:]
    return Ran(code=code, out=kept["out"], err=err, seconds=time.monotonic() - start)


def load(root: Path) -> tuple[str, list[dict[str, Any]]]:
    """SHA-256 and commands of the evidence file, empty ones when there is none. Raises BadEvidence."""
    try:
        raw = read_regular(root / PATH, 1 << 20)
    except TooBig:
        raise BadEvidence(f"{PATH} is larger than 1 MiB") from None
    if raw is None:
        return "", []
    try:
        data = json.loads(raw)
        if (data["format"], data["version"]) != ("humanize.evidence", 1):
            raise BadEvidence(f"{PATH} is not humanize.evidence version 1")
        commands = [_command(entry) for entry in data["commands"]]
        if len({command["name"] for command in commands}) != len(commands):
            raise BadEvidence(f"{PATH}: two commands have the same name")
    except BadEvidence:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadEvidence(f"{PATH} cannot be read: {error!r}"[:300]) from None
    return sha256(raw), commands


def _command(entry: dict[str, Any]) -> dict[str, Any]:
    name, argv, timeout = entry["name"], entry["argv"], entry.get("timeout_s", 900)
    good = isinstance(name, str) and name and isinstance(argv, list) and argv and type(timeout) in (int, float)
    if not good or not all(isinstance(word, str) for word in argv) or not 0 < timeout <= 3600:
        raise BadEvidence(f"{PATH}: a command needs a name, an argv of strings and a timeout_s of 1 to 3600")
    odd = [word for word in (name, *argv) if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in word)]
    if odd:
        raise BadEvidence(f"{PATH}: {odd[0]!a} holds a NUL or half a character, which no program can be given")
    cache = entry.get("cache", False)
    if not isinstance(cache, bool):
        raise BadEvidence(f"{PATH}: cache is true or false")
    return {"name": name, "argv": argv, "timeout_s": timeout, "cache": cache}


def program(root: Path, argv: Sequence[str]) -> str | None:
    """Absolute path of a command's program, links not resolved (a venv's python is known by its link)."""
    if "/" in argv[0]:
        path = root / argv[0]
        return str(path) if os.access(path, os.X_OK) and path.is_file() else None
    return shutil.which(argv[0])


def _scripts(root: Path, argv: Sequence[str]) -> dict[str, str]:
    """Hashes of the files that a command names as arguments: the script behind an interpreter, above all."""
    found = {word: os.path.join(root, word) for word in argv[1:] if not word.startswith("-")}  # noqa: PTH118
    return {word: digest_regular(path) for word, path in found.items() if os.path.isfile(path)}  # noqa: PTH113


def pin(root: Path) -> dict[str, Any]:
    """What set-up writes down of the evidence; runs nothing but ``--version``. Raises BadEvidence."""
    digest, commands = load(root)
    pinned = []
    for command in commands:
        found = program(root, command["argv"])
        if found is None:
            raise BadEvidence(f"{PATH}: {command['argv'][0]} was not found or cannot be executed")
        resolved = os.path.realpath(found)
        pinned.append({
            **command, "program": found, "resolved": resolved, "resolved_sha256": digest_regular(resolved),
            "version": _version(root, found), "scripts": _scripts(root, command["argv"]),
        })  # fmt: skip
    return {"path": PATH, "sha256": digest, "commands": pinned}


def fits(pinned: Mapping[str, Any], reviewer: str) -> int:
    """Seconds that a review may take beside these commands. Raises BadEvidence where they cannot judge a Stop."""
    alone = reviewer == "evidence-only"
    if alone and not pinned["commands"]:
        raise BadEvidence(f"--reviewer evidence-only needs evidence commands, and {PATH} has none")
    limit = HOOK_S - MARGIN_S - sum(int(command["timeout_s"]) for command in pinned["commands"])
    least = 0 if alone else LEAST_REVIEW_S
    if limit < least:
        most = HOOK_S - MARGIN_S - least
        raise BadEvidence(
            f"the evidence may take {most + least - limit} s, and the Stop hook leaves it {most} s: "
            f"lower timeout_s in {PATH} until their sum is at most {most}"
        )
    return limit


def _version(root: Path, found: str) -> str:
    try:
        ran = run_group([found, "--version"], cwd=root, env=ambient.clean(os.environ), timeout_s=VERSION_S)
    except OSError:
        return ""
    return ran.out.decode(errors="replace").strip()[:200] if ran.code == 0 else ""


def amended(root: Path, pinned: Mapping[str, Any]) -> tuple[Problem, ...]:
    """How the evidence differs from what was pinned: with one difference nothing is run."""
    out: list[Problem] = []

    def say(where: str, what: str) -> None:
        fix = "put it back; or, if the change is meant, rlcr evidence --amend --why TEXT"
        out.append(Problem(rule="amend", where=where, what=what, fix=fix))

    try:
        digest, _ = load(root)
    except BadEvidence:
        digest = "unreadable"
    if digest != pinned["sha256"]:
        say(PATH, "the evidence commands changed since set-up")
        return tuple(out)
    for command in pinned["commands"]:
        resolved = os.path.realpath(command["program"])
        if resolved != command["resolved"] or digest_regular(resolved) != command["resolved_sha256"]:
            say(command["program"], "the evidence program changed since set-up")
        if _scripts(root, command["argv"]) != command["scripts"]:
            say(" ".join(command["scripts"]) or command["name"], "a file of the evidence command changed since set-up")
    return tuple(out)


def run(
    root: Path,
    pinned: Mapping[str, Any],
    *,
    phase: str,
    number: int,
    deadline: float,
    known: Mapping[str, Check] | None = None,
) -> tuple[tuple[Check, ...], Failure | None]:
    """Run every pinned command in ``root``; ``deadline`` is of the monotonic clock. The first failure ends it.

    A command that declares ``cache`` is not run again where its answer is ``known`` and was a pass.
    """
    env = {**ambient.clean(os.environ), "RLCR_PHASE": phase, "RLCR_ROUND": str(number)}
    checks: list[Check] = []
    for command in pinned["commands"]:
        before = (known or {}).get(command["name"])
        if command.get("cache") and before is not None and before.passed:
            checks.append(before)
            continue
        argv = [command["program"], *command["argv"][1:]]
        limit = min(float(command["timeout_s"]), deadline - time.monotonic())
        try:
            ran = run_group(argv, cwd=root, env=env, timeout_s=limit)
        except OSError as error:
            return tuple(checks), Failure(kind="evidence-start", detail=f"{command['name']}: {error.strerror}")
        answer = _judge(command["name"], ran, limit)
        if isinstance(answer, Failure):
            return tuple(checks), answer
        checks.append(answer)
    return tuple(checks), None


def _judge(name: str, ran: Ran, limit: float) -> Check | Failure:
    tail = f" (stderr: {ran.err[-300:]})" if ran.err else ""
    if ran.code is None:
        return Failure(kind="evidence-timeout", detail=f"{name} did not end within {limit:.0f} s{tail}")
    if ran.code not in (0, 1):
        return Failure(kind="evidence-exit", detail=f"{name} ended with {ran.code}{tail}")
    try:
        if len(ran.out) > OUTPUT_CAP:
            raise ValueError("it is too long")
        return _check(name, ran, json.loads(ran.out, object_pairs_hook=_once, parse_constant=_refused))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Failure(kind="evidence-answer", detail=f"{name} answered no such JSON object: {error!r}"[:300] + tail)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are each given once: what can be read in two ways is no answer."""
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key is given twice")
    return out


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _check(name: str, ran: Ran, data: dict[str, Any]) -> Check:
    passed, done, listed = data["pass"], data["done"], data["findings"]
    if not isinstance(passed, bool) or not isinstance(done["met"], bool):
        raise TypeError("pass and done.met are booleans")
    if not all(isinstance(rows, list) for rows in (listed, done["missing"], data["not_evaluated"])):
        raise TypeError("findings, done.missing and not_evaluated are lists")
    if any(f["severity"] not in SEVERITIES for f in listed):
        raise ValueError(f"severity is one of {', '.join(SEVERITIES)}")
    if done["met"] and done["missing"]:
        raise ValueError("done.met beside something that is missing")
    clear = not any(f["severity"] == "block" for f in listed)
    problems = tuple(
        Problem(
            rule=str(f["rule"])[:40], severity=f["severity"], where=str(f["where"])[:200],
            what=str(f["what"])[:400], fix=str(f["fix"])[:300],
        )
        for f in listed[:PROBLEM_CAP]
    )  # fmt: skip
    return Check(
        name=name, exit=ran.code or 0, seconds=round(ran.seconds, 3), stdout_sha256=sha256(ran.out),
        passed=passed and ran.code == 0 and clear, met=done["met"], why=str(done["why"])[:400],
        missing=tuple(str(word)[:300] for word in done["missing"][:PROBLEM_CAP]), problems=problems,
        not_evaluated=tuple(str(word)[:200] for word in data["not_evaluated"][:PROBLEM_CAP]),
        course=_course(data.get("course")),
    )  # fmt: skip


def _course(said: Any) -> Course | None:
    """Where the numbers lead, None where the command does not say. Raises TypeError, KeyError or ValueError."""
    if said is None:
        return None
    counts = [said[name] for name in ("weak", "have", "want")]
    if said["kind"] not in COURSES or any(type(n) is not int or not 0 <= n < 10**6 for n in counts):
        raise ValueError(f"course.kind is one of {', '.join(COURSES)}; weak, have and want are counts")
    if not isinstance(said["lines"], list):
        raise TypeError("course.lines is a list")
    lines = tuple(str(line)[:600] for line in said["lines"][:20])
    weak, have, want = counts
    return Course(kind=said["kind"], weak=weak, why=str(said["why"])[:400], lines=lines, have=have, want=want)
