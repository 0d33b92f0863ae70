"""A page of the knowledge tree as parts: title, lead table, sections, references to sources, record ids, links."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec

REF = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{12}):([^\s`#]+)(?:#([\w.:~]+))?")
"""``owner/name@sha12:path#symbol``; the symbol may be absent."""
LIKE_REF = re.compile(r"(?<![\w./-])[\w.-]+/[\w.-]+@(?![0-9a-f]{12}:(?:[\s|]|$))[^\s:`|@(),;]*:[^\s`|)]*", re.MULTILINE)
"""What somebody meant as one: anything like ``owner/name@something:path``. An id before a colon is an id."""
RECORD_ID = re.compile(r"(?<![\w./-])([\w.-]+/[\w.-]+)(#[1-9][0-9]*|@[0-9a-f]{12}(?![0-9a-f]|:[^\s|]))")
_LANGUAGE = (
    "import from include if else for while do switch case return break continue def class struct enum union namespace "
    "using template typename typedef public private protected static inline constexpr const void auto bool int float "
    "double char unsigned signed long short true false None True False in is not and or with as try except raise pass "
    "lambda yield assert del global"
)
NO_NAMES = frozenset(_LANGUAGE.split())
"""Words of a language stand in every file: as a symbol they say nothing."""
GENERATED = "<!-- generated: python scripts/build_knowledge.py -->"
"""Stands below the lead table of every page that the script writes whole."""
WRITTEN = re.compile(
    r"references/prs/(?:by-topic/)?[\w.+-]+\.md|references/index\.md|routing/(?:topics|frameworks)/index\.md"
)
"""Paths that the script writes; a page anywhere else is written by hand, whatever stands in it."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Ref(msgspec.Struct, frozen=True, kw_only=True):
    """A place in somebody's source code at a commit."""

    repo: str
    sha12: str
    path: str
    symbol: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """Names that must stand in the file: ``Class.method`` is two."""
        return tuple(filter(None, re.split(r"\.|::", self.symbol)))

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.repo}@{self.sha12}:{self.path}" + (f"#{self.symbol}" if self.symbol else "")


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """One page, taken apart."""

    path: str
    """Below the tree, with forward slashes."""
    text: str
    title: str
    lead: dict[str, str]
    """Field -> value of the table under the title; empty without one."""
    twice: tuple[str, ...]
    """Fields that stand twice in it."""
    odd_rows: tuple[str, ...]
    """What is wrong with the form of that table."""
    sections: dict[str, bool]
    """Headings of the second level, and whether anything stands below."""

    @property
    def kind(self) -> str:
        """``technique``, ``card``, ...; empty where the page does not say it."""
        return self.lead.get("Kind", "").strip("`")

    @property
    def slug(self) -> str:
        """Name without folder and ending."""
        return PurePosixPath(self.path).stem

    @property
    def generated(self) -> bool:
        """True for a page that nobody writes by hand."""
        return bool(WRITTEN.fullmatch(self.path)) and self.marked

    @property
    def marked(self) -> bool:
        """True where the mark of generated pages is the first line below the lead table."""
        below = (line for line in self.text.split("\n")[1:] if line.strip() and not line.startswith("|"))
        return next(below, "") == GENERATED

    @property
    def evidence(self) -> tuple[str, ...]:
        """Record ids of the lead table."""
        return ids(self.lead.get("Evidence", ""))

    @property
    def prose(self) -> str:
        """The text without blocks of code; line numbers stay."""
        return unfenced(self.text)[0]

    def names(self, field: str) -> tuple[str, ...]:
        """Values of a field of the lead table, with or without backticks, parted by commas."""
        return listed(self.lead.get(field, ""))


def parse(path: str, text: str) -> Parts:
    """Read a page; what is missing is empty, nothing is refused here."""
    lines = text.split("\n")
    title = lines[0][2:].strip() if lines[0].startswith("# ") else ""
    lead: dict[str, str] = {}
    twice, odd = [], []
    rows = _table(lines[1:])
    if len(rows) < 2 or not re.fullmatch(r"\|(?: *:?-{3,}:? *\|){2}", rows[1].strip()):
        odd += ["lead table: no row of dashes below its head"] if rows else []
    for line in rows:
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip()[1:])]
        cells = cells[:-1] if not cells[-1] else cells
        if len(cells) != 2:
            odd.append(f"lead table: want rows of two cells, got {line.strip()[:80]!r}")
        elif not set(cells[0]) <= set("-: ") and cells != ["Field", "Value"]:
            if cells[0] in lead:
                twice.append(cells[0])
            lead.setdefault(*cells)
    return Parts(
        path=path,
        text=text,
        title=title,
        lead=lead,
        twice=tuple(twice),
        odd_rows=tuple(odd),
        sections=_sections(unfenced(text)[0], text),
    )


