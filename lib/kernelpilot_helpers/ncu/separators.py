"""Whether a file prints 1,234.5 or 1.234,5: one answer a file, from the cells that can be only one of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping

from kernelpilot_helpers.ncu import limits, quantity

Cell = tuple[str, str, str]
"""Metric, unit and text, as the file has them."""

_WHOLE = re.compile(
    r"launch__(grid_size|block_size|thread_count|registers_per_thread|sm_count|tpc_count|stack_size)"
    r"|launch__(grid|block)_dim_[xyz]|gpc__cycles_elapsed\.max|\w*(sectors|requests|inst_executed)\w*\.sum"
)
"""Metrics that never have a fraction: a lone separator groups thousands."""
_WHOLE_UNITS = frozenset(
    {"", "inst", "sector", "sectors", "request", "thread", "block", "cycle", "SM", "register/thread"}
)
_TRIO = ("gpu__time_duration.sum", "gpc__cycles_elapsed.max", "gpc__cycles_elapsed.avg.per_second")
_CLOCKS = (5e7, 1e10)
"""Hz: a GPU's clock lies between. Read a thousand times too fast, it would excuse a duration as wrong."""
_LAUNCHES = 100
"""Launches that take part in the cross-check of duration and cycles."""


def decide(cells: Iterable[Cell]) -> str:
    """``C``, ``comma``, ``C assumed``, or ``mixed`` when the file's cells disagree.

    Where no cell can be only one of them, the duration must equal cycles over clock.

    >>> decide([("launch__grid_size", "", "1.056")]), decide([("gpu__time_duration.sum", "ns", "117.344")])
    ('comma', 'C assumed')
    """
    votes = {"C": 0, "comma": 0}
    trio: dict[str, list[tuple[str, str]]] = {name: [] for name in _TRIO}
    for metric, unit, text in itertools.islice(cells, limits.LOCALE_CELLS):
        if metric in trio and len(trio[metric]) < _LAUNCHES:
            trio[metric].append((unit, text))
        if "." not in text and "," not in text:
            continue
        won = quantity.vote(text) or _grouped(metric, unit, text)
        if won:
            votes[won] += 1
    if min(votes.values()) > 0.01 * sum(votes.values()):  # a lone version number in a text cell decides nothing
        return "mixed"
    if not votes["C"] and not votes["comma"]:
        return _checked(trio)
    return "C" if votes["C"] > votes["comma"] else "comma"


def _grouped(metric: str, unit: str, text: str) -> str:
    """What the lone separator of a whole number proves."""
    if unit not in _WHOLE_UNITS or not _WHOLE.fullmatch(metric):
        return ""
    digits = quantity.bare(text)
    return "C" if "," in digits else "comma" if "." in digits else ""


def _checked(trio: Mapping[str, list[tuple[str, str]]]) -> str:
    """The locale in which durations and cycles agree, when only one does."""
    agree = {"C": 0, "comma": 0}
    for three in zip(*trio.values(), strict=False):
        for locale in agree:
            numbers = [quantity.number(text, locale) for _, text in three]
            duration, cycles, clock = (
                None if n is None else n * quantity.scale(unit)[0] for n, (unit, _) in zip(numbers, three, strict=True)
            )
            if duration and cycles and clock and _CLOCKS[0] < clock < _CLOCKS[1]:
                agree[locale] += abs(cycles / clock * 1e9 / duration - 1) <= limits.CLOCKS_AGREE
    if agree["C"] == agree["comma"]:
        return "C assumed"
    return "C" if agree["C"] > agree["comma"] else "comma"
