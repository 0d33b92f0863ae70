"""What a captured graph holds: which nodes lie inside the timed spans, and which can run before or after them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

KERNEL, COPY, FILL, HOST, CHILD, EMPTY, WAIT, RECORD = range(8)
"""Numbers of CUgraphNodeType (cuda.h)."""
WORK = (KERNEL, COPY, FILL, HOST, CHILD)
OTHERS = {COPY: "memcpy", FILL: "memset", HOST: "host function", CHILD: "graph"}
EDGE_DATA = 8
"""Bytes of CUgraphEdgeData."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Counts of nodes. ``outside``: those that do work and are not held between a span's two marks."""

    kernels: int
    hosts: int
    inside: int
    outside: int
    fills: int = 0
    names: tuple[str, ...] = ()
    """What runs, each once: mangled names of kernels, "memcpy", "memset", "graph"; empty where not read."""


def count(
    kinds: Sequence[int], edges: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]
) -> Shape:  # fmt: skip
    """The shape of a graph of ``kinds`` (node types), ``edges`` (from, to) and ``spans`` (first, last mark), all
    by node number.

    A node is inside span g when g's first mark is the latest one that must come before it and g's last mark the
    earliest one that must come after it; a node that only has to come after an earlier span, or only before a later
    one, may run while nothing is timed.
    """
    after: list[list[int]] = [[] for _ in kinds]
    before: list[list[int]] = [[] for _ in kinds]
    for a, b in edges:
        after[a].append(b)
        before[b].append(a)
    starts = {first: g for g, (first, _) in enumerate(spans)}
    ends = {last: g for g, (_, last) in enumerate(spans)}
    order = _order(after, before)
    latest, earliest = [-1] * len(kinds), [len(spans)] * len(kinds)
    for node in order:
        own = starts.get(node, -1)
        latest[node] = max([own, *(latest[p] for p in before[node])])
    for node in reversed(order):
        own = ends.get(node, len(spans))
        earliest[node] = min([own, *(earliest[n] for n in after[node])])
    work = [n for n, kind in enumerate(kinds) if kind in WORK]
    inside = sum(latest[n] == earliest[n] for n in work)
    return Shape(
        kernels=sum(k in (KERNEL, CHILD) for k in kinds),
        hosts=sum(k == HOST for k in kinds),
        fills=sum(k == FILL for k in kinds),
        inside=inside,
        outside=len(work) - inside,
    )


def _order(after: Sequence[Sequence[int]], before: Sequence[Sequence[int]]) -> list[int]:
    waiting = [len(b) for b in before]
    ready = [n for n, w in enumerate(waiting) if w == 0]
    out: list[int] = []
    while ready:
        node = ready.pop()
        out.append(node)
        for later in after[node]:
            waiting[later] -= 1
            if waiting[later] == 0:
                ready.append(later)
    return out


def read(driver: Any, graph: ctypes.c_void_p, spans: Sequence[tuple[int, int]]) -> Shape:
    """The shape of a driver's graph; ``spans`` are the events (as integers) of its marks. Raises CudaError."""
    nodes = _nodes(driver, graph)
    number = {node: n for n, node in enumerate(nodes)}
    kinds, marks, kind = [], {}, ctypes.c_int()
    for n, node in enumerate(nodes):
        driver.call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
        kinds.append(kind.value)
        if kind.value == RECORD:
            event = ctypes.c_void_p()
            driver.call("cuGraphEventRecordNodeGetEvent", ctypes.c_void_p(node), ctypes.byref(event))
            marks[event.value] = n
    edges = [(number[a], number[b]) for a, b in _edges(driver, graph)]
    shape = count(kinds, edges, [(marks[first], marks[last]) for first, last in spans])
    return replace(shape, names=_names(driver, nodes, kinds))


class _KernelParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2: a kernel that the runtime API launched may be named by ``kern`` alone."""

    _fields_ = [
        ("func", ctypes.c_void_p), ("dims", ctypes.c_uint * 7), ("params", ctypes.c_void_p),
        ("extra", ctypes.c_void_p), ("kern", ctypes.c_void_p), ("ctx", ctypes.c_void_p),
    ]  # fmt: skip


def _names(driver: Any, nodes: Sequence[int], kinds: Sequence[int]) -> tuple[str, ...]:
    """Names of everything that works; nothing where this driver cannot name a kernel (older than 12.3)."""
    if not (driver.has("cuGraphKernelNodeGetParams_v2") and driver.has("cuFuncGetName")):
        return ()
    found: dict[str, None] = {}
    known: dict[tuple[int, int], str] = {}
    for node, kind in zip(nodes, kinds, strict=True):
        if kind == KERNEL:
            held = _KernelParams()
            driver.call("cuGraphKernelNodeGetParams_v2", ctypes.c_void_p(node), ctypes.byref(held))
            key = (held.func or 0, held.kern or 0)
            if key not in known:
                known[key] = _name(driver, held)
            found[known[key]] = None
        elif kind in OTHERS:
            found[OTHERS[kind]] = None
    return tuple(found)


def _name(driver: Any, held: _KernelParams) -> str:
    text = ctypes.c_char_p()
    by_kernel = not held.func and held.kern
    call, handle = ("cuKernelGetName", held.kern) if by_kernel else ("cuFuncGetName", held.func)
    driver.call(call, ctypes.byref(text), ctypes.c_void_p(handle))
    return (text.value or b"?").decode(errors="replace")


def _nodes(driver: Any, graph: ctypes.c_void_p) -> list[int]:
    size = ctypes.c_size_t()
    driver.call("cuGraphGetNodes", graph, None, ctypes.byref(size))
    held = (ctypes.c_void_p * max(size.value, 1))()
    driver.call("cuGraphGetNodes", graph, held, ctypes.byref(size))
    return [int(n or 0) for n in held[: size.value]]


def _edges(driver: Any, graph: ctypes.c_void_p) -> list[tuple[int, int]]:
    """Edges with data (programmatic launches) need the newer call, where there is one."""
    newer = driver.has("cuGraphGetEdges_v2")
    size = ctypes.c_size_t()

    def ask(a: Any, b: Any, data: Any) -> None:
        if newer:
            driver.call("cuGraphGetEdges_v2", graph, a, b, data, ctypes.byref(size))
        else:
            driver.call("cuGraphGetEdges", graph, a, b, ctypes.byref(size))

    ask(None, None, None)
    first, last = (ctypes.c_void_p * max(size.value, 1))(), (ctypes.c_void_p * max(size.value, 1))()
    ask(first, last, ctypes.create_string_buffer(EDGE_DATA * max(size.value, 1)))
    return [(int(a or 0), int(b or 0)) for a, b in zip(first[: size.value], last[: size.value], strict=True)]
