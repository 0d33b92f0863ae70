"""The code behind a record: its diff and its files, from a clone on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kernelpilot_helpers import proc, records
from kernelpilot_helpers.errors import KernelPilotError, Refused
from kernelpilot_helpers.knowledge.model import Record, url

CLONES_VARIABLE = "KERNELPILOT_CLONES"
"""Folders, as in PATH, that hold clones named ``name``, ``owner/name``, ``owner+name``, with or without ``.git``."""


def clone_of(record: Record, given: Path | None, environ: Mapping[str, str] | None = None) -> Path | None:
    """A clone that holds the record's commit, None without one. Raises Refused when the one given does not."""
    if given is not None:
        if not _holds(given, record.sha):
            fix = f"git -C {given} fetch origin {record.sha}"
            raise Refused(f"does not hold commit {record.sha} of {record.id}", where=str(given), fix=fix)
        return given
    named = (os.environ if environ is None else environ).get(CLONES_VARIABLE, "")
    owner, _, name = record.repo.partition("/")
    for folder in filter(None, named.split(os.pathsep)):
        for form in (name, f"{owner}/{name}", f"{owner}+{name}", f"{owner}__{name}", f"{owner}_{name}"):
            for path in (Path(folder) / form, Path(folder) / f"{form}.git"):
                if path.is_dir() and _holds(path, record.sha):
                    return path
    return None


def _holds(clone: Path, sha: str) -> bool:
    try:
        return proc.git(clone, "cat-file", "-e", f"{sha}^{{commit}}", check=False).code == 0
    except KernelPilotError:
        return False


def diff(clone: Path, record: Record, paths: tuple[str, ...]) -> str:
    """The change against its first parent, of these paths, or of its kernels, tests and benchmarks."""
    wanted = paths or (*record.kernel_files, *record.test_files, *record.bench_files)
    base = ["diff-tree", "--root", "-p", "--no-commit-id", "--diff-merges=first-parent", record.sha, "--"]
    return proc.git(clone, *base, *wanted).out


def file_at(clone: Path, record: Record, path: str) -> bytes:
    """A file as the record left it. Raises Refused for a path that is not there."""
    data = proc.blob(clone, f"{record.sha}:{path}")
    if data is None:
        raise Refused(
            f"no file {path!r} at {record.sha}", where=str(clone), fix=f"git -C {clone} show --stat {record.sha}"
        )
    return data


def opened_note(path: str, data: bytes) -> str:
    """What the ledger keeps of an opened file."""
    return f"{path} sha256:{records.sha256(data)}"


def link(record: Record, path: str = "") -> str:
    """Where the code is to be read without a clone: the file at the commit, or the change."""
    return f"https://github.com/{record.repo}/blob/{record.sha}/{path}" if path else f"{url(record)}.diff"
