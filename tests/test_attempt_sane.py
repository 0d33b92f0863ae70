"""Numbers that no GPU measurement can give are refused before anything is judged."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kernelpilot_helpers.attempt import sane
from kernelpilot_helpers.attempt.raw import FigureTime, KernelUse, Raw, Sanitized
from tests.bench_sim import exact, look, on_gpu

GOOD = on_gpu(exact({"c": [0.0, 0.0]}), looks=[look(0)])


def with_first(**changed: Any) -> Raw:
    first = msgspec.structs.replace(GOOD.samples[0], **changed)
    return msgspec.structs.replace(GOOD, samples=(first, *GOOD.samples[1:]))


def figure(us: float, joules: float | None = None) -> Raw:
    one = FigureTime(arm="B", case_id="c", figure="sustained", us=us, joules=joules)
    return msgspec.structs.replace(GOOD, figures=(one,))


def kernel(ns: int, count: int = 1) -> Raw:
    one = KernelUse(arm="B", case_id="c", name="k", count=count, ns=ns, ours=True)
    return msgspec.structs.replace(GOOD, inventory=(one,))


def test_a_good_gpu_record_has_no_problem() -> None:
    assert sane.problems([GOOD]) == []
    assert sane.problems([figure(-0.2)]) == [], "a difference of two chains may fall below zero"


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (with_first(mhz=(1800, 1800)), "2 clock readings of 3 blocks"),
        (with_first(mhz=(1800, 0, 1800)), "mhz holds 0"),
        (with_first(mhz=(1800, 10**400, 1800)), "mhz holds 1000"),
        (with_first(cpu_ns=(1, 1, 1)), "processor time beside device time"),
        (with_first(method=""), "times of a GPU job without a method"),
        (kernel(-1), "inventory of c, arm B"),
        (kernel(5, count=0), "0 times"),
        (figure(float("nan")), "figure sustained of c"),
        (figure(10.0, joules=-1.0), "-1.0 J"),
        (msgspec.structs.replace(GOOD, ceilings={"copy@1MiB": 0.0}), "ceiling copy@1MiB is 0.0"),
        (msgspec.structs.replace(GOOD, env={**GOOD.env, "dram_gbs": "fast"}), "dram_gbs is fast"),
        (msgspec.structs.replace(GOOD, env={**GOOD.env, "dram_gbs": float("inf")}), "dram_gbs is inf"),
        (msgspec.structs.replace(GOOD, gpu=(msgspec.structs.replace(look(0), sm_mhz=(9, 8, 7)),)), "SM clock"),
        (
            msgspec.structs.replace(GOOD, sanitizer=(Sanitized(tool="memcheck", case_id="c", errors=-2, seconds=1.0),)),
            "memcheck on c counts -2 errors",
        ),
    ],
)
def test_what_no_measurement_gives_is_named(one: Raw, words: str) -> None:
    found = sane.problems([one])
    assert len(found) == 1 and words in found[0]
