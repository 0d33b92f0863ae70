"""Binary reports (.ncu-rep, .ncu-repz, .nsight-cuprof-report) as a Report, without NVIDIA's software.

Field numbers and their sources: docs/formats/ncu-report.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import limits, rep_code, rep_file, rep_result, rep_session, wire
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import File, Launch, Report
from kernelpilot_helpers.ncu.wire import BYTES, VARINT, Buffer

MAX_NAMES = 200_000
MAX_NOTES = 20


@dataclass(kw_only=True, slots=True)
class _Walk:
    """What the blocks of one file hold."""

    data: Buffer
    codes: rep_code.Codes
    session: rep_session.Gathered = field(default_factory=rep_session.Gathered)
    results: list[rep_result.Entry] = field(default_factory=list)
    names: tuple[str, ...] = ()
    promised: int = 0
    cut: str = ""
    notes: list[str] = field(default_factory=list)
    unknown: dict[str, set[int]] = field(default_factory=dict)
    budget: wire.Budget = field(default_factory=wire.Budget)

    def take(self, block: rep_file.Block) -> None:
        """One block. A damaged message inside sound framing is noted and passed over."""
        self.promised += block.promised
        self.unknown.setdefault("block", set()).update(block.unknown)
        process = ""
        self.budget.spend(block.walked + len(block.entries))
        try:
            for start, end in block.session:
                self.budget.spend((end - start) // 2)
                self.session.take(self.data, start, end)
            if block.strings:
                # Later blocks carry an empty table and mean the last one that was not.
                found = _strings(self.data, *block.strings)
                self.budget.spend(len(found))
                self.names = found or self.names
            process = _process(self.data, block.process)
        except RefusedInput as fault:
            self.note(_passed(fault, f"block {block.index}"))
        for kind, start, end in block.entries:
            if kind != "source":
                self.results.append(
                    rep_result.Entry(
                        kind=kind, span=(start, end), names=self.names, process=process,
                        block=block.index, place=len(self.results) + 1,
                    )
                )  # fmt: skip
                continue
            try:
                self.budget.spend(self.codes.add(start, end, self.unknown.setdefault("source", set()), process=process))
            except RefusedInput as fault:
                self.note(_passed(fault, f"code in block {block.index}"))
        if block.cut:
            self.cut = f"block {block.index} {block.cut}"

    def note(self, text: str) -> None:
        """At most MAX_NOTES: a damaged file can have as many faults as messages."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)


def parse(
    data: Buffer, *, name: str, sha256: str, force: bool = False, keep: Callable[[str], bool] | None = None
) -> Report:
    """All results of a binary report; ``data`` may be a view of a mapped file, which must stay open for ``code``.

    ``name`` and ``sha256`` are those of the file as it lies on disk. ``force`` reads another file version on the same
    terms. ``keep`` says which metrics are of interest (all). Instances and code are decoded when they are asked for.

    Raises RefusedInput: ``report.not_report``, ``report.version``, ``report.too_large``, ``report.zstd_missing``;
    and where not one result is whole ``report.truncated``, ``report.damaged`` or ``report.no_results``. A file that is
    cut behind a whole result is read up to there, with a note that begins ``block``.
    """
    size = len(data)
    data = rep_file.unpacked(data)
    walk = _Walk(data=data, codes=rep_code.Codes(data))
    for block in rep_file.blocks(data, rep_file.header(data, force=force)):
        walk.take(block)
    launches = _launches(walk, keep)
    if walk.cut:
        of = f" of {walk.promised}" if walk.promised else ""
        walk.notes.insert(0, f"{walk.cut}, {len(launches)}{of} results read")
    if not launches:
        raise _nothing(walk)
    device = launches[0].device
    return Report(
        files=(File(name=name, bytes=size, sha256=sha256, form="report"),),
        launches=launches,
        session=walk.session.session(device=int(device) if device else 0),
        code=walk.codes,
        notes=tuple(walk.notes),
        unknown_fields=_unknown(walk),
    )


def _launches(walk: _Walk, keep: Callable[[str], bool] | None) -> tuple[Launch, ...]:
    """Every result that can be read, numbered as ncu numbers them: process after process."""
    if len(walk.results) > limits.MAX_LAUNCHES:
        raise RefusedInput("report.too_large", f"more than {limits.MAX_LAUNCHES} launches")
    launches = []
    for launch_id, entry in enumerate(sorted(walk.results, key=lambda one: int(one.process or 0))):
        # A copy of the result alone: bytes are faster to walk than a view, and the file's code stays unread.
        message = bytes(walk.data[entry.span[0] : entry.span[1]])
        try:
            launches.append(
                rep_result.read(
                    message,
                    entry,
                    launch_id=launch_id,
                    devices=walk.session.devices,
                    unknown=walk.unknown,
                    budget=walk.budget,
                    keep=keep,
                )
            )
        except RefusedInput as fault:
            walk.note(_passed(fault, f"result {entry.place} in block {entry.block}"))
    return tuple(launches)


def _passed(fault: RefusedInput, part: str) -> str:
    """The note for a damaged part. Raises a fault that is of the whole file."""
    if fault.code == "report.too_large":
        raise fault
    return f"{part} damaged: {fault.what}"


def _nothing(walk: _Walk) -> RefusedInput:
    """Why there is no launch at all."""
    if walk.cut:
        code = "report.truncated" if walk.cut.endswith(" truncated") else "report.damaged"
        return RefusedInput(code, walk.notes[0])
    if walk.results:
        return RefusedInput("report.damaged", walk.notes[0] if walk.notes else "no result can be read")
    return RefusedInput("report.no_results", "a report without a result: no kernel was profiled")


def _unknown(walk: _Walk) -> dict[str, tuple[int, ...]]:
    walk.unknown["session"] = walk.session.unknown
    return {message: tuple(sorted(numbers)[:64]) for message, numbers in sorted(walk.unknown.items()) if numbers}


def _strings(data: Buffer, at: int, end: int) -> tuple[str, ...]:
    names = tuple(
        wire.text(data, start, stop, most=1000)
        for number, kind, start, stop in wire.fields(data, at, end)
        if number == 1 and kind == BYTES
    )
    if len(names) > MAX_NAMES:
        raise wire.damaged(f"a string table of more than {MAX_NAMES} names")
    return names


def _process(data: Buffer, span: tuple[int, int] | None) -> str:
    """Process id; empty where the file has none (2019)."""
    if span is None:
        return ""
    for number, kind, value, _ in wire.fields(data, *span):
        if number == 1 and kind == VARINT:
            return str(value)
    return ""
