"""What a GPU's figures must survive: two units of time, heat, the memory's own speed, and one way of timing a case."""

from __future__ import annotations

import math

import msgspec
import pytest

from kernelpilot_helpers import benchmark
from kernelpilot_helpers.attempt.job import JobCase, TensorSpec
from kernelpilot_helpers.attempt.raw import GpuLook, Raw, Residency
from kernelpilot_helpers.benchmark import Bench, cold_bytes, cool, floor, judge, suspicions, tabulate
from kernelpilot_helpers.errors import NotComparable
from kernelpilot_helpers.policy import ACCEPT, CLAIM, CPU, GPU, SCREEN, Tier, tiers
from tests.bench_sim import exact, look, on_gpu

WOBBLE = (0.001, 0.001, -0.001, -0.001, 0.0, 0.0)
MIB = 2**20


def gain(centre: float, *, base_ns: int = 10_000_000) -> Raw:
    return exact({"c": [centre + w for w in WOBBLE]}, base_ns=base_ns)


def bench(one: Raw, *, tier: Tier = ACCEPT, cases: tuple[JobCase, ...] = (), required: bool = True) -> Bench:
    need = frozenset({"c"}) if required else frozenset[str]()
    return judge([one], tier=tier, device=GPU, required=need, timed=("c",), cases=cases)


def tensor(name: str, role: str, n: int, **changed: object) -> TensorSpec:
    base = {"name": name, "role": role, "dtype": "float32", "shape": (n,), "stride": (1,)}
    return TensorSpec(**{**base, **changed})  # type: ignore[arg-type]


def case(*tensors: TensorSpec) -> JobCase:
    return JobCase(
        case_id="c", axes={}, flags={}, tensors=tensors, required=True, edge=False, held_out=False, timed=True
    )


# --- time and cycles


def test_time_and_cycles_that_contradict_decide_nothing() -> None:
    """B takes 5 % less time at 10 % more clock: 5 % more cycles."""
    got = bench(on_gpu(gain(0.05), mhz={"A": 1600, "B": 1768}))
    assert (got.verdict, got.need_more, got.partial) == ("AMBIGUOUS", None, False)
    assert got.reason.startswith("clock.contradiction: in time +5.13 %")
    assert got.cycles is not None and got.cycles.speedup == pytest.approx(math.exp(0.05) * 1600 / 1768, rel=1e-6)
    back = bench(on_gpu(gain(-0.05), mhz={"A": 1768, "B": 1600}))
    assert back.reason.startswith("clock.contradiction: in time -4.88 %"), "the other way round"


@pytest.mark.parametrize("clock", [1600, 1640, 1681])
def test_a_clock_that_only_changes_the_size_of_a_gain_does_not_contradict_it(clock: int) -> None:
    """Breaks if a kernel that draws less power, and so runs at a higher clock, loses its gain in time."""
    got = bench(on_gpu(gain(0.05), mhz={"A": 1600, "B": clock}))
    assert got.verdict == "IMPROVED"


def test_a_block_without_a_clock_reading_leaves_the_cycles_out() -> None:
    one = on_gpu(gain(0.05))
    first = msgspec.structs.replace(one.samples[0], mhz=())
    got = bench(msgspec.structs.replace(one, samples=(first, *one.samples[1:])))
    assert (got.verdict, got.cycles) == ("IMPROVED", None)


# --- heat


def hot(*looks: GpuLook) -> Raw:
    return on_gpu(gain(0.05), looks=looks)


def test_a_hot_pair_goes_with_both_arms_and_a_partner_of_the_other_order() -> None:
    """Pair 3 starts with B; its nearest neighbour that starts with A is pair 2. Breaks if one arm stays."""
    got = cool([hot(look(3, "hw_thermal"))])
    assert got.left_out == (2, 3)
    assert {s.pair for s in got.raws[0].samples} == {0, 1, 4, 5}
    made = bench(hot(look(3, "hw_thermal")))
    assert (made.pairs, made.left_out, made.verdict) == (4, (2, 3), "IMPROVED")
    assert made.notes[0] == "gpu.hw_thermal: seen in j, time, pair 3"
    both = cool([hot(look(0, "hw_slowdown"), look(3, "hw_thermal"))])
    assert both.left_out == (0, 3), "one of either order is balanced already"


def test_a_power_cap_drops_nothing() -> None:
    """Breaks if the kernel's own power is taken for the machine's fault."""
    made = bench(hot(look(0, "power_cap"), look(1, "power_cap", "sw_thermal")))
    assert (made.pairs, made.left_out, made.notes) == (6, (), ())


