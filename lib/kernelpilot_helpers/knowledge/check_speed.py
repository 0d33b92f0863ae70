"""Figures of speed: a ratio, a share, a rate or a time that somebody measured, and whether its source stands beside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_helpers.knowledge import page_parts
from kernelpilot_helpers.knowledge.check_lead import Names
from kernelpilot_helpers.knowledge.page_parts import Parts

_NUMBER = r"(?<![\w.])~?\d[\d.,]{0,15}"
_GOOD = r"(?:faster|slower|quicker|speed-?ups?|sped up|gains?|improvements?|less time|more throughput)"
_SHARE = r"(?:%|percent\b)"
_TIMES = "[x\u00d7](?!\\w)"
_WHAT = r"(?:throughput|latency|run ?time|bandwidth|speed|duration|performance|tokens)"
_CHANGES = (
    r"(?:improv|increas|decreas|reduc|sav|cut|drop|fall|fell|ris|rose|gain|lower|rais|boost|speed|shorten|accelerat)"
    r"(?:e?[sd]?|ings?|t?s)\b"
)
_MANNER = r"(?:by |of |about |up to |roughly |some |around |only |another |to )*"
_SPEED = re.compile(
    "|".join(
        (
            rf"{_NUMBER}\.\d+ ?{_TIMES}(?! ?(?:SMs?|the)\b)",
            r"(?<!\w)[x\u00d7]\d+\.\d+\b",
            rf"{_NUMBER} ?{_TIMES} ?(?:\w+ )?{_GOOD}",
            r"(?:twice|three times|\d times|half) (?:as|the) (?:fast|slow|quick|speed|throughput|latency|time)\b",
            rf"(?:{_NUMBER}|two|three|four|ten)[ -]?(?:times|fold) ?{_GOOD}",
            rf"(?<!\w)(?:doubl|tripl|halv)(?:es?|ed|ing) (?:the )?{_WHAT}",
            rf"{_NUMBER} ?{_SHARE} ?(?:\w+ )?{_GOOD}",
            rf"{_NUMBER} ?{_SHARE} ?(?:higher|lower|better|worse|more|less|shorter|of the) {_WHAT}",
            rf"{_WHAT} (?:is |was |went |goes )?(?:up |down |[+\u2212-])(?:by )?\d[\d.,]* ?{_SHARE}",
            rf"(?<!\w){_CHANGES} (?:the )?{_WHAT} {_MANNER}~?\d[\d.,]* ?(?:{_SHARE}|{_TIMES})",
            rf"{_WHAT} {_CHANGES} {_MANNER}~?\d[\d.,]* ?(?:{_SHARE}|{_TIMES})",
            rf"(?<!\w){_CHANGES} (?:up )?(?:(?:\w+ ){{1,2}}by )?{_MANNER}~?\d[\d.,]* ?{_SHARE}(?! of)",
            rf"{_GOOD},? (?:by|of|about|is|was|:)? ?(?:about |up to )?~?\d[\d.,]* ?(?:{_SHARE}|{_TIMES})",
            rf"{_NUMBER} ?(?:[PTG]FLOP/?s|[PTG]FLOPS|TOPS)\b",
            rf"{_NUMBER} ?[MGT]i?B(?:/s| per second| a second)",
            rf"{_NUMBER}[kM]? ?tokens? ?(?:/|per |a )s(?:ec(?:ond)?)?\b",
        )
    ),
    re.IGNORECASE,
)
_BEFORE = (
    r"(?:"
    r"takes?|took|in|from|down to|costs?|(?:latency|time|duration) of|measured(?: at)?|reach(?:es|ed)|instead of"
    r"|is|was|are|were|:|->|runs? at|needs?)"
)
_UNIT = r"(?:us|\u00b5s|\u03bcs|ms|ns|(?:micro|milli|nano)seconds?)\b"
_TIME = re.compile(
    rf"(?:(?<!\w)(?:{_BEFORE}) (?:about |roughly |some |only )?|\| ?|^(?:[-*] )?){_NUMBER} ?{_UNIT}"
    rf"|(?<!\w){_BEFORE} {_NUMBER} to {_NUMBER} ?{_UNIT}|(?<!\w)(?:{_CHANGES} to|saves|saved|cuts) {_NUMBER} ?{_UNIT}",
    re.IGNORECASE,
)
"""A time that somebody measured: behind such a word, first in an item, or alone in a cell. Others are limits."""
_MAYBE = re.compile(
    r"\d[ -]?(?:[x\u00d7%PTGMk]|percent|tokens|times|fold|us\b|\u00b5s|\u03bcs|ms\b|ns\b|micro|milli|nano)"
    r"|[x\u00d7]\d|twice|half|times|fold|doubl|tripl|halv",
    re.IGNORECASE,
)
"""Without it there is no figure: most lines are done with here."""
GPU = re.compile(
    r"(?<![A-Za-z0-9])(?:sm_?\d{2,3}a?|[ABHLTV]\d{2,3}S?|GB\d{3}|GH200|RTX|GeForce|Blackwell|Hopper|Ampere|Ada|Turing|Volta)"
    r"(?![a-z0-9])"
)
ABOUT_ONE = ("card", "hardware")
"""Kinds of pages that may name their GPU once, in the title."""
_PAGE = re.compile(r"https?://[\w-]+\.\w")
_OURS = re.compile(r"`((?:scripts|docs)/[\w./-]+)")


def faults(prose: str, page: Parts, ids: Names, root: Path) -> Iterator[tuple[int, str, str]]:
    """(line, what, fix) of each figure without a source or a GPU; ``root`` holds our scripts and documents."""
    named = page.kind in ABOUT_ONE and bool(GPU.search(page.title))
    for number, block in page_parts.blocks(prose):
        figure = figure_of(block)
        if not figure:
            continue
        there = (("source", sourced(block, ids, root)), ("GPU", named or bool(GPU.search(block))))
        missing = [name for name, found in there if not found]
        if missing:
            fix = "name a record id or a source reference, and the GPU, in the same item; or leave the figure away"
            yield number, f"figure of speed {figure!r} without its {' and '.join(missing)}", fix


def figure_of(text: str) -> str:
    """The first figure of speed in it, empty without one. Sizes, limits and thresholds of counters are none."""
    if not _MAYBE.search(text):
        return ""
    bare = re.sub(r"\]\([^)]*\)", " ", page_parts.uncoded(text))
    found = _SPEED.search(bare) or _TIME.search(bare)
    return found[0].strip(" |-*") if found else ""


def sourced(text: str, ids: Names, root: Path) -> bool:
    """True where a record of the corpus, a place in code, an address, or a script or page of ours stands beside."""
    if any(name in ids for name in page_parts.ids(text)) or page_parts.refs(text) or _PAGE.search(text):
        return True
    return any((root / path.rstrip(".")).is_file() for path in _OURS.findall(text))
