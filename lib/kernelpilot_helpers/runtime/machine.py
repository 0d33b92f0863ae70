"""Our own kernels, flush memory and events in one process: what a tape is made of."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from typing import Any

from .cuda import CudaError, Device
from .shape import Fill, Shape, fills, read

EXTERNAL = 1
"""CU_EVENT_RECORD_EXTERNAL: under capture the record becomes a node, and the event can be timed."""
CAPTURING = 1
"""CU_STREAM_CAPTURE_STATUS_ACTIVE."""
THREAD_LOCAL = 1
"""CU_STREAM_CAPTURE_MODE_THREAD_LOCAL."""
FLUSH_MIN = 64 << 20
FLUSH_L2 = 4
TOUCH_BLOCKS, TOUCH_THREADS = 264, 256

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry kp_touch(.param .u64 from, .param .u64 count, .param .u64 sink) {
  .reg .pred %p; .reg .b32 %a, %b, %c, %d, %all, %t; .reg .b64 %at, %n, %base, %i, %step, %x, %out;
  ld.param.u64 %base, [from]; ld.param.u64 %n, [count]; ld.param.u64 %out, [sink];
  cvta.to.global.u64 %base, %base; cvta.to.global.u64 %out, %out;
  mov.u32 %a, %ctaid.x; mov.u32 %b, %ntid.x; mul.wide.u32 %i, %a, %b;
  mov.u32 %t, %tid.x; cvt.u64.u32 %x, %t; add.s64 %i, %i, %x;
  mov.u32 %c, %nctaid.x; mul.wide.u32 %step, %b, %c; mov.u32 %all, 0;
LOOP:
  setp.ge.u64 %p, %i, %n;
  @%p bra DONE;
  shl.b64 %x, %i, 4; add.s64 %at, %base, %x;
  ld.global.v4.u32 {%a, %b, %c, %d}, [%at];
  xor.b32 %a, %a, %b; xor.b32 %c, %c, %d; xor.b32 %a, %a, %c; or.b32 %all, %all, %a;
  add.s64 %i, %i, %step;
  bra LOOP;
DONE:
  setp.ne.u64 %p, %n, 0xffffffffffffffff;
  @%p bra END;
  st.global.u32 [%out], %all;
END:
  ret;
}
.visible .entry kp_stub(.param .u64 sink) {
  .reg .pred %p; .reg .b32 %v, %t; .reg .b64 %out;
  ld.param.u64 %out, [sink]; cvta.to.global.u64 %out, %out;
  mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0;
  @%p bra END;
  ld.global.u32 %v, [%out]; add.u32 %v, %v, 1; st.global.u32 [%out], %v;
END:
  ret;
}
.visible .entry kp_empty() { ret; }
.visible .entry kp_stamp(.param .u64 at) {
  .reg .b64 %out, %now;
  ld.param.u64 %out, [at]; cvta.to.global.u64 %out, %out;
  mov.u64 %now, %globaltimer; st.global.u64 [%out], %now;
  ret;
}
"""
"""Our own four kernels: read memory into the cache, a dependent step of a chain, nothing, write the time."""


class CaptureEnded(Exception):
    """A capture that something inside it has ended."""


