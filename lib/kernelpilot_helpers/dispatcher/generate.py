"""Every byte below ``dispatch/`` and the page of decisions, from table, map, contract and frozen trees. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.autotune import PerformanceMap
from kernelpilot_helpers.contract import Contract
from kernelpilot_helpers.dispatcher import code, words
from kernelpilot_helpers.dispatcher.choose import covers, pick
from kernelpilot_helpers.dispatcher.closure import closure
from kernelpilot_helpers.dispatcher.figures import figures
from kernelpilot_helpers.dispatcher.model import (
    BASELINE,
    CODE_PATH,
    DECISIONS_PATH,
    FOLDER,
    TABLE_PATH,
    Table,
)

VARIANTS = f"{FOLDER}/variants"
RUNTIME = f"{FOLDER}/kernelpilot_runtime"
LICENCE = (
    "# SPDX-License-Identifier: Apache-2.0\n# Part of KernelPilot, copied so that this folder needs no installation.\n"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Generated:
    """The table with its files, and repo-relative path -> bytes of everything, table and page included."""

    table: Table
    files: dict[str, bytes]


def trees_of(table: Table, found: PerformanceMap) -> dict[str, str]:
    """Folder name below ``dispatch/variants`` -> git tree that it must hold."""
    return {BASELINE: found.baseline_tree} | {rule.version: rule.tree for rule in table.rules}


def generate(
    table: Table,
    found: PerformanceMap,
    *,
    contract: Contract,
    trees: Mapping[str, Mapping[str, bytes]],
    runtime: Mapping[str, bytes],
) -> Generated:
    """All files. ``trees`` holds the files of every folder that ``trees_of`` names.

    ``runtime`` is file name -> bytes of our runtime: the builder and what it imports is copied, the rest is not.

    Raises Refused for an axis that no tensor shows.
    """
    files = {CODE_PATH: code.render(contract, table).encode()}
    for version in sorted(trees):
        files |= {f"{VARIANTS}/{version}/{name}": data for name, data in sorted(trees[version].items())}
    package = f'{LICENCE}"""What versions import to compile their code: ``from kernelpilot_runtime import build``."""\n'
    files[f"{RUNTIME}/__init__.py"] = package.encode()
    files |= {f"{RUNTIME}/{name}": LICENCE.encode() + runtime[name] for name in closure(runtime)}
    made = msgspec.structs.replace(table, files={path: records.sha256(data) for path, data in files.items()})
    page = words.decisions(made, found, fallback=code.fallback_words(contract)).encode()
    return Generated(table=made, files={**files, TABLE_PATH: records.dump(made), DECISIONS_PATH: page})


def check(table: Table, found: PerformanceMap) -> list[str]:
    """What the rules get wrong, tried at the edges of every guard and on every case of the map."""
    out: list[str] = []
    for rule in table.rules:
        corner = {g.axis: g.low for g in rule.guards}
        for g in rule.guards:
            tried = {g.low - 1: False, g.low: True, g.high: True, g.high + 1: False}
            for size, want in tried.items():
                if covers(rule, {**corner, g.axis: size}, rule.flags) != want:
                    out.append(
                        f"rule {rule.version} of {rule.regime} is {'closed' if want else 'open'} at {g.axis} {size}"
                    )
    fig = figures(found)
    for case in found.cases:
        chosen = pick(table.rules, case.axes, case.flags)
        if chosen == BASELINE:
            continue
        if chosen not in fig.versions:
            out.append(f"case {case.case_id} goes to {chosen}, which the map does not hold")
        elif fig.cells[case.case_id, chosen].vs_baseline.ci_high < 1 - fig.margin:
            out.append(f"case {case.case_id} goes to {chosen}, which is worse there than the baseline")
    beyond = {axis: max(c.axes[axis] for c in found.cases) + 1 for axis in found.cases[0].axes}
    out += [
        f"a shape outside W goes to {to}"
        for to in {pick(table.rules, beyond, c.flags) for c in found.cases}
        if to != BASELINE
    ]
    return out
