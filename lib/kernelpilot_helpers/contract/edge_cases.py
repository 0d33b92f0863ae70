"""Edge cases that follow from roles and shapes, so that nobody has to think of them and nobody can leave them out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from kernelpilot_helpers.contract.cases import EDGE_PREFIX, timed
from kernelpilot_helpers.contract.dtypes import BYTES, flag_of, normalise
from kernelpilot_helpers.contract.model import Axis, Case, Contract, Source
from kernelpilot_helpers.contract.rules import device
from kernelpilot_helpers.contract.sizes import in_axis, layout, sizes_of
from kernelpilot_helpers.errors import BadRecord

TILE = 64
"""``ragged`` sizes end in the middle of a tile of this width, and of every narrower one."""
SMALL = 16
"""Size of the other axes while one of them is at its edge: verification pays for every element."""


def _odd(size: int) -> int:
    return (size // 2) | 1


def _not_a_tile(size: int) -> int:
    return max(size // TILE, 1) * TILE + TILE // 2 - 1


def _sizes(axis: Axis, base: int) -> Iterator[tuple[str, int]]:
    if axis.var is not None:
        yield "min", axis.var[0]
        yield "minus1", base - 1
        yield "plus1", base + 1
        yield "odd", _odd(base)
        yield "ragged", _not_a_tile(base)
    elif axis.values is not None:
        for size in (min(axis.values), max(axis.values)):
            yield f"is{size}", size


def _base(pool: Sequence[Case], free: Mapping[str, Axis]) -> Case:
    return min(pool, key=lambda c: math.prod(c.axes[name] for name in free))


def _candidates(
    free: Mapping[str, Axis], base: Mapping[str, int], top: Mapping[str, int]
) -> Iterator[tuple[str, list[dict[str, int]]]]:
    """Label and axes, cheapest first: one axis around W's largest with the others small, then as in W."""

    def at_most(limit: int) -> dict[str, int]:
        return {name: min(base[name], limit) if axis.var else base[name] for name, axis in free.items()}

    for name, axis in free.items():
        for label, size in _sizes(axis, top[name]):
            yield f"{name}_{label}", [{**at_most(SMALL), name: size}, {**base, name: size}]
    for label in ("min", "odd", "ragged"):
        starts = (at_most(2 * TILE), base)
        yield f"all_{label}", [{n: dict(_sizes(a, s[n])).get(label, s[n]) for n, a in free.items()} for s in starts]


def edges(contract: Contract, cases: Sequence[Case]) -> tuple[Case, ...]:
    """Cases beside the user's own: each axis at its least, one off, odd, and off every tile; on a GPU, moved memory.

    ``cases`` hold a timed one, as parsing makes sure. Deterministic; inside ranges and constraints; no sizes that W
    already holds; ``edge``, not ``required``.
    """
    free = {name: axis for name, axis in contract.axes.items() if axis.expr is None}
    pool = [c for c in cases if timed(c)]
    base = _base(pool, free)
    given = {name: base.axes[name] for name in free}
    top = {name: max(c.axes[name] for c in pool) for name in free}
    seen = {tuple(c.axes[name] for name in free) for c in cases if c.flags == base.flags and not c.strides}
    out: list[Case] = []
    for label, ways in _candidates(free, given, top):
        made = [_edge(label, axes, base) for axes in ways]
        case = next((c for c in made if _possible(contract, c)), None)
        key = tuple(case.axes[name] for name in given) if case else ()
        if case and key not in seen:
            seen.add(key)
            out.append(case)
    if device(contract.target) == "gpu":
        moved = _edge("offset", dict(base.axes), base, strides=base.strides, offsets=_moved(contract, base))
        out += [moved] if _possible(contract, moved) else []
    return tuple(out)


def _moved(contract: Contract, base: Case) -> dict[str, int]:
    """Offsets that move every tensor by one element, or by as many as keep the alignment that it is promised.

    No address is then better aligned than the contract says, as torch's own allocations always are.
    """
    sizes = sizes_of(contract, base)
    out: dict[str, int] = {}
    for name, tensor in contract.tensors.items():
        if tensor.role == "scalar" or (tensor.optional and base.flags.get(name) is not True):
            continue
        picked = flag_of(tensor.dtype)
        wide = BYTES[normalise(str(base.flags[picked]) if picked else tensor.dtype)]
        out[name] = layout(name, tensor, base, sizes)[2] + max(tensor.align // wide, 1)
    return out


def _edge(
    label: str,
    axes: dict[str, int],
    base: Case,
    *,
    strides: dict[str, tuple[int, ...]] | None = None,
    offsets: dict[str, int] | None = None,
) -> Case:
    return Case(
        case_id=EDGE_PREFIX + label,
        axes=axes,
        flags=base.flags,
        strides=strides or {},
        offsets=offsets or {},
        gen=base.gen,
        regime=base.regime,
        required=False,
        edge=True,
        source=Source(kind="explicit", ref="generated from the contract's axes"),
    )


def _possible(contract: Contract, case: Case) -> bool:
    if not all(in_axis(contract.axes[name], size) for name, size in case.axes.items()):
        return False
    try:
        sizes = sizes_of(contract, case)
        for name, tensor in contract.tensors.items():
            layout(name, tensor, case, sizes)
    except BadRecord:
        return False
    return True
