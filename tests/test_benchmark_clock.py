"""A worker that lies about time is found by the parent's own clock."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kernelpilot_helpers.attempt.raw import Raw, Samples
from kernelpilot_helpers.benchmark import suspicions
from tests.bench_sim import raw, samples

US = 1000


def job(
    ns: Callable[[str, int], int],
    wall: Callable[[str, int], int],
    *,
    pairs: int = 6,
    only_pairs: int = 6,
) -> Raw:
    """400 us blocks with 0..99 ns of jitter; ``ns`` and ``wall`` bend the two clocks in the first ``only_pairs``."""
    rng = random.Random(5)
    out: list[Samples] = []
    for pair in range(pairs):
        for arm in "AB":
            true = [400 * US + rng.randrange(100) for _ in range(8)]
            bent = pair < only_pairs
            ticks = [ns(arm, t) if bent else t for t in true]
            walls = tuple((wall(arm, t) if bent else t) + 60 * US for t in true)
            one = samples(pair, "c", arm, ticks, first="AB"[pair % 2])
            out.append(Samples(**{f: getattr(one, f) for f in one.__struct_fields__ if f != "wall_ns"}, wall_ns=walls))
    return raw(out)


def same(_: str, t: int) -> int:
    return t


def codes(one: Raw) -> list[tuple[str, str]]:
    return [(f.code, f.arm) for f in suspicions([one])]


def test_an_honest_pair_is_not_suspected() -> None:
    assert codes(job(same, same)) == []


@pytest.mark.parametrize(
    "ticks",
    [
        lambda arm, t: t // 10 if arm == "B" else t,  # ten times as fast, says the patched clock
        lambda arm, t: t * 6 // 10 if arm == "B" else t,  # 160 us hidden: beyond 20 % and 100 us
        lambda arm, t: 250 * US if arm == "B" else t,  # the same figure in every block
        lambda arm, t: 0 if arm == "B" else t,
        lambda arm, t: -t if arm == "B" else t,
    ],
)
def test_a_flattering_clock_is_a_cheat(ticks: Callable[[str, int], int]) -> None:
    assert codes(job(ticks, same)) == [("cheat.clock", "B")]


def test_work_left_behind_for_later_is_a_cheat() -> None:
    """3 ms of work after the last tick: the parent waits, the worker's clock does not."""
    found = suspicions([job(same, lambda arm, t: t + 3000 * US if arm == "B" else t)])
    assert [f.code for f in found] == ["cheat.clock"]
    told = "the worker's clock says 400.0 us, the parent's 3460.0 us; the incumbent's own overhead does not explain it"
    assert found[0].text == told


def test_time_that_outlasts_the_parents_span_is_a_cheat() -> None:
    """A clock that runs fast in the candidate, or slow before it, cannot be inside the parent's span."""
    assert codes(job(lambda arm, t: t * 2 if arm == "B" else t, same)) == [("cheat.clock", "B")]


def test_a_slow_machine_is_not_a_cheat() -> None:
    """Breaks if the candidate is blamed for an overhead that the incumbent has as well."""
    slow = job(same, lambda arm, t: t + 3000 * US)
    assert codes(slow) == [("suspect.clock", "A"), ("suspect.clock", "B")]
    assert codes(job(same, lambda arm, t: t + 1000 * US)) == []


def test_a_busy_machine_is_not_a_cheat() -> None:
    """Waits of 0 to 4 ms in either arm once made an honest candidate's median look 2 ms late."""
    rng = random.Random(9)
    for _ in range(200):
        found = codes(job(same, lambda arm, t: t + rng.randrange(4000) * US, pairs=4, only_pairs=4))
        assert "cheat.clock" not in [code for code, _ in found]


def test_an_incumbent_that_lies_is_not_the_candidates_fault() -> None:
    assert codes(job(lambda arm, t: t // 10 if arm == "A" else t, same)) == []
    assert codes(job(lambda arm, t: 0 if arm == "A" else t, same)) == [("suspect.clock", "A")]


def test_a_hiccup_in_one_pair_is_not_a_cheat() -> None:
    hidden = lambda arm, t: t + 3000 * US if arm == "B" else t  # noqa: E731
    assert codes(job(same, hidden, only_pairs=2)) == []
    assert codes(job(same, hidden, only_pairs=3)) == []
    assert codes(job(same, hidden, only_pairs=4)) == [("cheat.clock", "B")]


def test_a_difference_below_a_hundred_microseconds_is_overhead() -> None:
    """90 us of 400 is over 20 %, but a scheduler may take that much."""
    assert codes(job(same, lambda arm, t: t + 90 * US if arm == "B" else t)) == []
    assert codes(job(same, lambda arm, t: t + 110 * US if arm == "B" else t)) == [("cheat.clock", "B")]
