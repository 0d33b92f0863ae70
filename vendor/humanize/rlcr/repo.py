"""What git says of a worktree. Every call is read-only."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rlcr import ambient
from rlcr.files import TooBig, read_regular
from rlcr.unseen import LINK, Index, Unseen, blind, filtered, idents, ignored_elsewhere, indexed

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
    hidden: tuple[Unseen, ...]
    """What keeps edits from being seen: see ``unseen``."""
    tracked: tuple[str, ...]
    """Tracked paths below ``.humanize*``."""
    base_is_ancestor: bool
    base_tree: str = ""
    """Fingerprint of the first commit, as ``tree``; empty when it is not known here any more."""


FILTERS = r"^filter\..*\.(clean|process)$"
SEEN = ("core.fsmonitor=false", "core.checkStat=default", "core.trustctime=true", "core.untrackedCache=false")
"""Settings of a repository that could keep an edit from git status, set back."""


def git(root: Path, *args: str, check: bool = True, inside: bool = False, stdin: str = "") -> str:
    """Output of a git command for the worktree ``root``, or for a folder ``inside`` one. Raises GitError."""
    env = {name: value for name, value in ambient.clean(os.environ).items() if not name.startswith("GIT_")}
    env.update(LC_ALL="C", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0")
    env.update(GIT_NO_REPLACE_OBJECTS="1", GIT_GRAFT_FILE=os.devnull)
    if not inside:
        env["GIT_WORK_TREE"] = str(root)
    argv = ["git", *(word for setting in SEEN for word in ("-c", setting)), *args]
    try:
        said = stdin.encode(errors="surrogateescape")
        done = subprocess.run(argv, cwd=root, env=env, input=said, capture_output=True, timeout=LIMIT_S, check=False)
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
    return _all(root)[0]


def _status(root: Path, below: str = "none") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Uncommitted paths, and ignored ones, ``.humanize*`` left out of both; ``below`` is what submodules may hide."""
    how = ("--no-renames", "--untracked-files=all", "--ignored=matching", f"--ignore-submodules={below}")
    out = git(root, "status", "--porcelain", "-z", *how)
    rows = [(row[:2], row[3:]) for row in out.split("\0") if len(row) > 3 and not row.startswith(".humanize", 3)]
    return tuple(path for mark, path in rows if mark != "!!"), tuple(path for mark, path in rows if mark == "!!")


def branch(root: Path) -> str:
    """Branch that HEAD is on, empty when it is detached; a tag of the same name changes nothing."""
    return git(root, "symbolic-ref", "-q", "HEAD", check=False).strip().removeprefix("refs/heads/")


def hidden(root: Path) -> tuple[Unseen, ...]:
    """Whatever lets the files here differ from HEAD without git status saying so."""
    return _all(root)[1]


def _all(root: Path) -> tuple[tuple[str, ...], tuple[Unseen, ...], Index]:
    """Uncommitted paths, what is hidden, and the index; of the submodules below as well."""
    index = indexed(git(root, "ls-files", "-v", "-s", "-z"))
    links = [link for link in index.links if _filled(root / link)]
    broken = [link for link in links if toplevel(root / link) != (root / link).resolve()]
    dirty, ignored = _status(root, "all" if broken else "none")  # else git would fail over a broken one
    drivers = git(root, "config", "--show-scope", "-z", "--get-regexp", FILTERS, check=False)
    names = "\0".join(index.blobs)
    attrs = git(root, "check-attr", "-z", "--stdin", "filter", "ident", stdin=names) if names else ""
    asked = blind(ignored)
    rules = git(root, "check-ignore", "-v", "-z", "--no-index", "--stdin", stdin="\0".join(asked), check=False)
    found = [*index.flagged, *filtered(drivers, attrs), *idents(root, attrs, index)]
    found += ignored_elsewhere(asked, rules, index)
    found += [Unseen.link(link) for link in broken]
    for link in (each for each in links if each not in broken):
        within, more, _ = _all(root / link)
        dirty += tuple(f"{link}/{path}" for path in within)
        found += [each.below(link) for each in more]
    return tuple(dict.fromkeys(dirty)), tuple(found), index


def _filled(folder: Path) -> bool:
    try:
        return any(True for _ in os.scandir(folder))
    except OSError:
        return False


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
    dirty, unseen, index = _all(root)
    mark = hashlib.sha256(git(root, "rev-parse", "HEAD^{tree}").encode())
    if dirty or unseen:
        below = "all" if any(each.fix == LINK for each in unseen) else "none"
        how = ("--no-ext-diff", "--no-textconv", "--binary", f"--ignore-submodules={below}")
        mark.update(git(root, "diff", "HEAD", *how).encode(errors="surrogateescape"))
        for path in (*dirty, *(each.path for each in unseen)):
            mark.update(os.fsencode(path))
            mark.update(_content(root / path))
    ancestor = head == base_commit or (bool(base_commit) and _is_ancestor(root, base_commit))
    base = git(root, "rev-parse", "--verify", "-q", f"{base_commit}^{{tree}}", check=False) if base_commit else ""
    return Facts(
        head=head, branch=branch(root), tree=mark.hexdigest(), dirty=dirty, hidden=unseen,
        tracked=tuple(path for path in (*index.blobs, *index.links) if path.startswith(".humanize")),
        base_is_ancestor=ancestor, base_tree=hashlib.sha256(base.encode()).hexdigest() if base else "",
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
