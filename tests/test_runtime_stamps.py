"""The GPU's own timer around spans, and what a captured graph must be whatever the worker's Python says of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelpilot_helpers.runtime import machine, stamps
from kernelpilot_helpers.runtime.gpu_worker import GpuLoaded
from kernelpilot_helpers.runtime.graphs import CaptureFault, Tape, judge
from kernelpilot_helpers.runtime.guard import Guard
from kernelpilot_helpers.runtime.shape import FILL, KERNEL, RECORD, Shape, count, odd_marks
from kernelpilot_helpers.runtime.stamps import Stamped

US = 1000
T0 = 1_764_000_000 * 10**9
"""The timer counts nanoseconds from 1970."""


def seen(*us: float) -> list[int]:
    return [T0 + round(u * US) for u in us]


def test_stamps_give_spans_and_flushes() -> None:
    """Two groups: flush 60 us, span 100 us; flush 62 us, span 101 us."""
    got = stamps.read([*seen(0, 60, 160, 162, 224, 325), stamps.MISSING], 2)
    assert got == Stamped(spans=(100 * US, 101 * US), flushes=(60 * US, 62 * US))


@pytest.mark.parametrize("gone", range(6))
def test_a_missing_stamp_is_no_time(gone: int) -> None:
    """Breaks when a replay that skips a stamp is read as one of no length."""
    held = seen(0, 60, 160, 162, 224, 325)
    held[gone] = stamps.MISSING
    assert stamps.read(held, 2) == "1 of 6 stamps of the GPU's own timer are missing"
    assert stamps.read([], 2) == "6 of 6 stamps of the GPU's own timer are missing"


def test_stamps_out_of_order_are_no_time() -> None:
    """A step of the timer backwards is its grain; ten are another order of work."""
    assert isinstance(stamps.read(seen(0, 60, 59.2), 1), Stamped)
    assert stamps.read(seen(0, 60, 50), 1) == "stamps of the GPU's own timer run backwards"


def test_there_is_room_for_every_figure() -> None:
    """A chain of 3 groups of one call has 6 spans of 3 stamps of 8 bytes."""
    assert stamps.nbytes(3) >= 6 * 3 * 8
    assert stamps.nbytes(1) >= 2 * 3 * 8


def test_our_kernels_assemble(tmp_path: Path) -> None:
    """Breaks when the text of a kernel of ours is no PTX."""
    names = re.findall(rb"\.entry (\w+)", machine.PTX)
    assert names == [b"kp_touch", b"kp_stub", b"kp_empty", b"kp_stamp"]
    tool = shutil.which("ptxas")
    if tool is None:
        pytest.skip("no ptxas here")
    (tmp_path / "k.ptx").write_bytes(machine.PTX)
    done = subprocess.run(
        [tool, "-arch=sm_90", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


# --- what a capture must be


class Recorder:
    """Stands for the machine: counts nodes and keeps the order of what was captured."""

    def __init__(self) -> None:
        self.order: list[Any] = []
        self.sink = 0

    def count(self, stream: int) -> int:
        return len(self.order)

    def flush(self, stream: int) -> None:
        self.order.append("flush")

    def mark(self, stream: int, *, capturing: bool) -> int:
        self.order.append("mark")
        return len(self.order)

    def stamp(self, stream: int, address: int) -> None:
        self.order.append(address)

    def launch(self, name: str, *more: Any) -> None:
        self.order.append(name)


def played(*, groups: int = 2, calls: int = 2, marks: Any = None) -> tuple[Tape, Recorder]:
    ours = Recorder()
    tape = Tape(ours, 0, capturing=True, marks=marks)  # type: ignore[arg-type]
    for _ in range(groups):
        tape.flush()
        tape.begin()
        for _ in range(calls):
            ours.order.append("call")
            tape.call_done()
        tape.end()
    return tape, ours


def test_stamps_enclose_flush_and_span() -> None:
    """Breaks when a stamp lies inside the marks, or two share an address."""
    _, ours = played(calls=1, marks=SimpleNamespace(data_ptr=lambda: 4096))
    group = ["flush", 4104, "mark", "call", "mark", 4112]
    assert ours.order == [4096, *group, *[4120, "flush", 4128, "mark", "call", "mark", 4136]]


def test_a_tape_accounts_for_every_node() -> None:
    """2 groups of 3 stamps, 1 flush, 2 marks, 2 calls: 16 nodes, 8 of ours outside the marks."""
    tape, ours = played(marks=SimpleNamespace(data_ptr=lambda: 8))
    assert (tape.total, len(ours.order), tape.outside) == (16, 16, 8)
    assert tape.shares == [(2, 0), (2, 0)]


HONEST = Shape(
    kernels=4, hosts=0, inside=4, outside=2, fills=2, total=10, by_span=(2, 2), flushes=2,
)  # fmt: skip


def test_an_honest_capture_is_not_blamed() -> None:
    judge(HONEST, played()[0])
    judge(replace(HONEST, flushes=None), played()[0])


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"odd_marks": 1}, "cheat.outside_window"),  # a mark recorded again, later: a span of nothing
        ({"other_marks": 2}, "capture.event_node"),
        ({"flushes": 1}, "cheat.flush"),  # one fill of the two is a byte long
        ({"outside": 3}, "cheat.outside_window"),
        ({"total": 9}, "cheat.uneven_calls"),  # the list of nodes was edited: a call left nothing
        ({"total": 11}, "cheat.uneven_calls"),
        ({"by_span": (4, 0)}, "cheat.uneven_calls"),  # the first group does the work of both
        ({"hosts": 1}, "capture.host_node"),
    ],
)
def test_a_graph_that_differs_from_the_tape_has_a_name(changed: dict[str, Any], code: str) -> None:
    """Breaks when the worker's own lists are believed where the graph says otherwise."""
    with pytest.raises(CaptureFault) as caught:
        judge(replace(HONEST, **changed), played()[0])
    assert caught.value.code == code


