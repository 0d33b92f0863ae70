"""Import of an older layout: what can be read is kept as history, what cannot is a fault, nothing is guessed.

No imported figure is evidence: it was not measured by this referee. So every imported attempt is AMBIGUOUS without
a gain, in epoch 0, which no contract has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

from kernelpilot_helpers import records, tables
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ledger.ideas import Idea, idea_key
from kernelpilot_helpers.ledger.model import FORMAT, Motivation, Row
from kernelpilot_helpers.records import Fault

IMPORTED = "imported:"
REASON = f"{IMPORTED} not measured by this referee"
FIX = "mend the old file and import again, or leave this entry out"

_OLD_LABEL = re.compile(r"v(\d{1,6})(?:[_-]([A-Za-z0-9._-]+))?\Z")
_HEX = re.compile(r"[0-9a-f]{40}\Z")
_Kind = Literal["research", "profile", "benchmark", "review", "reset"]
_KINDS: tuple[str, ...] = get_args(_Kind)
_SAID = ("result", "verdict", "status", "outcome", "gain", "speedup", "reason", "notes", "score")
_LINEAGE = ("ledgers/lineage.jsonl", "artifacts/lineage.jsonl")
_TABLES = ("attempt-ledger.md", "optimization-ledger.md", "source-idea-ledger.md")


class _Import:
    """What has been read so far."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.ideas: list[Idea] = []
        self.faults: list[Fault] = []
        self.labels: dict[str, str] = {}

    def fault(self, where: str, what: str) -> None:
        self.faults.append(Fault(where=where, what=what, fix=FIX))


def import_old(files: Mapping[str, bytes]) -> tuple[tuple[Row, ...], tuple[Idea, ...], tuple[Fault, ...]]:
    """Rows and ideas of an older repository, and everything that could not be carried over.

    ``files`` is keyed by repo-relative path below ``ledgers/`` or ``artifacts/``. Lineage is read first; the
    Markdown ledgers then add only versions it lacks.
    """
    work = _Import()
    for path in _LINEAGE:
        if path in files:
            _lineage(work, path, files[path])
    for name in _TABLES:
        for path in (f"ledgers/{name}", f"artifacts/{name}"):
            if path in files:
                _table(work, path, files[path])
    known = {*_LINEAGE, *(f"{top}/{name}" for top in ("ledgers", "artifacts") for name in _TABLES)}
    for path in files:
        if path not in known:
            work.fault(path, "not a ledger this tool can read; nothing was imported from it")
    return tuple(work.rows), tuple(work.ideas), tuple(work.faults)


def _lineage(work: _Import, path: str, data: bytes) -> None:
    for number, line in enumerate(data.splitlines(), start=1):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            doc = records.parse_json(line, at=where, fix=FIX)
        except BadRecord as error:
            work.fault(where, error.what)
            continue
        if isinstance(doc, dict) and doc.get("format") == FORMAT:
            work.fault(where, "already in this tool's format; nothing to import")
            return
        entries = doc.get("entries") if isinstance(doc, dict) else None
        for ix, entry in enumerate(entries if isinstance(entries, list) else [doc]):
            at = f"{where}[{ix}]" if isinstance(entries, list) else where
            if isinstance(entry, dict):
                _entry(work, at, entry)
            else:
                work.fault(at, f"want a JSON object, got {type(entry).__name__}")


def _table(work: _Import, path: str, data: bytes) -> None:
    try:
        rows = tables.parse(data.decode("utf-8"), at=path)
    except UnicodeDecodeError:
        work.fault(path, "not UTF-8 text")
        return
    except BadRecord as error:
        work.fault(path, error.what)
        return
    for number, row in enumerate(rows, start=1):
        plain = {key.strip().lower(): value.strip() for key, value in row.items()}
        where = f"{path}: row {number}"
        if path.endswith("source-idea-ledger.md"):
            _idea(work, where, plain)
        elif plain.get("version") not in work.labels:
            plain["motivation"] = plain.get("idea") or plain.get("core idea") or _first(plain, "idea")
            _entry(work, where, {k: v for k, v in plain.items() if v not in ("", "-")})


def _first(plain: Mapping[str, str], word: str) -> str:
    return next((value for key, value in plain.items() if word in key), "")


