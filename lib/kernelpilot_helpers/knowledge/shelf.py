"""The pages in the tables: filled, found by a question, and looked up by name."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterable, Mapping

import msgspec

from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.knowledge import page as leaf
from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.counts import Counts
from kernelpilot_helpers.knowledge.lexicon import Lexicon
from kernelpilot_helpers.knowledge.model import PageHit
from kernelpilot_helpers.knowledge.page import Page
from kernelpilot_helpers.knowledge.question import WEAK, Question

COLUMN = {"title": 8.0, "lead": 3.0, "headings": 2.0, "body": 1.0, "concepts": 5.0}
MOST = 2
"""Pages beside the records of an answer; a symptom, an opcode or a GPU's limits may add one each."""
CANDIDATES = 12
SHELF = 40
"""Pages among which one of a kind is looked for."""
COVERED = 0.6
"""Share of the question's words, by rarity, that a page holds which shares no concept with it."""
PRIOR = {"technique": 1.3, "symptom": 1.2, "card": 1.1, "topic": 1.1, "hardware": 1.0, "blogs": 0.5}
"""By kind; other kinds count 0.8."""
OTHER = 0.8
TITLED = 0.8
"""More for a page whose title or name is a mechanism or topic that was asked for."""
NAMED = 3.0
"""For a page whose title and name hold every word of the question."""
LED = 0.8
"""Of a concept that only a symptom leads to."""
LIMITS = frozenset(
    text.phrase(
        "hardware limits capacity count size sm L2 L1 cache DRAM HBM memory bandwidth register file shared smem TMEM "
        "tensor peak flops clock threads blocks warps maximum specification specs"
    ).split()
)
"""Stems of what a question about a GPU itself asks for."""
_SHARED = "cache memory shared tensor threads blocks warps L1 L2 sm size DRAM register"
TELLING = LIMITS - set(text.phrase(_SHARED).split())
"""Of these, the ones that a question about a kernel hardly says."""
OPCODE = re.compile(
    r"(?:LD[GSLC]|ST[GSL]|LDSM|STSM|LDGSTS|[HIDQ]MMA|H?GMMA|UTMA\w*|MUFU|[FDH]FMA|IMAD|SHFL|BAR|ATOM[GS]?|RED|MEMBAR|BSSY|"
    r"BSYNC|WARPSYNC|F2F|I2F|F2I|LOP3|PRMT|DADD|DMUL|[HF]FMA2|ERRBAR|UTCMMA)(?:\..*)?|(?:sass|SASS)"
)
"""What a machine instruction is written like."""

TAUGHT = 2
"""Technique pages that lead a question which names nothing the vocabulary knows."""

TABLES = """
CREATE TABLE page (id INTEGER PRIMARY KEY, path, slug, name, have, titled, page);
CREATE INDEX page_slug ON page (slug);
CREATE INDEX page_name ON page (name);
"""


