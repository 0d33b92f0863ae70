"""contract.toml: what is accepted, what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpilot_helpers import contract
from kernelpilot_helpers.contract.model import Tensor
from kernelpilot_helpers.errors import BadRecord, NewerFormat

GOLDEN = Path(__file__).parent / "golden" / "contract"
GOOD = sorted((GOLDEN / "good").glob("*.toml"))
BAD = sorted((GOLDEN / "bad").glob("*.toml"))


def load(name: str) -> contract.Contract:
    return contract.parse((GOLDEN / "good" / f"{name}.toml").read_bytes(), at="contract.toml")


def said(error: BadRecord) -> list[str]:
    """The faults, one a line; the count line of a list is checked and dropped."""
    lines = [line.strip() for line in error.what.splitlines()]
    if lines[0].endswith((" fault", " faults")):
        assert int(lines[0].split()[0]) == len(lines) - 1
        return lines[1:]
    return lines


def test_the_goldens_are_there() -> None:
    """Breaks if a moved folder makes the parametrised tests below run on nothing."""
    assert len(GOOD) >= 4
    assert len(BAD) >= 40


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good_contracts_survive_a_round_trip(path: Path) -> None:
    """Breaks if dump drops a field, reorders tensors (call order!) or writes what parse refuses."""
    first = contract.parse(path.read_bytes(), at=path.name)
    text = contract.dump(first)
    again = contract.parse(text, at="dumped")
    assert again == first
    assert list(again.tensors) == list(first.tensors)
    assert list(again.axes) == list(first.axes)
    assert contract.dump(again) == text


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_bad_contracts_are_refused_in_these_words(path: Path) -> None:
    """Breaks if a fault is missed, if only the first is told, or if a path or value is lost from the message."""
    want = path.with_suffix(".err").read_text().splitlines()
    with pytest.raises(BadRecord) as caught:
        contract.parse(path.read_bytes(), at="contract.toml")
    assert sorted(said(caught.value)) == sorted(want)
    assert caught.value.where == "contract.toml"
    assert caught.value.fix


def test_a_newer_file_is_refused_as_newer_and_not_as_broken() -> None:
    """Breaks if the remedy for a newer file would be to edit it."""
    with pytest.raises(NewerFormat) as caught:
        contract.parse((GOLDEN / "bad" / "newer.toml").read_bytes(), at="c")
    assert caught.value.fix == "update KernelPilot: git pull && ./install.sh"


def test_short_dtype_names_become_long_ones() -> None:
    """Breaks if ``f32`` reaches the runtime, which knows only ``float32``."""
    assert [t.dtype for t in load("int8_scaled_mm").tensors.values()] == [
        "int8", "int8", "float32", "float32", "bfloat16", "flag:out_dtype",
    ]  # fmt: skip


def test_defaults_are_the_strict_ones() -> None:
    """Breaks if a contract that says nothing about numerics is judged more loosely than the policy."""
    made = load("fused_add_rmsnorm")
    assert (made.numerics.rms_ratio, made.numerics.tile_ratio, made.numerics.max_ratio) == (1.5, 3.0, 2.0)
    assert made.policy.library_calls is False
    assert made.tensors["x"] == Tensor(role="in", dtype="float32", shape=("M", "N"))


def test_not_utf8_and_not_a_table() -> None:
    """Breaks if odd bytes end in a traceback."""
    with pytest.raises(BadRecord, match="not valid TOML"):
        contract.parse(b"\xff\xfe", at="c")
    doc = (GOLDEN / "good" / "fused_add_rmsnorm.toml").read_text().replace("task = {", "task_ = {")
    with pytest.raises(BadRecord) as caught:
        contract.parse(("task = 3\n" + doc).encode(), at="c")
    assert "task = 3: want a table" in said(caught.value)
