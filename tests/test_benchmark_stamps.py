"""The GPU's own timer against the worker's events: numbers by hand."""

from __future__ import annotations

import msgspec
import pytest

from kernelpilot_helpers.attempt.raw import Raw, Samples
from kernelpilot_helpers.benchmark import suspicions
from kernelpilot_helpers.policy import POLICY
from tests.bench_sim import on_gpu, raw, samples

US = 1000
GROUPS = 3


def block(
    pair: int, arm: str, *, said: float = 100.0, gap: float = 1.5, flush: float = 70.0, stamped: bool = True
) -> Samples:
    """Blocks of three groups; microseconds a group: what the events say, what the stamps add, the flush."""
    ns = [round(GROUPS * said * US) + jitter for jitter in (0, 7, 20, 3)]
    one = samples(pair, "c", arm, ns, first="AB"[pair % 2])
    if not stamped:
        return one
    return msgspec.structs.replace(
        one, groups=GROUPS, stamp_ns=tuple(n + round(GROUPS * gap * US) for n in ns),
        flush_ns=(round(GROUPS * flush * US),) * len(ns),
    )  # fmt: skip


def found(*b: Samples, method: str = "graph") -> list[tuple[str, str, str]]:
    one: Raw = on_gpu(raw([*(block(s.pair, "A") for s in b), *b]), method=method)
    return [(f.code, f.arm, f.text) for f in suspicions([one])]


def test_the_gaps_of_the_incumbent_explain_those_of_the_candidate() -> None:
    """100 us a group: 1.5 us of gap, and up to 2 us + 2 % more. Breaks at either side of 5.5 us."""
    assert (POLICY.gpu_stamp_us, POLICY.gpu_stamp_share) == (2.0, 0.02)
    assert found(block(0, "B", gap=5.4), block(1, "B", gap=5.4)) == []
    assert [c for c, *_ in found(block(0, "B", gap=5.6), block(1, "B", gap=5.6))] == ["cheat.clock"]


def test_a_tenth_taken_off_is_a_lying_clock() -> None:
    """The worker says 90 us where the stamps say 101.5."""
    assert found(block(0, "B", said=90.0, gap=11.5), block(1, "B", said=90.0, gap=11.5)) == [
        ("cheat.clock", "B", "the GPU's own timer says 304.5 us a block, the worker's events 270.0 us")
    ]


def test_a_faster_kernel_is_no_liar() -> None:
    assert found(block(0, "B", said=50.0), block(1, "B", said=50.0)) == []


def test_one_pair_of_four_proves_nothing() -> None:
    b = [block(p, "B", gap=30.0 if p == 2 else 1.5) for p in range(4)]
    assert found(*b) == []


def test_calls_between_events_have_gaps_of_the_host() -> None:
    """15 us + 2 %: 18.4 us of gap against 1.5 us is a slow host, 18.6 us is not."""
    assert found(block(0, "B", gap=18.4), block(1, "B", gap=18.4), method="events") == []
    assert [c for c, *_ in found(block(0, "B", gap=18.6), block(1, "B", gap=18.6), method="events")] == ["cheat.clock"]


@pytest.mark.parametrize(("flush", "told"), [(50.0, False), (48.0, True), (0.9, True)])
def test_a_short_flush_is_told(flush: float, told: bool) -> None:
    """70 % of the incumbent's 70 us is 49 us."""
    got = found(block(0, "B", flush=flush), block(1, "B", flush=flush))
    assert [code for code, *_ in got] == (["cheat.flush"] if told else [])
    if told:
        assert got[0][2].endswith("a block, in 210.0 us for the incumbent")


def test_a_candidate_without_stamps_is_told_and_two_arms_without_are_older() -> None:
    """Breaks when an arm gets rid of the stamps and is believed."""
    got = found(block(0, "B", stamped=False), block(1, "B", stamped=False))
    assert got == [("cheat.clock", "B", "the GPU's own timer did not see every block")]
    older = on_gpu(raw([block(p, arm, stamped=False) for p in (0, 1) for arm in "AB"]))
    assert suspicions([older]) == ()


def test_stamps_of_some_blocks_only_are_no_measurement() -> None:
    part = msgspec.structs.replace(block(0, "B"), stamp_ns=(1, 2))
    assert [c for c, *_ in found(part)] == ["cheat.clock"]
