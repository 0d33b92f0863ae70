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
from kernelpilot_helpers.knowledge import listing, shelf, text
from kernelpilot_helpers.knowledge.fields import named
from kernelpilot_helpers.knowledge.filters import Condition
from kernelpilot_helpers.knowledge.lexicon import Lexicon
from kernelpilot_helpers.knowledge.model import Filters, PageHit, Record
from kernelpilot_helpers.knowledge.rank import ranked
from kernelpilot_helpers.knowledge.symptom import FIX, Case

RULES = Path(__file__).with_name("routes.toml")
EVIDENCE = 3
"""Records shown for a technique."""
PITFALLS = 2
FIXES = 40
"""Fixes of one file that are looked at for one that shares the mechanism."""
ENOUGH = 2
"""Lines of a mechanism from which a fix may be about it, if no other has more."""
AT_LIMIT = "none.at_limit"
ASYNC = frozenset(
    {"cp.async", "tma", "mbarrier", "pipeline", "num_stages", "warp-specialization", "pingpong", "pdl", "clc"}
)
"""Mechanisms whose usual fault is an order that nothing keeps."""
ORDER = frozenset(
    {"barrier", "barriers", "race", "races", "sync", "synchronization", "deadlock", "hang", "fence", "wait"}
)
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
    page: str
    """Of ours, below the knowledge folder."""
    guard: tuple[str, ...] = ()
    alone: bool = False
    not_for: tuple[str, ...] = ()
    measured: bool = False
    beyond: bool = False
    unless: tuple[str, ...] = ()
    arch: int = 0
    family: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A record that adds a technique's mechanisms, and how many lines of each."""

    record: Record
    lines: dict[str, int]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One technique that the digest speaks for."""

    rule: str
    technique: str
    why: tuple[str, ...]
    """``metric = value``, with the thresholds that it passed."""
    mechanisms: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    pitfalls: tuple[Record, ...]
    """Fixes in the same files that share the mechanism."""
    refute: str
    page: str
    """Of ours, below the knowledge folder: when it helps, how it is done, what speaks against it."""


class Routes(msgspec.Struct, frozen=True, kw_only=True):
    """The techniques, the likeliest first, and the rules that a counter-sign turned down."""

    routes: tuple[Route, ...]
    rejected: tuple[tuple[str, str], ...]
    """Name of the rule, and why."""
    pages: tuple[PageHit, ...] = ()
    """Pages about the class itself."""
    stop: str = ""
    """The digest's own step where it is to stop; the techniques then change the bytes or operations that are needed."""


class _Step(msgspec.Struct, frozen=True):
    kind: str = ""
    what: str = ""


class _Digest(msgspec.Struct, frozen=True, kw_only=True):
    class_name: str = msgspec.field(name="class", default="")
    next_step: _Step | None = None


def rules(path: Path = RULES) -> tuple[Rule, ...]:
    """The table. Raises BadRecord."""
    fix = f"git checkout -- {path.name}"
    document = records.parse_toml(records.read_bytes(path, fix=fix), at=str(path), fix=fix)
    try:
        return msgspec.convert(document.get("rule", []), tuple[Rule, ...])
    except msgspec.ValidationError as error:
        raise BadRecord(str(error), where=str(path), fix=fix) from None


