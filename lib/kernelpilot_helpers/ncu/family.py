"""One kind of edit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """What to change, which metric must move, what must not get worse, and what would show that it was wrong."""

    id: str
    what: str
    role: str
    """Role whose number must move."""
    toward: str
    guard: str
    refute: str = "the duration does not fall by more than the benchmark's noise"
    risk: int = 1
    """0 changes nothing that results depend on, 1 changes the code's shape, 2 changes the algorithm or the numbers."""
    words: str = ""
    """For the search in the corpus of optimization pull requests."""
