"""The A/A floor, and programs that need no clock."""

from __future__ import annotations

import random

import msgspec
import pytest

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.benchmark import floor, identical, identical_bench
from kernelpilot_helpers.errors import NotComparable
from kernelpilot_helpers.policy import ACCEPT, CPU, GPU
from tests.bench_sim import CASES, exact, raw, simulate


def test_a_quiet_machine_is_fit_and_its_bias_is_the_point() -> None:
    """Breaks if the bound adds the half width: noise would then count twice."""
    got = floor([exact({"c": [0.004, 0.004, 0.002, 0.002]})], timed=("c",), device=GPU, alpha=0.05)
    assert got.point == pytest.approx(0.003, abs=1e-7)
    assert got.bias_bound == pytest.approx(0.003, abs=1e-7)
    assert got.half_width == pytest.approx(4.302653 * 0.001 / 2 * 2**0.5, rel=1e-3)
    assert (got.fit, got.pairs, got.cases[0].case_id) == (True, 4, "c")


@pytest.mark.parametrize(
    ("logs", "code"),
    [
        ([0.03, 0.03, -0.03, -0.03], "floor.noise"),
        ([0.02, 0.02, 0.0201, 0.0201], "floor.bias"),
        ([0.0, 0.0], "floor.too_few_pairs"),
    ],
)
def test_an_unfit_machine_says_why(logs: list[float], code: str) -> None:
    got = floor([exact({"c": logs})], timed=("c",), device=GPU)
    assert (got.fit, got.reason.split(":")[0]) == (False, code)


def test_the_limit_is_the_devices() -> None:
    """A CPU's floor of 1 .. 5 % is normal; on a GPU it means a busy machine."""
    jobs = [simulate(random.Random(4), pairs=6, pair_sd=0.03)]
    assert floor(jobs, timed=CASES, device=CPU).fit
    assert not floor(jobs, timed=CASES, device=GPU).fit


def twin(*, ok: bool = True, binary_id: str = "b" * 64) -> Raw:
    one = raw([])
    builds = tuple(msgspec.structs.replace(b, binary_id=binary_id, ok=ok) for b in one.builds)
    return msgspec.structs.replace(one, builds=builds)


def test_the_same_program_is_same_without_timing() -> None:
    got = identical_bench(twin(), tier=ACCEPT, device=GPU)
    assert (got.verdict, got.pairs, got.geomean.speedup, got.need_more) == ("SAME", 0, 1.0, None)
    assert got.reason.startswith("identical.binary: both arms are program bbbbbbbbbbbb")


def test_no_build_is_not_the_same_program() -> None:
    """Breaks if two missing, failed or unnamed builds compare equal."""
    assert identical(twin())
    assert not identical(raw([]))
    assert not identical(twin(ok=False))
    assert not identical(twin(binary_id=""))
    assert not identical(msgspec.structs.replace(twin(), builds=()))
    with pytest.raises(NotComparable, match="not the same program"):
        identical_bench(raw([]), tier=ACCEPT, device=GPU)
