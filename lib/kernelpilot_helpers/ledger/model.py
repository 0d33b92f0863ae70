"""Rows of ``artifacts/lineage.jsonl``, the one truth from which every ledger is rendered."""

from __future__ import annotations

from typing import Literal

import msgspec

FORMAT = "kernelpilot.lineage"
VERSION = 1

Kind = Literal["baseline", "attempt", "recheck", "decision", "waiver"]
Verdict = Literal["IMPROVED", "SAME", "REGRESSED", "AMBIGUOUS", "WRONG", "BROKEN"]
Status = Literal["selected", "rejected", "wip"]


class Interval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A speed-up ratio with its confidence interval: above 1 is faster."""

    speedup: float
    ci_low: float
    ci_high: float


class Motivation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why this candidate was written."""

    kind: Literal["research", "profile", "benchmark", "review", "reset", "baseline"]
    text: str
    digest: str = ""
    source_keys: tuple[str, ...] = ()


class Provenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that carries somebody's code: where it is from, under which licence, and what was changed."""

    url: str
    commit: str
    licence: str
    files: tuple[str, ...]
    delta: str


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fact for ever. ``version`` is the label (``v003_tiled``); ``prev`` is the hash chain."""

    version: str
    kind: Kind
    parent: str
    """Version label this one was derived from; empty for the baseline."""
    variant: str
    """Directory name below ``src/<task>/variants``; ``baseline`` for the baseline row."""
    tree: str
    """git tree id of the variant (or of ``baseline/``) as judged."""
    commit: str
    epoch: int
    round: int | None = None
    """Loop round that wrote it; None outside a loop."""
    at: str
    """UTC time, ISO 8601, to the second."""
    motivation: Motivation
    language: str
    provenance: tuple[Provenance, ...] = ()
    runs: tuple[str, ...] = ()
    """Every run directory this row rests on; each run directory is cited by exactly one row."""
    evidence: dict[str, str] = {}
    """sha256 over the files of each run (and of the lock, in a baseline row) as they were judged."""
    tier: str = "accept"
    verdict: Verdict | None = None
    """None for baseline, decision and waiver rows."""
    reason: str = ""
    partial: bool = False
    gain: Interval | None = None
    """Against the incumbent; the confirmation's figure where there was one."""
    vs_baseline: Interval | None = None
    """From a direct run against the baseline; never chained."""
    incumbent: str = ""
    """Version label that ``gain`` is measured against."""
    confirmed_by: str | None = None
    """Run id of the confirmation."""
    build_id: str = ""
    binary_id: str = ""
    mutation_score: str = ""
    status: Status
    at_head: str
    """HEAD when the row was written."""
    prev: str = ""
