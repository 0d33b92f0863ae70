"""Numbers with a unit in a text that people write, and whether their line says where they come from. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

UNITS = (
    "ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "%", "percent", "pct", "x", "\u00d7",
    "MB/s", "GB/s", "TB/s", "MiB/s", "GiB/s", "TiB/s",
    "FLOP/s", "GFLOP/s", "TFLOP/s", "FLOPS", "GFLOPS", "TFLOPS", "cycles", "MHz", "GHz",
)  # fmt: skip
"""A number followed by one of these is a claim. Byte counts and plain counts are design, not measurement."""

_UNIT = "|".join(sorted((re.escape(unit) for unit in UNITS), key=len, reverse=True))
SIGNS = "+-~\u2212"
_NUMBER = rf"(?<![\w.])[{re.escape(SIGNS)}]?(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)"
_CLAIM = re.compile(
    rf"(?P<number>{_NUMBER})(?:[^\S\n]{{0,2}}(?P<unit>{_UNIT})(?!\w)"
    r"|(?P<times>[^\S\n]times[^\S\n](?=faster|slower|as\b|quicker|better|worse)))",
    re.IGNORECASE,
)
_YEARS = re.compile(r"\b(?:1[89]|20)\d\ds\b")
_LABEL = re.compile(r"\bv\d{3,}(?:_[a-z0-9_-]*[a-z0-9])?(?:\.\d+)?\b")
_NOISE = (
    re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)"),
    re.compile(r"https?://\S+"),
    _LABEL,
    re.compile(r"\b\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?"),
    re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"),
    _YEARS,
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_SPEED = re.compile(r"\b(?:fast\w*|slow\w*|speed\w*|gain\w*|improv\w*|quick\w*)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A number with its unit, as it stands on a line (counted from 1)."""

    line: int
    text: str
    number: str
    unit: str
    whole: str
    """The line itself."""

    @property
    def of_speed(self) -> bool:
        """Whether it is a ratio on a line that speaks of speed: such a figure can be compared with the runs'."""
        return self.unit in ("%", "percent", "pct", "x", "\u00d7", "times") and bool(_SPEED.search(self.whole))


def claims(text: str) -> Iterator[Claim]:
    """Every number with a unit, in order.

    Code spans and fenced blocks, comments, addresses, version labels, dates and hashes hold no claims.

    >>> [(c.line, c.text) for c in claims("12.3 % faster, `99 %` aside\\n4096x4096 in 1,200 us")]
    [(1, '12.3 %'), (2, '1,200 us')]
    """
    bare = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    fence = ""
    for number, line in enumerate(bare.split("\n"), start=1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            continue
        if not fence:
            yield from _on_line(number, line)


def _on_line(number: int, line: str) -> Iterator[Claim]:
    plain = line
    for noise in _NOISE:
        plain = noise.sub(" ", plain)
    for found in _CLAIM.finditer(plain):
        unit = (found["unit"] or "times").lower()
        yield Claim(line=number, text=found[0].strip(), number=found["number"], unit=unit, whole=line)


def cited(line: str) -> tuple[str, ...]:
    """Labels and run ids on a line, code spans included.

    >>> cited("see [v003_fused.2] and `v001`")
    ('v003_fused.2', 'v001')
    """
    return tuple(_LABEL.findall(line))


def value_of(claim: Claim) -> tuple[float, float]:
    """(value, half of its last printed digit) of a claim.

    >>> value_of(next(claims("+12.3 %")))
    (12.3, 0.05)
    """
    digits = claim.number.lstrip(SIGNS).replace(",", "")
    mantissa, _, power = digits.lower().partition("e")
    places = len(mantissa.partition(".")[2])
    scale = 10.0 ** int(power or 0)
    return float(digits), 0.5 * 10.0**-places * scale


def agrees(claim: Claim, ratios: Collection[float], fractions: Collection[float]) -> bool:
    """Whether a speed claim is one of these speed-up ratios, or one of these promised fractions, as rounded."""
    value, half = value_of(claim)
    near = half + 1e-9
    if claim.unit in ("x", "\u00d7", "times"):
        return any(min(abs(r - value), abs(1 / r - value)) <= near for r in ratios)
    shown = [abs(r - 1) * 100 for r in ratios] + [abs(1 - 1 / r) * 100 for r in ratios]
    return any(abs(p - value) <= near for p in (*shown, *(f * 100 for f in fractions)))
