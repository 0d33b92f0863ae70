"""Filters as a condition of SQL; an unknown value is refused with the near ones."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping

from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.model import Filters, Vocabulary

MOST_NAMED = 24
"""Known values that a refusal lists."""
LONGEST_GLOB, MOST_STARS = 400, 12
"""Of ``--path``: a longer pattern is one that SQLite refuses or takes seconds over."""
SOFT = ("arch", "dtype")
"""A record that is silent about these stays, after the ones that speak."""
FAMILIES_OF = {"sm103": ("sm100",), "sm121": ("sm120",), "sm100": ("sm103",), "sm120": ("sm121",)}
"""Architectures whose code mostly runs on the other."""


class Condition:
    """A condition over ``doc`` ids, its values, and the search words that the filters wish for."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.values: list[str | int] = []
        self.wanted: dict[str, tuple[str, ...]] = {}

    def add(self, sql: str, *values: str | int) -> None:
        """One more condition that must hold."""
        self.parts.append(sql)
        self.values += values

    def settled(self, tables: sqlite3.Connection) -> Condition:
        """The same condition, decided once for every record: for a question that asks it many times."""
        if not self.parts:
            return self
        tables.execute("CREATE TEMP TABLE IF NOT EXISTS allowed (id INTEGER PRIMARY KEY)")
        tables.execute("DELETE FROM allowed")
        sql = f"INSERT INTO allowed SELECT id FROM doc WHERE 1{self.sql('id')}"  # noqa: S608 - conditions of ours
        tables.execute(sql, tuple(self.values))
        out = Condition()
        out.wanted = self.wanted
        out.parts = ["SELECT id FROM allowed"]
        return out

    def sql(self, column: str) -> str:
        """`` AND column IN (...)``, empty without a filter."""
        return "".join(f" AND {column} IN ({part})" for part in self.parts)


def condition(tables: sqlite3.Connection, words: Vocabulary, filters: Filters) -> Condition:
    """The filters as SQL. Raises Refused for a value that no record has."""
    out = Condition()
    names: dict[str, Mapping[str, Iterable[str]]] = {
        "repo": {},
        "arch": words.archs,
        "dtype": words.dtypes,
        "family": words.families,
        "dsl": words.kinds,
        "tier": {},
        "state": {},
    }
    for kind, aliases in names.items():
        asked = getattr(filters, kind)
        asked = (text.normal_arch(asked) or asked) if kind == "arch" else asked
        if asked:
            _facet(tables, out, kind, asked, aliases)
    _plain(out, filters)
    _tokens(tables, out, filters.tokens, words)
    return out


def _facet(
    tables: sqlite3.Connection, out: Condition, kind: str, asked: str, aliases: Mapping[str, Iterable[str]]
) -> None:
    present = [row[0] for row in tables.execute("SELECT DISTINCT value FROM facet WHERE kind = ?", (kind,))]
    value = _spelled(asked, sorted(set(aliases) - set(present)), aliases) if kind in SOFT else ""
    value = value or _value(kind, asked, present, aliases)
    wanted: tuple[str, ...] = (value, *(FAMILIES_OF.get(value, ()) if kind == "arch" else ()))
    soft = ("unknown",) if kind in SOFT else ()
    out.wanted[kind] = wanted
    marks = ", ".join("?" * len((*wanted, *soft)))
    out.add(f"SELECT doc FROM facet WHERE kind = ? AND value IN ({marks})", kind, *wanted, *soft)  # noqa: S608


def _value(name: str, asked: str, present: Iterable[str], names: Mapping[str, Iterable[str]]) -> str:
    """The index's spelling of a filter value; another name of it is understood."""
    choices = sorted(set(present) - {"unknown"})
    found = _spelled(asked, choices, names)
    if found:
        return found
    import difflib  # noqa: PLC0415 - only on the way out

    near = difflib.get_close_matches(asked.strip().lower()[:120], [c.lower() for c in choices], n=3, cutoff=0.6)
    listed = [c for c in choices if c.lower() in near] + [c for c in choices if c.lower() not in near]
    shown = sorted(listed) if len(listed) <= MOST_NAMED else listed[:MOST_NAMED]
    raise Refused(f"no record has {name} {asked[:120]!r}", where=f"--{name}", fix=f"one of: {', '.join(shown)}")


def _spelled(asked: str, choices: list[str], names: Mapping[str, Iterable[str]]) -> str:
    """The choice that was meant: its own name first, then another name of it; empty for none."""
    typed = asked.strip().lower()
    for choice in choices:
        if typed in {choice.lower(), choice.split("/")[-1].lower()}:
            return choice
    return next((c for c in choices if typed in {form.lower() for form in names.get(c, ())}), "")


def _plain(out: Condition, filters: Filters) -> None:
    if filters.since:
        out.add("SELECT id FROM doc WHERE day >= ?", filters.since)
    if filters.until:
        out.add("SELECT id FROM doc WHERE day <= ?", filters.until)
    for name, wanted in (("test", filters.has_test), ("bench", filters.has_bench)):
        if wanted:
            out.add("SELECT doc FROM facet WHERE kind = 'has' AND value = ?", name)
    if filters.symbol:
        out.add("SELECT id FROM doc WHERE instr(lower(names), ?) > 0", filters.symbol.lower())
    if filters.path:
        if len(filters.path) > LONGEST_GLOB or filters.path.count("*") > MOST_STARS:
            what = f"a pattern of {len(filters.path)} characters and {filters.path.count('*')} stars"
            fix = f"at most {LONGEST_GLOB} characters and {MOST_STARS} stars, such as 'csrc/attn/*'"
            raise Refused(what, where="--path", fix=fix)
        glob = filters.path if any(c in filters.path for c in "*?[") else f"*{filters.path}*"
        out.add("SELECT doc.id FROM doc, json_each(doc.record, '$.kernel_files') WHERE json_each.value GLOB ?", glob)
    if filters.seen:
        names = json.dumps(sorted(name.lower() for name in filters.seen))
        those = "(SELECT value FROM json_each(?))"  # one value: a ledger may name more than SQLite takes marks
        out.add(f"SELECT id FROM doc WHERE name NOT IN {those} AND sha NOT IN {those}", names, names)  # noqa: S608


def _tokens(tables: sqlite3.Connection, out: Condition, asked: Iterable[str], words: Vocabulary) -> None:
    """One condition a mechanism, however often it is named: the most lines of them hold."""
    wanted: dict[str, int] = {}
    named = dict.fromkeys(asked)
    present = [row[0] for row in tables.execute("SELECT DISTINCT token FROM term")] if named else []
    for said in named:
        parts = re.fullmatch(r"\s*(.+?)\s*(?:>=\s*([0-9]{1,6}))?\s*", said)
        name, lines = (parts[1], int(parts[2] or 1)) if parts else (said, 1)
        value = _value("token", name, present, words.mechanisms)
        wanted[value] = max(wanted.get(value, 1), lines)
    for value, lines in wanted.items():
        out.add("SELECT doc FROM term WHERE token = ? AND lines >= ?", value, lines)