def stop_of(data: bytes) -> str:
    """What a digest.json says where its step is to stop; empty for another step. Raises BadRecord."""
    try:
        digest = msgspec.json.decode(data, type=_Digest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRecord(f"is no digest: {error}", where="digest.json", fix=FIX) from None
    step = digest.next_step or _Step()
    if step.kind != "stop" and digest.class_name != AT_LIMIT:
        return ""
    return step.what or "Stop tuning this kernel as it is: it is at the limit of what it does."


def route(
    tables: sqlite3.Connection, case: Case, limit: int = 3, table: tuple[Rule, ...] | None = None, *, stop: str = ""
) -> Routes:
    """The techniques that rules find for a case: those of its class first, then those its metrics alone speak for.

    With a ``stop`` (of ``stop_of``) only those that change what the kernel has to do.
    """
    stop = stop or (case.class_name == AT_LIMIT and "Stop tuning this kernel as it is.") or ""
    spoken: list[tuple[int, int, Rule, tuple[str, ...]]] = []
    rejected: list[tuple[str, str]] = []
    for place, rule in enumerate(rules() if table is None else table):
        if stop and not rule.beyond:
            continue
        why, against = judged(rule, case)
        if against:
            rejected.append((rule.name, against))
        elif why:
            spoken.append((0 if _any(rule.classes, case.class_name) else 1, place, rule, why))
    found = [_route(tables, case, rule, why) for _, _, rule, why in sorted(spoken, key=lambda s: s[:2])[:limit]]
    pages = shelf.of_class(tables, case.class_name)
    return Routes(routes=tuple(found), rejected=tuple(rejected), pages=pages, stop=stop)


def judged(rule: Rule, case: Case) -> tuple[tuple[str, ...], str]:
    """(why the rule speaks, what turns it down); both empty when it does not speak."""
    for wanted, have in ((rule.family, case.families), (rule.dtype, case.dtypes)):
        if wanted and not set(wanted) & set(have):
            return (), ""
    ours = _any(rule.classes, case.class_name)
    at_limit = rule.beyond and case.class_name == AT_LIMIT
    if not ours and (_any(rule.not_for, case.class_name) or not (rule.alone or at_limit)):
        return (), ""
    for test in (*rule.when, *rule.guard):
        outcome = _holds(test, case)
        if outcome is False or (outcome is None and (rule.measured or not ours)):
            return (), ""
    if rule.arch and case.capability and case.capability < rule.arch:
        return (), f"needs sm_{rule.arch}, this is sm_{case.capability}"
    for test in rule.unless:
        if _holds(test, case):
            return (), _told((test,), case)[0]
    said = _told(tuple(test for test in rule.when if _holds(test, case)), case)
    return (*((f"class {case.class_name}",) if ours else ()), *said), ""


def _any(patterns: tuple[str, ...], class_name: str) -> bool:
    return any(fnmatch.fnmatchcase(class_name, pattern) for pattern in patterns)


def _parts(test: str) -> tuple[str, str, float]:
    """Role, sign and bound of a condition."""
    parts = _TEST.fullmatch(test)
    if parts is None:
        raise BadRecord(f"not a condition: {test!r}", where=str(RULES), fix=f"git checkout -- {RULES.name}")
    return parts[1], parts[2], float(parts[3])


def _value(role: str, case: Case) -> float | None:
    value = case.values.get(role)
    if value is None and role.startswith("stall.") and any(name.startswith("stall.") for name in case.values):
        return 0.0  # a digest lists the reasons that count
    return value


def _holds(test: str, case: Case) -> bool | None:
    """Does a condition hold; None when it was not measured."""
    role, sign, bound = _parts(test)
    value = _value(role, case)
    return None if value is None else _HOLDS[sign](value, bound)


def _told(tests: tuple[str, ...], case: Case) -> tuple[str, ...]:
    """Conditions in words, each metric once."""
    bounds: dict[str, list[str]] = {}
    for test in tests:
        role, sign, bound = _parts(test)
        bounds.setdefault(role, []).append(f"{sign} {bound:g}")
    return tuple(
        f"{case.metrics.get(role, role)} = {_value(role, case):.4g} ({' and '.join(said)})"
        for role, said in bounds.items()
    )


def _route(tables: sqlite3.Connection, case: Case, rule: Rule, why: tuple[str, ...]) -> Route:
    allowed = listing.with_any(rule.tokens, conditions.condition(tables, listing.vocabulary(tables), Filters()))
    question = listing.concepts_only(rule.tokens, case.families, case.dtypes)
    numbers = [number for _, number in ranked(tables, question, allowed, SEARCHED)]
    numbers += _lessons(tables, rule, allowed)
    found = [listing.record_at(tables, number) for number in dict.fromkeys(numbers)]
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
        pitfalls=tuple(_pitfalls(tables, rule, [item.record for item in shown], lexicon)),
        refute=rule.refute,
        page=rule.page,
    )


def _lessons(tables: sqlite3.Connection, rule: Rule, allowed: Condition) -> list[int]:
    """Records whose lesson belongs to the rule's page."""
    sql = f"SELECT id FROM doc WHERE read AND instr(record, ?) > 0{allowed.sql('id')} ORDER BY id"  # noqa: S608
    return [row[0] for row in tables.execute(sql, (f'"{_slug(rule)}"', *allowed.values))]


def _slug(rule: Rule) -> str:
    return rule.page.rsplit("/", 1)[-1].removesuffix(".md")


def _fit(record: Record, rule: Rule, case: Case, lexicon: Lexicon) -> float:
    """Same family and data type, surely about speed and this technique, and code that runs on this architecture."""
    score = 3.0 * bool(set(record.families) & set(case.families)) + 0.5 * bool(set(record.dtypes) & set(case.dtypes))
    score += {"A": 2.0, "B": 2.0, "C": 1.0}.get(record.tier, 0.0) + 1.5 * bool(record.lesson)
    score += 2.5 * (_slug(rule) in record.techniques)
    titled = named(record, lexicon)
    score += 2.0 * any(text.concept("m", token) in titled for token in rule.tokens)
    added = sum(record.diff_terms.get(token, 0) for token in rule.tokens)
    score += min(2.0, math.log2(1 + added) / 3) - 2.0 * (record.state == "open") - 1.0 * (record.n_files > MANY_FILES)
    score -= 1.5 * ("compiler" in record.kinds)
    newer = [int(arch[2:]) > case.capability for arch in record.archs]
    return score - (3.0 if case.capability and newer and all(newer) else 0.0)


def _pitfalls(tables: sqlite3.Connection, rule: Rule, shown: list[Record], lexicon: Lexicon) -> list[Record]:
    """Fixes in device code (tier P) of the kernels of these records that share the mechanism, the newest first."""
    out: dict[str, tuple[bool, Record]] = {}
    for record in shown:
        for path in record.kernel_files[:2]:
            rows = tables.execute(
                "SELECT doc.id FROM doc, json_each(doc.record, '$.kernel_files') AS file"
                " WHERE doc.repo = ? AND doc.tier = 'P' AND file.value = ? ORDER BY doc.day DESC LIMIT ?",
                (record.repo, path, FIXES),
            )
            for row in rows:
                fix = listing.record_at(tables, row[0])
                titled, shared = _shares(fix, rule, lexicon)
                if shared:
                    out.setdefault(fix.id, (not titled, fix))
    return [fix for _, fix in sorted(out.values(), key=lambda item: item[0])][:PITFALLS]


def _shares(fix: Record, rule: Rule, lexicon: Lexicon) -> tuple[bool, bool]:
    """Does a fix's title name a rule's mechanism (an asynchronous one: or an order); does title or most of its diff."""
    words = set(fix.words)
    titled = any(text.concept("m", token) in named(fix, lexicon) for token in rule.tokens)
    titled = titled or bool(ASYNC & set(rule.tokens) and words & ORDER)
    most = max(ENOUGH, *fix.diff_terms.values(), 0)
    return titled, titled or any(fix.diff_terms.get(token, 0) >= most for token in rule.tokens)
