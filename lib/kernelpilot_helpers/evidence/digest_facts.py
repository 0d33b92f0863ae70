"""A profile digest as the gate needs to know it."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpilot_helpers.attempt.profile import Profile


@dataclass(frozen=True, kw_only=True, slots=True)
class DigestFacts:
    """One folder ``artifacts/profile-digests/<version>/<case>``."""

    path: str
    """Repo-relative."""
    subject: str
    """Version label, by the folder's name."""
    case_id: str
    profile: Profile | None = None
    name: str = ""
    """Class of the headline."""
    kind: str = ""
    """Of the next step: edit, capture or stop; empty without a readable digest."""
    target: str = ""
    """File that the next step names; empty where it names none."""
    min_bytes: int | None = None
    """Least traffic of the case, as the digest was told."""
    floor_us: float | None = None
    """Time of a kernel that only moves the same bytes, as the digest was told."""
    faults: tuple[str, ...] = ()
    """Why it is not complete, or not what its facts give."""

    @property
    def id(self) -> str:
        """What a motivation cites."""
        return f"{self.subject}/{self.case_id}"

    @property
    def real(self) -> bool:
        """Made from a report of ncu."""
        return self.profile is not None and self.profile.source == "ncu"
