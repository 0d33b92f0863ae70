"""An arm's memory: one anonymous file holding every call's tensors between red zones, shared with the oracle."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .content import Contents, poison
from .frames import Frame
from .spec import Case, Tensor

REDZONE = 256
FILL = b"\xa5"
PAGE = 4096


@dataclass(frozen=True)
class Region:
    """Byte offsets of one tensor in the arena: red zone, data, red zone."""

    tensor: Tensor
    start: int
    data: int
    data_end: int
    end: int


@dataclass(frozen=True)
class Layout:
    """Where everything lies. ``static`` is shared by all slots; ``slots[i]`` holds call ``i``'s tensors."""

    static: tuple[Region, ...]
    slots: tuple[tuple[Region, ...], ...]
    size: int


def layout(case: Case, slots: int) -> Layout:
    """The arena of ``slots`` calls; both sides compute it from the case, so only the size of it travels."""
    at = 0

    def place(tensor: Tensor) -> Region:
        nonlocal at
        start = at
        align = max(tensor.align, tensor.itemsize)
        data = -(-(start + REDZONE) // align) * align + tensor.offset * tensor.itemsize
        data_end = data + tensor.span * tensor.itemsize
        at = data_end + REDZONE
        return Region(tensor, start, data, data_end, at)

    static = tuple(place(t) for t in case.by_role("static"))
    rows = []
    for _ in range(slots):
        rows.append(tuple(place(t) for t in case.tensors if t.role in ("in", "inout", "out")))
        at = -(-at // 64) * 64
    return Layout(static, tuple(rows), max(-(-at // PAGE) * PAGE, PAGE))


def slot_bytes(case: Case) -> int:
    """Bytes that one more call takes."""
    return layout(case, 2).size - layout(case, 1).size or PAGE


class Arena:
    """The oracle's side. ``fd`` is handed to one arm and to no other."""

    def __init__(self, frame: Frame, case: Case, slots: int) -> None:
        self.frame = frame
        self.case = case
        self.layout = layout(case, slots)
        self.slots = slots
        self.fd = os.memfd_create("tensors", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, self.layout.size)
        self._map = mmap.mmap(self.fd, self.layout.size)
        self._bytes = memoryview(self._map)
        self._poison = poison(case)
        self._poison_views: dict[str, Any] = {}
        for region in self._regions():
            self._bytes[region.start : region.data] = FILL * (region.data - region.start)
            self._bytes[region.data_end : region.end] = FILL * (region.end - region.data_end)

    def close(self) -> None:
        """Drop the descriptor; the mapping goes with its last view."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _regions(self) -> Iterator[Region]:
        yield from self.layout.static
        for slot in self.layout.slots:
            yield from slot

    def fill_static(self, contents: Contents) -> None:
        """Write the tensors that all calls share."""
        for region in self.layout.static:
            self._bytes[region.data : region.data_end] = contents.window(region.tensor, 0)

    def fill(self, slot: int, contents: Contents, k: int) -> None:
        """Give ``slot`` content ``k``: inputs written, in-place tensors restored, outputs poisoned."""
        data = self._bytes
        for region in self.layout.slots[slot]:
            tensor = region.tensor
            source = self._poison[tensor.name] if tensor.role == "out" else contents.window(tensor, k)
            data[region.data : region.data_end] = source

    def snapshot(self, slot: int) -> dict[str, Any]:
        """Copies of the outputs of ``slot`` by name, in their storage dtype."""
        return {r.tensor.name: self.frame.copy(self._view(r)) for r in self.layout.slots[slot] if _written(r.tensor)}

    def output_bytes(self, slot: int) -> dict[str, bytes]:
        """The memory of every output of ``slot``, gaps included."""
        return {
            r.tensor.name: bytes(self._bytes[r.data : r.data_end])
            for r in self.layout.slots[slot]
            if _written(r.tensor)
        }

    def _view(self, region: Region) -> Any:
        tensor = region.tensor
        return self.frame.view(self._map, region.data, tensor.dtype, tensor.shape, tensor.stride)

    def poison_view(self, name: str) -> Any:
        """What output ``name`` holds before anybody writes it; None for in-place tensors."""
        if name not in self._poison:
            return None
        if name not in self._poison_views:
            tensor = next(t for t in self.case.tensors if t.name == name)
            held = bytearray(self._poison[name])
            self._poison_views[name] = self.frame.view(held, 0, tensor.dtype, tensor.shape, tensor.stride)
        return self._poison_views[name]

    def faults(self, ran: Mapping[int, int], held: Mapping[int, int], contents: Contents) -> list[tuple[str, str]]:
        """(kind, detail) of every trespass after a block.

        ``ran`` maps the slots of the block to their content, ``held`` the slots that were not part of it.
        """
        found: list[tuple[str, str]] = []
        for region in self.layout.static:
            found += self._zones(region, "static")
            if not self._same(region, contents.window(region.tensor, 0)):
                found.append(("cheat.input_mutated", f"static tensor {region.tensor.name} was changed"))
        for slot, k in ran.items():
            for region in self.layout.slots[slot]:
                found += self._zones(region, f"slot {slot}")
                found += self._trespass(region, slot, k, contents)
        found += self._skipped(list(ran))
        for slot, k in held.items():
            for region in self.layout.slots[slot]:
                tensor = region.tensor
                want = self._poison.get(tensor.name) or contents.window(tensor, k)
                if not self._same(region, want):
                    kind = "cheat.neighbour" if _written(tensor) else "cheat.input_mutated"
                    found.append((kind, f"{tensor.name} of slot {slot} changed though it was not called"))
        return found

    def _skipped(self, ran: list[int]) -> list[tuple[str, str]]:
        """Calls of one block that left a floating output as it was, while others of the block wrote theirs."""
        untouched: dict[str, list[int]] = {}
        for slot in ran:
            for region in self.layout.slots[slot]:
                name = region.tensor.name
                if region.tensor.is_float and self._poison.get(name) and self._same(region, self._poison[name]):
                    untouched.setdefault(name, []).append(slot)
        return [
            ("cheat.skipped", f"{len(slots)} of {len(ran)} calls of a block did not write {name}")
            for name, slots in untouched.items()
            if len(slots) < len(ran)
        ]

    def _trespass(self, region: Region, slot: int, k: int, contents: Contents) -> list[tuple[str, str]]:
        tensor = region.tensor
        if tensor.role == "in":
            if self._same(region, contents.window(tensor, k)):
                return []
            return [("cheat.input_mutated", f"input {tensor.name} of slot {slot} was changed")]
        if tensor.span == tensor.numel:
            return []
        before = self._poison.get(tensor.name) or contents.window(tensor, k)
        expected = bytearray(before)
        self.frame.view(expected, 0, tensor.dtype, tensor.shape, tensor.stride)[...] = self._view(region)
        if self._same(region, expected):
            return []
        return [("memory.redzone", f"{tensor.name} of slot {slot}: a gap between its strides was written")]

    def _same(self, region: Region, want: bytes | bytearray | memoryview) -> bool:
        return bytes(self._bytes[region.data : region.data_end]) == bytes(want)  # memcmp, not element by element

    def _zones(self, region: Region, where: str) -> list[tuple[str, str]]:
        found = []
        for side, low, high in (("before", region.start, region.data), ("after", region.data_end, region.end)):
            if bytes(self._bytes[low:high]) != FILL * (high - low):
                found.append(("memory.redzone", f"{where}: bytes {side} {region.tensor.name} were written"))
        return found


def _written(tensor: Tensor) -> bool:
    return tensor.role in ("out", "inout")
