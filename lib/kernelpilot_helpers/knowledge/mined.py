"""The record of one change as the miner writes it and the check reads it: facts only, no sentence of anybody."""

from __future__ import annotations

from typing import Annotated

import msgspec

from kernelpilot_helpers.knowledge.facts import FORMAT, VERSION
from kernelpilot_helpers.records import Owner

Count = Annotated[int, msgspec.Meta(ge=0)]


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One changed path with its lines added and deleted; null where the file is binary or absent from the clone."""

    path: str
    add: Count | None
    del_: Count | None = msgspec.field(name="del")


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One merged pull request, open candidate or direct commit that touches kernel source."""

    id: str
    """``owner/name#number``, or ``owner/name@`` and 12 hex digits for a direct commit."""
    repo: str
    pr: Annotated[int, msgspec.Meta(ge=1)] | None
    """Null for a direct commit."""
    sha: str
    """The merge (or squash, or direct) commit; of an open candidate, the head."""
    merged_at: str
    """UTC, ``2025-01-21T14:21:54Z``; of an open candidate, the head's date."""
    how: str
    """squash, merge, direct, open, or api."""
    tier: str
    """A, B, C, D, E, P, or empty: background."""
    why: str
    """Which rule gave the tier, or kept it away."""
    score: float
    """Strength for sorting within the miner; comparable between records of the same rules."""
    label: str
    """One line made from the facts below."""
    archs: tuple[str, ...]
    """Empty = unknown, as in the three below."""
    dtypes: tuple[str, ...]
    families: tuple[str, ...]
    kinds: tuple[str, ...]
    """Languages of the kernels."""
    evidence: dict[str, dict[str, Count]]
    """``arch:sm90`` -> how many paths, symbols, title words and added lines say so."""
    n_files: Count
    files: tuple[File, ...]
    """At most 40: kernels, tests, benchmarks, the rest."""
    kernel_files: tuple[str, ...]
    """Most added lines first; so are the two below."""
    test_files: tuple[str, ...]
    bench_files: tuple[str, ...]
    config_files: Count
    """Tuning tables (JSON, YAML, CSV) among the files."""
    kadd: Count
    kdel: Count
    """Lines added and deleted in kernel files."""
    knet: Count
    """Of the added ones: code that was not deleted elsewhere in the same change."""
    kernel_lines: Count
    """Of those: inside a kernel or a device function."""
    symbols: tuple[str, ...]
    """Kernels hit, most lines first; qualified by class."""
    context: tuple[str, ...]
    """Other functions hit."""
    diff_terms: dict[str, Count]
    """Mechanism -> lines that add a token of it; moved lines not counted. Most lines first."""
    claims: tuple[str, ...]
    """Numbers with their unit that title or description state: ``1.16x``, ``28%``, ``1550TFLOPS``."""
    words: tuple[str, ...]
    """Lower-case title words, sorted, without repeats."""


FACTS = Owner(
    format=FORMAT,
    version=VERSION,
    type=Facts,
    fix="python scripts/refresh_pr_knowledge.py --help",
)
