"""How a build for a GPU is shown: a line a kernel, and what changed against the incumbent's build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelpilot_helpers.attempt.raw import Build, Raw
    from kernelpilot_helpers.referee.scratch import Against

LINES = 20
LATER = "languages in Python compile at the first call"
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


def compiled(raw: Raw) -> bool:
    """Whether the candidate's import built anything at all."""
    return any(b.arm == "B" and b.artifacts for b in raw.builds)


def lacking(raw: Raw) -> list[str]:
    """Frameworks that the candidate imports and this Python lacks, where the import built nothing."""
    from kernelpilot_helpers.runtime.build_worker import STOOD_IN_EVENT

    if compiled(raw):
        return []
    return list(dict.fromkeys(e.detail for e in raw.events if e.arm == "B" and e.kind == STOOD_IN_EVENT))


def shown(log: str) -> list[str]:
    """What of a failed build's log a terminal shows: a compiler's first lines, a traceback's last ones."""
    from kernelpilot_helpers.correctness import own_frames

    lines = own_frames(log).splitlines()
    return lines[-LINES:] if log.startswith("Traceback") else lines[:LINES]


def words(data: dict[str, Any]) -> list[str]:
    """The same for a person; nothing for a build without a GPU's kernels."""
    lines = [f"  compiled by {compiler}" for compiler in data["compilers"]]
    if data["kernels"]:
        head = f"{'kernel':<32} {'registers':>9} {'spills st/ld':>13} {'shared':>8} {'stack':>6}"
        lines.append(f"  {head}   (shared a block, stack a thread: bytes)")
    for k in data["kernels"]:
        spills = f"{k['spill_stores']}/{k['spill_loads']}"
        lines.append(f"  {k['name']:<32} {k['registers']:>9} {spills:>13} {k['shared']:>8} {k['stack']:>6}")
    beside = data["against"]
    if beside is None:
        return lines
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
