"""The code behind a record: its changed files, its diff and its files, from a clone on this machine."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import msgspec

from kernelpilot_helpers import proc, records
from kernelpilot_helpers.errors import KernelPilotError, Refused
from kernelpilot_helpers.knowledge.model import Record, url

CLONES_VARIABLE = "KERNELPILOT_CLONES"
"""Folders, as in PATH, that hold clones: ``forms`` says under which names."""
KINDS = ("kernel", "test", "bench", "other")
"""Of a changed file, in the order in which they are shown."""
KERNELS = (".cu", ".cuh", ".ptx")
"""Suffixes of kernels, where a record names only its first twelve."""
_DIFF = ("diff-tree", "--root", "-r", "--no-commit-id", "--diff-merges=first-parent", "--no-renames")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the record changed."""

    path: str
    kind: str
    """One of ``KINDS``."""
    added: int | None = None
    """Lines; None for a binary file, and where no clone is at hand."""
    removed: int | None = None


def forms(repo: str) -> tuple[str, ...]:
    """Names below a folder of ``KERNELPILOT_CLONES`` under which a clone of ``owner/name`` is sought, best first."""
    owner, _, name = repo.partition("/")
    joined = (f"{owner}+{name}/repo", f"{owner}+{name}", repo, name, f"{owner}__{name}", f"{owner}_{name}")
    return tuple(form for plain in joined for form in (plain, f"{plain}.git"))


def clone_of(record: Record, given: Path | None, environ: Mapping[str, str] | None = None) -> Path | None:
    """A clone that holds the record's commit, None without one. Raises Refused when the one given does not."""
    if given is not None:
        if not _holds(given, record.sha):
            raise _not_that_one(given, record)
        return given
    named = (os.environ if environ is None else environ).get(CLONES_VARIABLE, "")
    for folder in filter(None, named.split(os.pathsep)):
        for path in (Path(folder) / form for form in forms(record.repo)):
            if path.is_dir() and _holds(path, record.sha):
                return path
    return None


def _holds(clone: Path, sha: str) -> bool:
    try:
        return proc.git(clone, "cat-file", "-e", f"{sha}^{{commit}}", check=False).code == 0
    except KernelPilotError:
        return False


def _not_that_one(given: Path, record: Record) -> Refused:
    """Why a folder is not the clone that was wanted: no repository, another project's, or the commit is missing."""
    where, at = str(given), shlex.quote(str(given))
    address = f"https://github.com/{record.repo}"
    missing = f"does not hold commit {record.sha} of {record.id}"
    anew = f"git clone {address} DIR  # and --clone DIR"
    found = proc.git(given, "config", "--get-regexp", r"^remote\..*\.url$", check=False)
    if proc.git(given, "rev-parse", "--git-dir", check=False).code != 0:
        return Refused(f"is no git repository; want a clone of {record.repo}", where=where, fix=anew)
    remotes = [line.partition(" ")[2] for line in found.out.splitlines()]
    repos = [re.sub(r"\.git/?$", "", remote).rstrip("/") for remote in remotes]
    name = record.repo.lower()
    if not any(re.split("[/:+]", repo.lower())[-2:] == name.split("/") for repo in repos):
        of = f"a clone of {', '.join(repos)}" if repos else "a repository without a remote"
        return Refused(f"is {of} and {missing}; want a clone of {record.repo}", where=where, fix=anew)
    wanted = f"pull/{record.pr}/head" if record.state == "open" else record.sha
    return Refused(missing, where=where, fix=f"git -C {at} fetch {address} {wanted}")


def kind_of(record: Record, path: str) -> str:
    """Kernel, test, benchmark, or another file of the change."""
    named = ((record.kernel_files, "kernel"), (record.test_files, "test"), (record.bench_files, "bench"))
    for paths, kind in named:
        if path in paths:
            return kind
    return "kernel" if PurePosixPath(path).suffix in KERNELS else "other"


def changes(clone: Path, record: Record) -> tuple[Change, ...]:
    """Every file that the record changed against its first parent, kernels first, most added lines first."""
    out = []
    for entry in proc.git(clone, *_DIFF, "--numstat", "-z", record.sha).out.split("\0"):
        if entry.count("\t") >= 2:
            added, removed, path = entry.lstrip("\n").split("\t", 2)
            counts = (None, None) if "-" in (added, removed) else (int(added), int(removed))
            out.append(Change(path=path, kind=kind_of(record, path), added=counts[0], removed=counts[1]))
    return tuple(sorted(out, key=lambda c: (KINDS.index(c.kind), -(c.added or 0), c.path)))


def named(record: Record) -> tuple[Change, ...]:
    """The files that the record itself names: all that is known without a clone."""
    return tuple(Change(path=path, kind=kind_of(record, path)) for path in dict.fromkeys(_paths(record)))


def _paths(record: Record) -> Iterator[str]:
    yield from (*record.kernel_files, *record.test_files, *record.bench_files)


def diff(clone: Path, record: Record, path: str) -> str:
    """One file's change against the first parent. Raises Refused for a path that the record did not change."""
    out = proc.git(clone, *_DIFF, "-p", record.sha, "--", path).out
    if not out:
        what = f"{record.id} does not change {path!r}"
        raise Refused(what, where=str(clone), fix=f"kernelpilot knowledge open {shlex.quote(record.id)} --stat")
    return out


def file_at(clone: Path, record: Record, path: str) -> bytes:
    """A file as the record left it. Raises Refused for a path that is not there."""
    data = proc.blob(clone, f"{record.sha}:{path}")
    if data is None:
        fix = f"git -C {shlex.quote(str(clone))} show --stat {record.sha}"
        raise Refused(f"no file {path!r} at {record.sha}", where=str(clone), fix=fix)
    return data


def opened_note(path: str, data: bytes) -> str:
    """What the ledger keeps of an opened file."""
    return f"{path} sha256:{records.sha256(data)}"


def link(record: Record, path: str = "") -> str:
    """Where the code is to be read without a clone: the file at the commit, or the change.

    Raises Refused for a path that leaves the repository or is not written plainly.
    """
    if not path:
        return f"{url(record)}.diff"
    if "\\" in path or {"", ".", ".."} & set(path.split("/")) or any(ord(c) < 32 for c in path):
        fix = f"kernelpilot knowledge open {shlex.quote(record.id)} --stat"
        raise Refused(f"{path[:120]!r} is no path inside {record.repo}", where=record.id, fix=fix)
    return f"https://github.com/{record.repo}/blob/{record.sha}/{quote(path)}"
