"""What the digest says of kernels whose bottleneck is known by construction, as captured on an H200."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from kernelpilot_helpers.ncu import examine, load
from kernelpilot_helpers.ncu.model import Digest
from tests.gpu.microkernels.table import BY_NAME, CASES, Micro

GOLDEN = Path(__file__).parent / "golden/ncu/micro"


BETWEEN = "launch_bound"
"""Its fix also saves the time between launches, which is in no report."""


def said(micro: Micro) -> Digest:
    data = lzma.decompress((GOLDEN / f"{micro.name}.facts.json.xz").read_bytes())
    return examine.digest_of(load.read(data, name="facts.json", sha256="")).digest


@pytest.mark.parametrize("micro", CASES, ids=lambda m: m.name)
def test_the_class_of_every_micro_kernel(micro: Micro) -> None:
    """Breaks when a change of a rule or a threshold takes a known bottleneck for another one.

    The facts are those of ``--set full`` (``scripts/digest_benchmark.py``).
    """
    found = said(micro)
    assert found.name in micro.classes
    assert found.next_step.kind in micro.steps


@pytest.mark.parametrize("micro", [m for m in CASES if m.fix and m.name != BETWEEN], ids=lambda m: m.name)
def test_the_fix_wins_no_more_than_the_bound_says(micro: Micro) -> None:
    """Breaks when a digest says "at most" of a share that the known fix exceeds (times of the same H200)."""
    times = json.loads((GOLDEN / "times.json").read_text())[Path(micro.source).stem]
    won = 1.0 - times[BY_NAME[micro.twin or ""].arm] / times[micro.arm]
    found = said(micro)
    assert found.headline is not None
    assert won <= found.groups[found.headline].bound + 0.01


def test_the_next_capture_is_made_as_this_one_was() -> None:
    """Breaks when the command that verifies an edit locks the clocks and makes a report that does not compare."""
    assert said(BY_NAME["smem_column"]).next_step.command.startswith("ncu --clock-control none --set full ")
