"""The outside of a binary report: magic, zstd frame, file header, and blocks up to the end or to where it is cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from kernelpilot_helpers.ncu import wire
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.wire import BYTES, VARINT, Buffer

MAGIC = b"NVR\0"
ZSTD = b"\x28\xb5\x2f\xfd"
VERSION = 7
"""Of the file header; every file from 2019 to 2025 has it."""
MAX_BYTES = 512 * 1024 * 1024
SMALL_BYTES = 64 * 1024 * 1024
MAX_RATIO = 100
"""A frame that grows more than this beyond SMALL_BYTES is a bomb; reports shrink to a tenth at best."""
MAX_BLOCKS = 200_000
MAX_ENTRIES = 100_000
_CHUNK = 1 << 20

EntryKind = Literal["source", "kernel", "range", "cmdlist", "graph"]
_COUNTS: tuple[tuple[int, EntryKind], ...] = (
    (1, "source"), (2, "kernel"), (7, "range"), (8, "cmdlist"), (9, "graph"),
)  # fmt: skip


@dataclass(kw_only=True, slots=True)
class Block:
    """One block: what its header says, and the entries that lie whole in the file."""

    index: int
    session: list[tuple[int, int]] = field(default_factory=list)
    strings: tuple[int, int] | None = None
    process: tuple[int, int] | None = None
    entries: list[tuple[EntryKind, int, int]] = field(default_factory=list)
    promised: int = 0
    """Results of any kind that the header counts."""
    payload: int = 0
    cut: str = ""
    """Why reading ends with this block; empty when it does not."""
    unknown: set[int] = field(default_factory=set)
    walked: int = 0
    """Fields of the header."""


def unpacked(data: Buffer) -> Buffer:
    """The stream of a report, decompressed where it is zstd frames.

    Raises RefusedInput for other files, for more bytes than the bounds, and for a frame that zstd refuses.
    """
    if len(data) > MAX_BYTES:
        raise RefusedInput("report.too_large", f"{len(data)} bytes; at most {MAX_BYTES} are read")
    head = bytes(data[:4])
    if head == ZSTD:
        data = _decompress(data)
        head = bytes(data[:4])
    if head != MAGIC:
        raise RefusedInput("report.not_report", "no report of Nsight Compute: it does not begin with NVR")
    return data


def _decompress(data: Buffer) -> memoryview:
    try:
        import zstandard  # noqa: PLC0415 (start-up time: only compressed reports need it)
    except ImportError:
        raise RefusedInput("report.zstd_missing", "a compressed report, and no zstandard package to read it") from None
    most = min(MAX_BYTES, max(SMALL_BYTES, MAX_RATIO * len(data)))
    held = bytearray()
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data, read_across_frames=True) as reader:
            while part := reader.read(_CHUNK):
                held += part
                if len(held) > most:
                    raise RefusedInput("report.too_large", f"a compressed report of more than {most} bytes unpacked")
                if not held.startswith(MAGIC[: len(held)]):
                    break
    except zstandard.ZstdError as error:
        # What came out before the fault is read like a file that is cut there.
        if not held:
            raise RefusedInput("report.damaged", f"the zstd frame cannot be read: {error}") from None
    if not held:
        raise RefusedInput("report.truncated", "the zstd frame ends before its first byte of content")
    return memoryview(held)


def header(data: Buffer, *, force: bool) -> int:
    """Offset of the first block. Raises RefusedInput for another version (unless ``force``) or a cut header."""
    size = _size(data, 4)
    if size is None or 8 + size > len(data):
        raise RefusedInput("report.truncated", "the file ends inside its header; 0 results read")
    version = 0
    for number, kind, value, _ in wire.fields(data, 8, 8 + size):
        if number == 1 and kind == VARINT:
            version = value
    if version != VERSION and not force:
        raise RefusedInput("report.version", f"file version {version}; this reader knows version {VERSION}")
    return 8 + size


def _size(data: Buffer, at: int) -> int | None:
    """A little-endian 32-bit length; None past the end."""
    return int.from_bytes(data[at : at + 4], "little") if at + 4 <= len(data) else None


def blocks(data: Buffer, at: int) -> Iterator[Block]:
    """Every block from ``at`` on. The last one has ``cut`` set where the file is truncated or its framing is broken."""
    index = 0
    entries = 0
    while at < len(data):
        block = Block(index=index)
        size = _size(data, at)
        if size is None or at + 4 + size > len(data):
            block.cut = "truncated"
        elif not size or index >= MAX_BLOCKS or entries > MAX_ENTRIES:
            block.cut = "damaged: an empty header" if not size else "passed over: too many blocks or entries"
        else:
            at += 4
            try:
                counts = _block_header(data, at, at + size, block)
                at = _payload(data, at + size, block, counts)
            except RefusedInput as fault:
                block.cut = f"damaged: {fault.what}"
        yield block
        if block.cut:
            return
        entries += len(block.entries)
        index += 1


def _block_header(data: Buffer, at: int, end: int, block: Block) -> dict[int, int]:
    """Fills in the block and returns the counts of its entries by field number."""
    counts: dict[int, int] = {}
    for number, kind, value, stop in wire.fields(data, at, end):
        block.walked += 1
        if kind == VARINT and number in (1, 2, 7, 8, 9):
            counts[number] = value
        elif kind == VARINT and number == 5:
            block.payload = value
        elif kind == BYTES and number == 3:
            block.session.append((value, stop))
        elif kind == BYTES and number == 4:
            block.strings = (value, stop) if stop > value else None
        elif kind == BYTES and number == 6:
            block.process = (value, stop)
        else:
            block.unknown.add(number)
    block.promised = sum(n for key, n in counts.items() if key != 1)
    if sum(counts.values()) > min(MAX_ENTRIES, len(data) // 4):
        block.promised = 0
        raise wire.damaged("more entries than its bytes can hold, or than any report has")
    return counts


def _payload(data: Buffer, at: int, block: Block, counts: dict[int, int]) -> int:
    """Notes the span of each entry that is whole; returns the offset of the next block."""
    end = at + block.payload
    for number, what in _COUNTS:
        for _ in range(counts.get(number, 0)):
            size = _size(data, at)
            if size is None or at + 4 + size > len(data):
                # Beyond the block's own end it is a wrong length, not a short file.
                block.cut = "truncated" if end > len(data) else "damaged: an entry runs past its block"
                return at
            if at + 4 + size > end:
                raise wire.damaged("an entry runs past its block")
            block.entries.append((what, at + 4, at + 4 + size))
            at += 4 + size
    if end > len(data):
        block.cut = "truncated"
    return end