def _sections(prose: str, text: str) -> dict[str, bool]:
    """Heading -> whether a line stands between it and the next of its level; a block of code is one."""
    out: dict[str, bool] = {}
    name = ""
    for bare, line in zip(prose.split("\n"), text.split("\n"), strict=True):
        if found := re.match(r"## +(.+?)\s*$", bare):
            name = found[1]
            out.setdefault(name, False)
        elif name and line.strip() and not bare.startswith("#"):
            out[name] = True
    return out


def _table(lines: list[str]) -> list[str]:
    """Rows of the table that is the first thing below the title and its blank line."""
    rest = [line for line in lines if not line.startswith("<!--")]
    start = next((at for at, line in enumerate(rest) if line.strip()), len(rest))
    if [cell.strip() for cell in "".join(rest[start : start + 1]).strip("| ").split("|")] != ["Field", "Value"]:
        return []
    end = next((at for at, line in enumerate(rest[start:], start) if not line.startswith("|")), len(rest))
    return rest[start:end]


def listed(value: str) -> tuple[str, ...]:
    """Names in one cell."""
    return tuple(filter(None, (part.strip(" `.") for part in value.split(","))))


def ids(text: str) -> tuple[str, ...]:
    """Record ids in a text, each once, in its order."""
    return tuple(dict.fromkeys(f"{found[1]}{found[2]}" for found in RECORD_ID.finditer(text)))


def refs(text: str) -> tuple[Ref, ...]:
    """Well-formed source references outside blocks of code, each once."""
    return tuple(dict.fromkeys(ref for _, _, ref, _ in references(text) if ref is not None))


def references(text: str) -> tuple[tuple[int, str, Ref | None, bool], ...]:
    """(line, as written, reference or None, in backticks) of all that look like one, outside blocks of code.

    Found by their form, never by pairs of backticks: a stray backtick hides none.
    """
    out = []
    for number, line in enumerate(unfenced(text)[0].split("\n"), start=1):
        for like in LIKE_REF.finditer(line):
            quoted = line[: like.start()].endswith("`") and line[like.end() :].startswith("`")
            out.append((number, like[0], ref_of(like[0]), quoted))
    return tuple(out)


def ref_of(written: str) -> Ref | None:
    """The reference; None for a path or a symbol that can name nothing (``./x``, ``#0``, ``#import``)."""
    found = REF.fullmatch(written)
    if not found or {"", ".", ".."} & set(found[3].split("/")):
        return None
    ref = Ref(repo=found[1], sha12=found[2], path=found[3], symbol=found[4] or "")
    names = all(re.fullmatch(r"~?[A-Za-z_]\w*", word) and word not in NO_NAMES for word in ref.words)
    return ref if names and bool(ref.words) == bool(found[4]) else None


def unfenced(text: str) -> tuple[str, int]:
    """The text with blocks of code as empty lines, and the line of a block that is never closed, 0 without one.

    What follows such a line is text: nothing hides behind it.
    """
    lines = text.split("\n")
    out, opened, mark = list(lines), 0, ""
    for number, line in enumerate(lines, start=1):
        found = _FENCE.match(line)
        if opened and found and found[1].startswith(mark) and not found[2].strip():
            out[opened - 1 : number] = [""] * (number - opened + 1)
            opened = 0
        elif not opened and found and not (found[1][0] == "`" and "`" in found[2]):
            opened, mark = number, found[1]
    return "\n".join(out), opened


def uncoded(text: str) -> str:
    """The text without spans of code in it."""
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", " ", text)


def blocks(text: str) -> tuple[tuple[int, str], ...]:
    """(line number, text) of what a reader takes in at once: a row of a table, a list item, or a paragraph."""
    out: list[tuple[int, str]] = []
    joined = False
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        starts = bool(re.match(r"([-*+]|\d+\.)\s|#|\||>", bare))
        if not bare:
            joined = False
        elif joined and not starts and out:
            out[-1] = (out[-1][0], f"{out[-1][1]} {bare}")
        else:
            out.append((number, bare))
            joined = not bare.startswith(("|", "#"))
    return tuple(out)
