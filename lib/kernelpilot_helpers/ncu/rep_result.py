"""One result of a binary report as a Launch: a kernel, or a range, graph or command list as one workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import rep_code, rep_metrics, rep_nvtx, rep_rules, wire
from kernelpilot_helpers.ncu.rep_session import Device
from kernelpilot_helpers.ncu.report import Kind, Launch, Rule, Value
from kernelpilot_helpers.ncu.wire import BYTES, VARINT, Buffer

MAX_NAME = 16 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fields:
    """Field numbers of one kind of result; 0 where it has none."""

    metrics: int
    sections: int
    nvtx: int
    context: int
    stream: int
    rules: int
    known: frozenset[int]


_KERNEL = _Fields(
    metrics=13, sections=17, nvtx=21, context=22, stream=23, rules=19,
    known=frozenset({1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}),
)  # fmt: skip
_RANGE = _Fields(
    metrics=4, sections=7, nvtx=10, context=11, stream=0, rules=20, known=frozenset({1, 4, 5, 7, 10, 11, 12, 15, 20})
)
_GRAPH = _Fields(
    metrics=4, sections=7, nvtx=0, context=11, stream=12, rules=22,
    known=frozenset({1, 4, 5, 7, 11, 12, 13, 17, 22}),
)  # fmt: skip
_CMDLIST = _Fields(
    metrics=4, sections=7, nvtx=0, context=11, stream=12, rules=0, known=frozenset({1, 4, 5, 7, 11, 12, 17, 18})
)
_KINDS: Mapping[Kind, _Fields] = {"kernel": _KERNEL, "range": _RANGE, "graph": _GRAPH, "cmdlist": _CMDLIST}


@dataclass(kw_only=True, slots=True)
class _Parts:
    """What one walk over the result's own fields finds."""

    count: int = 0
    numbers: dict[int, int] = field(default_factory=dict)
    runs: dict[int, tuple[int, int]] = field(default_factory=dict)
    metrics: list[tuple[int, int]] = field(default_factory=list)
    sections: list[tuple[int, int]] = field(default_factory=list)
    rules: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A result that lies whole in the file, with the string table and process of its block."""

    kind: Kind
    span: tuple[int, int]
    names: tuple[str, ...]
    process: str
    block: int
    place: int
    """In file order, from 1."""


def read(
    data: Buffer, entry: Entry, *, launch_id: int, devices: Mapping[int, Device],
    unknown: dict[str, set[int]], budget: wire.Budget, keep: Callable[[str], bool] | None,
) -> Launch:  # fmt: skip
    """The Launch of one result message that fills ``data``; ``launch_id`` is the ID that ncu shows.

    ``devices`` are those of the session, ``unknown`` collects field numbers by message. Raises RefusedInput when the
    message is damaged.
    """
    kind = entry.kind
    layout = _KINDS[kind]
    parts = _walk(data, layout, unknown.setdefault(f"result.{kind}", set()))
    nvtx = parts.runs.get(layout.nvtx)
    budget.spend(_work(parts, nvtx))
    metrics, series = rep_metrics.read(data, parts.metrics, entry.names)
    device, cc = _device(metrics, devices)
    texts = {n: _text(data, parts, n) for n in (5, 6, 7)} if kind == "kernel" else {}
    return Launch(
        id=str(launch_id), kind=kind, kernel=texts.get(7) or texts.get(6) or texts.get(5) or kind,
        function=texts.get(6, ""), mangled=texts.get(5, ""),
        grid=_dim3(data, parts.runs.get(10)) if kind == "kernel" else "",
        block=_dim3(data, parts.runs.get(11)) if kind == "kernel" else "",
        device=device, cc=cc, process=entry.process,
        context=str(parts.numbers.get(layout.context, "")), stream=str(parts.numbers.get(layout.stream, "")),
        metrics=metrics.only(keep) if keep else metrics, series=series, code=_reference(data, parts, entry),
        nvtx=rep_nvtx.read(data, *nvtx, parts.numbers.get(1, 0)) if nvtx else (),
        rules=_rules(data, parts), sections=_sections(data, parts), place=f"result {entry.place}",
    )  # fmt: skip


def _walk(data: Buffer, layout: _Fields, unknown: set[int]) -> _Parts:
    parts = _Parts()
    lists = {layout.metrics: parts.metrics, layout.sections: parts.sections, layout.rules: parts.rules}
    for number, kind, value, stop in wire.fields(data, 0, len(data)):
        parts.count += 1
        if number not in layout.known:
            unknown.add(number)
        elif kind == VARINT:
            parts.numbers[number] = value
        elif kind == BYTES:
            found = lists.get(number)
            if found is None:
                parts.runs[number] = (value, stop)
            else:
                found.append((value, stop))
    return parts


def _work(parts: _Parts, nvtx: tuple[int, int] | None) -> int:
    """Fields that are walked of a result: its own, and about what is in those that are read at once."""
    inner = 3 * len(parts.metrics) + 2 * len(parts.sections) + 8 * len(parts.rules)
    return parts.count + inner + ((nvtx[1] - nvtx[0]) // 4 if nvtx else 0)


def _text(data: Buffer, parts: _Parts, number: int) -> str:
    return wire.text(data, *parts.runs[number], most=MAX_NAME) if number in parts.runs else ""


def _dim3(data: Buffer, span: tuple[int, int] | None) -> str:
    """``(x, y, z)``; empty where the result has none."""
    if span is None:
        return ""
    sides = {1: 0, 2: 0, 3: 0}
    for number, kind, value, _ in wire.fields(data, *span):
        if kind == VARINT and number in sides:
            sides[number] = value
    return f"({sides[1]}, {sides[2]}, {sides[3]})"


def _device(metrics: Mapping[str, Value], devices: Mapping[int, Device]) -> tuple[str, str]:
    """Index and compute capability, of the launch's own metrics or else of the session; empty where neither says."""
    key = _whole(metrics, "launch__device_id")
    if key is None and len(devices) == 1:
        key = next(iter(devices))
    major = _whole(metrics, "device__attribute_compute_capability_major")
    minor = _whole(metrics, "device__attribute_compute_capability_minor")
    cc = f"{major}.{minor}" if major is not None and minor is not None else ""
    if not cc and key is not None and key in devices:
        cc = devices[key].cc
    return "" if key is None else str(key), cc


def _whole(metrics: Mapping[str, Value], name: str) -> int | None:
    found = metrics.get(name)
    return None if found is None or found.number is None else int(found.number)


def _reference(data: Buffer, parts: _Parts, entry: Entry) -> str:
    """Of a kernel's code. A range or a graph runs several kernels: no claim about one of them."""
    if entry.kind != "kernel" or 15 not in parts.runs:
        return ""
    for number, sort, value, _ in wire.fields(data, *parts.runs[15]):
        if number == 1 and sort == VARINT:
            return rep_code.key(entry.process, value)
    return ""


def _rules(data: Buffer, parts: _Parts) -> tuple[Rule, ...]:
    found: list[Rule] = []
    for span in parts.rules:
        found += rep_rules.read(data, *span)
        if len(found) > rep_rules.MAX_RULES:
            raise wire.damaged(f"more than {rep_rules.MAX_RULES} rule messages")
    return tuple(found)


def _sections(data: Buffer, parts: _Parts) -> tuple[str, ...]:
    """Ids; the id is the first field, so that the charts behind it are never walked."""
    ids = []
    for start, end in parts.sections:
        for number, kind, value, stop in wire.fields(data, start, end):
            if number == 1 and kind == BYTES:
                ids.append(wire.text(data, value, stop, most=200))
            break
    return tuple(ids)