def test_groups_of_unlike_size_are_even() -> None:
    """Breaks when the last group, which may be short, is taken for a cheat."""
    tape, ours = played(groups=1)
    tape.flush()
    tape.begin()
    ours.order.append("call")
    tape.call_done()
    tape.end()
    judge(replace(HONEST, inside=3, total=9, by_span=(2, 1)), tape)


def test_nodes_are_counted_by_span() -> None:
    kinds = [FILL, RECORD, KERNEL, KERNEL, RECORD, FILL, RECORD, KERNEL, RECORD]
    got = count(kinds, [(n, n + 1) for n in range(8)], [(1, 4), (6, 8)])
    assert (got.by_span, got.total) == ((2, 1), 9)


@pytest.mark.parametrize(
    ("nodes", "made", "want"),
    [
        ({1: 1, 2: 1}, {1, 2}, (0, 0)),
        ({1: 2, 2: 1}, {1, 2}, (1, 0)),  # swaps_events: recorded again
        ({1: 1, 2: 1, 3: 1}, {1, 2, 3}, (1, 0)),  # steals_mark: the first mark is still in the graph
        ({2: 1}, {1, 2}, (1, 0)),
        ({1: 1, 2: 1, 9: 3}, {1, 2}, (0, 3)),
    ],
)
def test_marks_that_are_not_recorded_once_are_seen(
    nodes: dict[int, int], made: set[int], want: tuple[int, int]
) -> None:
    assert odd_marks(nodes, [(1, 2)], made) == want


def test_one_event_for_both_ends_of_a_span_is_odd() -> None:
    assert odd_marks({1: 1}, [(1, 1)], {1})[0] == 1


# --- what the guard knows


class Measures:
    def elapsed(self) -> int:
        return 1


def other(_self: Any) -> int:
    return 0


def test_a_function_with_other_code_is_replaced() -> None:
    """Breaks when only the object is compared: its code can be exchanged in place."""
    guard = Guard(closed=(), own=(), readable=())
    thing = Measures()
    guard.watch(lambda: {"elapsed": Measures.elapsed, "own": vars(thing).get("elapsed")})
    guard.check_names()
    assert guard.take() == []
    honest = Measures.elapsed.__code__
    Measures.elapsed.__code__ = other.__code__
    guard.check_names()
    Measures.elapsed.__code__ = honest
    assert guard.take() == [["cheat.patched", "elapsed was replaced"]]
    thing.elapsed = lambda: 0  # type: ignore[method-assign]
    guard.check_names()
    assert guard.take() == [["cheat.patched", "own was replaced"]]


def test_what_is_asked_to_stay_in_the_cache_is_told_and_undone() -> None:
    """Breaks when a raised limit survives to the capture, or is undone without a word."""
    guard = Guard(closed=(), own=(), readable=())
    undone: list[bool] = []
    worker = GpuLoaded.__new__(GpuLoaded)
    worker._guard, worker._reset = guard, lambda: undone.append(True)
    worker._persisting = iter(("", "33554432 bytes of the second-level cache are set aside")).__next__
    worker._unpinned()
    worker._unpinned()
    assert guard.take() == [["cheat.l2_persist", "33554432 bytes of the second-level cache are set aside"]]
    assert undone == [True, True]
