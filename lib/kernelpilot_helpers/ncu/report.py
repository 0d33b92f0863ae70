"""What was read from the files of one report, whatever their form: launches, their metrics, code, session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["kernel", "range", "graph", "cmdlist"]
Advice = Literal["none", "ok", "warning", "error", "optimization"]
Scope = Literal["", "local", "global"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """The aggregate of one metric. Absent metrics have no Value: there is none that stands for 0."""

    number: float | int | None
    """In base units (ns, byte, byte/s, hz, %, plain count); None where the file holds text."""
    text: str = ""
    """Of a string metric, such as ``breakdown:...``."""
    unit: str = ""
    """Base unit; empty for a plain count or ratio."""
    row: int = 0
    """Which row of a CSV file, or which metric of a result in a binary report; counted from 1."""
    file: int = 0
    """Index in ``Report.files``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Instances of one metric: a value for each program counter, opcode, step of a table, or time stamp."""

    keys: tuple[int | str, ...]
    """Program counters (absolute), opcodes, or nanoseconds, by the metric's family; empty where the file has none."""
    values: tuple[float | int | str | None, ...]
    kind: int = 0
    """1: a series over time (PM sampling). 0: instances of an aggregate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What one of NVIDIA's own rules said about a launch. Text is untrusted and has its links rewritten."""

    id: str
    section: str
    type: Advice
    title: str
    text: str
    speedup: float | None = None
    """Estimated, percent."""
    scope: Scope = ""
    """``global``: of the whole kernel. ``local``: of the part that the rule looks at; never compared with global."""
    focus: tuple[tuple[str, float | None, str], ...] = ()
    """(metric, value, what the rule says of it)."""
    markers: tuple[tuple[int, str], ...] = ()
    """(program counter, text)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One result: a kernel launch, or a range or graph as one workload."""

    id: str
    kernel: str
    """Demangled where the file has that, else the function's name."""
    grid: str
    """As ncu prints it, ``(x, y, z)``; empty where it is not known."""
    block: str
    device: str
    cc: str
    """Compute capability, ``9.0``; empty where it is not known."""
    stream: str
    process: str
    metrics: Mapping[str, Value]
    kind: Kind = "kernel"
    function: str = ""
    """Bare name, for ncu's ``-k``."""
    mangled: str = ""
    context: str = ""
    nvtx: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    series: Mapping[str, Series] = field(default_factory=dict)
    code: str = ""
    """Key in ``Report.code``; empty where the file holds no code of it."""
    sections: tuple[str, ...] = ()
    """Ids of the sections that were collected, where the file says so."""
    place: str = ""
    """Where in its file: ``result 3`` or ``row 5``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """Machine code and sources that a report carries."""

    cubin: bytes | memoryview = b""
    """A view of the file's bytes where it came from a binary report: library code is tens of megabytes."""
    ptx: str = ""
    functions: tuple[tuple[str, int], ...] = ()
    """(symbol, absolute address of its first instruction)."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Imported source files: path as compiled, text."""
    arch: str = ""
    """``sm_90``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One row of a source page: an instruction (SASS, PTX) or a source line, with its metrics."""

    kernel: str
    view: Literal["sass", "ptx", "cuda"]
    address: int | None
    """Of an instruction; as the page prints it."""
    file: str
    line: int | None
    text: str
    metrics: Mapping[str, float]
    """By the metric's name where the column is known, else by the column's label; base units."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """How and where it was profiled; empty where the file does not say."""

    gpu: str = ""
    cc: str = ""
    driver: str = ""
    cuda: str = ""
    ncu: str = ""
    clocks: str = ""
    """``base``, ``none``, ...: whether ncu held the clocks."""
    cache: str = ""
    """``all`` (flushed between passes) or ``none``; from the command line."""
    replay: str = ""
    command: str = ""
    host: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """One file that was read; its name without folders."""

    name: str
    bytes: int
    sha256: str
    form: str
    """``report``, ``raw``, ``details``, ``source``, ``session``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Everything that was read, of one or more files of one report."""

    files: tuple[File, ...]
    launches: tuple[Launch, ...]
    session: Session = Session()
    code: Mapping[str, Code] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    locale: str = ""
    """``C``, ``comma``, ``C assumed``; empty for a binary report."""
    ignored_lines: int = 0
    notes: tuple[str, ...] = ()
    """What was cut or passed over while reading, such as a truncated last block."""
    unknown_fields: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By message: field numbers that this reader does not know; skipped, never guessed at."""
