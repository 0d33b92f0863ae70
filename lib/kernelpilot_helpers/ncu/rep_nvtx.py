"""Names of the NVTX ranges that were open at a launch."""

from __future__ import annotations

from collections.abc import Iterator

from kernelpilot_helpers.ncu import wire
from kernelpilot_helpers.ncu.wire import BYTES, VARINT, Buffer

MAX_NAMES = 256
_DEFAULT = "<default domain>"


def read(data: Buffer, at: int, end: int, thread: int) -> tuple[str, ...]:
    """Outermost first: push/pop ranges of ``thread``, then start/end ranges; ``domain@name`` but for the default one.

    Raises RefusedInput when the message is damaged.
    """
    domains: dict[int, str] = {}
    stacks: list[tuple[int, str]] = []
    ranges: list[tuple[int, str]] = []
    for number, kind, start, stop in wire.fields(data, at, end):
        if kind != BYTES:
            continue
        if number == 1:
            domains.update([_named(data, start, stop)])
        elif number == 2:
            stacks += _thread(data, start, stop, thread)
        elif number == 3:
            ranges += _open(data, start, stop, name_in=3, name_field=2)
    names = [(domains.get(domain, ""), name) for domain, name in (*stacks, *ranges)[:MAX_NAMES]]
    return tuple(name if domain in ("", _DEFAULT) else f"{domain}@{name}" for domain, name in names if name)


def _named(data: Buffer, at: int, end: int) -> tuple[int, str]:
    key, name = 0, ""
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == VARINT:
            key = start
        elif number == 2 and kind == BYTES:
            name = wire.text(data, start, stop, most=400)
    return key, name


def _thread(data: Buffer, at: int, end: int, thread: int) -> list[tuple[int, str]]:
    """(domain, name) of the open ranges; of another thread none."""
    found: list[tuple[int, str]] = []
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == VARINT and start != thread:
            return []
        if number == 2 and kind == BYTES:
            found += _open(data, start, stop, name_in=3, name_field=1)
    return found


def _open(data: Buffer, at: int, end: int, *, name_in: int, name_field: int) -> Iterator[tuple[int, str]]:
    domain = 0
    names: list[str] = []
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == VARINT:
            domain = start
        elif number == name_in and kind == BYTES and len(names) < MAX_NAMES:
            span = wire.first(data, start, stop, name_field)
            names.append(wire.text(data, *span, most=400) if span else "")
    for name in names:
        yield domain, name
