"""A stream of unified diffs without context to changed files; what a line says is not looked at here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
COMMIT = b"\x01"


class FileDiff(msgspec.Struct, kw_only=True):
    """One file of a change. ``added`` and ``removed`` hold (line number, text) and stay empty where not wanted."""

    path: str
    add: int = 0
    deleted: int = 0
    binary: bool = False
    added: list[tuple[int, str]] = msgspec.field(default_factory=list)
    removed: list[tuple[int, str]] = msgspec.field(default_factory=list)
    gaps: list[int] = msgspec.field(default_factory=list)
    """New-side lines after which lines vanished."""
    heads: list[str] = msgspec.field(default_factory=list)
    """Function lines of the hunks, as git guesses them."""
    fragment: str = ""
    """From an interface: what the hunks show of the file after the change, at its line numbers."""


def parse(lines: Iterable[bytes], want: Callable[[str], bool]) -> Iterator[tuple[str, list[FileDiff]]]:
    """(commit sha, files) from ``git diff-tree --stdin -p -U0`` with the format ``%x01%H``."""
    sha = ""
    files: list[FileDiff] = []
    current: FileDiff | None = None
    stream = iter(lines)
    for line in stream:
        if line.startswith(COMMIT):
            if sha:
                yield sha, files
            sha, files, current = line[1:].strip().decode("ascii"), [], None
        elif line.startswith(b"diff --git "):
            current = FileDiff(path=_git_path(line))
            files.append(current)
        elif current is not None:
            _body_line(line, current, stream, want)
    if sha:
        yield sha, files


def of_text(path: str, patch: str) -> FileDiff:
    """One file from a patch text as GitHub's API gives it: hunks with context lines."""
    out = FileDiff(path=path)
    stream = iter(line.encode() + b"\n" for line in patch.split("\n"))
    for line in stream:
        _body_line(line, out, stream, lambda _: True)
    out.fragment = _fragment(patch)
    return out


def _fragment(patch: str) -> str:
    """New-side lines of the hunks; between two hunks a line that ends every block of C++ and of Python."""
    lines: list[str] = []
    for line in patch.split("\n"):
        found = HUNK.match(line.encode())
        if found:
            lines += ["}"] * bool(lines) + [""] * (int(found[3]) - 1 - len(lines) - bool(lines))
        elif line[:1] in ("+", " "):
            lines.append(line[1:])
    return "\n".join(lines)


def _body_line(line: bytes, current: FileDiff, stream: Iterator[bytes], want: Callable[[str], bool]) -> None:
    if line.startswith(b"Binary files "):
        current.binary = True
        return
    found = HUNK.match(line)
    if not found:
        return
    old, old_n, new, new_n, head = found.groups()
    if head.strip():
        current.heads.append(head.decode("utf-8", "replace").strip())
    _hunk(current, stream, (int(old), _count(old_n)), (int(new), _count(new_n)), keep=want(current.path))


def _count(text: bytes | None) -> int:
    return 1 if text is None else int(text)


def _hunk(
    current: FileDiff, stream: Iterator[bytes], old: tuple[int, int], new: tuple[int, int], *, keep: bool
) -> None:
    """Take exactly the lines that the hunk's head counts: a deleted ``-- x`` must not look like a file's head."""
    (old_at, old_left), (new_at, new_left) = old, new
    if new_left == 0:
        current.gaps.append(new_at)
    while old_left > 0 or new_left > 0:
        line = next(stream, None)
        if line is None:
            return
        sign, text = line[:1], line[1:]
        if sign == b"\\":
            continue
        if sign == b"-":
            current.deleted += 1
            if keep:
                current.removed.append((old_at, text.decode("utf-8", "replace").rstrip("\r\n")))
            old_at, old_left = old_at + 1, old_left - 1
        elif sign == b"+":
            current.add += 1
            if keep:
                current.added.append((new_at, text.decode("utf-8", "replace").rstrip("\r\n")))
            new_at, new_left = new_at + 1, new_left - 1
        else:
            old_at, new_at = old_at + 1, new_at + 1
            old_left, new_left = old_left - 1, new_left - 1


def _git_path(line: bytes) -> str:
    """``diff --git a/P b/P``: without renames both halves are the same path."""
    rest = line[len(b"diff --git ") :].rstrip(b"\n").decode("utf-8", "replace")
    rest = rest.replace('"', "")
    half = (len(rest) - 1) // 2
    return rest[half + 3 :]
