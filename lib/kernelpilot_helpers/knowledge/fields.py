"""A record as the search words of each column."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.lexicon import Lexicon
from kernelpilot_helpers.knowledge.model import Record

FIELDS = ("words", "label", "symbols", "context", "paths", "facets", "lesson", "terms", "named", "concepts")
MOST_TIMES = 6
"""A mechanism's word is repeated with the logarithm of its lines, no more often than this."""
SHARE = 0.33
"""A mechanism of few lines beside one of many is repeated less: by this power of its share."""


def fields(record: Record, lexicon: Lexicon) -> dict[str, list[str]]:
    """Search words of a record by column.

    ``named`` holds concepts that the title, our label or a symbol names; ``concepts`` those that the diff shows.
    """
    written = record.label if record.lesson else ""
    """A generated label repeats facts that have columns of their own."""
    terms: list[str] = []
    concepts: list[str] = []
    most = max(record.diff_terms.values(), default=1)
    for name, lines in record.diff_terms.items():
        often = min(1 + int(math.log2(max(lines, 1))), MOST_TIMES)
        often = max(1, min(often, round(MOST_TIMES * (lines / max(most, 1)) ** SHARE)))
        terms += _tokens(name) * often
        concepts += [text.concept("m", name)] * often
    concepts += [text.concept("f", name) for name in record.families]
    concepts += [text.concept("a", name) for name in record.archs]
    concepts += [text.concept("d", name) for name in record.dtypes]
    paths = (*record.kernel_files, *record.test_files, *record.bench_files)
    concepts += _topics_of(record, lexicon)
    return {
        "words": _all(record.words),
        "label": text.tokens(written),
        "symbols": _all(record.symbols),
        "context": _all(record.context),
        "paths": list(dict.fromkeys([*_all(paths), *_stems(paths)])),
        "facets": text.tokens(" ".join((record.repo, *record.archs, *record.families, *record.kinds, *record.dtypes))),
        "lesson": text.tokens(" ".join((record.lesson, *record.techniques))),
        "terms": terms,
        "named": named(record, lexicon),
        "concepts": concepts,
    }


def named(record: Record, lexicon: Lexicon) -> list[str]:
    """Concepts that the title's words or our own label name."""
    have = frozenset(piece for word in record.words for piece in _pieces(word))
    found = dict.fromkeys(lexicon.in_bag(have, "mft"))
    if record.lesson:
        found |= dict.fromkeys(lexicon.heard(record.label, "mft"))
    return [text.concept(kind, name) for kind, name in sorted(found)]


def _topics_of(record: Record, lexicon: Lexicon) -> list[str]:
    """Topics that some symbol or kernel's file name holds as a whole phrase."""
    said = " ".join((*record.symbols, *(path.rsplit("/", 1)[-1] for path in record.kernel_files)))
    return [text.concept(kind, name) for kind, name in sorted(lexicon.heard(said, "t"))]


@functools.lru_cache(maxsize=32768)
def _pieces(word: str) -> tuple[str, ...]:
    """A word's pieces, and the joined form of one with several (``split_k`` also as ``splitk``)."""
    pieces = text.phrase(word).split()
    return (*pieces, "".join(pieces)) if len(pieces) > 1 else tuple(pieces)


def _stems(paths: Iterable[str]) -> list[str]:
    """File names of several pieces without their ending, whole."""
    names = (path.rsplit("/", 1)[-1].partition(".")[0].lower() for path in paths)
    return [name for name in names if "_" in name]


@functools.lru_cache(maxsize=65536)
def _tokens(name: str) -> list[str]:
    return text.tokens(name)


def _all(names: Iterable[str]) -> list[str]:
    return [token for name in names for token in _tokens(name)]