def _entry(work: _Import, where: str, doc: Mapping[str, Any]) -> None:
    old = doc.get("version")
    match = _OLD_LABEL.match(old) if isinstance(old, str) else None
    if not isinstance(old, str) or match is None:
        work.fault(where, f"version: want a label like v17 or v017_name, got {old!r}; the entry was left out")
        return
    if old in work.labels:
        work.fault(where, f"version: {old} stands twice; the second entry was left out")
        return
    slug = re.sub(r"[^a-z0-9_-]+", "-", (match.group(2) or "imported").lower()).strip("-_") or "imported"
    version = f"v{int(match.group(1)):03d}_{slug}"
    if version in work.labels.values():
        work.fault(where, f"version: {old} and another entry both become {version}; this one was left out")
        return
    work.rows.append(
        Row(
            version=version,
            kind="attempt",
            parent=_parent(work, where, doc.get("parent")),
            variant=slug,
            tree=_hex(work, where, doc, "src_tree") or _hex(work, where, doc, "tree"),
            commit=_hex(work, where, doc, "commit"),
            epoch=0,
            at=_text(doc.get("at")),
            motivation=_motivation(work, where, doc.get("motivation")),
            language=_text(doc.get("language")) or "unknown",
            tier="imported",
            verdict="AMBIGUOUS",
            reason=_reason(old, version, doc),
            status="wip",
            at_head="",
        )
    )
    work.labels[old] = version


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _hex(work: _Import, where: str, doc: Mapping[str, Any], key: str) -> str:
    value = doc.get(key)
    if value in (None, ""):
        return ""
    if isinstance(value, str) and _HEX.match(value):
        return value
    work.fault(where, f"{key}: want 40 hex digits, got {value!r}; left empty")
    return ""


def _parent(work: _Import, where: str, value: object) -> str:
    if value in (None, "", "-"):
        return ""
    if isinstance(value, str) and value in work.labels:
        return work.labels[value]
    work.fault(where, f"parent: {value!r} is no earlier entry; left empty")
    return ""


def _motivation(work: _Import, where: str, value: object) -> Motivation:
    doc: dict[str, Any] = value if isinstance(value, dict) else {"text": value}
    text, digest, keys = _text(doc.get("text")), _text(doc.get("digest")), doc.get("source_keys")
    if not text:
        work.fault(where, "motivation: no text; left empty")
    sources = tuple(key for key in keys if isinstance(key, str)) if isinstance(keys, list) else ()
    said = doc.get("kind")
    if said is not None and said not in _KINDS:
        work.fault(where, f"motivation.kind: {said!r} is not one of {', '.join(_KINDS)}")
    kind: _Kind = "profile" if digest else "research" if sources else "benchmark"
    if said in _KINDS and said != "profile":
        kind = cast("_Kind", said)
    return Motivation(kind=kind, text=text, digest=digest, source_keys=sources)


def _reason(old: str, version: str, doc: Mapping[str, Any]) -> str:
    said = [f"{key} {doc[key]}" for key in _SAID if doc.get(key) not in (None, "", {}, [])]
    out = REASON if old == version else f"{REASON}; was {old}"
    return f"{out}; the old ledger said: {', '.join(said)}" if said else out


def _idea(work: _Import, where: str, plain: Mapping[str, str]) -> None:
    parts = {name: plain.get(name, "") for name in ("repo", "commit", "path", "symbol")}
    parts = {name: "" if value == "-" else value for name, value in parts.items()}
    for name in ("repo", "commit", "path", "hypothesis"):
        if (parts.get(name) or plain.get(name, "-")) in ("", "-"):
            work.fault(where, f"{name}: empty; the idea was left out")
            return
    key = idea_key(**parts)
    if any(idea.key == key for idea in work.ideas):
        work.fault(where, f"key {key} stands twice; the second row was left out")
        return
    opened = plain.get("opened tests/benchmarks", "")
    work.ideas.append(
        Idea(
            key=key,
            **parts,
            pr="" if plain.get("pr") == "-" else plain.get("pr", ""),
            opened=tuple(part.strip() for part in opened.split(",") if part.strip() not in ("", "-")),
            hypothesis=plain.get("hypothesis", ""),
            result=f"{IMPORTED} {plain['result']}" if plain.get("result", "-") != "-" else "",
            at="",
        )
    )
