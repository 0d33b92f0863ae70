"""Binary reports for tests: made up message by message, taken apart into blocks, and damaged."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence

from kernelpilot_helpers.ncu import rep, wire
from kernelpilot_helpers.ncu.report import Report
from tests import ncu_files as files


def capture(name: str) -> bytes:
    """Bytes of a committed report."""
    return files.capture(f"{name}.ncu-rep")


def parse(data: bytes | memoryview, *, force: bool = False) -> Report:
    return rep.parse(data, name="x.ncu-rep", sha256="0" * 64, force=force)


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def run(field: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def metric(name_id: int, value: bytes, instances: Sequence[tuple[bytes, bytes]] = (), kind: int = 0) -> bytes:
    """A field 13 of a kernel's result; ``value`` is the content of a Value message."""
    listed = b"".join(run(3, run(1, key) + run(2, one)) for key, one in instances)
    return run(13, number(1, name_id) + (run(2, value) if value else b"") + listed + number(4, kind))


def result(*metrics: bytes, name: str = "k", extra: bytes = b"") -> bytes:
    return run(6, name) + run(10, number(1, 2) + number(2, 1) + number(3, 1)) + b"".join(metrics) + extra


def block(
    *, sources: Sequence[bytes] = (), results: Sequence[bytes] = (), names: Sequence[str] = (), pid: int = 7,
    session: bytes = b"", extra: bytes = b"",
) -> bytes:  # fmt: skip
    entries = b"".join(struct.pack("<I", len(one)) + one for one in (*sources, *results))
    head = number(1, len(sources)) + number(2, len(results)) + (run(3, session) if session else b"")
    head += run(4, b"".join(run(1, name) for name in names)) + number(5, len(entries)) + run(6, number(1, pid)) + extra
    return struct.pack("<I", len(head)) + head + entries


def report(*blocks: bytes, version: int = 7) -> bytes:
    head = number(1, version)
    return b"NVR\0" + struct.pack("<I", len(head)) + head + b"".join(blocks)


def edges(data: bytes) -> list[int]:
    """Offset of the begin of each block, of its payload, and of the end of the file."""
    found = []
    at = 8 + struct.unpack_from("<I", data, 4)[0]
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        payload = {key: value for key, kind, value, _ in wire.fields(data, at + 4, at + 4 + size) if kind == 0}
        found += [at, at + 4 + size]
        at += 4 + size + payload.get(5, 0)
    return [*found, len(data)]


def damage(rng: random.Random, data: bytes, heads: Sequence[int]) -> bytes:
    """One mutation: flipped bits, a number or length replaced, a run cut out or doubled, or a cut file.

    ``heads``: edges of the whole file, where lengths and counts are.
    """
    out = bytearray(data)
    at = rng.randrange(len(out))
    sort = rng.randrange(6)
    if sort == 0:
        for _ in range(rng.randrange(1, 20)):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    elif sort == 1:
        out[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", rng.randbytes(4)])
    elif sort == 2:
        near = rng.choice(heads) + rng.randrange(60)
        out[near : near + 2] = rng.randbytes(2)
    elif sort == 3:
        del out[at : at + rng.randrange(1, 5000)]
    elif sort == 4:
        out[at:at] = out[at : at + rng.randrange(1, 5000)]
    else:
        del out[at:]
    return bytes(out)


def touch(found: Report) -> None:
    """Uses everything that is decoded lazily."""
    for launch in found.launches:
        for name in launch.metrics:
            assert launch.metrics[name].number is not None or launch.metrics[name].text is not None
        for name in launch.series:
            assert launch.series[name].values is not None
    for key in found.code:
        assert found.code[key].cubin is not None
