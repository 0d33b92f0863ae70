"""What the digest says of kernels whose bottleneck is known by construction, as captured on an H200."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from kernelpilot_helpers.ncu import examine, load
from tests.gpu.microkernels.table import CASES, Micro

GOLDEN = Path(__file__).parent / "golden/ncu/micro"


@pytest.mark.parametrize("micro", CASES, ids=lambda m: m.name)
def test_the_class_of_every_micro_kernel(micro: Micro) -> None:
    """Breaks when a change of a rule or a threshold takes a known bottleneck for another one.

    The facts are those of ``--set full`` (``scripts/digest_benchmark.py``).
    """
    data = lzma.decompress((GOLDEN / f"{micro.name}.facts.json.xz").read_bytes())
    found = examine.digest_of(load.read(data, name="facts.json", sha256="")).digest
    assert found.name in micro.classes
    assert found.next_step.kind in micro.steps
