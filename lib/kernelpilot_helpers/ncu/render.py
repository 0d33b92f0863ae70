"""A digest as twelve lines of text, and as a Markdown page. Names from a file are untrusted."""

from __future__ import annotations

import unicodedata

from kernelpilot_helpers import tables, units
from kernelpilot_helpers.ncu.model import Digest, Group, Reading, Rejected
from kernelpilot_helpers.ncu.steps import function

NAME = 96
_LABELS = {
    "duration": "Duration",
    "sm_sol": "Compute speed of light",
    "memory_sol": "Memory speed of light",
    "dram_sol": "DRAM",
    "l2_sol": "L2",
    "l1_sol": "L1",
    "lsu_wavefronts": "Load/store wavefronts",
    "tensor": "Tensor pipe",
    "issue": "Issue slots",
    "occupancy": "Achieved occupancy",
    "occupancy_theoretical": "Theoretical occupancy",
    "waves": "Waves per SM",
    "registers": "Registers per thread",
    "shared": "Shared memory per block",
    "dram_bytes": "DRAM bytes moved",
}


def clean(name: str, limit: int = NAME) -> str:
    """A name without control, format and bidirectional characters, on one line, cut to a length.

    >>> clean("a\\x1b[31m\\nb")
    'a[31m b'
    """
    flat = " ".join(name.split())
    flat = "".join(c for c in flat if unicodedata.category(c)[0] != "C")
    return (flat[: limit - 3] + "...") if len(flat) > limit else flat or "(no name)"


def code(name: str) -> str:
    """A name as a Markdown code span that nothing in it can leave.

    >>> code("f`<b>")
    "`f'<b>`"
    """
    return "`" + clean(name, 200).replace("`", "'") + "`"


def text(digest: Digest) -> str:
    """At most twelve lines."""
    step = digest.next_step
    if digest.refused is not None:
        return "\n".join([f"refused  {digest.refused.code}: {digest.refused.what}", f"fix      {digest.refused.fix}"])
    group = digest.groups[digest.headline or 0]
    rest = len(digest.groups) - 1
    lines = [
        f"kernel   {clean(group.kernel)}",
        f"launch   {_launch(group)}",
        f"class    {digest.name} ({digest.confidence}): {clean(group.why, 200)}",
        f"busy     {_row(group, ('sm_sol', 'memory_sol', 'dram_sol', 'l2_sol', 'l1_sol', 'tensor', 'issue'))}",
        f"fit      {_row(group, ('occupancy', 'occupancy_theoretical', 'waves', 'registers', 'shared', 'dram_bytes'))}",
        f"not      {_rejected(group)}",
        f"next     [{step.kind}] {clean(step.what, 300)}",
        f"expect   {clean(step.expect, 200)}",
        f"guard    {clean(step.guard, 200)}",
        f"command  {step.command}",
    ]
    doubts = [*group.flags, *([f"{rest} more groups of launches: see --json"] if rest else [])]
    return "\n".join([*lines, f"note     {clean('; '.join(doubts), 240)}"] if doubts else lines)


def _launch(group: Group) -> str:
    time = "duration not in the file" if group.duration_us is None else units.micros(group.duration_us)
    share = "" if group.time_share is None else f", {group.time_share:.0%} of the file's time"
    return f"{time}, grid {clean(group.grid)}, block {clean(group.block)}, {group.launches} launches{share}"


def number(reading: Reading | None) -> str:
    """A reading for people; a missing one says so."""
    if reading is None:
        return "not in the file"
    if reading.unit == "ns":
        return units.micros(reading.value / 1e3)
    if reading.unit.startswith("byte"):
        return units.size(int(reading.value))
    return f"{reading.value:.4g} {reading.unit}".rstrip()


def _row(group: Group, roles: tuple[str, ...]) -> str:
    return ", ".join(f"{r} {number(group.evidence[r]) if r in group.evidence else 'n/a'}" for r in roles)


def _rejected(group: Group) -> str:
    nearest = group.rejected[::-1]
    said = [f"{r.name} ({r.why})" for r in (*filter(_open, nearest), *(r for r in nearest if not _open(r)))]
    return clean("; ".join(said) or "nothing came before it", 240)


def _open(rejected: Rejected) -> bool:
    return rejected.unknown


