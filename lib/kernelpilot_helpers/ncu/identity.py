"""Who a row is about: the columns that name a launch, on the raw page and on the details page alike."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.report import Kind, Launch, Rule, Series, Value

NEEDED = ("ID", "Kernel Name")
NAMES = frozenset(
    ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
     "Grid Size", "Device", "CC")
)  # fmt: skip
"""Columns of identity; the two NVTX columns have longer names. 2019 and 2020 have a time and no sizes."""
_NVTX = "_Range:PL_Type:"
_QUOTED = re.compile(r'"([^"]{0,400})"')
_WORKLOADS: Mapping[str, Kind] = {"range": "range", "graph": "graph", "cmdlist": "cmdlist"}


def launch(
    row: Mapping[str, str],
    *,
    metrics: Mapping[str, Value],
    series: Mapping[str, Series],
    place: str,
    rules: tuple[Rule, ...] = (),
    sections: tuple[str, ...] = (),
) -> Launch:
    """A launch of a row's identity cells and what was read of it."""

    def cell(column: str) -> str:
        return row.get(column, "").strip()[: limits.MAX_NAME]

    grid = cell("Grid Size")
    kernel = cell("Kernel Name")
    alone = _WORKLOADS.get(kernel, "kernel") if grid in ("", "(0, 0, 0)", "(1, 1, 1)") else "kernel"
    return Launch(
        id=cell("ID"),
        kernel=kernel,
        grid=grid,
        block=cell("Block Size"),
        device=cell("Device"),
        cc=cell("CC"),
        stream=cell("Stream"),
        process=cell("Process ID"),
        context=cell("Context"),
        function=function(kernel),
        nvtx=tuple(name for column, text in row.items() if _NVTX in column for name in ranges(text)),
        metrics=metrics,
        series=series,
        kind=alone,
        rules=rules,
        sections=sections,
        place=place,
    )


def host(row: Mapping[str, str]) -> str:
    """Name of the machine: known so that it can be hidden."""
    return row.get("Host Name", "").strip()[: limits.MAX_NAME]


def ranges(text: str) -> tuple[str, ...]:
    """Names of the NVTX ranges in a cell; ``domain@name`` but for the default domain.

    >>> ranges('46148  "<default domain>:compute:none:none:none:none:none:none" ')
    ('compute',)
    """
    out = []
    for found in _QUOTED.findall(text[:4000]):
        domain, _, name = found.partition(":")
        name = name.split(":", 1)[0] if name else domain
        out.append(name if domain in ("<default domain>", name, "") else f"{domain}@{name}")
    return tuple(out)


def function(kernel: str) -> str:
    """Bare name of a kernel, as ncu's ``-k`` takes it: no return type, scope, template arguments or parameters.

    >>> function("void at::<unnamed>::softmax<float, a::b<(int)4>>(T3 *, const T1 *)"), function("rms")
    ('softmax', 'rms')
    >>> function("copy[v1,cw5](Array<long long, 1, C>, long long)"), function("(anonymous namespace)::k(int)")
    ('copy', 'k')
    """
    kept, depth = [], 0
    for char in kernel:
        if char in "<([":
            depth += 1
        elif char in ">)]":
            depth = max(0, depth - 1)
        elif not depth:
            kept.append(char)
    words = "".join(kept).split()
    return words[-1].rsplit("::", 1)[-1] if words else ""
