"""What may not be compared is refused, never averaged over."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec
import pytest

from kernelpilot_helpers.attempt.raw import Died, Raw, Samples
from kernelpilot_helpers.benchmark import pair_values, refuse, tabulate
from kernelpilot_helpers.errors import NotComparable, Refused
from tests.bench_sim import CASES, ENV, exact, raw, samples, simulate


def made(pairs: int = 6) -> Raw:
    return simulate(random.Random(1), pairs=pairs, blocks=4)


def edited(change: Callable[[Samples], Samples | None]) -> Raw:
    kept = [new for s in made().samples if (new := change(s)) is not None]
    return raw(kept)


def at(s: Samples) -> bool:
    return (s.pair, s.case_id, s.arm) == (3, "c1", "B")


def test_a_complete_table_is_accepted() -> None:
    """Breaks if the refusals refuse everything."""
    table = tabulate([made()], timed=CASES)
    assert table.pairs == (0, 1, 2, 3, 4, 5)
    assert table.orders == (1, -1, 1, -1, 1, -1)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda s: None if s.case_id == "c1" else s, "no samples of case c1"),
        (lambda s: None if at(s) else s, "no samples of case c1, arm B in pair 3"),
        (lambda s: None if s.pair == 5 else s, "5 pairs"),
        (lambda s: msgspec.structs.replace(s, calls=5) if at(s) else s, "4 and 5 calls"),
        (lambda s: msgspec.structs.replace(s, ns=s.ns[:-1]) if at(s) else s, "4 and 3 blocks"),
        (lambda s: msgspec.structs.replace(s, wall_ns=()) if at(s) else s, "both clocks"),
        (lambda s: msgspec.structs.replace(s, ns=(0, *s.ns[1:])) if at(s) else s, "no time"),
        (lambda s: msgspec.structs.replace(s, first_arm="A"), "not balanced"),
        (lambda s: msgspec.structs.replace(s, first_arm="A") if at(s) else s, "disagrees"),
        (lambda s: msgspec.structs.replace(s, case_id="zz") if s.case_id == "c1" else s, "not asked for"),
        (lambda _: None, "0 pairs"),
    ],
)
def test_a_hole_in_the_table_is_refused(change: Callable[[Samples], Samples | None], what: str) -> None:
    """Each once passed somewhere as a geomean over the survivors."""
    with pytest.raises(NotComparable, match=what):
        refuse([edited(change)], timed=CASES)


def test_a_case_measured_twice_is_refused() -> None:
    """A duplicated case id once counted as a speed-up of 4472."""
    one = made()
    with pytest.raises(NotComparable, match="is there twice"):
        refuse([raw([*one.samples, one.samples[0]])], timed=CASES)
    with pytest.raises(NotComparable, match="names a case twice"):
        refuse([one], timed=(*CASES, "c1"))
    with pytest.raises(NotComparable, match="is there twice"):
        refuse([one, one], timed=CASES)


def test_a_required_case_that_was_not_timed_is_refused() -> None:
    with pytest.raises(NotComparable, match="required cases c9"):
        refuse([made()], timed=CASES, required=frozenset({"c9"}))


@pytest.mark.parametrize("key", ["boot_id", "cpu", "framework_version", "new_key"])
def test_jobs_of_two_places_are_refused(key: str) -> None:
    one = made()
    other = simulate(random.Random(2), pairs=4, first_pair=6, blocks=4)
    moved = msgspec.structs.replace(other, env={**ENV, key: "else"})
    with pytest.raises(NotComparable, match=key):
        refuse([one, moved], timed=CASES)
    refuse([one, msgspec.structs.replace(other, env={**ENV, "started": 99, "seconds": 1.0})], timed=CASES)


def test_jobs_of_two_programs_are_refused() -> None:
    """Breaks if a rebuilt candidate's pairs are pooled with the old one's."""
    other = simulate(random.Random(2), pairs=4, first_pair=6, blocks=4)
    builds = tuple(msgspec.structs.replace(b, binary_id="else") for b in other.builds)
    with pytest.raises(NotComparable, match="different programs as arm A"):
        refuse([made(), msgspec.structs.replace(other, builds=builds)], timed=CASES)


def test_a_job_that_died_is_refused() -> None:
    dead = msgspec.structs.replace(made(), died=Died(arm="B", stage="call", timeout=True))
    with pytest.raises(NotComparable, match="arm B died in call"):
        refuse([dead], timed=CASES)
    with pytest.raises(NotComparable, match="no measurement"):
        refuse([], timed=CASES)


def test_blocks_are_matched_with_their_neighbours() -> None:
    """Breaks if medians are taken per arm first: block by block 2, 2/3, 2; of medians 200 / 300."""
    items = [samples(p, "c", "A", [100, 200, 900], first=f) for p, f in ((0, "A"), (1, "B"))]
    items += [samples(p, "c", "B", [50, 300, 450], first=f) for p, f in ((0, "A"), (1, "B"))]
    assert pair_values(tabulate([raw(items)], timed=("c",)), None) == pytest.approx([math.log(2)] * 2)


def test_geomean_counts_cases_and_total_time_counts_microseconds() -> None:
    """c0: 2 us to 1 us; c1: 100 us to 200 us. Geomean 1; 10 x c0 + 1 x c1 is 120 to 210."""
    items = []
    for p, f in ((0, "A"), (1, "B")):
        for case, a, b in (("c0", 2000, 1000), ("c1", 100_000, 200_000)):
            items.append(samples(p, case, "A", [a] * 3, first=f, calls=1))
            items.append(samples(p, case, "B", [b] * 3, first=f, calls=1))
    table = tabulate([raw(items)], timed=("c0", "c1"))
    assert pair_values(table, None) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert pair_values(table, {"c0": 10.0, "c1": 1.0}) == pytest.approx([math.log(120 / 210)] * 2)


@pytest.mark.parametrize("weights", [{"c0": 1.0}, {"c0": 1.0, "c1": 0.0}, {"c0": 1.0, "c1": math.nan}])
def test_weights_that_leave_a_case_out_are_refused(weights: dict[str, float]) -> None:
    table = tabulate([exact({"c0": [0.0] * 2, "c1": [0.0] * 2})], timed=("c0", "c1"))
    with pytest.raises(Refused, match="c1"):
        pair_values(table, weights)
