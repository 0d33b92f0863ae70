"""What git status does not show: files that could differ from HEAD, or be there beside it, without anybody noticing.

Pure, but for ``idents``, which reads files: it is told what git said.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from rlcr.files import TooBig, read_regular

IDENT_CAP = 16 << 20
LFS = re.compile(r"git[- ]lfs (clean( --)? %f|filter-process)( --skip)?")
"""What ``git lfs install`` sets: the one filter that may be there."""
JUNK = (
    ".DS_Store", "._*", ".AppleDouble", "Thumbs.db", "desktop.ini", ".directory", ".Trash-*", ".nfs*", ".fuse_hidden*",
    "*.swp", "*.swo", "*.swn", "*~", "#*#", ".#*", "*.orig", "*.rej", "*.bak", ".netrwhist", "tags", "TAGS", "cscope.*",
    ".idea", "*.iml", ".vscode", ".vs", ".zed", ".fleet", ".cache", ".clangd", ".ccls-cache", ".ipynb_checkpoints",
    "__pycache__", "*.pyc", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".eggs",
    "*.egg-info", ".venv", "venv", "node_modules", ".direnv", ".envrc", ".claude", ".codex", ".cursor", ".aider*",
)  # fmt: skip
"""Names of what editors, systems and tools leave behind: ignored from wherever a user likes, in every folder."""

FLAG = "git update-index --no-skip-worktree --no-assume-unchanged -- {}"
ADD = "git add -f -- {}; or name them in the committed .gitignore: printf '/%s\\n' {} >>.gitignore; then commit"
LINK = "git submodule update --init -- {}; or empty it; or git rm --cached -- {}, and commit"
IDENT = "rm -- {}; git checkout -- {}"


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """One thing that git status was kept from showing."""

    path: str
    by: str
    """What hides it."""
    fix: str
    """A command; ``{}`` stands for the paths."""
    within: str = ""
    """The submodule in which it was found."""

    @classmethod
    def link(cls, path: str) -> Unseen:
        """A submodule's folder that holds files, and no repository whose commit they would be."""
        return cls(path=path, by="a submodule's entry without its repository", fix=LINK)

    def below(self, link: str) -> Unseen:
        """The same, found in a submodule."""
        return replace(self, path=f"{link}/{self.path}", within=f"{link}/{self.within}".rstrip("/"))


@dataclass(frozen=True, kw_only=True)
class Index:
    """What ``git ls-files -v -s -z`` lists."""

    blobs: dict[str, str]
    """Object id by path."""
    links: tuple[str, ...]
    flagged: tuple[Unseen, ...]


def indexed(listed: str) -> Index:
    """The index as listed."""
    blobs: dict[str, str] = {}
    links, flagged = [], []
    for row in listed.split("\0"):
        facts, found, path = row.partition("\t")
        if not found:
            continue
        tag, mode, blob, _ = facts.split(" ")
        if mode == "160000":
            links.append(path)
        else:
            blobs[path] = blob
        if tag == "S" or tag.islower():
            flagged.append(Unseen(path=path, by="a flag in the index", fix=FLAG))
    return Index(blobs=blobs, links=tuple(links), flagged=tuple(flagged))


def filtered(drivers: str, attrs: str) -> list[Unseen]:
    """Filters that decide what git sees in a file: all that are set in this repository, the user's where one is used.

    ``drivers`` is what ``git config --show-scope -z`` said, ``attrs`` what ``git check-attr -z`` did.
    """
    out: dict[Unseen, None] = {}
    fields = drivers.split("\0")
    used = {value: path for path, name, value in reversed(_attributes(attrs)) if name == "filter"}
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = setting.partition("\n")
        driver = key.removeprefix("filter.").rpartition(".")[0]
        if driver == "lfs" and LFS.fullmatch(value):
            continue
        where = f"--{scope}" if scope in ("global", "system", "worktree") else "--local"
        undo = f"git config {where} --unset-all {shlex.quote(key)}"
        if scope not in ("global", "system"):
            out[Unseen(path=key, by="a filter", fix=undo)] = None
        elif driver in used:
            out[Unseen(path=used[driver], by=f"the filter {key} of your own git config", fix=undo)] = None
    return list(out)


def idents(root: Path, attrs: str, index: Index) -> list[Unseen]:
    """Files with the attribute ``ident`` in which something else stands where git puts the object id."""
    out = []
    for path, name, value in _attributes(attrs):
        if name != "ident" or value != "set":
            continue
        try:
            found = re.findall(rb"\$Id: ?([^$\n]*?) ?\$", read_regular(root / path, IDENT_CAP) or b"")
        except TooBig:
            found = [b"too big to be looked at"]
        if any(word not in (b"", index.blobs.get(path, "").encode()) for word in found):
            out.append(Unseen(path=path, by="the attribute ident", fix=IDENT))
    return out


def _attributes(attrs: str) -> list[tuple[str, str, str]]:
    fields = attrs.split("\0")
    return list(zip(fields[::3], fields[1::3], fields[2::3], strict=False))


def blind(ignored: Sequence[str]) -> tuple[str, ...]:
    """Those of the ignored paths that are no junk by their name."""
    return tuple(p for p in ignored if not any(fnmatchcase(n, j) for n in PurePosixPath(p).parts for j in JUNK))


def ignored_elsewhere(asked: Sequence[str], rules: str, index: Index) -> list[Unseen]:
    """Untracked files that no committed ``.gitignore`` hides: ``rules`` is what ``git check-ignore -v -z`` said."""
    fields = rules.split("\0")
    source = dict(zip(fields[3::4], fields[::4], strict=False))
    out: dict[Unseen, None] = {}
    for path in asked:
        by = source.get(path, "")
        if PurePosixPath(by).name == ".gitignore" and by in index.blobs:
            continue
        if by.endswith("/.gitignore") and not by.startswith("/"):
            path = by.removesuffix(".gitignore")  # noqa: PLW2901 (one folder that ignores itself, not each file in it)
        out[Unseen(path=path, by=by or "rules of your own", fix=ADD)] = None
    return list(out)


def told(found: Sequence[Unseen], most: int = 10) -> list[tuple[str, str, str]]:
    """Where, what and how to mend it, once for each way of hiding."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        groups.setdefault((each.by, each.fix, each.within), []).append(each.path)
    out = []
    for (by, fix, within), paths in groups.items():
        where = ", ".join(paths[:most]) + (f" and {len(paths) - most} more" if len(paths) > most else "")
        what = f"hidden from git status by {by}, so the tree may not be what HEAD says"
        names = " ".join(shlex.quote(path.removeprefix(f"{within}/")) for path in paths[:most])
        there = f"cd {shlex.quote(within)} && " if within else ""
        out.append((where, what, there + fix.replace("{}", names)))
    return out
