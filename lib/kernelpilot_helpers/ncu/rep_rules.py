"""Results of NVIDIA's own rules in a binary report, with the numbers that the file uses (not those of the API)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import quantity, wire
from kernelpilot_helpers.ncu.report import Advice, Rule, Scope
from kernelpilot_helpers.ncu.wire import BYTES, FIXED64, VARINT, Buffer

MAX_TEXT = 8192
MAX_RULES = 2000
MAX_FOCUS = 64
MAX_MARKERS = 1000
_ADVICE: tuple[Advice, ...] = ("none", "ok", "warning", "error", "optimization")
_SCOPE: tuple[Scope, ...] = ("", "local", "global")
_LINK = re.compile(r"@(section|source|url):([^@:]*):([^@]*)@")


def plain(text: str) -> str:
    """A rule's text with its links written out.

    >>> plain("Check @section:SourceCounters:Source Counters@ and @url:the guide:https://x.example/a@ for more.")
    'Check Source Counters and the guide (https://x.example/a) for more.'
    """
    return _LINK.sub(lambda m: f"{m[2]} ({m[3]})" if m[1] == "url" else m[3], text)


@dataclass(kw_only=True, slots=True)
class _Item:
    text: str = ""
    type: Advice = "none"
    title: str = ""
    speedup: float | None = None
    scope: Scope = ""
    focus: list[tuple[str, float | None, str]] = field(default_factory=list)


def read(data: Buffer, at: int, end: int) -> tuple[Rule, ...]:
    """One Rule for each item of a ``RuleResult``; none where the rule had nothing to say.

    An item without a message holds only a table: its Rule has type ``none`` and no text. Markers go with the first.
    Raises RefusedInput when the message is damaged.
    """
    rule_id = name = section = ""
    items: list[_Item] = []
    markers: list[tuple[int, str]] = []
    for number, kind, start, stop in wire.fields(data, at, end):
        if kind != BYTES:
            continue
        if number == 1:
            rule_id = wire.text(data, start, stop, most=200)
        elif number == 2:
            name = wire.text(data, start, stop, most=200)
        elif number == 3:
            items += [_item(data, *span) for span in _runs(data, start, stop, 1)]
        elif number == 4:
            section = wire.text(data, start, stop, most=200)
        elif number == 5 and len(markers) < MAX_MARKERS:
            markers += _marker(data, start, stop)
    return tuple(
        Rule(
            id=rule_id, section=section, type=item.type, title=item.title or name, text=item.text,
            speedup=item.speedup, scope=item.scope, focus=tuple(item.focus),
            markers=() if place else tuple(markers),
        )
        for place, item in enumerate(items[:MAX_RULES])
    )  # fmt: skip


def _runs(data: Buffer, at: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == wanted and kind == BYTES:
            yield start, stop


def _item(data: Buffer, at: int, end: int) -> _Item:
    item = _Item()
    for number, kind, start, stop in wire.fields(data, at, end):
        if kind != BYTES:
            continue
        if number == 1:
            _message(data, start, stop, item)
        elif number == 8 and len(item.focus) < MAX_FOCUS:
            item.focus.append(_focus(data, start, stop))
        elif number == 10:
            _speedup(data, start, stop, item)
    return item


def _message(data: Buffer, at: int, end: int, item: _Item) -> None:
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == BYTES:
            item.text = plain(wire.text(data, start, stop, most=MAX_TEXT))
        elif number == 2 and kind == VARINT:
            item.type = _ADVICE[start] if start < len(_ADVICE) else "none"
        elif number == 4 and kind == BYTES:
            item.title = plain(wire.text(data, start, stop, most=200))


def _focus(data: Buffer, at: int, end: int) -> tuple[str, float | None, str]:
    name = info = ""
    value: float | None = None
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 2 and kind == BYTES:
            name = wire.text(data, start, stop, most=200)
        elif number == 3 and kind == FIXED64:
            value = _finite(wire.double(data, start))
        elif number == 5 and kind == BYTES:
            info = plain(wire.text(data, start, stop, most=1000))
    return name, value, info


def _speedup(data: Buffer, at: int, end: int, item: _Item) -> None:
    for number, kind, start, _ in wire.fields(data, at, end):
        if number == 1 and kind == VARINT:
            item.scope = _SCOPE[start] if start < len(_SCOPE) else ""
        elif number == 2 and kind == FIXED64:
            item.speedup = _finite(wire.double(data, start))


def _finite(value: float) -> float | None:
    return value if quantity.plausible(value) else None


def _marker(data: Buffer, at: int, end: int) -> Iterator[tuple[int, str]]:
    """Only of an instruction (kind 0); lines of source follow from the line table."""
    sort = pc = 0
    text = ""
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == VARINT:
            sort = start
        elif number == 3 and kind == VARINT:
            pc = start
        elif number == 4 and kind == BYTES:
            text = plain(wire.text(data, start, stop, most=1000))
    if sort == 0 and pc:
        yield pc, text
