"""Is the corpus whole? Facts against what repos.json says of each repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge.check_facts import Counts

NAME = "repos.json"
FIX = "git checkout -- knowledge/data/facts  # or mine anew: python scripts/refresh_pr_knowledge.py --help"
FEWEST = 10


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the miner says of a repository."""

    heads: dict[str, str]
    records: int
    how: dict[str, int]
    tiers: dict[str, int]
    selected_prs: int
    source_only: bool


def faults(folder: Path, found: Mapping[str, Counts]) -> Iterator[tuple[str, str]]:
    """(what, fix): repositories that are missing or unknown, and counts that differ; ``found`` by repository."""
    path = folder / NAME
    try:
        document = records.parse_json(records.read_bytes(path, fix=FIX), at=str(path), fix=FIX)
        told = records.convert(document, dict[str, Told], at=str(path), fix=FIX)
    except BadRecord as error:
        yield error.what, FIX
        return
    for repo in sorted(told.keys() | found.keys()):
        if repo not in found:
            yield f"{repo}: {told[repo].records} records, but no file of facts holds one", FIX
        elif repo not in told:
            yield f"{repo}: has facts and is not named here", FIX
        else:
            yield from ((f"{repo}: {what}", FIX) for what in _differ(told[repo], found[repo]))


def _differ(told: Told, counts: Counts) -> Iterator[str]:
    for name in ("records", "how", "tiers", "selected_prs"):
        said, there = getattr(told, name), getattr(counts, name)
        if said != there:
            yield f"{name}: says {said}, its facts hold {there}"
    if told.source_only != (counts.selected_prs < FEWEST):
        yield f"source_only: says {told.source_only} of {counts.selected_prs} selected pull requests"
    for branch, sha in told.heads.items():
        if not re.fullmatch("[0-9a-f]{40}", sha):
            yield f"heads: {branch}: want 40 hex digits, got {sha!r}"