class Machine:
    """Our kernels, flush memory and event pool in one process; made before the candidate is imported."""

    def __init__(self, device: Device) -> None:
        self.device = device
        driver = self._driver = device.driver
        pointer, size, one = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
        driver.bind("cuMemsetD32Async", ctypes.c_uint64, one, size, pointer)
        driver.bind("cuEventRecordWithFlags", pointer, pointer, one)
        driver.bind("cuEventCreate", pointer, one)
        driver.bind("cuEventElapsedTime", pointer, pointer, pointer)
        driver.bind("cuLaunchKernel", pointer, *([one] * 6), one, pointer, pointer, pointer)
        module, self._kernels = ctypes.c_void_p(), {}
        driver.call("cuModuleLoadData", ctypes.byref(module), PTX)
        for name in ("kp_touch", "kp_stub", "kp_empty", "kp_stamp"):
            kernel = ctypes.c_void_p()
            driver.call("cuModuleGetFunction", ctypes.byref(kernel), module, name.encode())
            self._kernels[name] = kernel
        self._size = max(FLUSH_MIN, FLUSH_L2 * int(device.facts["l2_bytes"]))
        self._flush, self.sink = ctypes.c_uint64(), ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(self._flush), self._size)
        driver.call("cuMemAlloc_v2", ctypes.byref(self.sink), 256)
        self._turn = 0
        self._made: set[int] = set()
        self._meant = self._captured_flush()
        import torch

        self._graph = torch.cuda.CUDAGraph

    def _captured_flush(self) -> Fill | None:
        """The flush as this driver captures it, seen before anything foreign is here; None where it is no fill."""
        stream = int(self.device.own_stream().cuda_stream)
        self._driver.call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), THREAD_LOCAL)
        try:
            self.flush(stream)
            found = fills(self._driver, self.graph_of(stream))
        finally:
            self.abandon(stream)
        return found[0] if len(found) == 1 else None

    def flush(self, stream: int) -> None:
        """Write the flush memory, several times the size of the second-level cache."""
        self._turn += 1
        self._driver.call("cuMemsetD32Async", self._flush.value, self._turn & 0xFFFF, self._size // 4, stream)

    def touch(self, stream: int, tensor: Any) -> None:
        """Reads the span of ``tensor`` in units of 16 bytes, from the aligned address below its first byte."""
        span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        start = tensor.data_ptr()
        low = start & ~15
        count = (start + span * tensor.element_size() - low) // 16
        arguments = (ctypes.c_uint64(low), ctypes.c_uint64(count), self.sink)
        blocks = max(min(TOUCH_BLOCKS, -(-count // TOUCH_THREADS)), 1)
        self.launch("kp_touch", stream, blocks, TOUCH_THREADS, arguments)

    def launch(self, name: str, stream: int, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        """One of our kernels."""
        held = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(a) for a in arguments))
        kernel = self._kernels[name]
        self._driver.call("cuLaunchKernel", kernel, blocks, 1, 1, threads, 1, 1, 0, stream, held, None)

    def stamp(self, stream: int, address: int) -> None:
        """Write the GPU's own time, nanoseconds as 64 bits, to ``address``."""
        self.launch("kp_stamp", stream, 1, 1, (ctypes.c_uint64(address),))

    def mark(self, stream: int, *, capturing: bool) -> Any:
        """An event recorded here."""
        event = ctypes.c_void_p()
        self._driver.call("cuEventCreate", ctypes.byref(event), 0)
        self._driver.call("cuEventRecordWithFlags", event, stream, EXTERNAL if capturing else 0)
        self._made.add(int(event.value or 0))
        return event

    def count(self, stream: int) -> int:
        """Nodes captured so far."""
        graph = self.graph_of(stream)
        found = ctypes.c_size_t()
        self._driver.call("cuGraphGetNodes", graph, None, ctypes.byref(found))
        return found.value

    def graph_of(self, stream: int) -> ctypes.c_void_p:
        """The graph under capture. Raises CaptureEnded where the capture has ended by itself."""
        status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
        self._driver.call(
            "cuStreamGetCaptureInfo_v2", ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number),
            ctypes.byref(graph), None, None,
        )  # fmt: skip
        if status.value != CAPTURING or not graph.value:
            raise CaptureEnded
        return graph

    def abandon(self, stream: int) -> None:
        """End a capture that something broke, whatever state it is in."""
        graph = ctypes.c_void_p()
        self._driver.code("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
        if graph.value:
            self._driver.code("cuGraphDestroy", graph)

    def elapsed(self, spans: Sequence[tuple[Any, Any]]) -> list[int]:
        """Nanoseconds between the two marks of each span."""
        out, ms = [], ctypes.c_float()
        for first, last in spans:
            self._driver.call("cuEventElapsedTime", ctypes.byref(ms), first, last)
            out.append(round(ms.value * 1e6))
        return out

    def release(self, spans: Sequence[tuple[Any, Any]]) -> None:
        """Give the events back."""
        for pair in spans:
            for event in pair:
                self._made.discard(int(event.value or 0))
                with contextlib.suppress(CudaError):
                    self._driver.call("cuEventDestroy_v2", event)

    def new_graph(self) -> Any:
        """An empty graph of torch's, whose allocator knows of captures."""
        return self._graph()

    def shape(self, stream: int, spans: Sequence[tuple[Any, Any]]) -> Shape:
        """What was captured, while it still is."""
        pairs = [(int(a.value or 0), int(b.value or 0)) for a, b in spans]
        return read(self._driver, self.graph_of(stream), pairs, made=self._made, flush=self._meant)


def machine_of(device: Device) -> Machine:
    """The device's machine; made at the first call."""
    if device.machine is None:
        device.machine = Machine(device)
    return device.machine  # type: ignore[no-any-return]
