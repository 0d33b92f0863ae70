"""Which changes are evidence of an optimization, how strong, and which are fixes worth knowing."""

from __future__ import annotations

import msgspec

from mining import tokens
from mining.said import Said

WEAK = frozenset(
    {
        "smem",
        "int8",
        "fp8",
        "fp4",
        "paged",
        "grouped",
        "nvrtc-jit",
        "reuse-broadcast",
        "sort",
        "ptx-asm",
        "vectorized",
        "num_warps",
        "num_stages",
        "unroll",
        "occupancy",
        "mxfp8",
        "int4",
        "blockscale",
        "dequant-lut",
        "cuda-graph",
    }
)
"""Mechanisms that any kernel of a kind holds: they say what it computes more than how it is made fast."""
HEAVY = 5
FILES_OF_A_DUMP = 60
LINES_FOR_SOFT = 20


class Weight(msgspec.Struct, frozen=True, kw_only=True):
    """What the decision rests on."""

    said: Said
    terms: dict[str, int]
    kernel_lines: int
    knet: int
    n_files: int
    new_kernels: int
    """Kernel files that did not exist before."""
    other_files: bool
    """Every kernel file is of other hardware."""
    compiler_only: bool
    benches: int


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The decision with its reason."""

    tier: str
    why: str
    score: float


def choose(weight: Weight) -> Choice:
    """Tier of one change.

    A: the title speaks of speed and a kernel changes. B: it names a mechanism. C: a new kernel with mechanisms.
    D: a figure of speed is stated. E: many mechanisms, mute title. P: a fix in device code. Empty: background.
    """
    score = round(_score(weight), 1)
    why = _barred(weight)
    if why:
        return Choice(tier="", why=why, score=score)
    tier, why = _tier(weight)
    return Choice(tier=tier, why=why, score=score)


def _strong(weight: Weight) -> int:
    return sum(1 for name in weight.terms if name not in WEAK)


def _barred(weight: Weight) -> str:
    if weight.said.revert:
        return "revert"
    if weight.other_files or weight.said.other:
        return "other-hardware"
    if weight.said.chore:
        return "ci-docs-build"
    if weight.said.off and not (weight.said.fix or weight.said.speed):
        return "switched-off"
    return "no-kernel-change" if weight.knet == 0 else ""


def _tier(weight: Weight) -> tuple[str, str]:
    said, terms = weight.said, weight.terms
    if said.fix and not said.slow:
        return _fix(weight)
    if not terms and not weight.kernel_lines:
        return "", "no-mechanism"
    if said.speed and _touched(weight) and not (said.refactor and not terms):
        return "A", "perf-title"
    if said.refactor:
        return "", "refactor"
    if said.means and terms and weight.knet >= 2:
        return "B", "mechanism-title"
    if weight.n_files > FILES_OF_A_DUMP:
        return "", "release-dump"
    return _mute(weight)


def _touched(weight: Weight) -> bool:
    """Whether enough of a kernel changed for the title to be of it.

    Words that are used of logs and bindings too need a mechanism inside a kernel or chosen at its launch, or 20 lines.
    """
    if not weight.said.soft:
        return weight.kernel_lines > 0 or (weight.knet >= 3 and bool(weight.terms))
    inside = bool(weight.kernel_lines or weight.compiler_only or weight.terms.keys() & tokens.LAUNCH)
    return weight.kernel_lines >= LINES_FOR_SOFT or (inside and bool(weight.terms) and weight.knet >= 3)


def _fix(weight: Weight) -> tuple[str, str]:
    """A fix in device code is a pitfall, unless of an example; one of a host's choice may still be an optimization."""
    if weight.said.example:
        return "", "weak"
    if weight.kernel_lines > 0 or (weight.compiler_only and weight.terms):
        return "P", "pitfall"
    if weight.said.speed and weight.terms:
        return "A", "perf-title"
    return "", "weak" if weight.terms else "no-mechanism"


def _mute(weight: Weight) -> tuple[str, str]:
    """Titles that claim neither speed nor a means."""
    if weight.said.new and not weight.compiler_only and _is_new(weight):
        return "C", "new-kernel"
    if weight.said.claims and weight.terms and weight.knet >= 5:
        return "D", "perf-body"
    if not weight.compiler_only and _strong(weight) >= HEAVY and weight.kernel_lines >= 60:
        return "E", "mechanism-heavy"
    return "", "weak" if weight.terms else "no-mechanism"


def _is_new(weight: Weight) -> bool:
    """A new kernel with two mechanisms, or a new path through one with three."""
    small = bool(weight.new_kernels) and weight.kernel_lines >= 30 and _strong(weight) >= 2
    return small or (weight.kernel_lines >= 80 and _strong(weight) >= 3)


def _score(weight: Weight) -> float:
    said = weight.said
    score = min(3.0, 0.4 * _strong(weight)) + min(1.0, 0.1 * len(weight.terms))
    score += 2.5 * said.speed + 1.0 * said.means + 1.5 * bool(said.claims) - 1.5 * said.fix - 1.0 * said.refactor
    score += 1.0 * (weight.kernel_lines >= 10) + 0.5 * bool(weight.benches)
    return score - 2.0 * (weight.n_files > FILES_OF_A_DUMP)
