"""A digest as a Markdown page with the sections of a Profile Evidence Digest. Text out of a report is untrusted."""

from __future__ import annotations

from kernelpilot_helpers import tables
from kernelpilot_helpers.ncu import render
from kernelpilot_helpers.ncu.change import Change, Diff, Pair
from kernelpilot_helpers.ncu.hotspots import Hotspot
from kernelpilot_helpers.ncu.model import Digest, Group
from kernelpilot_helpers.ncu.parts import Said
from kernelpilot_helpers.ncu.plain import clean, code, escaped
from kernelpilot_helpers.ncu.render import number, one_step
from kernelpilot_helpers.ncu.steps import function

_LABELS = {
    "duration": "Duration",
    "cycles": "Cycles",
    "clock": "Clock",
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
    "instructions": "Warp instructions",
}
_GROUPS = 20


def markdown(digest: Digest) -> str:
    """The whole digest as a page. Raises WrongSteps unless there is exactly one next step."""
    step = one_step(digest)
    if digest.refused is not None or digest.headline is None:
        code_id = digest.refused.code if digest.refused is not None else "no kernels"
        return f"# Refused: {code_id}\n\n{escaped(step.why)}\n\n    {step.command}\n"
    group = digest.groups[digest.headline]
    parts = [
        f"# Profile evidence digest: {code(group.kernel)}\n",
        "## Environment\n", _environment(digest, group),
        "## Headline\n", _headline(digest, group),
        "## Evidence\n", _evidence(group, _pair_of(digest.parent, group)),
        "## Hotspots\n", _hotspots(group),
        "## PTX and SASS\n", _sass(digest, group),
        "## Inference chain\n", _chain(group),
        "## Next concrete edit\n", _next(digest),
    ]  # fmt: skip
    return "\n".join(parts)


def _environment(digest: Digest, group: Group) -> str:
    session = digest.session
    said = {
        "GPU": session.gpu, "compute capability": session.cc, "driver": session.driver, "CUDA": session.cuda,
        "ncu": session.ncu, "clock control": session.clocks, "cache control": session.cache, "replay": session.replay,
        "case": digest.given.case,
    }  # fmt: skip
    known = [f"{name} {code(value, 80)}" for name, value in said.items() if value]
    unknown = [name for name, value in said.items() if not value and name != "case"]
    times = render.count(group.launches, "launch", "launches")
    lines = [
        *(f"- File {code(f.name)} ({f.form}), {f.bytes} bytes, sha256 `{f.sha256}`" for f in digest.inputs),
        f"- {', '.join(known) or 'Nothing is said of the machine'}; not in the file: {', '.join(unknown) or 'nothing'}",
        f"- Launch: {escaped(render.launch(group))}; device {code(group.device or 'not said')}, {times}",
        *([f"- Numbers read as {digest.locale}"] if digest.locale else []),
        *(f"- {escaped(flag)}" for flag in (*digest.flags, *digest.reader.notes)),
    ]
    if digest.reader.unknown_fields:
        fields = "; ".join(f"{name} {', '.join(map(str, ids))}" for name, ids in digest.reader.unknown_fields.items())
        lines.append(f"- Field numbers of the format that the reader passed over: {escaped(fields, 300)}")
    lines.append(f"- KernelPilot {digest.tool}, thresholds `{digest.thresholds}`")
    return "\n".join(lines) + "\n"


def _headline(digest: Digest, group: Group) -> str:
    rows = [
        [code(g.kernel), code(g.grid or "none"), str(g.launches), "n/a" if g.time_share is None else
         f"{g.time_share:.1%}", g.name, g.confidence, f"{g.bound:.0%}", f"{g.step_kind} {g.family}"]
        for g in digest.groups[:_GROUPS]
    ]  # fmt: skip
    valid = "; ".join(group.flags) or "figures that can be checked against each other agree, none is above its peak"
    lines = f"**{digest.name}**, confidence {digest.confidence}: {escaped(group.why)}.\n\n"
    lines += f"Validity: {escaped(valid)}.\n\n"
    head = ["Kernel", "Grid", "Launches", "Time", "Class", "Confidence", "Bound", "What it would take"]
    more = len(digest.groups[_GROUPS:]) + (digest.other.groups if digest.other is not None else 0)
    return lines + tables.render(head, rows) + (f"\n{more} more groups are in digest.json.\n" if more else "")


def _pair_of(parent: Diff | None, group: Group) -> Pair | None:
    found = [p for p in (parent.pairs if parent is not None else ()) if p.candidate.kernel == group.kernel]
    return next((p for p in found if p.candidate.grid == group.grid), found[0] if found else None)


def _evidence(group: Group, pair: Pair | None) -> str:
    before = {} if pair is None else {c.role: c for c in pair.changes}
    roles = [r for r in (*_LABELS, *group.supports, *group.contradicts) if r in group.evidence]
    rows = []
    for role in dict.fromkeys(roles):
        reading, change = group.evidence[role], before.get(role)
        rows.append([
            f"{_LABELS.get(role, role)} ({code(reading.metric)})",
            "not compared" if change is None or change.baseline is None else
            render.amount(change.baseline, change.unit),
            number(reading), _delta(change), _part(group, role),
        ])  # fmt: skip
    table = tables.render(["Metric", "Baseline", "Candidate", "Delta", "Interpretation"], rows)
    stalls = sorted(group.stalls.items(), key=lambda s: (-s[1], s[0]))[:5]
    said = ", ".join(f"{name} {share:.0%}" for name, share in stalls)
    return table + (f"\nStalls: {said}.\n" if said else "") + _roof(group) + _phases(group) + _nvidia(group)


