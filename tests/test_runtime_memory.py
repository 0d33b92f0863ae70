"""Arenas and contents: what a call may touch, and that no two calls see the same numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelpilot_helpers.runtime.arena import REDZONE, Arena, layout
from kernelpilot_helpers.runtime.content import Contents, parse_gen, shaped
from kernelpilot_helpers.runtime.frames import NumpyFrame
from kernelpilot_helpers.runtime.spec import Case, JobError, Tensor, parse_case

F = NumpyFrame()


def tensor(name: str, role: str, shape: tuple[int, ...] = (2, 8), **over: object) -> Tensor:
    stride = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    known = {
        "dtype": "float32", "shape": shape, "stride": stride, "offset": 0, "align": 64,
        "gen": "normal(0,1)", "value": None,
    }  # fmt: skip
    return Tensor(name=name, role=role, **{**known, **over})


def case(*tensors: Tensor) -> Case:
    return Case(case_id="c", axes={}, flags={}, timed=True, tensors=tensors)


X, Y, W = tensor("x", "in"), tensor("y", "inout"), tensor("w", "static", (8,))
OUT = tensor("out", "out")
ALL = case(X, Y, W, OUT)


class Bench:
    """An arena of three slots, filled with contents 1, 2 and 3."""

    def __init__(self, c: Case = ALL) -> None:
        self.contents = Contents(F, c)
        self.arena = Arena(F, c, 3)
        self.arena.fill_static(self.contents)
        self.held = {0: 1, 1: 2, 2: 3}
        for slot, k in self.held.items():
            self.arena.fill(slot, self.contents, k)

    def view(self, slot: int, name: str) -> np.ndarray:
        region = next(r for r in self.arena.layout.slots[slot] if r.tensor.name == name)
        return self.arena._view(region)

    def kinds(self, *ran: int) -> set[str]:
        inside = {s: k for s, k in self.held.items() if s in ran}
        outside = {s: k for s, k in self.held.items() if s not in ran}
        return {kind for kind, _ in self.arena.faults(inside, outside, self.contents)}


def test_an_honest_call_leaves_no_fault_and_reads_what_the_oracle_reads() -> None:
    b = Bench()
    assert np.array_equal(b.view(1, "x"), b.contents.inputs(2)["x"])
    b.view(1, "out")[:] = 1.0
    b.view(1, "y")[:] = 2.0
    assert b.kinds(1) == set()
    assert b.arena.snapshot(1)["out"].tolist() == [[1.0] * 8] * 2


@pytest.mark.parametrize(
    ("slot", "name", "kind"),
    [(1, "x", "cheat.input_mutated"), (0, "x", "cheat.input_mutated"), (0, "out", "cheat.neighbour"),
     (2, "y", "cheat.neighbour")],
)  # fmt: skip
def test_writing_what_a_call_does_not_own_is_named(slot: int, name: str, kind: str) -> None:
    b = Bench()
    b.view(slot, name)[1, 3] = 7.0
    assert b.kinds(1) == {kind}


def test_one_byte_beyond_either_end_is_seen() -> None:
    for side in (-1, 0):
        b = Bench()
        region = next(r for r in b.arena.layout.slots[0] if r.tensor.name == "out")
        at = region.data - 1 if side else region.data_end
        b.arena._map[at] = 0
        (fault,) = b.arena.faults({0: 1}, {}, b.contents)
        assert fault[0] == "memory.redzone"
        assert ("before out" if side else "after out") in fault[1]


def test_gaps_of_a_strided_output_are_not_the_calls_to_write() -> None:
    strided = tensor("out", "out", (2, 4), stride=(8, 2))
    b = Bench(case(X, strided))
    b.view(0, "out")[:] = 1.0
    assert b.kinds(0) == set()
    region = next(r for r in b.arena.layout.slots[0] if r.tensor.name == "out")
    b.arena._map[region.data + 4] = 0  # the element between columns 0 and 1
    assert b.kinds(0) == {"memory.redzone"}


def test_layout_keeps_alignment_offset_and_red_zones() -> None:
    plan = layout(case(tensor("x", "in", (3,), align=128, offset=1), OUT), 2)
    for slot in plan.slots:
        for region in slot:
            assert region.data - region.start >= REDZONE
            assert region.end - region.data_end == REDZONE
    assert plan.slots[1][0].data % 128 == 4
    assert plan.slots[0][1].start >= plan.slots[0][0].end


def test_no_two_calls_see_the_same_content_and_both_arms_see_the_same() -> None:
    contents = Contents(F, ALL)
    seen = {bytes(contents.window(X, k)) for k in range(500)}
    assert len(seen) == 500
    assert bytes(contents.window(W, 0)) == bytes(contents.window(W, 9))
    first, second = Bench(), Arena(F, ALL, 3)
    second.fill(0, first.contents, 1)
    assert np.array_equal(first.view(0, "x"), second._view(second.layout.slots[0][0]))


def test_poke_changes_one_element_of_each_input_and_the_oracle_sees_it() -> None:
    contents = Contents(F, ALL)
    before = {n: v.copy() for n, v in contents.inputs(4).items()}
    contents.poke(4)
    after = contents.inputs(4)
    assert {n: int((before[n] != after[n]).sum()) for n in before} == {"x": 1, "y": 1, "w": 0}
    assert before["x"][1, 4] != after["x"][1, 4]


@pytest.mark.parametrize("spec", ["const(0)", "zeros", "normal(0,0)", "uniform(1,1)", "normal(0)", "integers(3,3)"])
def test_a_generator_of_one_value_is_refused_by_name(spec: str) -> None:
    with pytest.raises(JobError, match="generator"):
        parse_gen(spec)


def test_regimes_have_their_shapes() -> None:
    values = F.normal(64 * 1000)
    assert np.abs(shaped(F, values, "small", 64)).max() < 0.01
    assert np.abs(shaped(F, values, "large", 64)).max() > 1000
    sparse = shaped(F, values, "sparse", 64).reshape(-1, 64)
    assert 0.85 < (sparse == 0).mean() < 0.95
    assert 0.8 < (sparse == 0).all(1).mean() < 0.9
    tails = shaped(F, values, "heavy_tail", 64)
    assert (tails**4).mean() / (tails**2).mean() ** 2 > 10  # a normal number has 3


def test_bfloat16_without_torch_is_refused_in_words() -> None:
    with pytest.raises(JobError, match="torch"):
        Contents(F, case(tensor("x", "in", dtype="bfloat16")))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "int8", "uint8", "bool"])
def test_every_other_dtype_is_filled_and_poisoned(dtype: str) -> None:
    spec = {"gen": "integers(0,100)"} if not dtype.startswith("float") else {}
    b = Bench(case(tensor("x", "in", dtype=dtype, **spec), tensor("out", "out", dtype=dtype)))
    assert len(np.unique(b.view(0, "x"))) > 1
    assert b.view(0, "out").dtype == np.dtype(dtype)
    if dtype.startswith("float"):
        assert np.isnan(b.view(0, "out")).all()


def test_slots_lie_at_equal_distances_and_every_copy_of_the_statics_has_its_own_place() -> None:
    """Breaks when one kernel can no longer reach a tensor in all slots by one stride."""
    wide = case(tensor("a", "in", (3,), align=256), tensor("b", "out", (5,), offset=1), tensor("w", "static", (7,)))
    plan = layout(wide, 3, 2)
    assert [[r.tensor.name for r in copy] for copy in plan.static] == [["w"], ["w"]]
    assert plan.static[1][0].start >= plan.static[0][0].end
    # a: 256 zone + 12 + 256 zone; b from 524: zone to 780, aligned 832, one element on: 836..856, zone: 1112 -> 1280.
    assert plan.step == 1280
    for name in (0, 1):
        places = [slot[name].data for slot in plan.slots]
        assert [b - a for a, b in itertools.pairwise(places)] == [1280, 1280]


def test_digests_and_kept_outputs_see_one_byte() -> None:
    b = Bench()
    b.arena.fill_all(b.contents, [7, 7, 8])
    same = b.arena.digest(0)
    assert same == b.arena.digest(1)
    assert {name: len(d) for name, d in same.items()} == {"y": 16, "out": 16}
    kept = b.arena.keep(0)
    assert b.arena.differ(kept, 1) == {}
    b.view(1, "y").view(np.uint8)[1, 3] ^= 1
    assert b.arena.digest(1)["y"] != same["y"]
    assert b.arena.differ(kept, 1) == {"y": "1 of 64 bytes differ between two calls on the same content"}


def test_a_case_brings_its_figure_and_where_its_tensors_are() -> None:
    raw = {"name": "x", "role": "in", "dtype": "float32", "shape": [2], "stride": [1]}
    known = {"case_id": "c", "axes": {}, "flags": {}, "timed": True}
    plain = parse_case({**known, "tensors": [raw]})
    assert (plain.figure, plain.tensor("x").residency) == ("pipelined", "cold")
    told = parse_case({**known, "figure": "chained", "tensors": [{**raw, "residency": "hot"}]})
    assert (told.figure, told.tensor("x").residency) == ("chained", "hot")
