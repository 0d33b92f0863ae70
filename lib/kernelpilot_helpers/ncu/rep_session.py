"""How a report was made: versions, devices, command line and settings, spread over the blocks of a file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kernelpilot_helpers.ncu import wire
from kernelpilot_helpers.ncu.report import Session
from kernelpilot_helpers.ncu.wire import BYTES, VARINT, Buffer, Scalar

KNOWN = frozenset({1, 2, 3, 4, 6, 8, 9, 10, 11})
MAX_DEVICES = 1024
MAX_COMMAND = 64 * 1024
_OPTION = r"(?:^|\s)--{}[=\s]+([A-Za-z-]+)"
_DEFAULTS = {"clock-control": "base", "cache-control": "all", "replay-mode": "kernel"}
"""Of ncu's command line, where it names none."""
_TOOL = re.compile(r"(?:^|[/\\\s])(?:ncu|nv-nsight-cu-cli)(?:\.exe)?(?:\s|$)")


@dataclass(kw_only=True, slots=True)
class Device:
    """One GPU of the session."""

    name: str = ""
    attributes: dict[str, Scalar] = field(default_factory=dict)

    @property
    def cc(self) -> str:
        """``9.0``; empty where the file does not say."""
        major = self.attributes.get("compute_capability_major")
        minor = self.attributes.get("compute_capability_minor")
        return f"{major}.{minor}" if isinstance(major, int) and isinstance(minor, int) else ""


@dataclass(kw_only=True, slots=True)
class Gathered:
    """What the blocks read so far say of the session."""

    versions: dict[str, str] = field(default_factory=dict)
    devices: dict[int, Device] = field(default_factory=dict)
    command: str = ""
    host: str = ""
    clocks: str = ""
    replay: str = ""
    unknown: set[int] = field(default_factory=set)

    def take(self, data: Buffer, at: int, end: int) -> None:
        """One ``SessionDetails`` message; later ones add to it. Raises RefusedInput when it is damaged."""
        for number, kind, start, stop in wire.fields(data, at, end):
            if number not in KNOWN:
                self.unknown.add(number)
            if kind != BYTES:
                continue
            if number == 4:
                self.host = _text_field(data, start, stop, 5) or self.host
            elif number == 6 and len(self.devices) < MAX_DEVICES:
                self._device(data, start, stop)
            elif number == 8:
                name = _text_field(data, start, stop, 1)
                self.versions[name] = _text_field(data, start, stop, 2)
            elif number == 10:
                self.clocks = _text_field(data, start, stop, 8) or self.clocks
                self.replay = _text_field(data, start, stop, 11) or self.replay
            elif number == 11:
                self.command = wire.text(data, start, stop, most=MAX_COMMAND).strip() or self.command

    def _device(self, data: Buffer, at: int, end: int) -> None:
        device = Device()
        key = 0
        for number, kind, start, stop in wire.fields(data, at, end):
            if number == 1 and kind == VARINT:
                key = start
            elif number == 2 and kind == BYTES:
                device.name = wire.text(data, start, stop, most=200)
            elif number == 3 and kind == BYTES:
                name, value = _attribute(data, start, stop)
                if value is not None:
                    device.attributes[name.removeprefix("device__attribute_")] = value
        self.devices[key] = device

    def session(self, *, device: int) -> Session:
        """The whole, with ``device`` as the GPU of the first launch."""
        gpu = self.devices.get(device) or next(iter(self.devices.values()), Device())
        return Session(
            gpu=gpu.name, cc=gpu.cc, driver=self.versions.get("Display Driver Version", ""),
            cuda=self.versions.get("CUDA Version", ""),
            ncu=self.versions.get("Nsight Compute Target", "").split(" ", 1)[0],
            clocks=self.clocks.lower() or option(self.command, "clock-control"),
            cache=option(self.command, "cache-control"),
            replay=self.replay.lower() or option(self.command, "replay-mode"),
            command=self.command, host=self.host,
        )  # fmt: skip


def option(command: str, name: str) -> str:
    """The value of an option of ncu, its default where the command line names none; empty without a command line.

    The first occurrence counts: the profiled program may have options of the same name behind it.

    >>> option("/opt/ncu --cache-control none ./run", "cache-control"), option("ncu ./run", "cache-control")
    ('none', 'all')
    """
    if not _TOOL.search(command):
        return ""
    found = re.search(_OPTION.format(re.escape(name)), command)
    return found[1].lower() if found else _DEFAULTS[name]


def _text_field(data: Buffer, at: int, end: int, wanted: int) -> str:
    span = wire.first(data, at, end, wanted)
    return wire.text(data, *span, most=1000) if span else ""


def _attribute(data: Buffer, at: int, end: int) -> tuple[str, Scalar | None]:
    name = ""
    value: Scalar | None = None
    for number, kind, start, stop in wire.fields(data, at, end):
        if number == 1 and kind == BYTES:
            name = wire.text(data, start, stop, most=200)
        elif number == 2 and kind == BYTES:
            value = wire.scalar(data, start, stop)
    return name, value
