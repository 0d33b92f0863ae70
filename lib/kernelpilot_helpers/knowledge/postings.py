"""What each search word is worth to each record, computed once when the tables are made."""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping

from kernelpilot_helpers.knowledge.counts import Counts

FIELD = {
    "words": (3.0, 0.3, 9.0),
    "label": (0.5, 0.0, 1.0),
    "symbols": (2.0, 0.4, 9.0),
    "context": (0.5, 0.4, 23.0),
    "paths": (1.0, 0.4, 28.0),
    "facets": (0.6, 0.0, 1.0),
    "lesson": (0.2, 0.0, 1.0),
    "named": (3.0, 0.0, 1.0),
    "concepts": (0.7, 0.0, 1.0),
}
"""By column: what one occurrence counts for, how much of it a longer column takes away, and its usual length.

The title leads. Our label and lesson count for little: they stand at a few hundred records only, and would bring these
forward whatever is asked. A mechanism's own words are left out, its concept says the same.
"""
CURE = {"named": (8.0, 0.0, 1.0), "concepts": (0.3, 0.0, 1.0)}
"""The same for a concept that a symptom leads to: whose title names the cure comes before whose diff holds some."""
SATURATION = 3.0
"""Where this much stands in a record, a word is worth half of the most that it can be."""
SCALE = 16_000.0
"""A worth is below ``SATURATION + 1``; this keeps it in sixteen bits."""
RARITY = 1.15
"""Power of a word's rarity."""

TABLES = """
CREATE TABLE posting (term TEXT PRIMARY KEY, doc INTEGER, numbers BLOB, worths BLOB);
CREATE TABLE cure (term TEXT PRIMARY KEY, doc INTEGER, numbers BLOB, worths BLOB);
"""
POSTING, CURES = "posting", "cure"


class Gathered:
    """Worths by search word while the records come in, in the order of their numbers."""

    def __init__(self) -> None:
        self._all: dict[str, tuple[array[int], array[int]]] = {}
        self._cures: dict[str, tuple[array[int], array[int]]] = {}

    def add(self, number: int, columns: Mapping[str, list[str]]) -> None:
        """One record's search words by column."""
        _put(self._all, number, _weighed(columns, FIELD))
        cures = {name: [token for token in columns[name] if token[1] in "mt"] for name in CURE}
        _put(self._cures, number, _weighed(cures, CURE))

    def write(self, connection: sqlite3.Connection) -> None:
        """Create and fill the tables."""
        for statement in filter(str.strip, TABLES.split(";")):
            connection.execute(statement)
        for table, kept in ((POSTING, self._all), (CURES, self._cures)):
            rows = ((t, len(n), n.tobytes(), w.tobytes()) for t, (n, w) in sorted(kept.items()))
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)  # noqa: S608 - names of ours


def _weighed(columns: Mapping[str, list[str]], fields: Mapping[str, tuple[float, float, float]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for name, (weight, share, usual) in fields.items():
        found = columns[name]
        if found:
            one = weight / (1 - share + share * len(found) / usual)
            for token in found:
                out[token] = out.get(token, 0.0) + one
    return out


def _put(kept: dict[str, tuple[array[int], array[int]]], number: int, weighed: Mapping[str, float]) -> None:
    for token, x in weighed.items():
        numbers, worths = kept.get(token) or kept.setdefault(token, (array("I"), array("H")))
        numbers.append(number)
        worths.append(round(SCALE * x * (SATURATION + 1) / (x + SATURATION)))


class Postings(Counts):
    """Reads them: what a search word is worth, and how rare it is."""

    def __init__(self, tables: sqlite3.Connection) -> None:
        super().__init__(tables, "doc", POSTING)

    def rarity(self, token: str) -> float:
        """Larger for a word of fewer records."""
        often = self.of(token)
        return math.pow(math.log(1 + (self.total - often + 0.5) / (often + 0.5)), RARITY)

    def worths(self, token: str, weight: float, table: str = POSTING) -> Iterator[tuple[int, float]]:
        """Record and what the word is worth to it, times its rarity and a weight."""
        sql = f"SELECT numbers, worths FROM {table} WHERE term = ?"  # noqa: S608 - a name of ours
        row = self._tables.execute(sql, (token,)).fetchone()
        if row is None:
            return iter(())
        numbers, worths = array("I", row[0]), array("H", row[1])
        factor = weight * self.rarity(token) / SCALE
        return zip(numbers, [factor * worth for worth in worths], strict=True)

    def known(self, tokens: Iterable[str]) -> list[str]:
        """Those of the words that some record holds, once each."""
        return [token for token in dict.fromkeys(tokens) if self.of(token)]
