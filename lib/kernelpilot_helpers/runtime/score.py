"""What a tape records for each figure: flush, touches, then one span over the calls of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Body = Callable[[Any], None]
OURS = ("floor", "touch")
"""Figures of our own kernels, which no candidate can beat at a size: empty ones, and one that reads the same bytes."""


def body_of(
    figure: str,
    groups: Sequence[Sequence[Callable[[], Any]]],
    hot: Sequence[Sequence[Any]],
    moved: Sequence[Sequence[Any]],
    witness: Callable[[], Any],
) -> Body:
    """The body for one figure.

    ``groups`` are calls, ``hot`` by group the memory to touch before its span, ``moved`` by group the memory its
    calls read and write. ``chained`` gives two spans a group: with the calls between stubs, and the stubs alone.
    ``floor`` and ``touch`` make no call, which a capture refuses: ``witness`` is one, in a last span of its own.
    """
    plain = {"floor": _empty, "chained": _chain}.get(figure, _calls)

    def body(tape: Any) -> None:
        for calls, warm, parts in zip(groups, hot, moved, strict=True):
            _open(tape, warm, cold=figure != "sustained")
            if figure == "touch":
                _touch(tape, parts)
            else:
                plain(tape, calls)
            tape.end()
            if figure == "chained":
                _open(tape, warm, cold=True)
                for _ in calls:
                    tape.stub()
                    tape.stub()
                tape.end()
        if figure in OURS:
            tape.begin()
            _calls(tape, [witness])
            tape.end()

    return body


def _open(tape: Any, hot: Sequence[Any], *, cold: bool) -> None:
    """What precedes a span: the cache is filled with something else, then with what is asked to be in it."""
    if cold:
        tape.flush()
    for part in hot:
        tape.touch(part)
    tape.begin()


def _calls(tape: Any, calls: Sequence[Callable[[], Any]]) -> None:
    for call in calls:
        call()
        tape.call_done()


def _chain(tape: Any, calls: Sequence[Callable[[], Any]]) -> None:
    for call in calls:
        tape.stub()
        call()
        tape.call_done()
        tape.stub()


def _empty(tape: Any, calls: Sequence[Callable[[], Any]]) -> None:
    for _ in calls:
        tape.empty()


def _touch(tape: Any, parts: Sequence[Any]) -> None:
    for part in parts:
        tape.touch(part)
