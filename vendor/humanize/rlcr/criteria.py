"""Acceptance criteria by their ids, in a plan and in the tables of the goal tracker. Pure.

A criterion is a line of the plan's sections on criteria (``forms.criteria_of``) that opens with ``AC-<number>``, behind
whatever marks a list item, a heading, bold text, a number or an empty or numbered table cell. ``AC-2.1`` and ``AC-2a``
are parts of ``AC-2``. Numbers are compared as integers: ``AC-01`` is ``AC-1``.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

RANGE_CAP = 500
"""Ids that a range may span; of a longer one only the two ends count."""
OPENING = 400
"""Characters of a line in which an id must stand to open it."""

Place = tuple[str, int]
"""An id as its parent and its number: ``("", 2)`` for AC-2, ``("2.", 1)`` for AC-2.1, ``("2~", 97)`` for AC-2a."""
Span = tuple[str, int, int]
"""Neighbours of one parent, from the first to the last."""

_NUM = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}[a-z]?(?![.]?[0-9]|_{0,9}[a-z0-9])"
_MARK = r"ACs?(?:['\u2019]s)?[-_.:# ]{0,2}"
_OPENS = re.compile(rf"AC[-_.# ]?(?P<num>{_NUM})", re.IGNORECASE)
_BEFORE = re.compile(
    r"[^\w<]+|_+|<[^<>]{1,100}>|x(?=\])|[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}(?=[.):\]|]|\s{1,40}\|)", re.IGNORECASE
)
_MENTION = re.compile(rf"(?<![a-z0-9_-])AC[-_.]?(?P<num>{_NUM})", re.IGNORECASE)
_FIRST = re.compile(rf"(?<![a-z0-9]){_MARK}(?P<num>{_NUM})", re.IGNORECASE)
_TO = r"-{1,3}>?|\.{2,4}|[\u2026\u2192\u21d2~]|(?:to|through|thru|until|till) "
_AND = r", ?(?:and|or|&) |[,;/&+]|(?:and|or) "
_NEXT = re.compile(rf" ?(?:(?P<range>{_TO})|{_AND}) ?(?P<mark>{_MARK})?(?P<num>{_NUM})", re.IGNORECASE)
_ENDS = re.compile(r" ?(?:$|[,;/&+()|:]|\.(?: |$)|(?:and|or|all) )", re.IGNORECASE)
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"), "-")
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff"))
_TABLE = str.maketrans({**_DASHES, **_UNSEEN})
_FENCE = re.compile(r"[\s>]{0,40}(?:(?:[-*+]|[0-9]{1,9}[.)])\s{1,4})?(`{3,}|~{3,})(.*)", re.DOTALL)


def lines(text: str) -> list[str]:
    """Lines as Markdown has them: a page separator or U+2028 within a line ends none; no byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def unfenced(rows: Sequence[str]) -> list[bool]:
    """For each line whether it stands outside every fence of code.

    A fence ends at a bare one of the same character that is at least as long (CommonMark); one that never ends is a
    stray line, and takes nothing with it.
    """
    marks = [_FENCE.match(row) if "`" in row or "~" in row else None for row in rows]
    longest = {"`": 0, "~": 0}
    below = []  # how long the longest fence is that could end this one
    for mark in reversed(marks):
        below.append(longest[mark[1][0]] if mark else 0)
        if mark and not mark[2].strip():
            longest[mark[1][0]] = max(longest[mark[1][0]], len(mark[1]))
    out, fence = [], ""
    for mark, end in zip(marks, reversed(below), strict=True):
        inside = bool(fence)
        if mark and fence:
            fence = "" if mark[1].startswith(fence) and not mark[2].strip() else fence
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]) and end >= len(mark[1]):
            fence, inside = mark[1], True
        out.append(not inside)
    return out


def ids(text: str) -> tuple[str, ...]:
    """``AC-1``, ``AC-2.1`` ... of a section on criteria, in its order, each once; fenced text is passed over."""
    rows = lines(text)
    places = (_opening(row) for row, free in zip(rows, unfenced(rows), strict=True) if free)
    return tuple(dict.fromkeys(name(place) for place in places if place))


def loose(plan: str, known: Sequence[str]) -> tuple[str, ...]:
    """Ids that a plan names (``AC-7``, ``AC7``) outside fences, or opens a fenced line with, and that are no criterion.

    A part of a criterion is none of them, nor what only has parts that are.
    """
    rows, has = lines(plan), Ids(place_of(one) for one in known)
    out: dict[Place, None] = {}
    for row, free in zip(rows, unfenced(rows), strict=True):
        if free:
            out |= {place(found["num"]): None for found in _MENTION.finditer(_plain(row))}
        elif opened := _opening(row):
            out[opened] = None
    above = {up for one in known for up in _upward(place_of(one))}
    return tuple(name(one) for one in out if one not in above and not has.covers(one))


