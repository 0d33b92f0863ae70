"""Kernels whose bottleneck is known by construction, each with its fixed twin, and what a digest must say of them.

Numbers in comments are the rows of the catalogue: 1-19, then three pairs of causes in which waste must be named before
the symptom that it causes. The programs take their sizes from the device; see common.cuh.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Micro:
    """One kernel of one program. ``arm`` is the program's argument that launches it and nothing else it could match."""

    name: str
    source: str
    arm: str
    kernel: str
    """Regular expression for the function's base name."""
    classes: tuple[str, ...] = ()
    """Class ids that are right, the best first; empty: it only has to differ from the class of its case."""
    steps: tuple[str, ...] = ()
    """Kinds of next step that are right."""
    families: tuple[str, ...] = ()
    """Families of the edit that its fix makes."""
    twin: str | None = None
    fix: bool = False
    """Whether the twin is this kernel with the advised edit made: it must then be faster and of another class."""
    marker: str = "hot"
    """Comment that ends the true hot lines of the source."""
    flags: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    """Flags to build with where those of ``flags`` fail."""
    launches: int = 1
    """Launches that a full capture holds."""


def hot_lines(micro: Micro) -> tuple[int, ...]:
    """Numbers of the lines that end in the kernel's marker; none where the kernel is a library's."""
    ends = re.compile(rf"// {re.escape(micro.marker)}$")
    text = (FOLDER / micro.source).read_text(encoding="utf-8")
    return tuple(n for n, line in enumerate(text.splitlines(), 1) if ends.search(line))


def _pair(name: str, *classes: str, family: str, step: str = "edit", launches: int = 1) -> tuple[Micro, Micro]:
    """A program whose ``case`` is bad and whose ``twin`` is the fix."""
    bad = Micro(
        name=name, source=f"{name}.cu", arm="case", kernel=f"^{name}$", classes=classes, steps=(step,),
        families=(family,), twin=f"{name}_twin", fix=True, launches=launches,
    )  # fmt: skip
    good = Micro(
        name=f"{name}_twin", source=f"{name}.cu", arm="twin", kernel=f"^{name}_twin$", twin=name, launches=1,
        marker="no hot line is claimed",
    )  # fmt: skip
    return bad, good


KERNELS: tuple[Micro, ...] = (
    Micro(  # 1
        name="dram_copy", source="dram_copy.cu", arm="case", kernel="^dram_copy$",
        classes=("none.at_limit", "mem.dram_bw"), steps=("stop",),
    ),
    *_pair("strided_load", "mem.uncoalesced", family="coalesce"),  # 2
    *_pair("smem_column", "mem.smem_conflict", family="shared-layout"),  # 3
    *_pair("spill", "mem.spill", family="fewer-live-registers"),  # 4
    *_pair("low_occ_smem", "lat.occupancy", family="resource-cut"),  # 5
    *_pair("pointer_chase", "mem.bytes_in_flight", family="bytes-in-flight"),  # 6
    Micro(  # 7
        name="tensor_gemm", source="tensor_gemm.cu", arm="case", kernel="nvjet|gemm|cutlass|Kernel", launches=1,
        classes=("exec.tensor_bound",), steps=("stop", "edit"), families=("overlap-epilogue",), twin="gemm_fma",
        marker="no hot line is claimed", flags=("-lcublas",), fallback=("-DMICRO_NO_CUBLAS",),
    ),
    Micro(  # 7, the bad one: its fix is the GEMM on tensor cores
        name="gemm_fma", source="tensor_gemm.cu", arm="fma", kernel="^gemm_fma$", launches=1,
        classes=("exec.tensor_missing",), steps=("edit",), twin="tensor_gemm", fix=True, marker="hot fma",
        flags=("-lcublas",), fallback=("-DMICRO_NO_CUBLAS",),
    ),
    Micro(  # 8
        name="fma_chain", source="fma_chain.cu", arm="case", kernel="^fma_chain$", twin="fma_serial",
        classes=("exec.pipe_bound:fma",), steps=("stop", "edit"), families=("cheaper-mix",), marker="hot chain",
    ),
    Micro(  # 8, the bad one: its fix is eight accumulators
        name="fma_serial", source="fma_chain.cu", arm="serial", kernel="^fma_serial$", twin="fma_chain", fix=True,
        classes=("lat.dependency",), steps=("edit",), families=("independent-work",), marker="hot serial",
    ),
    *_pair("sfu_heavy", "exec.pipe_bound:xu", family="cheaper-mix"),  # 9
    *_pair("atomic_hot", "mem.atomics", family="reduce-first"),  # 10
    *_pair("divergence", "exec.divergence", family="uniform-warps"),  # 11
    *_pair("tail", "launch.tail", family="even-waves"),  # 12
    *_pair("imbalance", "exec.imbalance", family="even-work"),  # 13
    *_pair("launch_bound", "launch.many_small", family="fewer-launches", launches=12),  # 14
    *_pair("one_block", "launch.grid_small", family="split-work"),  # 14, its other form
    *_pair("barrier_skew", "lat.barrier", family="fewer-barriers"),  # 15
    *_pair("l1_bound", "mem.l1_lsu", family="fewer-l1-accesses"),  # 16
    *_pair("l2_bound", "mem.l2_bw", family="reuse-above-l2"),  # 17
    *_pair("icache", "lat.icache", family="smaller-body", launches=1),  # 18: 12,000 instructions a launch
    *_pair("byte_store", "mem.partial_store", family="pack-stores"),  # 19
    *_pair("strided_low_occ", "mem.uncoalesced", family="coalesce"),  # 2 + 5
    *_pair("conflict_barrier", "mem.smem_conflict", family="shared-layout"),  # 3 + 15
    *_pair("spill_chase", "mem.spill", family="fewer-live-registers"),  # 4 + 6
)  # fmt: skip
BY_NAME = {micro.name: micro for micro in KERNELS}
CASES = tuple(micro for micro in KERNELS if micro.classes)
"""Kernels with a known class; the others are fixes."""
