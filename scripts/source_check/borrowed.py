"""Runs of words that two texts share: a sentence of ours must not be somebody's."""

from __future__ import annotations

import re
from collections.abc import Iterable

RUN = 6
"""Consecutive words that are no accident any more."""


def words(text: str) -> list[str]:
    """Lower-case words and numbers; marks between them do not count."""
    return re.findall(r"[a-z0-9]+(?:['_.][a-z0-9]+)*", text.lower())


def runs(text: str, length: int = RUN) -> frozenset[tuple[str, ...]]:
    """Every run of ``length`` consecutive words."""
    said = words(text)
    return frozenset(tuple(said[at : at + length]) for at in range(len(said) - length + 1))


def shared(text: str, theirs: Iterable[frozenset[tuple[str, ...]]]) -> str:
    """The first run of ours that stands in one of theirs, empty without one."""
    known = list(theirs)
    said = words(text)
    for at in range(len(said) - RUN + 1):
        run = tuple(said[at : at + RUN])
        if any(run in their for their in known):
            return " ".join(run)
    return ""