def _opening(line: str) -> Place | None:
    text, at = _plain(line[:OPENING]), 0
    while found := _BEFORE.match(text, at):
        at = found.end()
    opened = _OPENS.match(text, at)
    return place(opened["num"]) if opened else None


def _plain(text: str) -> str:
    return text if text.isascii() else text.translate(_TABLE)


def place(number: str) -> Place:
    """Where ``2``, ``02``, ``2.1`` or ``2a`` stands."""
    letter = number[-1:].casefold() if number[-1:].isalpha() else ""
    parts = [str(int(part)) for part in number.removesuffix(number[-1:] if letter else "").split(".")]
    if letter:
        return ".".join(parts) + "~", ord(letter)
    return "".join(f"{part}." for part in parts[:-1]), int(parts[-1])


def place_of(criterion: str) -> Place:
    """Where an id stands; text that is none stands nowhere among the numbers."""
    found = _OPENS.fullmatch(criterion)
    return place(found["num"]) if found else (criterion, -1)


def name(at: Place) -> str:
    """The id in its one spelling."""
    parent, number = at
    if number < 0:
        return parent
    return f"AC-{parent[:-1]}{chr(number)}" if parent.endswith("~") else f"AC-{parent}{number}"


def _upward(at: Place) -> Iterator[Place]:
    """The place itself, and that of each criterion that it is a part of."""
    yield at
    while at[0] and at[1] >= 0:
        at = place(at[0][:-1])
        yield at


class Ids:
    """A set of ids that is kept as spans, so that ranges cost nothing."""

    def __init__(self, places: Iterable[Place] = (), spans: Iterable[Span] = ()) -> None:
        self._spans: dict[str, list[tuple[int, int]]] = {}
        for parent, first, last in sorted({*((up, n, n) for up, n in places), *spans}):
            kept = self._spans.setdefault(parent, [])
            if kept and first <= kept[-1][1] + 1:
                kept[-1] = (kept[-1][0], max(last, kept[-1][1]))
            else:
                kept.append((first, last))

    def __contains__(self, at: Place) -> bool:
        kept = self._spans.get(at[0], [])
        n = bisect_right(kept, at[1], key=lambda span: span[0])
        return n > 0 and at[1] <= kept[n - 1][1]

    def __bool__(self) -> bool:
        return bool(self._spans)

    def covers(self, at: Place) -> bool:
        """Whether the id, or a criterion that it is a part of, is in the set."""
        return any(up in self for up in _upward(at))


def covered(criterion: str, by: Ids) -> bool:
    """Whether an id, or the criterion that it is a part of, is among others."""
    return by.covers(place_of(criterion))


def clean(cell: str) -> str:
    """The words of a Markdown cell on one line: no tags, entities, link targets, code or bold marks, one dash."""
    text = html.unescape(cell) if "&" in cell else cell
    text = re.sub(r"<[^<>]{0,200}>", " ", _plain(text))
    text = re.sub(r"\]\([^()]{0,500}\)|\]\[[^\[\]]{0,200}\]|[`*\[\]\\]", "", text)
    return " ".join(re.sub(r"(?i:(?<!AC)(?<!ACs))_+|__+", " ", text).split())


def spans(cell: str) -> list[Span]:
    """Every id that a cell names, a range ``AC-2 to AC-5`` or ``AC-2..5`` as one span, ``AC-1, 2/3`` as three.

    A number without its ``AC`` counts only where nothing but a sign or the end follows: "AC-1 - 5 tests" names one.
    """
    text, at, out = clean(cell), 0, list[Span]()
    while first := _FIRST.search(text, at):
        at, last = first.end(), place(first["num"])
        out.append((*last, last[1]))
        bare: list[Span] = []
        while found := _NEXT.match(text, at):
            here, at = place(found["num"]), found.end()
            if not found["mark"] and "." not in found["num"] and last[0].endswith("."):
                here = (last[0], here[1])
            bare += _between(last, here) if found["range"] else [(*here, here[1])]
            last = here
            if found["mark"]:
                out += bare
                bare = []
        if bare and _ENDS.match(text, at):
            out += bare
    return out


def _between(first: Place, last: Place) -> list[Span]:
    if first[0] == last[0] and first[1] <= last[1] <= first[1] + RANGE_CAP:
        return [(first[0], first[1], last[1])]
    return [(*last, last[1])]
