"""Files as the gate needs them: texts, sizes, what looks like a credential, and what is no plain file at all."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.records import Fault

TEXT_MAX = 256 * 1024
"""Bytes: a page or a source file that rules read is smaller."""
FOLDERS = ("artifacts", "dispatch", "workloads", "baseline", "src")
"""Where only folders and plain files belong."""
OWN = frozenset({".git", ".humanize", ".kernelpilot", "__pycache__"})
SECRETS: tuple[tuple[str, bytes, re.Pattern[bytes]], ...] = (
    ("a private key", b"PRIVATE KEY-----", re.compile(rb"-----BEGIN (?:[A-Z]{2,10} )?PRIVATE KEY-----")),
    ("a cloud access key", b"AKIA", re.compile(rb"(?<![A-Za-z0-9])AKIA[0-9A-Z]{16}(?![A-Za-z0-9])")),
    ("a GitHub token", b"gh", re.compile(rb"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,})")),
    ("an API key", b"sk-", re.compile(rb"(?<![A-Za-z0-9-])sk-(?:[a-z]+-)*[A-Za-z0-9_]{32,}")),
    (
        "a password",
        b"assword",
        re.compile(rb"""(?i)\bpassword["']?\s*[:=]\s*["'][^"'\s<>{}$]{8,}["']"""),
    ),
)
"""(name, bytes that must be there for a closer look, pattern). Conservative: a hash or a word is no secret."""


def plain(path: Path, *, most: int | None = None) -> bool:
    """Whether a regular file, of at most so many bytes, stands there itself, not by way of a link."""
    try:
        info = path.lstat()
        return stat.S_ISREG(info.st_mode) and (most is None or info.st_size <= most)
    except OSError:
        return False


def text(path: Path, *, most: int = TEXT_MAX) -> str | None:
    """A plain file's text; None when it is absent, too large, a link, or not UTF-8."""
    try:
        if not plain(path) or path.stat().st_size > most:
            return None
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def texts(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Repo-relative path -> text of those that have one."""
    out: dict[str, str] = {}
    for path in paths:
        found = text(root / path)
        if found is not None:
            out[path] = found
    return out


def walk(root: Path, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """(repo-relative path, lstat) of everything below a folder that is not itself a folder; links are not followed."""
    for here, _, names in os.walk(root / folder):
        base = Path(here)
        links = [entry.name for entry in base.iterdir() if entry.is_symlink() and entry.name not in names]
        for name in sorted((*names, *links)):
            path = base / name
            try:
                yield path.relative_to(root).as_posix(), path.lstat()
            except OSError:
                continue  # gone between the listing and the look


def _below(root: Path, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    top = root / folder
    if top.is_symlink() or (top.exists() and not top.is_dir()):
        yield folder, top.lstat()
    else:
        yield from walk(root, folder)


def pipe(root: Path) -> str:
    """The first pipe or device below the root on which git or a reader would wait for ever; empty without one.

    The store of git and our own scratch are left out; sockets refuse at once.
    """
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in (".git", ".kernelpilot"))
        for name in names:
            path = Path(here) / name
            try:
                mode = path.stat().st_mode
            except OSError:
                continue
            if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                return path.relative_to(root).as_posix()
    return ""


def odd(root: Path) -> list[Fault]:
    """Links and special files where plain ones belong."""
    out: list[Fault] = []
    for folder in FOLDERS:
        for path, info in _below(root, folder):
            if stat.S_ISREG(info.st_mode):
                continue
            link = stat.S_ISLNK(info.st_mode)
            what = "a symbolic link: its content lies outside the repo's history" if link else "not a plain file"
            out.append(Fault(where=path, what=what, fix=f"rm {path} && git checkout -- {path}"))
    return out


def nested(root: Path, *, most: int = 200_000) -> tuple[str, ...]:
    """Folders below the root that hold a ``.git`` of their own; the search ends after ``most`` folders."""
    out: list[str] = []
    for number, (here, folders, names) in enumerate(os.walk(root)):
        if here != str(root) and (".git" in folders or ".git" in names):
            out.append(Path(here).relative_to(root).as_posix())
        folders[:] = sorted(name for name in folders if name not in OWN)
        if number > most:
            break
    return tuple(sorted(out))


def sizes(root: Path, paths: Iterable[str]) -> dict[str, int]:
    """Bytes of each path that is a plain file."""
    out: dict[str, int] = {}
    for path in paths:
        try:
            info = (root / path).lstat()
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(info.st_mode):
            out[path] = info.st_size
    return out


def secrets(root: Path, held: dict[str, int]) -> tuple[str, ...]:
    """``path: which pattern`` of each file that looks as if it held a credential; over-large ones are not read."""
    out: list[str] = []
    for path, size in sorted(held.items()):
        if size > POLICY.evidence_file_bytes_max:
            continue
        try:
            data = (root / path).read_bytes()
        except OSError:
            continue
        out += [f"{path}: {name}" for name, mark, pattern in SECRETS if mark in data and pattern.search(data)]
    return tuple(out)