def test_a_gpu_that_is_hot_most_of_the_time_decides_nothing() -> None:
    got = bench(hot(*(look(p, "hw_thermal") for p in (0, 2, 3, 5))))
    assert (got.verdict, got.pairs, got.left_out) == ("AMBIGUOUS", 6, ())
    assert got.reason == "suspect.heat: the GPU was slowed down for heat (hw_thermal) in 4 of 6 pairs"
    control = floor([hot(*(look(p, "hw_thermal") for p in (0, 2, 3, 5)))], timed=("c",), device=GPU)
    assert not control.fit and control.reason.startswith("floor.heat: ")


def test_left_out_pairs_count_as_looked_at() -> None:
    """Breaks if a hot machine makes the next look start over pairs that exist, or never end."""
    wide = exact({"c": [0.03, -0.03, 0.02, -0.02, 0.01, -0.01]})
    got = bench(on_gpu(wide, looks=[look(3, "hw_thermal")]))
    assert (got.pairs, got.need_more) == (4, 10)


# --- the memory's own speed


def test_cold_bytes_are_those_that_cannot_be_avoided() -> None:
    """in, static and out once, inout twice, hot ones and repeated elements not: 4 + 8 + 4 + 2 * 4 + 4 MiB."""
    one = case(
        tensor("x", "in", MIB),
        tensor("w", "static", 4 * MIB, dtype="bfloat16"),
        tensor("y", "out", MIB),
        tensor("r", "inout", MIB),
        tensor("h", "in", MIB, residency="hot"),
        tensor("b", "in", MIB, shape=(1000, MIB), stride=(0, 1)),
        tensor("eps", "scalar", 1, shape=(), stride=(), value=1e-5),
    )
    assert cold_bytes(one) == 28 * MIB
    assert cold_bytes(one, frozenset({"x"})) == 24 * MIB


MOVED = case(tensor("x", "in", 4 * MIB), tensor("y", "out", 4 * MIB))
"""32 MiB a call: 7 us at 4800 GB/s (6.99)."""


def timed(us: float, centre: float = 0.05) -> Raw:
    return on_gpu(gain(centre, base_ns=round(us * 4 * 1000)))  # four calls a block


def test_a_time_below_what_the_memory_can_do_is_quarantined() -> None:
    """33.55 MB in 6.9 us is 4863 GB/s, the datasheet says 4800; the incumbent's 7.25 us is possible."""
    got = bench(timed(6.9), cases=(MOVED,))
    assert (got.verdict, got.partial) == ("AMBIGUOUS", False)
    assert got.reason == (
        "suspect.floor: case c has 32.0 MiB cold; 6.9 us would be 1.01 x the 4800 GB/s of this memory's datasheet"
    )
    assert got.cases[0].share_of_datasheet == pytest.approx(1.0131, abs=1e-3)
    assert bench(timed(7.1), cases=(MOVED,)).verdict == "IMPROVED", "just above the floor"
    assert bench(timed(6.9)).verdict == "IMPROVED", "without byte counts nothing is known"


def test_a_count_that_the_incumbent_beats_as_well_is_no_floor() -> None:
    """Breaks if an operator that gathers a part of a big table is called a cheat."""
    got = bench(timed(2.0), cases=(MOVED,))
    assert got.verdict == "IMPROVED"
    assert got.notes[0].startswith("floor.unsound: case c has 32.0 MiB cold")


def test_what_was_not_cold_after_all_is_not_counted() -> None:
    stayed = Residency(case_id="c", tensor="x", asked="cold", reached="partial", how="too large to flush")
    got = bench(msgspec.structs.replace(timed(6.9), residency=(stayed,)), cases=(MOVED,))
    assert (got.verdict, got.cases[0].cold_bytes) == ("IMPROVED", 16 * MIB)


def test_shares_are_of_the_measured_copy_nearest_in_size() -> None:
    """33.55 MB in 10 us is 3355 GB/s."""
    table = {"copy@1MiB": 900.0, "copy@64MiB": 4000.0, "read@32MiB": 1.0, "matmul@bfloat16": 700.0, "copy@4GiB": 4400.0}
    one = timed(10.0)
    got = judge([one], tier=ACCEPT, device=GPU, required=frozenset(), timed=("c",), cases=(MOVED,), ceilings=table)
    assert got.cases[0].share_of_ceiling == pytest.approx(3355.4 / 4000.0, abs=1e-3)
    bare = judge([one], tier=ACCEPT, device=GPU, required=frozenset(), timed=("c",), cases=(MOVED,))
    assert bare.cases[0].share_of_ceiling is None
    assert judge(
        [one], tier=ACCEPT, device=CPU, required=frozenset(), timed=("c",), cases=(MOVED,)
    ).cases[0].cold_bytes is None  # fmt: skip


# --- one way of timing


