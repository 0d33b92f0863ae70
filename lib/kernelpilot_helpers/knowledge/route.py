"""From a digest of Nsight Compute to techniques, each with records that add its mechanisms and what would refute it."""

from __future__ import annotations

import fnmatch
import math
import operator
import re
import sqlite3
from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge import filters as conditions
from kernelpilot_helpers.knowledge import listing, text
from kernelpilot_helpers.knowledge.fields import named
from kernelpilot_helpers.knowledge.lexicon import Lexicon
from kernelpilot_helpers.knowledge.model import Filters, Record
from kernelpilot_helpers.knowledge.rank import ranked
from kernelpilot_helpers.knowledge.symptom import Case

RULES = Path(__file__).with_name("routes.toml")
EVIDENCE = 3
"""Records shown for a technique."""
PITFALLS = 2
SEARCHED = 60
MANY_FILES = 40
_TEST = re.compile(r"([a-z_0-9.]+) *(<=|>=|<|>) *([0-9.]+)")
_HOLDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of the table; its file says what the fields mean."""

    name: str
    technique: str
    classes: tuple[str, ...] = msgspec.field(name="class")
    when: tuple[str, ...]
    tokens: tuple[str, ...]
    refute: str
    alone: bool = False
    unless: tuple[str, ...] = ()
    arch: int = 0


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A record that adds a technique's mechanisms, and how many lines of each."""

    record: Record
    lines: dict[str, int]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One technique that the digest speaks for."""

    rule: str
    technique: str
    why: tuple[str, ...]
    """``metric = value``, with the threshold that it passed."""
    mechanisms: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    pitfalls: tuple[Record, ...]
    """Fixes in the same files."""
    refute: str


class Routes(msgspec.Struct, frozen=True, kw_only=True):
    """The techniques, the likeliest first, and the rules that a counter-sign turned down."""

    routes: tuple[Route, ...]
    rejected: tuple[tuple[str, str], ...]
    """Name of the rule, and why."""


def rules(path: Path = RULES) -> tuple[Rule, ...]:
    """The table. Raises BadRecord."""
    fix = f"git checkout -- {path.name}"
    document = records.parse_toml(records.read_bytes(path, fix=fix), at=str(path), fix=fix)
    try:
        return msgspec.convert(document.get("rule", []), tuple[Rule, ...])
    except msgspec.ValidationError as error:
        raise BadRecord(str(error), where=str(path), fix=fix) from None


def route(tables: sqlite3.Connection, case: Case, limit: int = 3, table: tuple[Rule, ...] | None = None) -> Routes:
    """The techniques that rules find for a case: those of its class first, then those its metrics alone speak for."""
    spoken: list[tuple[int, int, Rule, tuple[str, ...]]] = []
    rejected: list[tuple[str, str]] = []
    for place, rule in enumerate(rules() if table is None else table):
        why, against = judged(rule, case)
        if against:
            rejected.append((rule.name, against))
        elif why:
            spoken.append((0 if _of_class(rule, case) else 1, place, rule, why))
    found = [_route(tables, case, rule, why) for _, _, rule, why in sorted(spoken, key=lambda s: s[:2])[:limit]]
    return Routes(routes=tuple(found), rejected=tuple(rejected))


def judged(rule: Rule, case: Case) -> tuple[tuple[str, ...], str]:
    """(why the rule speaks, what turns it down); both empty when it does not speak."""
    ours = _of_class(rule, case)
    said = []
    for test in rule.when:
        outcome, told = _told(test, case)
        if outcome is False or (outcome is None and not ours):
            return (), ""
        if outcome:
            said.append(told)
    if not ours and not rule.alone:
        return (), ""
    if rule.arch and case.capability and case.capability < rule.arch:
        return (), f"needs sm_{rule.arch}, this is sm_{case.capability}"
    for test in rule.unless:
        outcome, told = _told(test, case)
        if outcome:
            return (), told
    return ((f"class {case.class_name}",) if ours else ()) + tuple(said), ""


def _of_class(rule: Rule, case: Case) -> bool:
    return any(fnmatch.fnmatchcase(case.class_name, pattern) for pattern in rule.classes)


def _told(test: str, case: Case) -> tuple[bool | None, str]:
    """Does a condition hold (None: not measured), and in words."""
    parts = _TEST.fullmatch(test)
    if parts is None:
        raise BadRecord(f"not a condition: {test!r}", where=str(RULES), fix=f"git checkout -- {RULES.name}")
    role, sign, bound = parts[1], parts[2], float(parts[3])
    value = case.values.get(role)
    if value is None:
        return None, ""
    return _HOLDS[sign](value, bound), f"{case.metrics.get(role, role)} = {value:.4g} ({sign} {bound:g})"


def _route(tables: sqlite3.Connection, case: Case, rule: Rule, why: tuple[str, ...]) -> Route:
    allowed = listing.with_any(rule.tokens, conditions.condition(tables, listing.vocabulary(tables), Filters()))
    question = listing.concepts_only(rule.tokens, case.families, case.dtypes)
    found = [listing.record_at(tables, number) for _, number in ranked(tables, question, allowed, SEARCHED)]
    lexicon = listing.lexicon(tables)
    best = sorted(enumerate(found), key=lambda item: (-_fit(item[1], rule, case, lexicon), item[0]))[:EVIDENCE]
    shown = tuple(
        Evidence(record=record, lines={t: record.diff_terms[t] for t in rule.tokens if t in record.diff_terms})
        for _, record in best
    )
    return Route(
        rule=rule.name,
        technique=rule.technique,
        why=why,
        mechanisms=rule.tokens,
        evidence=shown,
        pitfalls=tuple(_pitfalls(tables, [item.record for item in shown])),
        refute=rule.refute,
    )


def _fit(record: Record, rule: Rule, case: Case, lexicon: Lexicon) -> float:
    """Same family and data type, surely about speed and this mechanism, and code that runs on this architecture."""
    score = 2.0 * bool(set(record.families) & set(case.families)) + 0.5 * bool(set(record.dtypes) & set(case.dtypes))
    score += {"A": 2.0, "B": 2.0, "C": 1.0}.get(record.tier, 0.0) + 1.5 * bool(record.lesson)
    titled = named(record, lexicon)
    score += 2.0 * any(text.concept("m", token) in titled for token in rule.tokens)
    added = sum(record.diff_terms.get(token, 0) for token in rule.tokens)
    score += min(2.0, math.log2(1 + added) / 3) - 2.0 * (record.state == "open") - 1.0 * (record.n_files > MANY_FILES)
    score -= 1.5 * ("compiler" in record.kinds)
    newer = [int(arch[2:]) > case.capability for arch in record.archs]
    return score - (3.0 if case.capability and newer and all(newer) else 0.0)


def _pitfalls(tables: sqlite3.Connection, shown: list[Record]) -> list[Record]:
    """Fixes in device code (tier P) that touch the kernels of these records, the newest first."""
    out: dict[str, Record] = {}
    for record in shown:
        for path in record.kernel_files[:2]:
            rows = tables.execute(
                "SELECT doc.id FROM doc, json_each(doc.record, '$.kernel_files') AS file"
                " WHERE doc.repo = ? AND doc.tier = 'P' AND file.value = ? ORDER BY doc.day DESC LIMIT ?",
                (record.repo, path, PITFALLS),
            )
            out |= {found.id: found for found in (listing.record_at(tables, row[0]) for row in rows)}
    return list(out.values())[:PITFALLS]
