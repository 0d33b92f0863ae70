"""How a build for a GPU is shown: a line a kernel, and what changed against the incumbent's build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelpilot_helpers.attempt.raw import Build
    from kernelpilot_helpers.referee.scratch import Against

SHOWN = 6
"""Opcodes named a kernel; --json lists all."""
LABELS = {
    "registers": "registers", "spill_stores": "spill stores", "spill_loads": "spill loads", "shared": "shared",
    "stack": "stack",
}  # fmt: skip


def kernels(build: Build) -> list[dict[str, Any]]:
    """Resources of each kernel, bytes and registers a thread."""
    return [
        {
            "name": k.name, "registers": k.registers, "spill_stores": k.spill_stores, "spill_loads": k.spill_loads,
            "shared": k.shared, "stack": k.stack, "file": artifact.path,
        }
        for artifact in build.artifacts
        for k in artifact.usage
    ]  # fmt: skip


def against(found: Against | None) -> dict[str, Any] | None:
    """The stable object of the comparison."""
    if found is None:
        return None
    return {
        "version": found.version,
        "same": found.same,
        "note": found.note,
        "kernels": [
            {
                "name": k.name, "machine_code": k.machine_code,
                "resources": {f: list(pair) for f, pair in k.resources.items()},
                "instructions": {op: list(pair) for op, pair in k.instructions.items()},
            }
            for k in found.kernels
        ],
    }  # fmt: skip


def words(data: dict[str, Any]) -> list[str]:
    """The same for a person; nothing for a build without a GPU's kernels."""
    lines = []
    if data["kernels"]:
        head = f"{'kernel':<32} {'registers':>9} {'spills st/ld':>13} {'shared':>8} {'stack':>6}"
        lines.append(f"  {head}   (shared a block, stack a thread: bytes)")
    for k in data["kernels"]:
        spills = f"{k['spill_stores']}/{k['spill_loads']}"
        lines.append(f"  {k['name']:<32} {k['registers']:>9} {spills:>13} {k['shared']:>8} {k['stack']:>6}")
    beside = data["against"]
    if beside is None:
        return lines
    if not data["kernels"]:
        lines.append("  the import built no kernel: languages in Python compile at the first call")
    if beside["note"]:
        return [*lines, f"  {beside['note']}"]
    if beside["same"]:
        return [*lines, f"  SAME: one and the same program as {beside['version']}; nothing to time"]
    lines.append(f"  against {beside['version']}:")
    return [*lines, *(f"    {_change(k)}" for k in beside["kernels"])]


def _change(kernel: dict[str, Any]) -> str:
    known = {"new": "new", "gone": "no longer there", "same": "same machine code"}
    text = f"{kernel['name']}: {known.get(kernel['machine_code'], 'different machine code')}"
    parts = [f"{LABELS[f]} {a} -> {b}" for f, (a, b) in kernel["resources"].items()]
    counted = list(kernel["instructions"].items())
    parts += [f"{op} {a} -> {b}" for op, (a, b) in counted[:SHOWN]]
    parts += [f"{len(counted) - SHOWN} more opcodes"] if len(counted) > SHOWN else []
    return f"{text}; {', '.join(parts)}" if parts else text
