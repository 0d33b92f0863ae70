"""An arm's memory: every call's tensors between red zones, shared by one arm and the oracle.

On the CPU it is an anonymous file; gpu_arena.py has the same on a GPU.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .content import Contents, poison
from .frames import Frame
from .spec import Case, Tensor

if TYPE_CHECKING:
    from .gpu_arena import GpuArena
    from .session import Session

REDZONE = 256
FILL = b"\xa5"
PAGE = 4096
SLOT_ALIGN = 64


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
    """Where everything lies: ``static[c]`` is copy ``c`` of what calls share, ``slots[i]`` call ``i``'s own tensors.

    Call ``i`` reads copy ``i % len(static)``. ``step`` is the distance of a tensor in one slot from the same tensor
    in the next, in bytes.
    """

    static: tuple[tuple[Region, ...], ...]
    slots: tuple[tuple[Region, ...], ...]
    size: int
    step: int


def layout(case: Case, slots: int, copies: int = 1) -> Layout:
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

    own = [t for t in case.tensors if t.role in ("in", "inout", "out")]
    step = math.lcm(SLOT_ALIGN, *(max(t.align, t.itemsize) for t in own))
    static = tuple(tuple(place(t) for t in case.by_role("static")) for _ in range(copies))
    rows, starts = [], []
    for _ in range(slots):
        at = -(-at // step) * step
        starts.append(at)
        rows.append(tuple(place(t) for t in own))
    wide = starts[1] - starts[0] if slots > 1 else -(-(at - starts[0]) // step) * step if slots else 0
    return Layout(static, tuple(rows), max(-(-at // PAGE) * PAGE, PAGE), wide)


def slot_bytes(case: Case) -> int:
    """Bytes that one more call takes."""
    return layout(case, 2).size - layout(case, 1).size or PAGE


def static_bytes(case: Case) -> int:
    """Bytes that one more copy of the static tensors takes; 0 where there are none."""
    return layout(case, 0, 1).size if case.by_role("static") else 0


class Memory:
    """What both kinds of arena share: which trespass is which, one region after the other."""

    def __init__(self, frame: Frame, case: Case, slots: int, copies: int = 1) -> None:
        self.frame = frame
        self.case = case
        self.layout = layout(case, slots, copies)
        self.slots = slots
        self.copies = copies
        self.nbytes = self.layout.size

    def _regions(self) -> Iterator[Region]:
        for copy in self.layout.static:
            yield from copy
        for slot in self.layout.slots:
            yield from slot

    def _shared(self) -> Iterator[tuple[int, Region]]:
        return ((which, r) for which, copy in enumerate(self.layout.static) for r in copy)

    def _outputs(self, slot: int) -> Iterator[Region]:
        return (r for r in self.layout.slots[slot] if _written(r.tensor))

    def _raw(self) -> Any:
        """The whole memory, as ``frame.view`` takes it."""
        raise NotImplementedError

    def _view(self, region: Region) -> Any:
        tensor = region.tensor
        return self.frame.view(self._raw(), region.data, tensor.dtype, tensor.shape, tensor.stride)

    def stacked(self, tensor: Tensor) -> Any:
        """An own tensor of every slot as one view: (slots, *shape)."""
        first = next(r.data for r in self.layout.slots[0] if r.tensor is tensor)
        step = self.layout.step // tensor.itemsize
        return self.frame.view(self._raw(), first, tensor.dtype, (self.slots, *tensor.shape), (step, *tensor.stride))

    def _poisoned(self, tensor: Tensor) -> Any:
        raise NotImplementedError

    def _same(self, region: Region, want: Any) -> bool:
        raise NotImplementedError

    def _clean(self, low: int, high: int) -> bool:
        raise NotImplementedError

    def _with_gaps_of(self, before: Any, region: Region) -> Any:
        raise NotImplementedError

    def ready(self) -> None:
        """Wait until everything written here can be read by the arm."""

    def snapshot(self, slot: int) -> dict[str, Any]:
        """Copies of the outputs of ``slot`` by name, in their storage dtype."""
        return {r.tensor.name: self.frame.copy(self._view(r)) for r in self._outputs(slot)}

    def _before(self, tensor: Tensor, k: int, contents: Contents) -> Any:
        return self._poisoned(tensor) if tensor.role == "out" else contents.window(tensor, k)

    def faults(self, ran: Mapping[int, int], held: Mapping[int, int], contents: Contents) -> list[tuple[str, str]]:
        """(kind, detail) of every trespass after a block.

        ``ran`` maps the slots of the block to their content, ``held`` the slots that were not part of it.
        """
        found: list[tuple[str, str]] = []
        for which, region in self._shared():
            found += self._zones(region, "static")
            if not self._same(region, contents.copy(region.tensor, which)):
                found.append(("cheat.input_mutated", f"static tensor {region.tensor.name} was changed"))
        for slot, k in ran.items():
            for region in self.layout.slots[slot]:
                found += self._zones(region, f"slot {slot}")
                found += self._trespass(region, slot, k, contents)
        found += self._skipped(list(ran))
        for slot, k in held.items():
            for region in self.layout.slots[slot]:
                tensor = region.tensor
                found += self._zones(region, f"slot {slot}")
                if not self._same(region, self._before(tensor, k, contents)):
                    kind = "cheat.neighbour" if _written(tensor) else "cheat.input_mutated"
                    found.append((kind, f"{tensor.name} of slot {slot} changed though it was not called"))
        return found

    def _skipped(self, ran: list[int]) -> list[tuple[str, str]]:
        """Calls of one block that left a floating output as it was, while others of the block wrote theirs."""
        untouched: dict[str, list[int]] = {}
        for slot in ran:
            for region in self.layout.slots[slot]:
                tensor = region.tensor
                if may_skip(tensor) and self._same(region, self._poisoned(tensor)):
                    untouched.setdefault(tensor.name, []).append(slot)
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
        if self._same(region, self._with_gaps_of(self._before(tensor, k, contents), region)):
            return []
        return [("memory.redzone", f"{tensor.name} of slot {slot}: a gap between its strides was written")]

    def _zones(self, region: Region, where: str) -> list[tuple[str, str]]:
        sides = (("before", region.start, region.data), ("after", region.data_end, region.end))
        return [
            ("memory.redzone", f"{where}: bytes {side} {region.tensor.name} were written")
            for side, low, high in sides
            if not self._clean(low, high)
        ]


class Arena(Memory):
    """The oracle's side on the CPU. ``fd`` is handed to one arm and to no other."""

    def __init__(self, frame: Frame, case: Case, slots: int, copies: int = 1) -> None:
        super().__init__(frame, case, slots, copies)
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

    def fill_static(self, contents: Contents) -> None:
        """Write the tensors that calls share: other content in every copy."""
        for which, region in self._shared():
            self._bytes[region.data : region.data_end] = contents.copy(region.tensor, which)

    def fill(self, slot: int, contents: Contents, k: int) -> None:
        """Give ``slot`` content ``k``: inputs written, in-place tensors restored, outputs poisoned."""
        data = self._bytes
        for region in self.layout.slots[slot]:
            tensor = region.tensor
            source = self._poison[tensor.name] if tensor.role == "out" else contents.window(tensor, k)
            data[region.data : region.data_end] = source

    def fill_all(self, contents: Contents, ks: Sequence[int]) -> None:
        """``fill`` slot ``i`` with content ``ks[i]``, for every slot."""
        for slot, k in enumerate(ks):
            self.fill(slot, contents, k)

    def digest(self, slot: int) -> dict[str, bytes]:
        """16 bytes that stand for the memory of each output of ``slot``, gaps included."""
        return {r.tensor.name: hashlib.blake2b(self._data(r), digest_size=16).digest() for r in self._outputs(slot)}

    def keep(self, slot: int) -> dict[str, bytes]:
        """The memory of every output of ``slot``, gaps included, for ``differ``."""
        return {r.tensor.name: bytes(self._data(r)) for r in self._outputs(slot)}

    def differ(self, kept: Mapping[str, bytes], slot: int) -> dict[str, str]:
        """By output: how many bytes ``slot`` now holds otherwise than what was kept, in words; equal ones are out."""
        after = self.keep(slot)
        return {
            name: differing(sum(a != b for a, b in zip(old, after[name], strict=True)), len(old))
            for name, old in kept.items()
            if old != after[name]
        }

    def _data(self, region: Region) -> memoryview:
        return self._bytes[region.data : region.data_end]

    def _raw(self) -> Any:
        return self._map

    def poison_view(self, name: str) -> Any:
        """What output ``name`` holds before anybody writes it; None for in-place tensors."""
        if name not in self._poison:
            return None
        if name not in self._poison_views:
            tensor = self.case.tensor(name)
            held = bytearray(self._poison[name])
            self._poison_views[name] = self.frame.view(held, 0, tensor.dtype, tensor.shape, tensor.stride)
        return self._poison_views[name]

    def _poisoned(self, tensor: Tensor) -> Any:
        return self._poison[tensor.name]

    def _with_gaps_of(self, before: Any, region: Region) -> Any:
        tensor, expected = region.tensor, bytearray(before)
        self.frame.view(expected, 0, tensor.dtype, tensor.shape, tensor.stride)[...] = self._view(region)
        return expected

    def _same(self, region: Region, want: Any) -> bool:
        return bytes(self._data(region)) == bytes(want)  # memcmp, not element by element

    def _clean(self, low: int, high: int) -> bool:
        return bytes(self._bytes[low:high]) == FILL * (high - low)


def open_arena(session: Session, case: Case, slots: int, copies: int = 1) -> Arena | GpuArena:
    """Memory where the job's arms run. Raises JobError (``gpu.memory``) where the device has not enough of it."""
    if session.device is None:
        return Arena(session.frame, case, slots, copies)
    from .gpu_arena import GpuArena

    return GpuArena(session.frame, case, slots, copies, device=session.device)


def differing(count: int, of: int) -> str:
    """The note of a check whose output is not bitwise what it was."""
    return f"{count} of {of} bytes differ between two calls on the same content"


def may_skip(tensor: Tensor) -> bool:
    """Whether an output that still holds its poison was certainly not written."""
    return tensor.role == "out" and tensor.is_float and tensor.span > 0


def _written(tensor: Tensor) -> bool:
    return tensor.role in ("out", "inout")
