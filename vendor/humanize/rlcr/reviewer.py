"""The reviewer's program: pinned at set-up, and run as what was pinned, whatever PATH says later."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlcr.evidence import BadEvidence
from rlcr.model import Problem
from rlcr.options import RLCR

KEY = "reviewer"
"""Where the pin stands among the pins of the evidence."""
WHOLE, PIECE, PIECES = 4 << 20, 64 << 10, 64
"""A file of up to ``WHOLE`` bytes is hashed whole; of a larger one (clients have 400 MB) so many pieces of so many."""


def pin(name: str, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """``reviewer``: ``name``, ``program`` (absolute path), ``argv`` (what is run), ``files`` (path to mark).

    {} for evidence-only. A program of the ``old`` pins that is still there is kept, so that a pin renewed after an
    update does not follow PATH. Raises BadEvidence where there is no such program.
    """
    if name == "evidence-only":
        return {}
    before = tuple(((old or {}).get(KEY) or {}).get("files", ()))
    program = _found(name, before)
    argv = [*_interpreter(program, before), program]
    files = {path: mark(path) for path in (argv[0], program)}
    return {KEY: {"name": name, "program": program, "argv": argv, "files": files}}


def _found(name: str, known: Iterable[str]) -> str:
    kept = next((path for path in known if Path(path).name == name and os.access(path, os.X_OK)), None)
    found = kept or shutil.which(name)
    if found is None:
        raise BadEvidence(f"the reviewer's program {name} was not found on PATH")
    return os.path.abspath(found)  # noqa: PTH100 (the link itself: an update moves what is behind it)


def _interpreter(program: str, known: Iterable[str]) -> list[str]:
    """The program that ``#!/usr/bin/env NAME`` would look up on PATH, with its options; [] for any other file."""
    try:
        with Path(program).open("rb") as file:
            first = file.read(512)
    except OSError:
        return []
    words = first[2:].split(b"\n")[0].decode(errors="replace").split() if first.startswith(b"#!") else []
    if not words or Path(words[0]).name != "env":
        return []
    words = words[2:] if words[1:2] == ["-S"] else words[1:]
    if not words or words[0].startswith("-") or "=" in words[0]:
        return []
    return [_found(words[0], known), *words[1:]]


def mark(path: str) -> str:
    """What a file is known by: where its links lead, its size and its bytes, of a large one a part; empty: unreadable.

    Takes some 20 ms at most.
    """
    real = os.path.realpath(path)
    try:
        with Path(real).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            found = hashlib.sha256(os.fsencode(f"{real}\0{size}\0"))
            if size <= WHOLE:
                found.update(file.read(WHOLE))
            else:
                for n in range(PIECES):
                    file.seek((size - PIECE) * n // (PIECES - 1))
                    found.update(file.read(PIECE))
    except OSError:
        return ""
    return found.hexdigest()


def amended(pins: Mapping[str, Any], name: str) -> tuple[Problem, ...]:
    """One problem where the reviewer's program is not what was pinned; ``pins`` are those of the evidence."""
    if name == "evidence-only":
        return ()
    pinned = pins.get(KEY) or {}
    files: Mapping[str, str] = pinned.get("files") or {}
    if pinned.get("name") == name and files and all(m and mark(path) == m for path, m in files.items()):
        return ()
    what = "the reviewer's program changed since set-up (an update?)"
    fix = f"put it back; or, if the change is meant, {RLCR} evidence --amend --why 'the reviewer was updated'"
    return (Problem(rule="amend", where=pinned.get("program") or name, what=what, fix=fix),)


def argv(pins: Mapping[str, Any]) -> tuple[str, ...]:
    """The pinned program with its interpreter, to which the client's own words are added."""
    return tuple((pins.get(KEY) or {}).get("argv", ()))
