"""The repositories that are mined, and what must be known of each history."""

from __future__ import annotations

import msgspec


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One repository: where its history may be had, and which of its paths are kernels beyond the common rules."""

    repo: str
    clones: tuple[str, ...] = ()
    """Public repositories that hold the same commits, where the repository's own clone is too large."""
    branches: tuple[str, ...] = ()
    """Patterns beside HEAD, such as ``nv_dev``; the first branch that holds a pull request counts."""
    least: int = 1
    """In a fork, smaller numbers are the fork's own pull requests; that is how they are told apart."""
    forked: str = ""
    """Before this UTC date the fork had no pull requests of its own: there every number counts."""
    linear: bool = True
    """Follow first parents. A fork that merges its upstream is walked whole, merges left out."""
    always: tuple[str, ...] = ()
    """Path prefixes whose C++ and Python are kernel source whatever they hold."""
    compiler: tuple[str, ...] = ()
    """Path prefixes of a kernel compiler."""
    only: tuple[str, ...] = ()
    """Where given, no path outside of these prefixes is kernel source: a library whose every header is device code."""
    never: tuple[str, ...] = ()
    """Path prefixes that are no kernel source of this repository."""


CCCL = (
    "cub/cub/",
    "thrust/thrust/system/cuda/",
    "cudax/include/",
    "c/parallel",
    "libcudacxx/include/cuda/__ptx/",
    "libcudacxx/include/cuda/__barrier/",
    "libcudacxx/include/cuda/__memcpy_async/",
)
TRITON = ("lib/", "include/triton/", "third_party/nvidia/", "python/triton/compiler/", "python/triton/language/")
TILELANG = ("src/", "tilelang/engine/", "tilelang/transform/", "tilelang/layout/", "tilelang/language/")

SOURCES = (
    Source(repo="sgl-project/sglang", clones=("bytedance-iaas/sglang",), least=2000, forked="2025-06-01"),
    Source(repo="vllm-project/vllm", clones=("jsboige/vllm",), least=1000, linear=False),
    Source(repo="NVIDIA/TensorRT-LLM"),
    Source(repo="flashinfer-ai/flashinfer"),
    Source(repo="Dao-AILab/flash-attention"),
    Source(repo="NVIDIA/cutlass", never=("docs/", "media/")),
    Source(repo="deepseek-ai/DeepGEMM", branches=("nv_dev",), always=("csrc/", "deep_gemm/include/", "indexing/")),
    Source(repo="tile-ai/tilelang", compiler=TILELANG),
    Source(
        repo="NVIDIA/cccl",
        branches=("branch/*",),
        only=CCCL,
        never=tuple(f"cudax/include/cuda/experimental/{name}" for name in ("__stf", "stf", "__places", "__execution")),
    ),
    Source(
        repo="triton-lang/triton",
        clones=("facebookexperimental/triton", "intel/intel-xpu-backend-for-triton"),
        least=3600,
        linear=False,
        compiler=TRITON,
        never=("third_party/intel/", "third_party/amd/", "third_party/proton/"),
    ),
    Source(repo="HazyResearch/ThunderKittens", always=("include/", "src/", "kernels/")),
    Source(repo="Dao-AILab/quack", always=("quack/",)),
    Source(repo="deepseek-ai/FlashMLA", always=("csrc/",)),
    Source(repo="deepseek-ai/TileKernels"),
)
FEWEST = 10
"""Selected pull requests below which a repository is a source to read, not a list to search."""


def source_of(repo: str) -> Source:
    """What is known of a repository; one that nobody described is mined by the common rules."""
    known = {source.repo.lower(): source for source in SOURCES}
    return known.get(repo.lower(), Source(repo=repo))
