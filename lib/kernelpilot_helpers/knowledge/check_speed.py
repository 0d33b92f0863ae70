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
_WORD = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety|hundred)"
)
_COUNT = rf"(?:{_NUMBER}|(?<![\w-]){_WORD})"
_PART = r"(?:half|(?:a |one |two )?(?:third|quarter|fifth|tenth)s?)"
_SPENT = r"(?:throughput|latency|run ?time|bandwidth|speed|duration|performance|time(?! steps?\b))(?!\w)"
"""What a multiple or a part of tells of speed; of tokens and bytes it tells of sizes."""
_MANNER = r"(?:by |of |about |up to |roughly |some |around |only |another |to )*"
_MULTIPLE = rf"(?:twice|thrice|half|{_COUNT} times)"
_MORE = r"(?:(?:higher|lower|better|worse|more|less|shorter|longer|the|its) )*"
_ORDER = r"orders? of magnitude"
_END = r"(?= ?(?:[.;,:)|]|$|on |over |for |with |when |at |after |against |versus |vs |compared ))"
_TWOFOLD = r"(?:doubl|tripl|quadrupl|halv)"
_WORDS = (
    rf"{_MULTIPLE} as (?:fast|slow|quick)(?:ly)?\b",
    rf"(?:takes?|took|runs?|ran|lasts?|lasted|needs?) (?:\w+ )?(?:{_MULTIPLE}|{_PART}) as long\b",
    rf"{_MULTIPLE} {_MORE}{_SPENT}",
    rf"{_PART} of (?:the |its )(?:\w+ )?{_SPENT}",
    rf"(?:twice|thrice) {_GOOD}",
    rf"{_COUNT}[ -]?(?:times|fold) ?(?:\w+ )?{_GOOD}",
    rf"{_COUNT}[ -]?(?:times|fold) (?:\w+ )?(?:in|of) (?:the )?{_SPENT}",
    rf"{_TWOFOLD}(?:es?|ed|ing) (?:the )?{_WHAT}",
    rf"{_TWOFOLD}(?:es?|ed|ing) (?:(?:the|its|our|this|of|in|\w+'s) )*(?:(?!build|compil)\w+ )?{_SPENT}",
    rf"{_SPENT} (?:(?:is|was|are|were|has|more than|nearly|almost|about|roughly) )*{_TWOFOLD}e[sd]\b",
    rf"{_SPENT} (?:[\w']+ ){{0,4}}(?:in|by) half{_END}",
    rf"(?:{_SPENT}|{_GOOD}|{_CHANGES}) (?:[\w']+ ){{0,2}}by (?:about |almost |nearly )?{_PART}{_END}",
    rf"{_ORDER} (?:\w+ )?(?:{_GOOD}|{_SPENT}|better|worse|quick)",
    rf"(?:{_GOOD}|{_SPENT}|wins?|won) (?:[\w']+ ){{0,4}}{_ORDER}",
)
"""A ratio that is spelled out: ``cuts the time in half``, ``twice as fast``, ``an order of magnitude slower``."""
_RESULT = (
    r"(?:is|was|are|were|gets?|got|gives?|gave|yields?|brings?|brought|wins?|won|sees?|saw|shows?|shown|achieves?"
    r"|achieved|claims?|claimed|reach(?:es|ed)|runs? at|ran at|up to|worth|measured(?: at)?)"
)
_ROUGHLY = r"(?:an? |the |about |nearly |almost |over |roughly |some |around |only |just |up to |more than )*"
_BARE = (
    rf"{_NUMBER} ?{_TIMES} (?:as (?:fast|slow|quick|long)\b|{_MORE}{_SPENT}|(?:\w+ )?(?:in|of) (?:the )?{_SPENT})",
    rf"(?<!\w){_RESULT} {_ROUGHLY}{_NUMBER}[x\u00d7]{_END}",
    rf"(?:^(?:[-*] )?|\| ?){_NUMBER}[x\u00d7](?= ?(?:\||[.;,]?$|on |over |for |against |versus |vs |compared ))",
    rf"{_NUMBER}[x\u00d7] (?:\w+ )?(?:wins?|boosts?|slow-?downs?|regressions?)\b",
)
"""A ratio that stands alone, as a result; beside a thing that is counted (``2x the registers``) it is a size."""
_SPEED = (
    rf"{_NUMBER}\.\d+ ?{_TIMES}(?! ?(?:SMs?|the)\b)",
    r"(?<!\w)[x\u00d7]\d+\.\d+\b",
    rf"{_NUMBER} ?{_TIMES} ?(?:\w+ )?{_GOOD}",
    rf"{_COUNT} ?{_SHARE} ?(?:\w+ )?{_GOOD}",
    rf"{_COUNT} ?{_SHARE} ?(?:higher|lower|better|worse|more|less|shorter|of the) {_WHAT}",
    rf"{_WHAT} (?:is |was |went |goes )?(?:up |down |[+\u2212-])(?:by )?\d[\d.,]* ?{_SHARE}",
    rf"(?<!\w){_CHANGES} (?:the )?{_WHAT} {_MANNER}~?\d[\d.,]* ?(?:{_SHARE}|{_TIMES})",
    rf"{_WHAT} {_CHANGES} {_MANNER}~?\d[\d.,]* ?(?:{_SHARE}|{_TIMES})",
    rf"(?<!\w){_CHANGES} (?:up )?(?:(?:\w+ ){{1,2}}by )?{_MANNER}~?\d[\d.,]* ?{_SHARE}(?! of)",
    rf"{_GOOD},? (?:by|of|about|is|was|:)? ?(?:about |up to )?~?\d[\d.,]* ?(?:{_SHARE}|{_TIMES})",
    rf"{_NUMBER} ?(?:[PTG]FLOP/?s|[PTG]FLOPS|TOPS)\b",
    rf"{_NUMBER} ?[MGT]i?B(?:/s| per second| a second)",
    rf"{_NUMBER}[kM]? ?tokens? ?(?:/|per |a )s(?:ec(?:ond)?)?\b",
)
_BEFORE = (
    r"(?:"
    r"takes?|took|in|from|down to|costs?|(?:latency|time|duration) of|measured(?: at)?|reach(?:es|ed)|instead of"
    r"|is|was|are|were|:|->|runs? at|needs?)"
)
_UNIT = r"(?:us|\u00b5s|\u03bcs|ms|ns|(?:micro|milli|nano)seconds?)\b"
_TIME = (
    rf"(?:(?<!\w)(?:{_BEFORE}) (?:about |roughly |some |only )?|\| ?|^(?:[-*] )?){_NUMBER} ?{_UNIT}"
    rf"|(?<!\w){_BEFORE} {_NUMBER} to {_NUMBER} ?{_UNIT}|(?<!\w)(?:{_CHANGES} to|saves|saved|cuts) {_NUMBER} ?{_UNIT}"
)
"""A time that somebody measured: behind such a word, first in an item, or alone in a cell. Others are limits."""
_MAYBE = re.compile(
    r"\d[ -]?(?:[x\u00d7%PTGMk]|tokens|us\b|\u00b5s|\u03bcs|ms\b|ns\b|micro|milli|nano)|[x\u00d7]\d|percent",
    re.IGNORECASE,
)
"""Without it, or one of the words, there is no figure: most lines are done with here."""
_MAYBE_WORDS = (
    *("twice", "thrice", "half", "times", "fold", "doubl", "tripl", "quadrupl", "halv", "third", "quarter", "fifth"),
    *("tenth", "magnitude"),
)
_IN_DIGITS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in ("|".join(_SPEED), _TIME, "|".join(_BARE)))
_IN_WORDS = (re.compile(rf"(?<![\w.-])(?:{'|'.join(_WORDS)})", re.IGNORECASE),)
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
    lower = text.lower()
    patterns = _IN_DIGITS if _MAYBE.search(text) else ()
    patterns += _IN_WORDS if any(word in lower for word in _MAYBE_WORDS) else ()
    if not patterns:
        return ""
    bare = re.sub(r"\]\([^)]*\)", " ", page_parts.uncoded(text))
    found = next((match for pattern in patterns if (match := pattern.search(bare))), None)
    return found[0].strip(" |-*") if found else ""


def sourced(text: str, ids: Names, root: Path) -> bool:
    """True where a record of the corpus, a place in code, an address, or a script or page of ours stands beside."""
    if any(name in ids for name in page_parts.ids(text)) or page_parts.refs(text) or _PAGE.search(text):
        return True
    return any((root / path.rstrip(".")).is_file() for path in _OURS.findall(text))
