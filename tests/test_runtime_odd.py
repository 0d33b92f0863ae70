"""Which calls of a block ask for a judgement: distances worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelpilot_helpers.runtime import odd
from kernelpilot_helpers.runtime.arena import Arena
from kernelpilot_helpers.runtime.frames import NumpyFrame
from kernelpilot_helpers.runtime.spec import Case, Tensor

F = NumpyFrame()
NAN, INF = math.nan, math.inf


def tensor(name: str, dtype: str = "float32", shape: tuple[int, ...] = (2, 3), role: str = "out") -> Tensor:
    stride = (8, 2)[-len(shape) :] if shape else ()
    return Tensor(
        name=name, role=role, dtype=dtype, shape=shape, stride=stride, offset=1, align=64, gen="normal(0,1)", value=None
    )


class Two:
    """The arenas of two arms, four calls each; every output of both holds the number of its call."""

    def __init__(self, *tensors: Tensor) -> None:
        self.case = Case(case_id="c", axes={}, flags={}, timed=True, tensors=tensors)
        self.mine, self.theirs = (Arena(F, self.case, 4) for _ in "ab")
        for arena in (self.mine, self.theirs):
            for t in tensors:
                for slot in range(4):
                    arena.stacked(t)[slot] = slot

    def odd(self, judged: int = 0) -> set[int]:
        return odd.odd_calls(F, self.mine, self.theirs, judged)


def test_the_stack_of_calls_is_what_each_call_holds() -> None:
    """Breaks when strides, offsets or the step between calls are taken for others than the arena's."""
    t = tensor("out")
    two = Two(tensor("x", role="in"), t, tensor("mask", "bool", (5,)))
    assert [two.mine.snapshot(s)["out"].tolist() for s in range(4)] == [[[s] * 3] * 2 for s in range(4)]
    assert two.mine.snapshot(3)["mask"].tolist() == [True] * 5


def test_equal_answers_and_like_rounding_ask_for_nothing() -> None:
    t = tensor("out")
    two = Two(t)
    assert two.odd() == set()
    two.mine.stacked(t)[:, 0, 0] += np.array(
        [0.25, 0.25, 0.75, 0.5], np.float32
    )  # three times the judged call's at most
    assert two.odd() == set()


@pytest.mark.parametrize("wrong", [2.0 + 1e-6, 99.0, INF, NAN])
def test_the_farthest_call_is_judged(wrong: float) -> None:
    """Breaks when a call answered from memory, or not at all, is left to a lucky draw."""
    t = tensor("out")
    two = Two(t)
    two.mine.stacked(t)[2, 1, 1] = wrong
    assert two.odd() == {2}
    assert two.odd(judged=2) == set()


def test_every_output_has_a_farthest_call() -> None:
    out, picked = tensor("out"), tensor("picked", "int64", (3,), role="inout")
    two = Two(out, picked, tensor("empty", shape=(0, 3)))
    two.mine.stacked(out)[1] += 1.0
    two.mine.stacked(picked)[3, 2] = 0
    assert two.odd() == {1, 3}


@pytest.mark.parametrize(
    ("a", "b", "gap"),
    [(NAN, NAN, 0.0), (INF, INF, 0.0), (INF, -INF, INF), (NAN, 1.0, INF), (INF, 1.0, INF), (3, 1, 2.0)],
)  # fmt: skip
def test_what_is_no_number_is_far_from_all_but_its_like(a: float, b: float, gap: float) -> None:
    t = tensor("out", shape=(3,))
    two = Two(t)
    two.mine.stacked(t)[1, 1], two.theirs.stacked(t)[1, 1] = a, b
    assert odd.distances(F, t, two.mine.stacked(t), two.theirs.stacked(t)) == [0.0, gap, 0.0, 0.0]


def test_stretches_give_what_one_look_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    t = tensor("out", "float16")
    two = Two(t)
    two.mine.stacked(t)[3] += 4
    monkeypatch.setattr(odd, "HOST_ELEMENTS", 13)  # two calls of six elements
    assert odd.distances(F, t, two.mine.stacked(t), two.theirs.stacked(t)) == [0.0, 0.0, 0.0, 4.0]
