"""What this GPU can do at best: bandwidth by size, matrix products by type, and the time of an empty kernel."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import graphs

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB)
"""Bytes that one call moves (a copy: reads half of them and writes half)."""
L2_TIMES = 5
"""Buffers rotate through this many times the second-level cache, so that every byte is cold."""
CALLS_MAX = 4096
REPLAYS = 5
STUBS = 200
PRODUCTS = ("bf16", "f16", "fp8", "int8", "tf32", "f32")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much memory to touch, and how large the square matrices are."""

    sizes: tuple[int, ...]
    pool: int
    """Bytes of each of two buffers."""
    side: int
    repeats: int
    """Products in one timed span."""


def plan(free: int, l2: int, *, small: bool = False) -> Plan:
    """What fits into ``free`` bytes with room to spare; ``small`` is for devices that are not GPUs.

    >>> plan(140 << 30, 50 << 20).sizes[-1], plan(140 << 30, 50 << 20).side
    (1073741824, 8192)
    >>> plan(3 << 30, 50 << 20).sizes[-1] >> 20, plan(3 << 30, 50 << 20).side
    (256, 4096)
    """
    if small:
        return Plan(sizes=(64 * KIB, MIB), pool=MIB, side=64, repeats=1)
    sizes = tuple(s for s in SIZES if 5 * s <= free)
    side = 8192 if free >= 8 * GIB else 4096
    return Plan(sizes=sizes, pool=min(max((*sizes[-1:], L2_TIMES * l2)), free // 5), side=side, repeats=4)


def label(nbytes: int) -> str:
    """A power-of-two size in words.

    >>> [label(n) for n in (65536, 4194304, 1073741824)]
    ['64KiB', '4MiB', '1GiB']
    """
    for unit, name in ((GIB, "GiB"), (MIB, "MiB")):
        if nbytes >= unit:
            return f"{nbytes // unit}{name}"
    return f"{nbytes // KIB}KiB"


def measure(device: Any) -> dict[str, float]:
    """``read@SIZE``, ``write@SIZE`` and ``copy@SIZE`` in GB/s, ``matmul@TYPE`` in TFLOP/s (TOP/s), ``floor_us``.

    About three seconds. Every figure is the best of several replays: a ceiling, not an average. A copy counts the
    bytes read and the bytes written. What this torch or GPU cannot do is left out. Raises what ``device`` raises.
    """
    import torch

    small = device.torch_device == "cpu"
    shape = plan(device.free_bytes(), device.facts.get("l2_bytes") or 50 * MIB, small=small)
    found = {"floor_us": floor_us(device)}
    with torch.no_grad():
        found.update(_bandwidth(torch, device, shape))
        _release(torch)
        for kind in PRODUCTS:
            rate = _product(torch, device, shape, kind)
            if rate is not None:
                found[f"matmul@{kind}"] = rate
            _release(torch)
    return found


def floor_us(device: Any) -> float:
    """Microseconds that an empty kernel takes in a graph, one after the other."""

    import torch

    other = torch.zeros(1, device=device.torch_device)

    def body(tape: Any) -> None:
        tape.begin()
        for _ in range(STUBS):
            tape.empty()
        tape.end()
        tape.begin()  # a graph without any call is refused
        other.zero_()
        tape.call_done()
        tape.end()

    return _best(device, body) / STUBS / 1000


def _best(device: Any, body: Callable[[Any], None]) -> float:
    """Least ns of the first span that ``body`` marks: replayed from a graph, or played where it cannot be captured."""
    device.synchronize()
    graphs.play(device, body)
    try:
        program = graphs.record(device, body)
    except graphs.CaptureFault:
        return float(max(1, min(graphs.play(device, body)[0] for _ in range(REPLAYS))))
    try:
        return float(max(1, min(program.replay()[0] for _ in range(REPLAYS))))
    finally:
        program.close()


def _bandwidth(torch: Any, device: Any, shape: Plan) -> dict[str, float]:
    """Every size in every direction, over buffers that rotate through far more than the cache."""
    source = torch.ones(shape.pool // 4, dtype=torch.int32, device=device.torch_device)
    target = torch.zeros_like(source)
    total = torch.zeros((), dtype=torch.int32, device=device.torch_device)
    moves: tuple[tuple[str, Callable[[Any, Any], None]], ...] = (
        ("read", lambda x, _: torch.amax(x, dim=0, out=total)),
        ("write", lambda _, y: y.fill_(1)),
        ("copy", lambda x, y: y.copy_(x)),  # a memcpy node of a graph
        ("copy", lambda x, y: torch.bitwise_not(x, out=y)),  # a kernel that reads and writes as much
    )
    found: dict[str, float] = {}
    for name, move in moves:
        for size in shape.sizes:
            nbytes = size // 2 if name == "copy" else size
            sets = _sets(source, target, nbytes)

            def body(tape: Any, move: Any = move, sets: Any = sets) -> None:
                tape.begin()
                for x, y in sets:
                    move(x, y)
                    tape.call_done()
                tape.end()

            key = f"{name}@{label(size)}"
            found[key] = max(found.get(key, 0.0), size * len(sets) / _best(device, body))
    return found


def _sets(source: Any, target: Any, nbytes: int) -> list[tuple[Any, Any]]:
    """Disjoint pieces of both buffers, ``nbytes`` each; none comes twice."""
    count = nbytes // 4
    pieces = max(1, min(source.numel() // count, CALLS_MAX))
    return [(source[i * count : (i + 1) * count], target[i * count : (i + 1) * count]) for i in range(pieces)]


def _product(torch: Any, device: Any, shape: Plan, kind: str) -> float | None:
    """10^12 operations a second of one square product; None where this torch or GPU has none."""
    precise = kind in ("tf32", "f32")
    old = torch.backends.cuda.matmul.allow_tf32 if precise else False
    with contextlib.ExitStack() as later:
        if precise:
            torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            later.callback(setattr, torch.backends.cuda.matmul, "allow_tf32", old)
        try:
            multiply = _multiplier(torch, device.torch_device, shape.side, kind)
            multiply()
        except (RuntimeError, AttributeError, NotImplementedError, TypeError, ValueError):
            return None

        def body(tape: Any) -> None:
            tape.begin()
            for _ in range(shape.repeats):
                multiply()
                tape.call_done()
            tape.end()

        return 2.0 * shape.side**3 * shape.repeats / _best(device, body) / 1000


def _multiplier(torch: Any, where: str, side: int, kind: str) -> Callable[[], object]:
    """One product of random matrices: zeros would draw less power and run faster than real content."""
    if kind == "int8":
        left, right = (torch.randint(-100, 100, (side, side), dtype=torch.int8, device=where) for _ in range(2))
        out = torch.empty((side, side), dtype=torch.int32, device=where)
        return lambda: torch._int_mm(left, right.t(), out=out)
    if kind == "fp8":
        left, right = (torch.randn(side, side, device=where).to(torch.float8_e4m3fn) for _ in range(2))
        one = torch.ones((), device=where)
        return lambda: torch._scaled_mm(left, right.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}.get(kind, torch.float32)
    left, right = (torch.randn(side, side, device=where).to(dtype) for _ in range(2))
    out = torch.empty((side, side), dtype=dtype, device=where)
    return lambda: torch.matmul(left, right, out=out)


def _release(torch: Any) -> None:
    gc.collect()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
