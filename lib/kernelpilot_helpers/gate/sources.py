"""What the log of source ideas says: which rows are of one source, and which bytes each shows were opened. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from kernelpilot_helpers.ledger import Idea, idea_key

PROSE = (".md", ".markdown", ".rst", ".txt", ".adoc", ".tex", ".htm", ".html", ".pdf", "")
"""Suffixes of what is read as text, not as code; a name without one is a README, a licence, a build file."""
NOTE = re.compile(r"(?s)(.+) sha256:([0-9a-f]{64})")
"""How ``kernelpilot knowledge mark-read`` notes a file that it opened."""
SHORTEST = 7
"""Digits from which on a commit may stand for a longer one that begins with it."""

Place = tuple[str, str, str]
"""Repository, commit, path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One row of the log."""

    idea: Idea
    place: Place
    symbol: str
    key: str
    """Of the four fields as written, whatever the row says its key is."""
    sha: str
    """sha256 of the row's own file as ``mark-read`` notes it; empty where the row carries none."""
    opened: tuple[tuple[Place, str], ...]
    """Every file that the row notes with a sha256."""
    code: bool

    @property
    def reason(self) -> str:
        """Why it was read again; empty for a first reading."""
        return self.idea.reread_reason.strip()


@functools.lru_cache(maxsize=4)
def sources(ideas: tuple[Idea, ...]) -> tuple[Source, ...]:
    """The rows in order, with the many ways to write one repository, commit or path made one."""
    commits: dict[str, set[str]] = {}
    for idea in ideas:
        commits.setdefault(_repo(idea.repo), set()).add(_commit(idea.commit))
    long = {repo: {commit: _longest(commit, known) for commit in known} for repo, known in commits.items()}
    return tuple(_source(idea, long[_repo(idea.repo)][_commit(idea.commit)]) for idea in ideas)


@functools.lru_cache(maxsize=8192)
def _source(idea: Idea, commit: str) -> Source:
    repo, path = _repo(idea.repo), _path(idea.path)
    notes = (match for match in map(NOTE.fullmatch, idea.opened) if match)
    opened = tuple(((repo, commit, _path(note[1])), note[2]) for note in notes)
    place = (repo, commit, path)
    return Source(
        idea=idea,
        place=place,
        symbol=idea.symbol.strip(),
        key=idea_key(repo=idea.repo, commit=idea.commit, path=idea.path, symbol=idea.symbol),
        sha=next((sha for where, sha in opened if where == place), ""),
        opened=opened,
        code=PurePosixPath(path).suffix.lower() not in PROSE,
    )


@functools.lru_cache(maxsize=1024)
def _repo(said: str) -> str:
    bare = re.sub(r"^[a-z+]+://(?:www\.)?github\.com/", "", said.strip().lower())
    return bare.rstrip("/").removesuffix(".git")


def _commit(said: str) -> str:
    return said.strip().lower()


def _path(said: str) -> str:
    return str(PurePosixPath(said.strip().lstrip("/")))


def _longest(commit: str, known: Iterable[str]) -> str:
    """The one longest commit that begins with this one; the commit itself where there are several."""
    if len(commit) < SHORTEST:
        return commit
    longer = [other for other in known if other.startswith(commit)]
    most = [other for other in longer if not any(one != other and one.startswith(other) for one in longer)]
    return most[0] if len(most) == 1 else commit


def settled(found: Iterable[Source]) -> Mapping[Place, str]:
    """Place -> the sha256 that holds there; empty where rows differ and nothing settles it.

    A later row settles it that says why the file was read again and found one of the sums that stood before.
    """
    out: dict[Place, str] = {}
    known: set[tuple[Place, str]] = set()
    for source in found:
        for place, sha in source.opened:
            same = out.get(place, sha) == sha
            out[place] = sha if same or (source.reason and (place, sha) in known) else ""
            known.add((place, sha))
    return out


@functools.lru_cache(maxsize=4)
def read(ideas: tuple[Idea, ...]) -> tuple[tuple[Source, ...], Mapping[Place, str]]:
    """``sources`` of the log, and what is ``settled`` among them."""
    found = sources(ideas)
    return found, settled(found)