@pytest.mark.parametrize("changed", [{"method": "events"}, {"figure": "isolated"}])
def test_a_case_is_timed_in_one_way(changed: dict[str, str]) -> None:
    """Breaks when one arm's replays are held against another's events, or one look's against the next one's."""
    one = on_gpu(gain(0.05))
    for at in (1, len(one.samples) - 1):
        items = list(one.samples)
        items[at] = msgspec.structs.replace(items[at], **changed)
        with pytest.raises(NotComparable, match="case c was timed in two ways"):
            tabulate([msgspec.structs.replace(one, samples=tuple(items))], timed=("c",))
    every = tuple(msgspec.structs.replace(s, **changed) for s in one.samples)
    got = bench(msgspec.structs.replace(one, samples=every)).cases[0]
    assert {"figure": got.figure, "method": got.method}.items() >= changed.items()


# --- the clocks


def hidden(us: float, *, block_ns: int = 2_000_000, flush_us: float = 900.0) -> Raw:
    """Both arms' walls hold the flushes; B's holds ``us`` more than its spans say."""
    one = on_gpu(exact({"c": [0.0] * 6}, base_ns=block_ns))
    extra = {"A": flush_us, "B": flush_us + us}
    walled = [
        msgspec.structs.replace(s, wall_ns=tuple(t + round(extra[s.arm] * 1000) + 7 * i for i, t in enumerate(s.ns)))
        for s in one.samples
    ]
    jitter = [msgspec.structs.replace(s, ns=tuple(t + 3 * i for i, t in enumerate(s.ns))) for s in walled]
    return msgspec.structs.replace(one, samples=tuple(jitter))


def test_flushes_that_both_arms_wait_for_are_no_lie() -> None:
    """A wall of several times the spans is usual for small kernels: breaks if the ratio of the clocks is asked."""
    assert suspicions([hidden(0.0, block_ns=400_000, flush_us=4000.0)]) == ()
    assert suspicions([hidden(50.0)]) == (), "60 us is how far waking and waiting may stray"


def test_a_fraction_of_hidden_work_is_seen_on_a_gpu() -> None:
    """70 us of 2 ms are 3.5 %: a CPU's limits, 20 % and 100 us, would let it pass."""
    found = suspicions([hidden(70.0)])
    assert [(f.code, f.arm) for f in found] == [("cheat.clock", "B")]
    assert found[0].text.startswith("the GPU's clock says 2000.0 us, the parent's 2970.0 us")
    assert suspicions([hidden(200.0, block_ns=10_000_000)]) == (), "2 % of a long block"
    assert [f.code for f in suspicions([hidden(350.0, block_ns=10_000_000)])] == ["cheat.clock"]


def waited(of_a: list[int], of_b: list[int]) -> Raw:
    """Microseconds that the parent waited beside the spans, block by block and the same in every pair."""
    one = on_gpu(exact({"c": [0.0] * 6}, base_ns=2_000_000))
    waits = {"A": of_a, "B": of_b}
    samples = []
    for s in one.samples:
        ns = tuple(s.ns[0] + 3 * i for i in range(len(of_a)))
        wall = tuple(t + 1000 * us for t, us in zip(ns, waits[s.arm], strict=True))
        samples.append(msgspec.structs.replace(s, ns=ns, wall_ns=wall))
    return msgspec.structs.replace(one, samples=tuple(samples))


def test_a_lucky_wait_of_the_incumbent_is_no_lie_of_the_candidate() -> None:
    """An honest candidate with a forked stream, seen on an idle H200: breaks when the quickest blocks are compared."""
    of_a, of_b = [1210, 1322, 1335, 1318, 1350, 1329], [1361, 1380, 1352, 1322, 1366, 1374]
    assert suspicions([waited(of_a, of_b)]) == ()
    assert [f.code for f in suspicions([waited(of_a, [us + 70 for us in of_b])])] == ["cheat.clock"]


# --- tiers


def test_a_gpus_tiers_are_the_promised_ones() -> None:
    got = tiers("gpu")
    assert {name: t.looks for name, t in got.items()} == {"screen": (2,), "accept": (6, 10, 20), "claim": (10,)}
    assert (got["claim"].alpha, got["screen"].may_improve, got["claim"].confirm) == (0.01, False, True)
    assert {name: t.blocks for name, t in got.items()} == {"screen": 8, "accept": 12, "claim": 16}
    assert list(tiers("cpu").values()) == [SCREEN, ACCEPT, CLAIM]


def test_a_gpu_bench_survives_the_file() -> None:
    got = bench(hot(look(3, "hw_thermal")), cases=(MOVED,))
    assert benchmark.parse(benchmark.dump(got)) == got