def _roof(group: Group) -> str:
    roof = group.roofline
    if roof is None:
        return ""
    if roof.percent is None:
        return f"\nRoofline: {escaped(roof.missing or 'not computable')}.\n"
    intensity = "no DRAM bytes" if roof.intensity is None else f"{roof.intensity:.4g} operations a byte"
    return (
        f"\nRoofline ({escaped(roof.kind)}): {intensity}, ridge {roof.ridge or 0:.4g}; {roof.percent:.1f} % of the "
        f"{roof.roof} roof ({roof.flop_origin if roof.roof == 'compute' else roof.byte_origin}).\n"
    )


def _phases(group: Group) -> str:
    phases = group.phases
    if phases is None:
        return ""
    turns = "; copies and math take turns" if phases.alternates else ""
    return (
        f"\nPhases ({phases.samples} samples): ramp-up {phases.ramp_up:.0%}, steady {phases.steady:.0%}, "
        f"tail {phases.tail:.0%}, {phases.gaps} gaps{turns}.\n"
    )


def _delta(change: Change | None) -> str:
    return "not compared" if change is None or change.delta is None else f"{change.delta * 100:+.1f} %"


def _part(group: Group, role: str) -> str:
    light = group.speed_of_light.get(role)
    part = "supports" if role in group.supports else "contradicts" if role in group.contradicts else ""
    busiest = f"busiest part {code(light.limiting)}" if light is not None and light.limiting else ""
    return "; ".join(p for p in (part, busiest) if p)


def _nvidia(group: Group) -> str:
    advice = group.advice
    if advice is None:
        return "\nNVIDIA's rules: none in the file.\n"
    lines = [f"\nNVIDIA's rules: {len(advice.agrees)} agree, {len(advice.disagrees)} name another bottleneck.\n"]
    lines += [
        f"- {escaped(r.rule)}, {escaped(r.title)}{_estimate(r)}: {escaped(r.text, 240)}" for r in advice.rules[:6]
    ]
    return "\n".join(lines) + "\n"


def _estimate(said: Said) -> str:
    return "" if said.speedup is None else f" (estimated {said.speedup:.3g} %, {said.scope or 'scope not said'})"


def _hotspots(group: Group) -> str:
    if not group.hotspots:
        return (
            "Not in the file. They need `--import-source yes`, the section SourceCounters, and code built with "
            "`-lineinfo`.\n"
        )
    rows = [
        [code(_place(h)), f"{h.share:.0%}", code(h.sass) if h.sass else "not disassembled",
         f"{h.reason} {h.reason_share:.0%}" if h.reason else "", code(h.producer) if h.producer else "",
         "target" if h.target else h.role]
        for h in group.hotspots
    ]  # fmt: skip
    first = group.hotspots[0]
    lines = [f"Ranked by {code(first.metric)}.\n"]
    lines.append(tables.render(["Place", "Share", "Instruction", "Stalls", "Waits for", ""], rows))
    lines += [f"    {clean(text, 160)}" for text in ([f"// {first.source.strip()}"] if first.source else [])]
    lines += [f"    {clean(text, 160)}" for text in first.window]
    return "\n".join(lines) + "\n"


def _place(spot: Hotspot) -> str:
    line = f"{spot.file}:{spot.line}" if spot.file and spot.line is not None else spot.function
    return f"{line} {spot.pc}".strip()


def _sass(digest: Digest, group: Group) -> str:
    pair = _pair_of(digest.parent, group)
    reach = "" if pair is None or pair.reach is None else f"Against the parent: {escaped(pair.reach.text)}.\n\n"
    name = function(group.kernel)
    only = f" | sed -n '/Function : .*{name}/,/[.][.][.][.]/p'" if name else ""
    bare = bool(group.hotspots) and not any(h.sass for h in group.hotspots)
    opcodes = "Opcodes beside the hotspots: digest the report again with `--sass`.\n\n" if bare else ""
    return (
        f"{reach}{opcodes}The code that ran, and whether an edit reached it:\n\n"
        f"    cuobjdump -sass BINARY{only}\n    cuobjdump -res-usage BINARY\n"
    )


def _chain(group: Group) -> str:
    counters = ", ".join(f"{r} {number(group.evidence[r])}" for r in group.supports)
    lines = [f"1. Counters: {escaped(counters or 'too few')}."]
    lines.append(f"2. Mechanism: {escaped(group.why)}; at most {group.bound:.0%} of this kernel's time.")
    lines += [f"3. Not {r.name}: {escaped(r.why, 200)}." for r in group.rejected]
    lines.append(f"4. Missing: {escaped(', '.join(group.missing) or 'nothing that the decision asked for', 600)}.")
    lines += [f"5. Risk: {escaped(flag, 300)}." for flag in group.flags]
    return "\n".join(lines) + "\n"


def _next(digest: Digest) -> str:
    step = digest.next_step
    target = step.target
    place = f"{target.file}:{target.line}" if target.file and target.line is not None else ""
    where = " ".join(p for p in (place, target.function, target.opcode, target.pc) if p)
    bound = step.bound if step.bound is not None else digest.groups[digest.headline or 0].bound
    rows = [
        ["Kind", step.kind], ["Change", step.what],
        ["Where", code(where) if where else "the source of the kernel named in the title"],
        ["Why", step.why], ["Expected movement", step.expect], ["Bound", f"{bound:.0%} of this kernel's time"],
        ["Must not get worse", step.guard], ["Refuted by", step.refute or "the new file leaves the class open"],
        *([["Look up", step.query.command]] if step.query is not None and step.query.command else []),
    ]  # fmt: skip
    return tables.render(["Part", "Text"], [[a, clean(b, 600)] for a, b in rows]) + f"\n    {step.command}\n"