def fill(connection: sqlite3.Connection, written: Iterable[Page], lexicon: Lexicon) -> None:
    """Create and fill the tables of the pages."""
    connection.execute(
        f"CREATE VIRTUAL TABLE page_fts USING fts5({', '.join(COLUMN)}, "
        "content='', tokenize = \"unicode61 tokenchars '_.'\")"
    )
    for statement in filter(str.strip, TABLES.split(";")):
        connection.execute(statement)
    connection.execute("CREATE VIRTUAL TABLE page_known USING fts5vocab(page_fts, 'row')")
    marks = ", ".join("?" * (len(COLUMN) + 1))
    for number, page in enumerate(written, start=1):
        columns = _columns(page, lexicon)
        have = f" {' '.join(sorted({token for tokens in columns.values() for token in tokens}))} "
        slug = page.slug.lower()
        titled = f" {' '.join(text.concept(*found) for found in sorted(lexicon.heard(_head(page), 'mt')))} "
        document = msgspec.json.encode(page).decode()
        row = (number, page.path, slug, slug.rsplit("/", 1)[-1], have, titled, document)
        connection.execute("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        if page.kind not in leaf.INDEXES:
            said = [" ".join(columns[name]) for name in COLUMN]
            connection.execute(
                f"INSERT INTO page_fts (rowid, {', '.join(COLUMN)}) VALUES ({marks})",  # noqa: S608
                (number, *said),
            )


def _columns(page: Page, lexicon: Lexicon) -> dict[str, list[str]]:
    named = (("m", page.mechanisms), ("f", page.families), ("a", page.archs), ("d", page.dtypes))
    concepts = [text.concept(kind, name) for kind, names in named for name in names]
    concepts += [text.concept(kind, name) for kind, name in sorted(lexicon.heard(_head(page), "mt"))]
    lead = (*page.mechanisms, *page.families, *page.archs, *page.dtypes, *page.classes)
    return {
        "title": text.tokens(_head(page)),
        "lead": text.tokens(" ".join(lead)),
        "headings": text.tokens(" ".join(page.headings)),
        "body": text.tokens(page.text),
        "concepts": list(dict.fromkeys(concepts)),
    }


def _head(page: Page) -> str:
    return f"{page.title} {page.slug.rsplit('/', 1)[-1]}"


def found(tables: sqlite3.Connection, question: Question, wanted: Mapping[str, tuple[str, ...]]) -> tuple[PageHit, ...]:
    """The best pages, at most ``MOST``, and one for each kind of ``_others``; ``wanted`` as in ``fits``."""
    counts = _Counts(tables)
    scores = _scores(tables, question, counts)
    best = sorted(scores, key=lambda number: (-scores[number], number))[:CANDIDATES]
    judged = []
    for number in best:
        row = tables.execute("SELECT have, titled, page FROM page WHERE id = ?", (number,)).fetchone()
        have, titled, document = row
        page = msgspec.json.decode(document, type=Page)
        concepts, covered, share = _shared(question, have, counts)
        if leaf.fits(page, wanted) and (concepts or share >= COVERED):
            worth = scores[number] * PRIOR.get(page.kind, OTHER) * (0.5 + share)
            worth *= 1 + TITLED * any(f" {token} " in titled for token in question.concepts if token[1] in "mt")
            worth *= NAMED if _all_in(text.tokens(_head(page)), question) else 1.0
            judged.append((-worth, number, page, _why(concepts, covered)))
    taken = [(page, why) for _, _, page, why in sorted(judged, key=lambda item: item[:2])[:MOST]]
    leads = {page.path for page, _ in taken[:1] if _holds_all(page, question)}
    known = {page.path for page, _ in taken}
    front, behind = _others(tables, question, wanted, [page for page, _ in taken])
    taken = [*front, *((page, why) for page, why in taken if page.path not in {p.path for p, _ in front})]
    taken += [(page, why) for page, why in behind if page.path not in known]
    leads |= {page.path for page, _ in front}
    return tuple(
        PageHit(path=page.path, title=page.title, kind=page.kind, why=why, first=page.path in leads)
        for page, why in taken
    )


def _holds_all(page: Page, question: Question) -> bool:
    """Whether title, name, lead table or a heading holds each word of the question, or what it helps to name.

    Of a single identifier, such as a counter, the whole page counts: it holds what nobody else writes.
    """
    only = next(iter(question.words), "") if len(question.words) == 1 else ""
    if re.search(r"\w[_.:]\w", only) and only.lower() in page.text.lower():
        return True
    return _all_in(text.tokens(" ".join((_head(page), *page.headings, *page.mechanisms, *page.classes))), question)


def _all_in(tokens: Iterable[str], question: Question) -> bool:
    held, words = set(tokens), question.words.items()
    return bool(words) and all(held & {found[0], *question.absorbed.get(typed, ())} for typed, found in words)


def _scores(tables: sqlite3.Connection, question: Question, counts: _Counts) -> dict[int, float]:
    words = [token for tokens in question.words.values() for token in tokens]
    groups = (
        ([*words, *question.joined], 1.0),
        ([token for token in question.concepts if token[1] in "mft"], 1.0),
        (list(question.led), LED),
    )
    scores: dict[int, float] = {}
    for tokens, weight in groups:
        for number, score in _matches(tables, [token for token in dict.fromkeys(tokens) if counts.of(token)]):
            scores[number] = scores.get(number, 0.0) + weight * score
    return scores


def _others(
    tables: sqlite3.Connection, question: Question, wanted: Mapping[str, tuple[str, ...]], taken: list[Page]
) -> tuple[list[tuple[Page, str]], list[tuple[Page, str]]]:
    """Pages that stand before the best (limits of a named GPU), and after them (a symptom, machine code)."""
    archs = [name for token, (name, _) in question.concepts.items() if token[1] == "a"]
    stems = {stem for word in question.words for stem in text.parts(word)}
    front = []
    if archs and stems & TELLING:
        page = named(tables, f"hardware/{archs[0]}")
        front = [(page, f"limits of {archs[0]}")] if page else []
    behind = []
    seen = [word for word in question.words if word in question.complaint and not WEAK.issuperset(text.parts(word))]
    if seen and not any(page.kind == "symptom" for page in taken):
        tokens = [question.words[word][0] for word in seen] + list(question.led)
        behind += _one(tables, tokens, wanted, "symptoms/", f"symptom: {', '.join(seen)}")
    codes = [word for word in question.words if OPCODE.fullmatch(word)]
    if codes and not any(page.path.startswith("cards/sass/") for page in taken):
        tokens = [token for tokens in question.words.values() for token in tokens]
        behind += _one(tables, tokens, wanted, "cards/sass/", f"machine code: {', '.join(codes)}")
    return front, behind


def _one(
    tables: sqlite3.Connection, tokens: list[str], wanted: Mapping[str, tuple[str, ...]], folder: str, why: str
) -> list[tuple[Page, str]]:
    """The best page of a folder for some search words, if any."""
    for number, _ in _matches(tables, list(dict.fromkeys(tokens)), SHELF):
        row = tables.execute("SELECT page FROM page WHERE id = ? AND instr(path, ?) = 1", (number, folder)).fetchone()
        page = msgspec.json.decode(row[0], type=Page) if row else None
        if page and leaf.fits(page, wanted):
            return [(page, why)]
    return []


def taught(tables: sqlite3.Connection, question: Question) -> Question:
    """The question, led by the technique pages that its words fit when it names no mechanism, topic or symptom."""
    if question.led or any(token[1] in "mt" for token in question.concepts):
        return question
    counts = _Counts(tables)
    words = dict.fromkeys(token for tokens in question.words.values() for token in tokens)
    led: dict[str, tuple[str, str]] = {}
    pages = 0
    for number, _ in _matches(tables, [token for token in words if counts.of(token)]):
        row = tables.execute("SELECT page FROM page WHERE id = ?", (number,)).fetchone()
        page = msgspec.json.decode(row[0], type=Page)
        if page.kind == "technique" and page.mechanisms:
            led.setdefault(text.concept("m", page.mechanisms[0]), (page.mechanisms[0], page.title))
            pages += 1
        if pages == TAUGHT:
            break
    return msgspec.structs.replace(question, led=led)


def of_class(tables: sqlite3.Connection, class_name: str) -> tuple[PageHit, ...]:
    """Symptom pages of a digest's class; of ``exec.pipe_bound:fma`` those of ``exec.pipe_bound`` too."""
    wanted = {class_name, class_name.partition(":")[0]}
    rows = tables.execute("SELECT page FROM page ORDER BY path").fetchall()
    found = (msgspec.json.decode(row[0], type=Page) for row in rows)
    return tuple(
        PageHit(path=page.path, title=page.title, kind=page.kind, why=f"class {class_name}")
        for page in found
        if page.kind == "symptom" and wanted & set(page.classes)
    )


class _Counts(Counts):
    """How many pages hold a search word."""

    def __init__(self, tables: sqlite3.Connection) -> None:
        super().__init__(tables, "page", "page_known")

    def rarity(self, token: str) -> float:
        """Larger for a word of fewer pages; the largest for one that no page holds."""
        return math.log(1 + self.total / (self.of(token) or 0.5))


def _matches(tables: sqlite3.Connection, tokens: list[str], most: int = CANDIDATES) -> list[tuple[int, float]]:
    if not tokens:
        return []
    weights = ", ".join(map(str, COLUMN.values()))
    sql = (
        f"SELECT rowid, -bm25(page_fts, {weights}) AS score FROM page_fts WHERE page_fts MATCH ?"  # noqa: S608
        f" ORDER BY score DESC LIMIT {most}"
    )
    return tables.execute(sql, (" OR ".join(f'"{token}"' for token in tokens),)).fetchall()


def _shared(question: Question, have: str, counts: _Counts) -> tuple[list[str], list[str], float]:
    """Of a question: mechanisms and topics that the page is about, words that it holds, and their share by rarity."""
    both = (*question.concepts.items(), *question.led.items())
    concepts = [name for token, (name, _) in both if token[1] in "mt" and f" {token} " in have]
    covered, total, weight = [], 0.0, 0.0
    for typed, tokens in question.words.items():
        rarity = counts.rarity(tokens[0])
        total += rarity
        if any(f" {token} " in have for token in (tokens[0], *question.absorbed.get(typed, ()))):
            weight += rarity
            covered.append(typed)
    return concepts, covered, weight / total if total else 0.0


def _why(concepts: list[str], covered: list[str]) -> str:
    parts = (("about", concepts), ("words", covered))
    return "; ".join(f"{name}: {', '.join(dict.fromkeys(names))}" for name, names in parts if names)


def named(tables: sqlite3.Connection, name: str) -> Page | None:
    """The page of a path, of a path without its ending, or of a last name that only one page has.

    Raises BadRecord when several pages have the last name.
    """
    wanted = name.strip().lower().removeprefix("./").removeprefix("knowledge/").removesuffix(".md")
    for column in ("slug", "name"):
        rows = tables.execute(f"SELECT slug, page FROM page WHERE {column} = ? ORDER BY slug", (wanted,)).fetchall()  # noqa: S608
        if len(rows) == 1:
            return msgspec.json.decode(rows[0][1], type=Page)
        if rows:
            slugs = [row[0] for row in rows]
            what = f"{name[:120]!r} names {len(rows)} pages: {', '.join(slugs)}"
            raise BadRecord(what, where="knowledge", fix=f"kernelpilot knowledge show {slugs[0]}")
    return None


def near(tables: sqlite3.Connection, name: str) -> str:
    """The page whose name is spelled most like this one; empty when none is near."""
    import difflib  # noqa: PLC0415 - only on the way out

    wanted = name.strip().lower().removesuffix(".md").rsplit("/", 1)[-1]
    slugs = {row[0]: row[1] for row in tables.execute("SELECT name, slug FROM page")}
    close = difflib.get_close_matches(wanted, list(slugs), n=1, cutoff=0.75)
    return slugs[close[0]] if close else ""
