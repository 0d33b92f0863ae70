"""A digest's first screen: at most twelve lines, and exactly one next step among them."""

from __future__ import annotations

import re

from kernelpilot_helpers import units
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.ncu.change import Change, Diff
from kernelpilot_helpers.ncu.model import Digest, Group, NextStep, Reading
from kernelpilot_helpers.ncu.plain import clean

LINES = 12
_ROOFS = (("sm_sol", "compute"), ("memory_sol", "memory"), ("dram_sol", "DRAM"), ("l2_sol", "L2"), ("l1_sol", "L1"),
          ("tensor", "tensor"), ("issue", "issue"))  # fmt: skip
_NAMES = dict(_ROOFS)


class WrongSteps(KernelPilotError):
    """A digest that does not hold exactly one next step: it is not shown, because it could be followed two ways."""


def one_step(digest: Digest) -> NextStep:
    """The next step. Raises WrongSteps unless the headline group, and it alone, carries the digest's step."""
    held = [ix for ix, group in enumerate(digest.groups) if group.next_step is not None]
    wanted = [] if digest.headline is None else [digest.headline]
    if held != wanted or any(digest.groups[ix].next_step != digest.next_step for ix in held):
        raise WrongSteps(
            f"a digest has exactly one next step, this one has {len(held)} in its groups",
            where="digest.json",
            fix="kernelpilot ncu digest FILE --out DIR",
        )
    return digest.next_step


def text(digest: Digest) -> str:
    """At most twelve lines. Raises WrongSteps."""
    step = one_step(digest)
    if digest.refused is not None or digest.headline is None:
        what, fix = step.why, step.command
        return "\n".join([f"refused  {clean(what, 600)}", f"fix      {fix}"])
    group = digest.groups[digest.headline]
    lines = [
        f"kernel   {clean(group.kernel)}",
        f"case     {_case(digest, group)}",
        f"launch   {launch(group)}",
        f"busy     {_busy(group)}",
        f"against  {_against(digest, group)}",
        f"class    {digest.name} ({digest.confidence}): {clean(group.why, 200)}",
        f"parent   {_parent(digest.parent)}",
        f"next     [{step.kind}] {clean(step.what, 300)}{_at(step)}",
        f"expect   {clean(step.expect, 200)}; {_bound(step, group)}guard: {clean(step.guard, 160)}",
        f"refuted  {clean(step.refute or 'the new file leaves the class open', 240)}",
        f"command  {step.command}",
    ]
    if notes := _notes(digest, group):
        lines.append(f"note     {clean(notes, 300)}")
    assert len(lines) <= LINES
    return "\n".join(lines)


def _bound(step: NextStep, group: Group) -> str:
    bound = group.bound if step.bound is None else step.bound
    return f"at most {bound:.0%} of this kernel's time; " if step.kind == "edit" else ""


def _case(digest: Digest, group: Group) -> str:
    time = "duration not in the file" if group.duration_us is None else f"{units.micros(group.duration_us)} isolated"
    share = "" if group.time_share is None else f", {group.time_share:.0%} of the file's time"
    case = clean(digest.given.case) if digest.given.case else "no case named"
    gpu = f", {clean(digest.session.gpu, 40)}" if digest.session.gpu else ""
    return f"{case}, {time}, {count(group.launches, 'launch', 'launches')}{share}{gpu}"


def count(number: int | str, one: str, many: str) -> str:
    """A number of things.

    >>> count(1, "block", "blocks")
    '1 block'
    """
    return f"{number} {one if str(number) == '1' else many}"


def launch(group: Group) -> str:
    """Resources and the grid as waves over the GPU."""
    parts = [f"{number(group.evidence.get('registers'))} registers" if "registers" in group.evidence else ""]
    parts += [f"{number(group.evidence['shared'])} shared" if "shared" in group.evidence else ""]
    if group.occupancy is not None and group.occupancy.blocks_per_sm is not None:
        resident = count(f"{group.occupancy.blocks_per_sm:g}", "CTA", "CTAs")
        parts.append(f"{resident}/SM (by {group.occupancy.limiter or 'an unseen limit'})")
    cluster = group.evidence.get("cluster")
    parts += [f"cluster {cluster.value:g}" if cluster is not None and cluster.value > 0 else ""]
    parts.append(f"grid {clean(group.grid, 40)} x block {clean(group.block, 40)}" if group.grid else "")
    parts.append(tiles(group))
    return ", ".join(p for p in parts if p) or "not in the file"


