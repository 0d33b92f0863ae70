"""Every known way to look faster on a GPU, through the real runtime and the attempt's own decisions."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import pytest

from tests.hostile.gpu import table
from tests.hostile.gpu.compiles import compiled, kernels
from tests.hostile.gpu.pen import HERE, KINDS, SHARED, TWINS, ZOO, Pen, faults, flagged, request
from tests.hostile.gpu.table import ABSENT, CHEATS, HONEST, HONEST_CALL_S, Cheat

PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON", "")
NVCC = shutil.which("nvcc") or ""


def no_gpu() -> str:
    """Why the zoo cannot be measured here; empty when it can."""
    if not PYTHON:
        return "set KERNELPILOT_TEST_TORCH_PYTHON to a Python with torch for CUDA"
    try:
        count = ctypes.c_int()
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
            return "the driver sees no GPU"
    except OSError:
        return "no NVIDIA driver on this machine"
    return ""


needs_gpu = pytest.mark.skipif(bool(no_gpu()), reason=no_gpu())


@pytest.fixture(scope="module")
def pen(tmp_path_factory: pytest.TempPathFactory) -> Pen:
    return Pen(tmp_path_factory.mktemp("gpu_pen"), PYTHON)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("cheat", [c for c in CHEATS if c.name in table.core()], ids=lambda c: c.name)
def test_the_cheat_is_caught(pen: Pen, cheat: Cheat) -> None:
    """Breaks when a cheat passes, or is blamed for something else."""
    outcome = pen.outcome(ZOO / cheat.name, kind=cheat.kind, call_s=cheat.call_s)
    assert not faults(cheat.name, outcome, verdict=cheat.verdict, codes=cheat.codes)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", sorted(HONEST))
def test_the_honest_pass(pen: Pen, name: str) -> None:
    """Breaks when a joined stream, a graph inside, atomics or a compiler is taken for a cheat."""
    assert not flagged(name, pen.outcome(ZOO / name, kind=HONEST[name], call_s=HONEST_CALL_S))


def folders(place: Path) -> list[Path]:
    return sorted(p for p in place.iterdir() if p.is_dir() and p.name not in ("__pycache__", "shared"))


def test_the_table_and_the_folder_agree() -> None:
    """Breaks when a candidate is added without a verdict, is listed twice, or a catalogue row is forgotten."""
    names = [c.name for c in CHEATS] + list(HONEST)
    assert len(names) == len(set(names))
    assert set(names) == {p.name for p in folders(ZOO)}
    assert {c.row for c in CHEATS} - {0} | set(ABSENT) == set(range(1, 35))
    assert {c.kind for c in CHEATS} | set(HONEST.values()) == set(KINDS)


def test_the_core_holds_every_row_and_every_honest_one() -> None:
    """Breaks when the short run leaves a row of the catalogue out."""
    core = table.core()
    assert {c.row for c in CHEATS if c.name in core} == {c.row for c in CHEATS}
    assert set(HONEST) <= core <= {c.name for c in CHEATS} | set(HONEST)


def test_every_inhabitant_says_what_it_does() -> None:
    """Breaks when a one-line docstring is missing, or an honest one does not call itself so."""
    for folder in (*folders(ZOO), *folders(TWINS)):
        line = (folder / "candidate.py").read_text().splitlines()[0]
        assert line.startswith('"""') and line.endswith('."""'), folder.name
        assert line.startswith('"""Honest: ') == folder.name.startswith("honest_"), folder.name


def test_the_readme_lists_every_inhabitant() -> None:
    """Breaks when README.md was not written again after a change of the zoo."""
    text = (HERE / "README.md").read_text()
    for folder in folders(ZOO):
        line = (folder / "candidate.py").read_text().splitlines()[0].strip('"').removeprefix("Honest: ")
        assert f"| {folder.name} |" in text and line in text, folder.name


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_contracts_of_the_zoo_parse(kind: str) -> None:
    """Breaks when a field that the zoo needs is refused."""
    made = request(kind, "H200")
    assert len(made.cases) >= 4
    assert made.contract.target.gpu == "H200"


def test_every_macro_is_one_of_the_shared_kernel() -> None:
    """Breaks when a candidate's macro has no place in ``shared/rms.cu``: it would be the honest kernel then."""
    text = (SHARED / "rms.cu").read_text()
    names = {flag[2:].split("=")[0].split("(")[0] for f in folders(ZOO) for _, flags in kernels(f) for flag in flags}
    assert len(names) >= 10
    assert [n for n in sorted(names) if f"ifndef {n}" not in text and f"ifdef {n}" not in text] == []


@pytest.mark.skipif(not NVCC, reason="no nvcc on PATH: scripts/gpu_zoo.py --compile needs it as well")
def test_the_kernels_compile(tmp_path: Path) -> None:
    """Breaks when a cheat would end BROKEN because its CUDA is none (all macros: scripts/gpu_zoo.py --compile)."""
    own = [job for f in folders(ZOO) for job in kernels(f) if not job[1] and f.name != "no_compile"]
    failed = {str(path): said for path, flags in dict.fromkeys(own) if (said := compiled(NVCC, path, flags, tmp_path))}
    assert failed == {}
