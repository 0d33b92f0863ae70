"""What git says of a worktree. Every call is read-only."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rlcr.files import TooBig, read_regular

LIMIT_S = 60.0


class GitError(RuntimeError):
    """git failed or was not found: the machinery, not the work."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A worktree at one moment."""

    head: str
    branch: str
    """Empty when HEAD is detached."""
    tree: str
    """Fingerprint of HEAD and of everything uncommitted outside ``.humanize*``."""
    dirty: tuple[str, ...]
    hidden: tuple[str, ...]
    """What keeps edits from being seen: flagged files of the index, and filters of the repository's own."""
    tracked: tuple[str, ...]
    """Tracked paths below ``.humanize*``."""
    base_is_ancestor: bool


SEEN = ("core.fsmonitor=false", "core.checkStat=default", "core.trustctime=true", "core.untrackedCache=false")
"""Settings of a repository that could keep an edit from git status, set back."""


def git(root: Path, *args: str, check: bool = True, inside: bool = False) -> str:
    """Output of a git command for the worktree ``root``, or for a folder ``inside`` one. Raises GitError."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith("GIT_CONFIG")}
    env.update(LC_ALL="C", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0")
    env.update(GIT_NO_REPLACE_OBJECTS="1", GIT_GRAFT_FILE=os.devnull)
    if not inside:
        env["GIT_WORK_TREE"] = str(root)
    argv = ["git", *(word for setting in SEEN for word in ("-c", setting)), *args]
    try:
        done = subprocess.run(argv, cwd=root, env=env, capture_output=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {args[0]}: {error}") from None
    if check and done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitError(f"git {args[0]}: {words[-1] if words else done.returncode}")
    return done.stdout.decode(errors="surrogateescape") if done.returncode == 0 else ""


def toplevel(where: Path) -> Path | None:
    """Root of the worktree that holds a folder, links resolved; None outside git."""
    try:
        found = git(where, "rev-parse", "--show-toplevel", inside=True).removesuffix("\n")
    except GitError:
        return None
    return Path(found).resolve() if found else None


def untracked_or_dirty(root: Path) -> tuple[str, ...]:
    """Uncommitted paths, untracked ones included, ``.humanize*`` left out."""
    how = ("--no-renames", "--untracked-files=all", "--ignore-submodules=none")
    out = git(root, "status", "--porcelain", "-z", *how)
    paths = [entry[3:] for entry in out.split("\0") if len(entry) > 3]
    return tuple(path for path in paths if not path.startswith(".humanize"))


def branch(root: Path) -> str:
    """Branch that HEAD is on, empty when it is detached; a tag of the same name changes nothing."""
    return git(root, "symbolic-ref", "-q", "HEAD", check=False).strip().removeprefix("refs/heads/")


def hidden(root: Path) -> tuple[str, ...]:
    """Files that git was told not to look at, and filters set here that decide what it sees in a file."""
    listed = (line for line in git(root, "ls-files", "-v", "-z").split("\0") if line)
    out = [line[2:] for line in listed if line[0] == "S" or line[0].islower()]
    wanted = r"^filter\..*\.(clean|process)$"
    for scope in ("--local", "--worktree"):
        names = git(root, "config", scope, "--includes", "-z", "--name-only", "--get-regexp", wanted, check=False)
        out += [name for name in names.split("\0") if name and name not in out]
    return tuple(out)


def changed(root: Path, since: str, head: str) -> tuple[str, ...]:
    """Files that differ between two commits; empty when the first one is not known here any more."""
    if not since or since == head:
        return ()
    listed = git(root, "diff", "--name-only", "--no-renames", "-z", f"{since}..{head}", "--", check=False)
    return tuple(path for path in listed.split("\0") if path)


def diff(root: Path, since: str, head: str) -> str:
    """Commits and changes between two commits, also of files that the repository's own attributes would hide."""
    if not since:
        return ""
    span = f"{since}..{head}"
    shown = ("--no-ext-diff", "--no-textconv", "--no-renames", "--text")
    log = git(root, "log", "--oneline", "--no-decorate", span, "--", check=False)
    return f"commits {span}\n{log}\n{git(root, 'diff', *shown, span, '--', check=False)}"


def look(root: Path, base_commit: str) -> Facts:
    """All facts of a worktree. Raises GitError."""
    head = git(root, "rev-parse", "HEAD").strip()
    dirty = untracked_or_dirty(root)
    mark = hashlib.sha256(git(root, "rev-parse", "HEAD^{tree}").encode())
    unseen = hidden(root)
    if dirty or unseen:
        how = ("--no-ext-diff", "--no-textconv", "--binary", "--ignore-submodules=none")
        mark.update(git(root, "diff", "HEAD", *how).encode(errors="surrogateescape"))
        for path in (*dirty, *unseen):
            mark.update(os.fsencode(path))
            mark.update(_content(root / path))
    tracked = git(root, "ls-files", "-z", "--", ".humanize*")
    ancestor = head == base_commit or (bool(base_commit) and _is_ancestor(root, base_commit))
    return Facts(
        head=head, branch=branch(root), tree=mark.hexdigest(), dirty=dirty, hidden=unseen,
        tracked=tuple(p for p in tracked.split("\0") if p),
        base_is_ancestor=ancestor,
    )  # fmt: skip


def _content(path: Path) -> bytes:
    """What stands for an uncommitted file: its bytes, or size and time where these are too many or not regular."""
    try:
        found = read_regular(path, 4 << 20)
    except TooBig:
        found = None
    if found is not None or not path.exists():
        return found or b""
    seen = path.stat()
    return f"{seen.st_size} {seen.st_mtime_ns}".encode()


def _is_ancestor(root: Path, base_commit: str) -> bool:
    try:
        git(root, "merge-base", "--is-ancestor", base_commit, "HEAD")
    except GitError:
        return False
    return True
