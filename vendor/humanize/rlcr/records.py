"""What was found out about a round: by rules, by evidence commands, by a reviewer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


def sha256(data: bytes | str) -> str:
    """Hex digest of bytes, or of text as UTF-8."""
    return hashlib.sha256(data.encode(errors="surrogatepass") if isinstance(data, str) else data).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that a deterministic check or an evidence command holds against the round."""

    rule: str
    where: str
    what: str
    fix: str = ""
    severity: str = "block"

    @property
    def key(self) -> str:
        """``rule:where``, as readers of the journal know it."""
        return f"{self.rule}:{self.where}"


@dataclass(frozen=True, kw_only=True)
class Course:
    """Where the measured numbers lead, as an evidence command may say it: for prompts, and instead of an opinion.

    ``kind``: go ``on``; ``widen`` the search before the next try; ``decide`` between stopping, changing and going on;
    ``finish`` what is done. ``have`` of ``want`` is a counter for the reader; ``want`` 0 is none.
    """

    kind: str = "on"
    weak: int = 0
    """Rounds in a row without progress, by the numbers."""
    why: str = ""
    lines: tuple[str, ...] = ()
    have: int = 0
    want: int = 0


@dataclass(frozen=True, kw_only=True)
class Check:
    """What one evidence command answered."""

    name: str
    exit: int
    seconds: float
    stdout_sha256: str
    passed: bool
    met: bool
    """Whether the command says that the whole task is done."""
    why: str = ""
    missing: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    not_evaluated: tuple[str, ...] = ()
    course: Course | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The machinery failed, not the work: ``kind`` is the class that is counted."""

    kind: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding of a reviewer; P0 and P1 block."""

    id: str
    priority: str
    file: str
    line: int
    claim: str
    locus: str = "in-round"


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """A reviewer's verdict. ``unmet`` are the acceptance criteria it does not hold met.

    A review that was not ``full`` looked at the open findings and at the files ``changed`` since the last review.
    """

    verdict: str
    mainline: str
    unmet: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    text: str = ""
    full: bool = True
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Known:
    """A reviewer's finding over time. ``state`` is open, queued or closed; ``first`` and ``last`` are rounds."""

    finding: Finding
    state: str
    first: int
    last: int
