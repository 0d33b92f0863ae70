"""What a captured graph holds: which nodes lie inside the timed spans, and which can run before or after them."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

KERNEL, COPY, FILL, HOST, CHILD, EMPTY, WAIT, RECORD = range(8)
"""Numbers of CUgraphNodeType (cuda.h)."""
WORK = (KERNEL, COPY, FILL, HOST, CHILD)
OTHERS = {COPY: "memcpy", FILL: "memset", HOST: "host function", CHILD: "graph"}
EDGE_DATA = 8
"""Bytes of CUgraphEdgeData."""
Fill = tuple[int, int, int, int]
"""A fill's address, bytes of an element, elements of a row, rows."""


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
    total: int = 0
    """Nodes of every type."""
    by_span: tuple[int, ...] = ()
    """Nodes inside each span."""
    flushes: int | None = None
    """Fills that are our flush, by address and size; None where that cannot be told."""
    odd_marks: int = 0
    """Events of ours that are recorded at no node, at several, or at one that belongs to no span."""
    other_marks: int = 0
    """Nodes that record an event of somebody else's."""


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
    held = [latest[n] for n in work if latest[n] == earliest[n]]
    inside = len(held)
    return Shape(
        kernels=sum(k in (KERNEL, CHILD) for k in kinds),
        hosts=sum(k == HOST for k in kinds),
        fills=sum(k == FILL for k in kinds),
        inside=inside,
        outside=len(work) - inside,
        total=len(kinds),
        by_span=tuple(held.count(g) for g in range(len(spans))),
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


def read(
    driver: Any,
    graph: ctypes.c_void_p,
    spans: Sequence[tuple[int, int]],
    *,
    made: Collection[int] = (),
    flush: Fill | None = None,
) -> Shape:
    """The shape of a driver's graph; ``spans`` are the events (as integers) of its marks. Raises CudaError.

    ``made`` are all events of ours, ``flush`` is what ``fills`` says of our flush.
    """
    nodes = _nodes(driver, graph)
    number = {node: n for n, node in enumerate(nodes)}
    kinds = [_kind(driver, node) for node in nodes]
    marks: dict[int, list[int]] = {}
    for n, kind in enumerate(kinds):
        if kind == RECORD:
            event = ctypes.c_void_p()
            driver.call("cuGraphEventRecordNodeGetEvent", ctypes.c_void_p(nodes[n]), ctypes.byref(event))
            marks.setdefault(int(event.value or 0), []).append(n)
    edges = [(number[a], number[b]) for a, b in _edges(driver, graph)]
    pairs = [(marks[first][0], marks[last][0]) for first, last in spans if first in marks and last in marks]
    odd, others = odd_marks({event: len(at) for event, at in marks.items()}, spans, made)
    flushes = None
    if flush is not None:
        flushes = sum(_fill(driver, node) == flush for node, kind in zip(nodes, kinds, strict=True) if kind == FILL)
    shape = count(kinds, edges, pairs)
    return replace(
        shape, names=_names(driver, nodes, kinds), odd_marks=odd, other_marks=others, flushes=flushes
    )  # fmt: skip


def odd_marks(
    nodes: dict[int, int], spans: Sequence[tuple[int, int]], made: Collection[int]
) -> tuple[int, int]:  # fmt: skip
    """(our events that are not at exactly one node, or are in the graph without a span; nodes of others' events).

    ``nodes`` says at how many nodes each event is recorded.
    """
    wanted = [event for span in spans for event in span]
    odd = sum(nodes.get(event, 0) != 1 for event in wanted) + len(wanted) - len(set(wanted))
    odd += sum(event in made and event not in wanted for event in nodes)
    return odd, sum(n for event, n in nodes.items() if event not in made and event not in wanted)


class _FillParams(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [
        ("at", ctypes.c_uint64), ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint), ("size", ctypes.c_uint),
        ("width", ctypes.c_size_t), ("height", ctypes.c_size_t),
    ]  # fmt: skip


def fills(driver: Any, graph: ctypes.c_void_p) -> list[Fill]:
    """Every fill of a driver's graph. Raises CudaError."""
    return [_fill(driver, node) for node in _nodes(driver, graph) if _kind(driver, node) == FILL]


def _fill(driver: Any, node: int) -> Fill:
    held = _FillParams()
    driver.call("cuGraphMemsetNodeGetParams", ctypes.c_void_p(node), ctypes.byref(held))
    return held.at, held.size, held.width, held.height


def _kind(driver: Any, node: int) -> int:
    kind = ctypes.c_int()
    driver.call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
    return kind.value


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
