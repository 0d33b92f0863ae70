"""The plan file of a worktree: where it may lie, and what must be in it. Set-up and ``plan amend`` ask the same."""

from __future__ import annotations

import re
from pathlib import Path

from rlcr import repo
from rlcr.files import TooBig, read_regular
from rlcr.options import Refused

NAME = re.compile(r"[A-Za-z0-9._/+@-]+")
CAP = 256 * 1024
"""Most bytes of a plan: its words are kept in the journal when they are amended, and shown in the first prompt."""


def read(root: Path, name: str, *, track: bool) -> bytes:
    """The plan's bytes; ``track`` says that git has it. Raises Refused, GitError."""
    _place(root, name)
    _tracking(root, name, track=track)
    try:
        raw = read_regular(root / name, CAP)
    except TooBig as error:
        raise Refused(f"the plan is too big: {error}") from None
    if raw is None:
        raise Refused(f"the plan cannot be read: {name}")
    _content(raw)
    return raw


def _place(root: Path, name: str) -> None:
    path = root / name
    if Path(name).is_absolute():
        raise Refused(f"the plan must be a relative path: {name}")
    if not NAME.fullmatch(name):
        raise Refused(f"the plan's path has a blank or a shell character in it: {name!r}")
    for part in [path, *path.parents]:
        if part == root:
            break
        if part.is_symlink():
            raise Refused(f"the plan's path holds a symbolic link: {part}")
    if not path.resolve().is_relative_to(root):
        raise Refused(f"the plan lies outside the repository: {name}")
    if not path.is_file():
        raise Refused(f"Plan file not found: {name}")


def _tracking(root: Path, name: str, *, track: bool) -> None:
    if any((parent / ".git").exists() for parent in (root / name).parents if parent != root and root in parent.parents):
        raise Refused(f"the plan lies in a submodule or another repository: {name}")
    tracked = bool(repo.git(root, "ls-files", "--", f":(literal){name}").strip())
    if track and name.startswith(".humanize"):
        raise Refused(
            "--track-plan-file wants a committed plan, and nothing below .humanize is ever committed: "
            "move the plan elsewhere, or leave the flag out"
        )
    if track and not tracked:
        raise Refused(f"--track-plan-file: {name} is not tracked; commit it first")
    if tracked and not track:
        raise Refused(f"the plan is tracked by git: it must be gitignored, or pass --track-plan-file ({name})")
    ignored = repo.git(root, "check-ignore", "--", name, check=False).strip()
    if not track and not ignored and not name.startswith(".humanize"):
        raise Refused(f"the plan must be gitignored, or committed with --track-plan-file: {name}")


def _content(raw: bytes) -> None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Refused("the plan is not UTF-8 text") from None
    if len(text.splitlines()) < 5:
        raise Refused("the plan is too simple: it has fewer than 5 lines")
    bare = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    if sum(1 for line in bare.splitlines() if line.strip() and not line.lstrip().startswith("#")) < 3:
        raise Refused("the plan has insufficient content: fewer than 3 lines that are no heading, comment or blank")
