"""What must not change a class, and what may only make it less sure."""

from __future__ import annotations

import csv
import dataclasses
import io
import random

import pytest

from kernelpilot_helpers import ncu, records
from kernelpilot_helpers.ncu import quantity, raw
from kernelpilot_helpers.ncu.decide import decide
from kernelpilot_helpers.ncu.facts import gather
from kernelpilot_helpers.ncu.metrics import ROLES, Readings, wanted
from kernelpilot_helpers.ncu.model import RANK
from kernelpilot_helpers.ncu.report import Launch
from kernelpilot_helpers.ncu.validity import doubts
from tests import ncu_files as files

KERNELS = (
    *("copy_vec4", "fma_bound", "low_occupancy", "reg_spill", "smem_conflict", "tail_wave", "tiny_launch"),
    *("embedding", "gemm_large", "gemm_small_m", "gemv", "sdpa", "triton_rms"),
)
FILES = (*KERNELS, "multi-detailed", "live-with-banner", "two-processes")
SMALLER = {"ns": ("us", 1e3), "byte": ("Kbyte", 1e3), "hz": ("Ghz", 1e9), "byte/s": ("Gbyte/s", 1e9),
           "byte/block": ("Kbyte/block", 1e3), "inst": ("Minst", 1e6), "sector": ("Ksector", 1e3)}  # fmt: skip


def verdict(launch: Launch, locale: str) -> tuple[str, str]:
    """Class and confidence of one launch."""
    facts = gather(Readings(launch=launch, locale=locale))
    found = decide(facts, doubts(facts))
    return found.hit.name, found.confidence


def same(one: ncu.Digest, other: ncu.Digest) -> bool:
    """Whether two digests name the same classes with the same confidence for the same kernels."""
    return [(g.kernel, g.name, g.confidence) for g in one.groups] == [
        (g.kernel, g.name, g.confidence) for g in other.groups
    ] and (one.name, one.next_step.family) == (other.name, other.next_step.family)


@pytest.mark.parametrize("name", FILES)
def test_the_order_of_columns_and_rows_says_nothing(name: str) -> None:
    """Breaks when a column is found by place, or the first launch of a file is special."""
    data = files.capture(f"{name}.raw.csv")
    head, units, *launches = next_rows(data)
    rng = random.Random(7)
    order = list(range(len(head)))
    rng.shuffle(order)
    rng.shuffle(launches)
    shuffled = files.page([[row[ix] for ix in order] for row in (head, units, *launches)])
    assert same(files.digest(data), files.digest(shuffled))


def next_rows(data: bytes) -> list[list[str]]:
    """Rows of the table without banner lines."""
    return [r for r in csv.reader(io.StringIO(data.decode())) if len(r) > 100]


@pytest.mark.parametrize("name", KERNELS)
def test_auto_scaled_units_change_nothing(name: str) -> None:
    """Breaks when a value is used without the factor of its unit."""

    def scaled(_name: str, unit: str, text: str) -> tuple[str, str]:
        value = quantity.number(text, "C")
        if unit not in SMALLER or value is None:
            return unit, text
        to, factor = SMALLER[unit]
        return to, f"{value / factor:.15f}"

    data = files.capture(f"{name}.raw.csv")
    assert b'"us"' in files.rewritten(data, scaled)
    assert same(files.digest(data), files.digest(files.rewritten(data, scaled)))


@pytest.mark.parametrize("name", KERNELS)
def test_a_decimal_comma_changes_nothing(name: str) -> None:
    """Breaks when commas are stripped whatever they mean: 65,77 % would be 6577 %."""
    swap = str.maketrans(",.", ".,")

    def comma(_name: str, unit: str, text: str) -> tuple[str, str]:
        return unit, text.translate(swap) if text[:1].isdigit() else text

    data = files.capture(f"{name}.raw.csv")
    found = files.digest(files.rewritten(data, comma))
    assert found.locale == "comma"
    assert same(files.digest(data), found)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_metric_never_turns_into_a_sure_wrong_class(name: str) -> None:
    """Breaks when an absent metric counts as 0, or a rule is passed over whose numbers are missing."""
    report = raw.parse(files.capture(f"{name}.raw.csv"), name="x.csv", sha256="")
    rng = random.Random(3)
    for launch in report.launches:
        was = verdict(launch, report.locale)
        used = {k: v for k, v in launch.metrics.items() if wanted(k)}
        columns = sorted(used)
        drops = [set(spec[1:]) for spec in ROLES.values()]
        drops += [{column} for column in columns]
        drops += [set(rng.sample(columns, rng.randint(2, len(columns) - 1))) for _ in range(60)]
        for drop in drops:
            left = {k: v for k, v in used.items() if k not in drop}
            name_now, sure = verdict(dataclasses.replace(launch, metrics=left), report.locale)
            assert name_now == was[0] or sure in ("low", "none"), sorted(drop)[:5]
            assert name_now != was[0] or RANK[sure] <= RANK[was[1]], sorted(drop)[:5]


def test_damaged_cells_never_end_in_a_traceback() -> None:
    """Breaks when a zero, a negative or a huge number divides, overflows or leaves the record unreadable."""
    rng = random.Random(11)
    texts = ["0", "-1", "1e308", "1e29", "nan", "", "n/a", "5", "99.9", "1,000", "0.00", "-3.5", "120", "x", "(1; 2)"]
    seen = set()
    for name in ("low_occupancy", "sdpa", "tail_wave", "reg_spill"):
        head, units, row = files.rows_of(files.capture(f"{name}.raw.csv"))
        keep = [ix for ix, column in enumerate(head) if ix < 11 or wanted(column)]
        for _ in range(60):
            rate = rng.choice((0.02, 0.1, 0.5, 1.0))
            new = [rng.choice(texts) if ix > 6 and rng.random() < rate else row[ix] for ix in keep]
            data = files.page([[head[ix] for ix in keep], [units[ix] for ix in keep], new])
            found = files.digest(data, min_bytes=rng.choice((None, 1000)))
            assert records.parse(records.dump(found), ncu.OWNER, at="x") == found
            assert len(ncu.text(found).splitlines()) <= 12
            ncu.markdown(found)
            seen.add(found.name)
    assert len(seen) > 5
