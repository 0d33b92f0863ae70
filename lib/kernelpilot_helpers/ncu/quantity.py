"""Numbers and units as ncu prints them: separators, auto-scaled prefixes, words for absent."""

from __future__ import annotations

import re

ABSENT = frozenset({"", "n/a", "(!) n/a", "nan", "-nan", "inf", "-inf", "no data", "none", "-"})
LARGEST = 1e30
"""Beyond this a cell is damage, and arithmetic on it would overflow."""
_NUMBER = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?")
_INSTANCES = re.compile(r"[+-]?[\d.,]+;")
_GROUPERS = str.maketrans("", "", "\u00a0\u202f\u2009'\u2019 ")
_PREFIX = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_TIME_NS = {
    "ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9,
}  # fmt: skip
_SCALED = re.compile(
    r"(?P<prefix>[KkMGTP]?)(?P<word>bytes?|hz|Hz|cycles?|inst|sectors?|warp|flop|requests?|threads?|register)"
)


def bare(text: str) -> str:
    """The aggregate of a cell, without instance values; empty when there is none.

    >>> bare("5.1 (4; 6)"), bare("(0; 1)"), bare("240; 240"), bare("n/a")
    ('5.1', '', '', '')
    """
    head = text.strip()
    if head.lower() in ABSENT or head.startswith("("):
        return ""
    head = head.split(" (", 1)[0].translate(_GROUPERS)
    return "" if ";" in head or not _NUMBER.fullmatch(head) else head


def present(text: str) -> bool:
    """Whether a cell holds an aggregate: a number or a text, not only instance values and no word for absent.

    >>> present("5.1 (4; 6)"), present("PolicySpread"), present("(0; 1)"), present("240; 240"), present("n/a")
    (True, True, False, False, False)
    """
    head = text[:32].strip()
    return not (head.startswith("(") or head.lower() in ABSENT or _INSTANCES.match(head))


def vote(text: str) -> str:
    """Which locale a cell proves: ``C``, ``comma``, or empty when it could be either.

    >>> vote("1,234.5"), vote("65,77"), vote("1.234.567"), vote("117.344"), vote("0.123")
    ('C', 'comma', 'comma', '', 'C')
    """
    digits = bare(text).lstrip("+-")
    commas, dots = digits.count(","), digits.count(".")
    if commas and dots:
        return "C" if digits.rindex(".") > digits.rindex(",") else "comma"
    if commas > 1 or dots > 1:
        return "C" if commas else "comma"
    if commas + dots != 1:
        return ""
    head, tail = re.split("[.,]", digits)
    # A group of thousands has three digits and no leading zero; anything else is a fraction.
    if len(re.match(r"\d*", tail).group()) != 3 or head == "0" or len(head) > 3:  # type: ignore[union-attr]
        return "C" if dots else "comma"
    return ""


def plausible(value: float) -> bool:
    """Whether arithmetic on a value stays finite: products and quotients of two such values do.

    >>> plausible(0), plausible(-2.5), plausible(1e31), plausible(5e-324), plausible(float("nan"))
    (True, True, False, False, False)
    """
    return value == 0 or 1 / LARGEST < abs(value) < LARGEST


def number(text: str, locale: str) -> float | None:
    """A cell's value in its own unit; None when it holds no number.

    >>> number("1,234.5", "C"), number("1.234,5", "comma"), number("n/a", "C"), number("PolicySpread", "C")
    (1234.5, 1234.5, None, None)
    """
    digits = bare(text)
    if not digits:
        return None
    digits = digits.replace(".", "").replace(",", ".") if locale == "comma" else digits.replace(",", "")
    try:
        value = float(digits)
    except ValueError:
        return None
    return value if plausible(value) else None


def instances(text: str, locale: str) -> tuple[float | str | None, ...]:
    """Instance values of a cell, numbers in its own unit; empty when there are none.

    >>> instances("5.1 (4; n/a; Shared)", "C"), instances("(0; 1)", "C"), instances("240; 241", "C")
    ((4.0, None, 'Shared'), (0.0, 1.0), (240.0, 241.0))
    """
    cell = text.strip()
    at = 0 if cell.startswith("(") else cell.find(" (") + 1
    if cell.endswith(")") and (at or cell.startswith("(")):
        inner = cell[at + 1 : -1]
    elif _INSTANCES.match(cell):
        inner = cell
    else:
        return ()
    return tuple(_instance(part.strip(), locale) for part in inner.split(";"))


def _instance(text: str, locale: str) -> float | str | None:
    value = number(text, locale)
    return value if value is not None else None if text.lower() in ABSENT else text


def aggregate(text: str) -> str:
    """The text of a cell that holds no number, without instance values.

    >>> aggregate("CachePreferNone (CachePreferNone)"), aggregate("PolicySpread")
    ('CachePreferNone', 'PolicySpread')
    """
    cell = text.strip()
    return cell.split(" (", 1)[0] if cell.endswith(")") else cell


def scale(unit: str) -> tuple[float, str]:
    """Factor to the base unit, and its name: ns, byte, byte/s, hz, %, or whatever else is printed.

    >>> scale("us"), scale("Kbyte"), scale("Gbyte/second"), scale("cycle/nsecond"), scale("%")
    ((1000.0, 'ns'), (1000.0, 'byte'), (1000000000.0, 'byte/s'), (1000000000.0, 'hz'), (1.0, '%'))
    >>> scale("Kbyte/block"), scale("register/thread")
    ((1000.0, 'byte/block'), (1.0, 'register/thread'))
    >>> scale("%/Kbyte"), scale("sector/us")  # ncu scales the first as if its prefix stood above the line
    ((1000.0, '%/byte'), (1000000.0, 'sector/s'))
    """
    text = unit.strip()
    if text in _TIME_NS:
        return _TIME_NS[text], "ns"
    over, _, under = text.partition("/")
    found = _SCALED.fullmatch(over)
    if over == "%" and (below := _SCALED.fullmatch(under)):
        return _PREFIX[below["prefix"]], f"%/{below['word'].lower().rstrip('s')}"
    factor, word = (_PREFIX[found["prefix"]], found["word"].lower().rstrip("s")) if found else (1.0, over)
    if under in _TIME_NS:
        factor, under = factor * 1e9 / _TIME_NS[under], "s"
    base = f"{word}/{under}" if under else word
    return factor, "hz" if base == "cycle/s" else base


def rounded(value: float) -> float:
    """Six significant digits: the same on every machine.

    >>> rounded(1234567.89), rounded(0.123456789)
    (1234570.0, 0.123457)
    """
    return float(f"{value:.6g}")
