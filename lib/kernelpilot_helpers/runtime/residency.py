"""Where a case's tensors are when timed calls begin: what was asked for, what is reached, and why. Sizes in bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .arena import slot_bytes, static_bytes
from .content import COPIES_MAX
from .spec import Case, Tensor

ROTATION = 5
"""A rotation through this many times the second-level cache leaves nothing of its start in it."""
HOT_SHARE = 0.5
"""Of the second-level cache: what may be kept in it beside what a call streams through."""


def hot_names(case: Case) -> tuple[str, ...]:
    """Tensors that the contract wants in the cache."""
    return tuple(t.name for t in case.tensors if t.role != "scalar" and t.residency == "hot")


def copies_of(case: Case, group: int, l2_bytes: int, room: int) -> int:
    """How many copies of the static tensors a group of ``group`` calls needs so that none finds its own in the cache.

    One where there are none or all of them are hot. ``room``: bytes the copies may take.
    """
    cold = [t for t in case.by_role("static") if t.residency != "hot"]
    each = static_bytes(case)
    if not cold or not each:
        return 1
    enough = -(-ROTATION * l2_bytes // max(_bytes(cold), 1))
    return max(1, min(group, COPIES_MAX, enough, room // each))


def group_limit(case: Case, l2_bytes: int) -> int | None:
    """Calls after which what a group moves would push hot tensors out of the cache; None where none is hot."""
    each = _bytes([t for t in case.tensors if t.role in ("in", "inout", "out")])
    return max(int(HOT_SHARE * l2_bytes) // each, 1) if hot_names(case) and each else None


def entries(case: Case, *, group: int, copies: int, l2_bytes: int) -> Iterator[dict[str, Any]]:
    """``raw.Residency`` of every tensor of ``case``, timed in groups of ``group`` calls on ``copies`` copies."""
    names = hot_names(case)
    for tensor in case.tensors:
        if tensor.role == "scalar" or not tensor.span:
            continue
        size = tensor.span * tensor.itemsize
        if tensor.name in names:
            reached, how = _hot(case, tensor, size, group, copies, l2_bytes)
        elif tensor.role == "static":
            reached, how = _static(size, group, copies, l2_bytes)
        else:
            reached, how = "cold", "flushed before the group; every call of it has its own"
        yield {
            "case_id": case.case_id, "tensor": tensor.name, "asked": tensor.residency, "reached": reached, "how": how,
        }  # fmt: skip


def _hot(case: Case, tensor: Tensor, size: int, group: int, copies: int, l2: int) -> tuple[str, str]:
    count = min(copies, group) if tensor.role == "static" else group
    if size * count > l2:
        return "cold", f"touched after the flush, but {_mib(size * count)} do not fit into a cache of {_mib(l2)}"
    passing = slot_bytes(case) * group + static_bytes(case) * min(copies, group)
    if passing > l2:
        return "partial", f"touched after the flush; a group moves {_mib(passing)} through a cache of {_mib(l2)}"
    return "hot", "touched after the flush, before the group"


def _static(size: int, group: int, copies: int, l2: int) -> tuple[str, str]:
    if copies >= group:
        return "cold", "flushed before the group; every call of it reads its own copy"
    if size * copies > l2:
        return "cold", f"flushed before the group; calls rotate through {copies} copies, {_mib(size * copies)} in all"
    return "partial", f"flushed before the group; its {group} calls share {copies} copies, {_mib(size * copies)} in all"


def _bytes(tensors: list[Tensor]) -> int:
    return sum(t.span * t.itemsize for t in tensors)


def _mib(size: int) -> str:
    return f"{size / 2**20:.3g} MiB"