def tiles(group: Group) -> str:
    """Blocks over SMs; empty when either is missing."""
    sizes = [int(n) for n in re.findall(r"\d{1,10}", group.grid)]
    sms, waves = group.evidence.get("sms"), group.evidence.get("waves")
    if len(sizes) != 3 or sms is None:
        return ""
    full = "" if waves is None else f", {count(f'{waves.value:.3g}', 'wave', 'waves')}"
    return f"{count(sizes[0] * sizes[1] * sizes[2], 'block', 'blocks')} on {sms.value:g} SMs{full}"


def number(reading: Reading | None) -> str:
    """A reading for people; a missing one says so."""
    return "not in the file" if reading is None else amount(reading.value, reading.unit)


def amount(value: float, unit: str) -> str:
    """A value in its base unit for people."""
    if unit == "ns":
        return units.micros(value / 1e3)
    if unit.startswith("byte") and not unit.startswith("byte/s"):
        return units.size(int(value))
    if unit == "hz":
        return f"{value / 1e9:.3f} GHz"
    return f"{value:,.0f}" if unit == "" and value >= 1e4 else f"{value:.4g} {unit}".rstrip()


def _busy(group: Group) -> str:
    parts = [f"{name} {group.evidence[role].value:.1f} %" for role, name in _ROOFS if role in group.evidence]
    lights = [(light.value, role) for role, light in group.speed_of_light.items() if light.limiting and role in _NAMES]
    role = max(lights)[1] if lights else ""
    tail = f" ({_NAMES[role]} by {clean(group.speed_of_light[role].limiting, 60)})" if role else ""
    return (", ".join(parts) or "not in the file") + tail


def _against(digest: Digest, group: Group) -> str:
    moved, least, floor = group.evidence.get("dram_bytes"), digest.given.min_bytes, digest.given.floor_us
    parts = []
    if floor is not None and group.duration_us:
        parts.append(f"{floor / group.duration_us:.0%} of the size-matched floor of {units.micros(floor)}")
    if moved is not None:
        parts.append(f"{number(moved)} through DRAM{_over(moved.value, least)}")
    roof = group.roofline
    if roof is not None and roof.percent is not None:
        at = "" if roof.intensity is None else f" at {roof.intensity:.3g} operations a byte"
        parts.append(f"{roof.percent:.0f} % of the {roof.roof} roof{at}")
    return "; ".join(parts) or "neither floor nor bytes are known"


def _over(moved: float, least: int | None) -> str:
    if least is None:
        return " (give --min-bytes for the least)"
    below = " (below it: caches held the rest, or --min-bytes is too large)" if moved < 0.9 * least else ""
    return f", {moved / least:.2f} times the least{below}"


def _parent(parent: Diff | None) -> str:
    if parent is None:
        return "not compared: give --parent FILE"
    first = parent.pairs[0] if parent.pairs else None
    verdict = parent.verdict.replace("_", " ")
    if first is None:
        return f"{verdict}: no kernel is in both reports"
    wanted = [c for c in first.changes if c.role in ("cycles", "dram_bytes", "instructions") and c.delta is not None]
    reach = f"; {first.reach.text}" if first.reach is not None else ""
    why = f" ({'; '.join(parent.reasons)})" if parent.reasons else ""
    moved = ", ".join(delta(c) for c in (parent.time, *wanted))
    other = f" against another kernel, {clean(first.baseline.kernel, 60)}" if first.matched == "order" else ""
    return clean(f"{verdict}{other}{why}: {moved}{reach}", 320)


def delta(change: Change) -> str:
    """A change for people.

    >>> delta(Change(role="time", metric="t", unit="ns", baseline=2.0, candidate=1.0, delta=-0.5))
    'time -50.0 %'
    """
    return f"{change.role} n/a" if change.delta is None else f"{change.role} {change.delta * 100:+.1f} %"


def _at(step: NextStep) -> str:
    target = step.target
    place = f"{clean(target.file, 80)}:{target.line}" if target.file and target.line is not None else ""
    parts = [place, clean(target.opcode, 40) if target.opcode else "", target.pc]
    shown = " ".join(p for p in parts if p)
    return f" [at {shown}]" if shown else ""


def _notes(digest: Digest, group: Group) -> str:
    rest = len(digest.groups) - 1 + (digest.other.groups if digest.other is not None else 0)
    notes = [*digest.reader.notes[:1], *group.flags]
    share = "" if group.time_share is None else f" with {1 - group.time_share:.0%} of the time"
    notes += [f"{count(rest, 'more group', 'more groups')} of launches{share}: see --json"] if rest else []
    return "; ".join(notes)