def markdown(digest: Digest) -> str:
    """The whole digest as a page with the sections that a Profile Evidence Digest has."""
    if digest.refused is not None:
        return f"# Refused: {digest.refused.code}\n\n{digest.refused.what}\n\n    {digest.refused.fix}\n"
    group = digest.groups[digest.headline or 0]
    parts = [
        f"# Profile evidence digest: {code(group.kernel)}\n",
        "## Environment\n", _environment(digest, group),
        "## Headline\n", _headline(digest, group),
        "## Evidence\n", _evidence(group),
        "## Hotspots\n", _hotspots(),
        "## PTX and SASS\n", _sass(group),
        "## Inference chain\n", _chain(group),
        "## Next concrete edit\n", _next(digest),
    ]  # fmt: skip
    return "\n".join(parts)


def _environment(digest: Digest, group: Group) -> str:
    lines = [
        f"- File {code(digest.input.name)}, {digest.input.bytes} bytes, sha256 `{digest.input.sha256}`",
        f"- Device {code(group.device)}, grid {code(group.grid)}, block {code(group.block)}, {group.launches} launches",
        f"- Numbers read as {digest.locale}; base units from the file's row of units",
        *(f"- {clean(flag, 400)}" for flag in digest.flags),
    ]
    return "\n".join(lines) + "\n"


def _headline(digest: Digest, group: Group) -> str:
    rows = [
        [code(g.kernel), code(g.grid), str(g.launches), "n/a" if g.time_share is None else f"{g.time_share:.1%}",
         g.name, g.confidence, f"{g.bound:.0%}"]
        for g in digest.groups[:20]
    ]  # fmt: skip
    valid = (
        "; ".join(group.flags)
        or "duration, cycles and clock agree where they are given, and no figure is above its peak"
    )
    lines = f"**{digest.name}**, confidence {digest.confidence}: {group.why}.\n\nValidity: {clean(valid, 400)}.\n\n"
    table = tables.render(["Kernel", "Grid", "Launches", "Time", "Class", "Confidence", "Bound"], rows)
    more = len(digest.groups) - 20
    return lines + table + (f"\n{more} more groups are in digest.json.\n" if more > 0 else "")


def _evidence(group: Group) -> str:
    roles = [*_LABELS, *(r for r in group.supports + group.contradicts if r not in _LABELS)]
    rows = []
    for role in roles:
        reading = group.evidence.get(role)
        part = "supports" if role in group.supports else "contradicts" if role in group.contradicts else ""
        metric = "" if reading is None else code(reading.metric)
        rows.append([_LABELS.get(role, role), metric, number(reading), "not compared", "not compared", part])
    return tables.render(["Metric", "Column", "Baseline", "Candidate", "Delta", "Interpretation"], rows)


def _hotspots() -> str:
    return (
        "A raw page holds no source lines. Missing: samples per instruction. They are in the report when it was made "
        "with `--import-source yes` and `-lineinfo`:\n\n"
        "    ncu --import REPORT.ncu-rep --page source --csv --print-source sass\n"
    )


def _sass(group: Group) -> str:
    name = function(group.kernel)
    only = f" --function {name}" if name else ""
    return (
        "Missing from a raw page. The code that ran, and whether an edit reached it:\n\n"
        f"    cuobjdump -sass{only} BINARY\n    cuobjdump -res-usage BINARY\n"
    )


def _chain(group: Group) -> str:
    lines = [f"1. Counters: {', '.join(f'{r} {number(group.evidence[r])}' for r in group.supports) or 'too few'}."]
    lines.append(f"2. Mechanism: {group.why}; at most {group.bound:.0%} of this kernel's time.")
    lines += [f"3. Not {r.name}: {clean(r.why, 200)}." for r in group.rejected]
    lines.append(f"4. Missing: {', '.join(group.missing) or 'nothing that the decision asked for'}.")
    lines += [f"5. Risk: {clean(flag, 300)}." for flag in group.flags]
    return "\n".join(lines) + "\n"


def _next(digest: Digest) -> str:
    step = digest.next_step
    rows = [
        ["Kind", step.kind], ["Change", step.what], ["Where", "the source of the kernel named in the title"],
        ["Why", step.why], ["Expected movement", step.expect], ["Must not get worse", step.guard],
        ["Refuted by", step.refute or "the new file leaves the class open"],
    ]  # fmt: skip
    return tables.render(["Part", "Text"], [[a, clean(b, 600)] for a, b in rows]) + f"\n    {step.command}\n"
