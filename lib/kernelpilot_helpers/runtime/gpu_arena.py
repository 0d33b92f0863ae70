"""An arm's memory on the GPU: filled, checked and hashed there, from the oracle's own context."""

from __future__ import annotations

import functools
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import stamps
from .arena import FILL, Memory, Region, differing, may_skip
from .content import WINDOWS, Contents, patterns
from .frames import KEPT_BYTES, CudaFrame, out_of_memory
from .spec import Case, JobError, Tensor

WORDS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
GATHER_MAX = 1 << 20
"""Tensors of at most so many bytes are handled for all slots by one kernel, larger ones slot by slot."""
CHUNK = 1 << 28
"""Bytes that one comparison may take besides the arena."""
LANE = 4096
"""32-bit words that one row of a digest sums."""
SPAN = 1 << 24
"""32-bit words that a digest widens at a time."""


class Column:
    """One tensor in every slot: words as wide as its place allows, its elements' bits, and the zones around it."""

    def __init__(self, flat: Any, slots: int, step: int, region: Region, grain: int) -> None:
        self.tensor: Tensor = region.tensor
        self.nbytes = region.data_end - region.data
        size = self.tensor.itemsize
        self.unit = math.gcd(8, region.data, step, self.nbytes, max(size, grain))
        self.words = _strided(flat, slots, step, region.data, self.nbytes, self.unit)
        self.elements = _strided(flat, slots, step, region.data, self.nbytes, size)
        self.rows = list(self.words) if self.nbytes > GATHER_MAX else []
        self.zones = [
            _strided(flat, slots, step, low, high - low, 1)
            for low, high in ((region.start, region.data), (region.data_end, region.end))
        ]

    @property
    def small(self) -> bool:
        """Whether one kernel takes all slots."""
        return self.nbytes <= GATHER_MAX

    def source(self, contents: Contents, unit: int) -> tuple[Any, int]:
        """The buffer of random content as words of ``unit`` bytes, and words from one window to the next."""
        flat = contents.buffer(self.tensor)
        return flat.view(_word(unit)), contents.grain(self.tensor) // unit

    def windows(self, contents: Contents, unit: int) -> Any:
        """Every window as a row; rows overlap in memory and are read only."""
        flat, grain = self.source(contents, unit)
        return flat.as_strided((WINDOWS, self.nbytes // unit), (grain, 1))


def _word(size: int) -> Any:
    import torch

    return getattr(torch, WORDS[size])


def _strided(flat: Any, slots: int, step: int, start: int, nbytes: int, unit: int) -> Any:
    """(slots, words) over the flat bytes of an arena."""
    wide = flat.view(_word(unit))
    return wide.as_strided((slots, nbytes // unit), (step // unit, 1), wide.storage_offset() + start // unit)


class GpuArena(Memory):
    """The oracle's side on a GPU. ``handle`` goes to exactly one arm, which maps the same memory by it.

    Fills are asynchronous: call ``ready`` before the arm is told to work.
    """

    frame: CudaFrame

    def __init__(self, frame: Any, case: Case, slots: int, copies: int = 1, *, device: Any) -> None:
        super().__init__(frame, case, slots, copies)
        self._xp: Any = frame.xp
        self._device = device
        self._where = device.torch_device
        self.nbytes += stamps.nbytes(slots)
        self._block = self._allocate()
        self.handle: str = self._block.handle
        self._flat: Any = self._block.tensor
        self._marks = self._flat[self.layout.size :].view(self._xp.int64)
        self._patterns = patterns(case)
        regions = self.layout.slots[0] if slots else ()
        self._columns = [Column(self._flat, slots, self.layout.step, r, frame.grain) for r in regions]
        self._static = list(self._shared())
        for zone in self._all_zones():
            zone.fill_(FILL[0])

    def _allocate(self) -> Any:
        """The arena's memory; what torch keeps for itself is given back before that fails."""
        for kept in (KEPT_BYTES, 0):
            self.frame.trim(kept)
            try:
                return self._device.allocate(self.nbytes)
            except Exception as fault:
                if not out_of_memory(fault):
                    raise
        text = f"gpu.memory: no room for {self.nbytes} bytes, {self.slots} calls of case {self.case.case_id}"
        raise JobError(text)

    def close(self) -> None:
        """Give the memory back; the arm must have let go of it."""
        if self._flat is not None:
            self._columns, self._flat, self._marks = [], None, None
            self._block.close()

    def unstamp(self) -> None:
        """Empty the memory of the stamps."""
        self._marks.fill_(stamps.MISSING)

    def stamped(self, spans: int) -> stamps.Stamped | str:
        """What the arm's GPU timer wrote around ``spans`` spans, or why it cannot be told."""
        return stamps.read(self._marks[: spans * stamps.PER_SPAN].tolist(), spans)

    def ready(self) -> None:
        """See Memory. Raises cuda.CudaError when a kernel of the oracle failed."""
        self._device.synchronize()

    def _all_zones(self) -> Iterable[Any]:
        for column in self._columns:
            yield from column.zones
        for _, region in self._static:
            yield self._flat[region.start : region.data]
            yield self._flat[region.data_end : region.end]

    def _bits(self, tensor: Tensor) -> int:
        return int.from_bytes(self._patterns[tensor.name], "little", signed=tensor.itemsize > 1)

    def fill_static(self, contents: Contents) -> None:
        """Write the tensors that calls share: other content in every copy."""
        for which, region in self._static:
            self._flat[region.data : region.data_end].copy_(contents.copy(region.tensor, which))

    def fill(self, slot: int, contents: Contents, k: int) -> None:
        """Give ``slot`` content ``k``: inputs written, in-place tensors restored, outputs poisoned."""
        for column in self._columns:
            if column.tensor.role == "out":
                column.elements[slot].fill_(self._bits(column.tensor))
            else:
                self._copy(column, slot, contents, k)

    def _copy(self, column: Column, slot: int, contents: Contents, k: int) -> None:
        flat, grain = column.source(contents, column.unit)
        row = column.words[slot] if column.small else column.rows[slot]
        row.copy_(flat.narrow(0, contents.index(k) * grain, column.nbytes // column.unit))

    def fill_all(self, contents: Contents, ks: Sequence[int]) -> None:
        """``fill`` slot ``i`` with content ``ks[i]``, for every slot: one kernel a tensor where tensors are small."""
        at = self._indices(contents, ks)
        for column in self._columns:
            if column.tensor.role == "out":
                column.elements.fill_(self._bits(column.tensor))
            elif not column.small:
                for slot, k in enumerate(ks):
                    self._copy(column, slot, contents, k)
            elif column.nbytes:
                self._xp.index_select(column.windows(contents, column.unit), 0, at, out=column.words)

    def _indices(self, contents: Contents, ks: Sequence[int]) -> Any:
        """Windows of ``ks`` as a device tensor; a range is counted there, and nothing waits for a copy."""
        if isinstance(ks, range):
            counted = self._xp.arange(ks.start, ks.stop, ks.step, device=self._where, dtype=self._xp.int64)
            return contents.index(counted)
        return self._xp.tensor([contents.index(k) for k in ks], device=self._where, dtype=self._xp.int64)

    def _raw(self) -> Any:
        return self._flat

    def poison_view(self, name: str) -> Any:
        """What output ``name`` holds before anybody writes it; None for in-place tensors."""
        if name not in self._patterns:
            return None
        tensor = self.case.tensor(name)
        one = self._pattern(tensor).view(getattr(self._xp, tensor.dtype))
        return one.expand(tensor.shape)

    def _pattern(self, tensor: Tensor) -> Any:
        return self._xp.tensor(list(self._patterns[tensor.name]), dtype=self._xp.uint8, device=self._where)

    def _poisoned(self, tensor: Tensor) -> Any:
        return self._pattern(tensor).repeat(tensor.span)

    def _with_gaps_of(self, before: Any, region: Region) -> Any:
        tensor, expected = region.tensor, before.clone()
        self.frame.view(expected, 0, tensor.dtype, tensor.shape, tensor.stride).copy_(self._view(region))
        return expected

    def _same(self, region: Region, want: Any) -> bool:
        return bool(self._xp.equal(self._flat[region.data : region.data_end], want))

    def _clean(self, low: int, high: int) -> bool:
        return not bool((self._flat[low:high] != FILL[0]).any())

    def faults(self, ran: Mapping[int, int], held: Mapping[int, int], contents: Contents) -> list[tuple[str, str]]:
        """See Memory: one look at everything, read back once; region by region only where something is wrong."""
        flags = [(zone != FILL[0]).any() for zone in self._all_zones() if zone.numel()]
        for which, region in self._static:
            if region.data_end > region.data:
                data = self._flat[region.data : region.data_end]
                flags.append((data != contents.copy(region.tensor, which)).any())
        for column in (c for c in self._columns if c.nbytes):
            flags += self._ran_flags(column, ran, contents)
            flags += self._unlike(column, held, contents)
        if not flags or not bool(self._xp.stack(flags).any()):
            return []
        return super().faults(ran, held, contents)

    def _ran_flags(self, column: Column, ran: Mapping[int, int], contents: Contents) -> list[Any]:
        tensor = column.tensor
        if tensor.role == "in":
            return self._unlike(column, ran, contents)
        flags = []
        if tensor.span != tensor.numel:
            flags += self._unlike(column, ran, contents, only=self._gaps(tensor))
        if may_skip(tensor):
            bits, parts = self._bits(tensor), _parts(list(ran), column.nbytes)
            untouched = [(self._take(column.elements, slots) == bits).all(1) for slots in parts]
            if untouched:
                whole = self._xp.cat(untouched)
                flags.append(whole.any() & ~whole.all())
        return flags

    def _gaps(self, tensor: Tensor) -> Any:
        """True for the elements between the strides."""
        mask = self._xp.ones(tensor.span, dtype=self._xp.bool, device=self._where)
        mask.as_strided(tensor.shape, tensor.stride).fill_(False)
        return mask

    def _unlike(self, column: Column, held: Mapping[int, int], contents: Contents, only: Any = None) -> list[Any]:
        """Flags on the device: true where a slot of ``held`` has not its content (or poison) any more."""
        tensor = column.tensor
        unit = column.unit if only is None and tensor.role != "out" else tensor.itemsize
        rows = column.words if unit == column.unit else column.elements
        flags = []
        for slots in _parts(list(held), column.nbytes):
            if tensor.role == "out":
                want: Any = self._bits(tensor)
            elif len(slots) == 1:
                flat, grain = column.source(contents, unit)
                want = flat.narrow(0, contents.index(held[slots[0]]) * grain, column.nbytes // unit)
            else:
                at = self._indices(contents, [held[s] for s in slots])
                want = column.windows(contents, unit).index_select(0, at)
            bad = self._take(rows, slots) != want
            flags.append((bad if only is None else bad & only).any())
        return flags

    def _take(self, rows: Any, slots: Sequence[int]) -> Any:
        """Rows of ``slots``: a view where they follow each other, else a copy."""
        first = slots[0]
        if list(slots) == list(range(first, first + len(slots))):
            return rows[first : first + len(slots)]
        return rows.index_select(0, self._xp.tensor(list(slots), device=self._where))

    def _padded(self, region: Region) -> Any:
        """The memory of one tensor as 32-bit words, filled up with zeros."""
        data = self._flat[region.data : region.data_end]
        words = self._xp.zeros(-(-max(len(data), 1) // 4) * 4, dtype=self._xp.uint8, device=self._where)
        words[: len(data)] = data
        return words.view(self._xp.int32)

    def digest(self, slot: int) -> dict[str, bytes]:
        """16 bytes that stand for the memory of each output of ``slot``, gaps included."""
        hashes = {r.tensor.name: multilinear(self._xp, self._padded(r)) for r in self._outputs(slot)}
        if not hashes:
            return {}
        numbers = self._xp.stack(list(hashes.values())).tolist()
        return {
            name: b"".join(n.to_bytes(8, "little", signed=True) for n in pair)
            for name, pair in zip(hashes, numbers, strict=True)
        }

    def keep(self, slot: int) -> dict[str, Any]:
        """The memory of every output of ``slot``, gaps included, for ``differ``."""
        return {r.tensor.name: self._flat[r.data : r.data_end].clone() for r in self._outputs(slot)}

    def differ(self, kept: Mapping[str, Any], slot: int) -> dict[str, str]:
        """By output: how many bytes ``slot`` now holds otherwise than what was kept, in words; equal ones are out."""
        regions = {r.tensor.name: r for r in self._outputs(slot)}
        counts = [(old != self._flat[regions[n].data : regions[n].data_end]).sum() for n, old in kept.items()]
        found = self._xp.stack(counts).tolist() if counts else []
        return {n: differing(c, len(kept[n])) for n, c in zip(kept, found, strict=True) if c}


def _parts(slots: Sequence[int], nbytes: int) -> list[Sequence[int]]:
    """``slots`` in stretches whose tensors one comparison may hold at once."""
    size = max(CHUNK // max(nbytes, 1), 1) if nbytes <= GATHER_MAX else 1
    return [slots[i : i + size] for i in range(0, len(slots), size)]


@functools.cache
def _multipliers(where: str) -> tuple[Any, Any]:
    """Random 64-bit numbers, fixed for this process: LANE for the words, LANE for the sums; two rows for two hashes."""
    import torch

    def draw() -> Any:
        raw = bytearray(secrets.token_bytes(16 * LANE))
        return torch.frombuffer(raw, dtype=torch.int64).reshape(2, LANE).to(where)

    return draw(), draw()


def multilinear(xp: Any, words: Any) -> Any:
    """Two 64-bit hashes (int64, shape (2,)) of 32-bit ``words`` on their device.

    Rows of LANE words are summed with random multipliers modulo 2**64; the sums' upper halves are the words of the
    next level, until one row is left. Each level maps two different inputs of one length to the same words with a
    chance of about 2**-32 a hash: upper halves, because the low bits of such a sum are weak.
    """
    lanes, tops = _multipliers(str(words.device))
    return xp.stack([_fold(xp, words, lanes[which], tops[which]) for which in (0, 1)])


def _fold(xp: Any, words: Any, lanes: Any, tops: Any) -> Any:
    while True:
        n = int(words.shape[0])
        if n % LANE or not n:
            words = xp.cat([words, words.new_zeros(LANE - n % LANE)])
        parts = words.split(SPAN)
        total = xp.cat([(part.reshape(-1, LANE).to(xp.int64) * lanes).sum(1) for part in parts])
        if int(total.shape[0]) == 1:
            return total[0]
        words, lanes = (total >> 32).to(xp.int32), tops
