"""What a reviewer may cite: the evidence made at the reviewed commit, the files in it, and the commit itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlcr.repo import GitError, git
from rlcr.review.model import Request

_EVIDENCE_LIMIT = 4 << 20
_SPLIT = re.compile(r"[\s`'\"<>(){}\[\],;|*]+")
_CODE = re.compile(r"`([^`\n]{1,400})`")
_BEHIND = re.compile(r"(?::|#|::).*\Z", re.S)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_WORDS, _LONGEST, _CALL, _CALLS = 4000, 400, 500, 64


@dataclass(frozen=True, kw_only=True)
class Proof:
    """``current``: the evidence file was made at the reviewed commit. ``passed``: its commands that passed.

    ``files``: those of the cited paths that are files of that commit.
    """

    head: str
    current: bool
    passed: tuple[str, ...] = ()
    files: frozenset[str] = frozenset()
    root: str = ""
    named: re.Pattern[str] | None = field(default=None, repr=False)

    def cited(self, reference: str) -> bool:
        """Whether a reference names something that stands at the reviewed commit; prose around the name is free."""
        if not self.current:
            return False
        if self.named is not None and self.named.search(reference):
            return True
        return any(_is_head(word, self.head) or word in self.files for word in _words(reference, self.root))


def proof(request: Request, references: Iterable[str]) -> Proof:
    """What the references of one answer can rest on; one git call, none where nothing looks like a path."""
    root = str(request.worktree)
    checks = _checks(request)
    if checks is None:
        return Proof(head=request.head, current=False)
    passed = tuple(str(c["name"]) for c in checks if c.get("passed") is True and c.get("name"))
    named = re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, passed))})(?![\w/-]|\.\w)") if passed else None
    words = dict.fromkeys(word for reference in references for word in _words(reference, root))
    files = _files(request, [word for word in list(words)[:_WORDS] if not _is_head(word, request.head)])
    return Proof(head=request.head, current=True, passed=passed, files=files, root=root, named=named)


def _checks(request: Request) -> list[Mapping[str, Any]] | None:
    """The commands in the evidence file; None unless it says that it was made at the reviewed commit."""
    try:
        with request.evidence_path.open("rb") as file:
            found = json.loads(file.read(_EVIDENCE_LIMIT))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not request.head or found.get("head") != request.head:
        return None
    checks = found.get("checks", [])
    return [c for c in checks if isinstance(c, dict)] if isinstance(checks, list) else []


def _words(reference: str, root: str) -> Iterable[str]:
    """Every word that could be a path or a commit, also without what stands behind it: a line, a test's name."""
    for word in (*_CODE.findall(reference), *_SPLIT.split(reference)):
        for form in (word, word.rstrip(".,:!?"), _BEHIND.sub("", word)):
            if 0 < len(form) <= _LONGEST and form.isprintable():
                yield relative(form, root)


def relative(path: str, root: str) -> str:
    """A path as git names it: from the root of the worktree, forward."""
    path = path.removeprefix(root.rstrip("/") + "/") if root else path
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def _is_head(word: str, head: str) -> bool:
    return _COMMIT.fullmatch(word.lower()) is not None and head.startswith(word.lower())


def _files(request: Request, paths: list[str]) -> frozenset[str]:
    """Which of the paths are files of the reviewed commit; not the plan, which is what is asked and proves nothing."""
    asked = [path for path in paths if not path.startswith(("/", ":")) and not {"", ".", ".."} & {*path.split("/")}]
    found: set[str] = set()
    calls = [asked[start : start + _CALL] for start in range(0, len(asked), _CALL)]
    left = len(calls) + _CALLS
    while calls and left > 0:
        some, left = calls.pop(0), left - 1
        try:
            listed = git(request.worktree, "--literal-pathspecs", "ls-tree", "-z", request.head, "--", *some)
        except (GitError, ValueError):
            # One word that git refuses takes no other with it.
            middle = len(some) // 2
            calls += [some[:middle], some[middle:]] if middle else []
            continue
        for entry in listed.split("\0"):
            facts, _, path = entry.partition("\t")
            if " blob " in facts:
                found.add(path)
    return frozenset(found & set(asked)) - {relative(str(request.plan_path), str(request.worktree))}


def place(file: str, root: Path) -> str:
    """The file that a finding names, as git names it; a line behind it is dropped."""
    path = relative(file.strip().strip("`")[: 10 * _LONGEST], str(root))
    return re.sub(r"(?::\d+(?:[-:]\d+)*|#L\d+(?:-L?\d+)?)\Z", "", path[:_LONGEST])
