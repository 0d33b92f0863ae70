"""The performance map: what it is built of, what makes it stale, and whose figures it refuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import autotune, contract
from kernelpilot_helpers.autotune import MapCase, Tuned
from kernelpilot_helpers.errors import NotComparable, Refused
from tests.report_sim import row
from tests.tuning_sim import CASES, bench, built, tuned


def test_a_cell_is_the_benches_own_figure() -> None:
    """Breaks when the map invents a statistic: ratio, ends and times are those of bench.json, case by case."""
    found = built(tuned("v001_a", {"w1": 1.5, "t1": 0.8}))
    cell = next(c for c in found.cells if c.case_id == "w1")
    seen = cell.vs_baseline
    assert (seen.speedup, seen.ci_low, seen.ci_high) == pytest.approx((1.5, 1.485, 1.515), abs=1e-12)
    assert (cell.baseline_us, cell.version_us) == (150.0, 100.0)
    assert [c.case_id for c in found.cells] == ["w1", "w2", "t1", "t2", "h1"]
    assert found.variants[0].pairs == 6


def test_runs_of_two_machines_make_no_map() -> None:
    """Breaks when one version is measured on one machine, the next on another, and both stand in one table."""
    a, b = tuned("v001_a"), tuned("v002_b")
    moved = Tuned(
        version=b.version, variant=b.variant, tree=b.tree, run=b.run, bench=b.bench,
        booking={"boot_id": "y", "cpu": "c"},
    )  # fmt: skip
    assert built(a, b).environment == {"boot_id": "x", "cpu": "c"}
    with pytest.raises(NotComparable, match=r"v001_a\.9 and v002_b\.9 differ in boot_id"):
        built(a, moved)


def test_runs_that_do_not_say_where_they_ran_make_no_map() -> None:
    """Breaks when an environment that is missing counts as the same environment."""
    a = tuned("v001_a")
    nowhere = Tuned(version=a.version, variant=a.variant, tree=a.tree, run=a.run, bench=a.bench, booking={})
    with pytest.raises(NotComparable, match="does not say where"):
        built(nowhere)


def test_a_case_without_figure_or_interval_makes_no_map() -> None:
    """Breaks when half a table is mapped, or two pairs are taken for an interval."""
    a = tuned("v001_a")
    short = msgspec.structs.replace(a.bench, cases=a.bench.cases[1:])
    open_ends = msgspec.structs.replace(
        a.bench, cases=tuple(msgspec.structs.replace(c, ci_low=None, ci_high=None) for c in a.bench.cases)
    )
    for wrong, words in ((short, "did not time case w1"), (open_ends, "too few pairs")):
        with pytest.raises(NotComparable, match=words):
            built(Tuned(version="v001_a", variant="a", tree="1" * 40, run="r.1", bench=wrong, booking=a.booking))


def test_no_version_is_no_map() -> None:
    """Breaks when an empty map is written, which would look like a map in which nothing is faster."""
    with pytest.raises(Refused, match=r"v001_a: wrong\.tail: columns"):
        built(left_out=(autotune.LeftOut(version="v001_a", tree="1" * 40, run="r.1", why="wrong.tail: columns"),))


def test_who_is_tuned() -> None:
    """Breaks when a rejected, foreign or later disproved version may be dispatched, or a partial one is lost."""
    one = row(1, "IMPROVED", 1.2)
    again = row(4, "IMPROVED", 1.2, tree=one.tree)
    partial = row(2, "AMBIGUOUS", 1.1, partial=True)
    plain = row(3, "AMBIGUOUS", 1.0)
    older = row(5, "IMPROVED", 1.2, epoch=0)
    disproved = row(6, "IMPROVED", 1.2)
    wrong = row(7, "WRONG", tree=disproved.tree, kind="recheck")
    rows = (older, one, partial, plain, disproved, wrong, again)
    assert [r.version for r in autotune.selected(rows, 1)] == ["v002_try2", "v004_try4"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epoch": 2}, "epoch 1; the lock is of epoch 2"),
        ({"cases": CASES[1:]}, "its cases are not those of W: w1"),
        (
            {"cases": (*CASES, MapCase(case_id="n", regime="r", axes={"M": 9, "N": 9}, required=True, held_out=False))},
            "n",
        ),
        ({"wanted": (row(1, "IMPROVED", 1.2),)}, "v001_try1 is selected and was not tuned"),
        ({"wanted": ()}, "v001_a is in the map and no longer selected"),
    ],
)
def test_a_stale_map_says_what_it_lacks(change: dict[str, Any], words: str) -> None:
    """Breaks when a map of another epoch, other cases or other versions passes for one of now."""
    found = built(tuned("v001_a"))
    mine = row(1, "IMPROVED", 1.2, version="v001_a", tree=found.variants[0].tree)
    said = autotune.coverage(found, **{"epoch": 1, "wanted": (mine,), "cases": CASES, **change})
    assert any(words in line for line in said), said
    assert autotune.coverage(found, epoch=1, wanted=(mine,), cases=CASES) == []


def test_a_missing_cell_is_named() -> None:
    """Breaks when a map that covers W only in its list of cases passes rule 24."""
    found = built(tuned("v001_a"))
    thin = msgspec.structs.replace(found, cells=found.cells[1:])
    mine = row(1, "IMPROVED", 1.2, version="v001_a", tree=found.variants[0].tree)
    assert autotune.coverage(thin, epoch=1, wanted=(mine,), cases=CASES) == ["case w1 has no figure of v001_a"]


def test_flags_and_axes_have_one_form() -> None:
    """Breaks when an optional tensor left out and one set to false are two things, or bf16 and bfloat16 are."""
    made = contract.parse(
        b"""format = "kernelpilot.contract"
version = 1
task = {name = "t", op = "gemm"}
target = {gpu = "cpu"}
axes = {M = {var = [1, 64]}, B = {var = [1, 8]}, T = {expr = "M * B"}}
baseline = [{id = "b"}]
[tensors]
x = {role = "in", dtype = "f32", shape = ["M", "B"]}
bias = {role = "in", dtype = "f32", shape = ["T"], optional = true}
out = {role = "out", dtype = "flag:out_dtype", shape = ["T"]}
""",
        at="contract.toml",
    )
    cases = (
        contract.Case(case_id="a", axes={"M": 4, "B": 2}, flags={"out_dtype": "bf16"}),
        contract.Case(case_id="e", axes={"M": 4, "B": 2}, flags={"out_dtype": "bf16"}, edge=True),
    )
    assert [(c.case_id, c.axes, c.flags) for c in autotune.cases_of(made, cases)] == [
        ("a", {"M": 4, "B": 2}, {"out_dtype": "bfloat16", "bias": False})
    ]


def test_the_sim_bench_is_a_bench() -> None:
    """Breaks if the fixtures above are not what the judge writes."""
    assert bench("r.1", {"w1": 1.5}).verdict == "IMPROVED"
