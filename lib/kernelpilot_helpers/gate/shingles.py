"""Stretches of code that two files share, token by token. Pure.

What is compared is what a compiler reads: comments, white space, docstrings, imports, includes and pragmas are left
out, names and numbers are kept as written. A file in which every name was changed shares nothing with its source here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_WORD = r"[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.']|(?<=\d)')*|[-+*/%&|^<>=!]=|->|::|&&|\|\||<<|>>|\*\*|[^\s\\]"
_C = re.compile(
    r"(?P<skip>^[ \t]*\#[ \t]*(?:include|pragma)\b[^\n]*|\busing\s+namespace\b[^;\n]*;"
    r"|[^\S\n]+|\n|\\|//(?:\\\n|[^\n])*|/\*.*?\*/)"
    r'|(?P<word>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|' + _WORD + ")",
    re.DOTALL | re.MULTILINE,
)
_PREFIX = r"(?:[rRbBuUfF]{1,2})?"
_TRIPLE = _PREFIX + r"(?:\"\"\".*?\"\"\"|'''.*?''')"
_SINGLE = _PREFIX + r"(?:\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
_PYTHON = re.compile(
    r"(?P<skip>^[ \t]*(?:import\b[^\n]*|from[ \t]+[\w.]+[ \t]+import\b[ \t]*(?:\([^)]*\)|[^\n]*))"
    r"|^[ \t]*(?:async[ \t]+)?def[ \t]+(?:entry|prepare|plan)[ \t]*\([^()]*(?:\([^()]*\)[^()]*)*\)[^:\n]*:"
    rf"|^[ \t]*(?:{_TRIPLE}|{_SINGLE})[ \t]*$|[^\S\n]+|\n|\\|\#[^\n]*)"
    rf"|(?P<text>{_TRIPLE})|(?P<word>{_SINGLE}|{_WORD})",
    re.DOTALL | re.MULTILINE,
)
"""Of Python also the signatures that the contract gives: they are the same in every candidate."""
_QUOTES = re.compile(r"[A-Za-z]*(?:\"\"\"|''')")
DISTINCT = 3
"""A stretch holds at least 1/3 different tokens: tables of numbers are nobody's code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """A file's tokens, and the line of each, from 1."""

    words: tuple[str, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shared:
    """What one file shares with another: all its tokens in shared stretches, and the lines of the longest stretch."""

    tokens: int
    longest: int
    mine: tuple[int, int]
    theirs: tuple[int, int]


def code(text: str, *, python: bool) -> Code:
    """Tokens of a source file. A long string in Python that is no docstring is read as the C source it may hold."""
    found = list(_python(text) if python else _c(text, 1))
    return Code(words=tuple(word for word, _ in found), lines=tuple(line for _, line in found))


def _c(text: str, line: int) -> Iterator[tuple[str, int]]:
    for match in _C.finditer(text):
        if match["word"]:
            yield match["word"], line
        line += match[0].count("\n")


def _python(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for match in _PYTHON.finditer(text):
        if match["text"]:
            yield from _c(_QUOTES.sub("", match["text"], count=1)[:-3], line)
        elif match["word"]:
            yield match["word"], line
        line += match[0].count("\n")


def _grams(words: tuple[str, ...], width: int) -> Iterator[tuple[str, ...]]:
    return (words[ix : ix + width] for ix in range(len(words) - width + 1))


def boilerplate(texts: Iterable[Code], *, width: int) -> frozenset[int]:
    """Hashes of the shingles that everybody is given: a match of them says nothing."""
    return frozenset(hash(gram) for one in texts for gram in _grams(one.words, width))


def index(sources: Sequence[Code], *, width: int) -> dict[int, list[tuple[int, int]]]:
    """Hash of a shingle -> (number of the source, place) where it begins."""
    out: dict[int, list[tuple[int, int]]] = {}
    for number, source in enumerate(sources):
        for at, gram in enumerate(_grams(source.words, width)):
            out.setdefault(hash(gram), []).append((number, at))
    return out


def shared(
    mine: Code,
    sources: Sequence[Code],
    places: Mapping[int, Sequence[tuple[int, int]]],
    *,
    width: int,
    given: frozenset[int] = frozenset(),
) -> dict[int, Shared]:
    """Number of a source -> what ``mine`` shares with it in stretches of ``width`` tokens or more, where it does.

    ``places`` is ``index(sources)``. Tokens inside a shingle of ``given``, or of few different tokens, do not count; an
    idiom that one stretch of a source holds counts once, however often ``mine`` repeats it.
    """
    free: set[int] = set()
    seeds: dict[int, dict[int, list[int]]] = {}
    for at, gram in enumerate(_grams(mine.words, width)):
        key = hash(gram)
        if key in given or len(set(gram)) * DISTINCT < width:
            free.update(range(at, at + width))
            continue
        for number, there in places.get(key, ()):
            seeds.setdefault(number, {}).setdefault(at, []).append(there)
    made = {number: _stretches(mine, sources[number], found, width, free) for number, found in seeds.items()}
    return {number: one for number, one in made.items() if one.tokens}


def _stretches(mine: Code, theirs: Code, seeds: dict[int, list[int]], width: int, free: set[int]) -> Shared:
    covered: set[int] = set()
    taken: set[int] = set()
    best, end = (0, 0, 0), 0
    for at, starts in seeds.items():
        if at + width <= end:
            continue  # inside the stretch before it
        size, there = max((_length(mine, theirs, at, start), start) for start in starts[:8])
        covered.update(range(at, at + size))
        taken.update(range(there, there + size))
        best, end = max(best, (size, at, there)), at + size
    size, at, there = best
    return Shared(
        tokens=min(len(covered - free), len(taken)),
        longest=size,
        mine=(mine.lines[at], mine.lines[at + size - 1]),
        theirs=(theirs.lines[there], theirs.lines[there + size - 1]),
    )


def _length(mine: Code, theirs: Code, at: int, there: int) -> int:
    size = 0
    most = min(len(mine.words) - at, len(theirs.words) - there)
    while size < most and mine.words[at + size] == theirs.words[there + size]:
        size += 1
    return size
