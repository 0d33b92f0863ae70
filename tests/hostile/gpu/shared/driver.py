"""Shared by the zoo: the CUDA driver by ctypes, for candidates that go behind the framework's back."""

import ctypes

CU = ctypes.CDLL("libcuda.so.1")
SET = 1


def call(name, *arguments):
    """One driver call; raises OSError with its number where it fails."""
    code = getattr(CU, name)(*arguments)
    if code:
        raise OSError(f"{name}: {code}")


class Capture:
    """The capture that a stream is in: its graph and the nodes that the next one will depend on."""

    def __init__(self, stream):
        self.stream = ctypes.c_void_p(stream)
        status, number = ctypes.c_int(), ctypes.c_uint64()
        self.graph, nodes, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        call(
            "cuStreamGetCaptureInfo_v2", self.stream, ctypes.byref(status), ctypes.byref(number),
            ctypes.byref(self.graph), ctypes.byref(nodes), ctypes.byref(count),
        )  # fmt: skip
        self.active = status.value == 1
        self.after = list((ctypes.c_void_p * count.value).from_address(nodes.value)) if count.value else []

    def depend(self, nodes):
        """Make the next node depend on ``nodes`` only."""
        array = (ctypes.c_void_p * max(len(nodes), 1))(*nodes)
        call("cuStreamUpdateCaptureDependencies", self.stream, array, ctypes.c_size_t(len(nodes)), ctypes.c_uint(SET))

    def nodes(self):
        """(node, type) of everything captured so far; 0 kernel, 2 memset, 7 event record."""
        count = ctypes.c_size_t()
        call("cuGraphGetNodes", self.graph, None, ctypes.byref(count))
        found = (ctypes.c_void_p * count.value)()
        call("cuGraphGetNodes", self.graph, found, ctypes.byref(count))
        kind = ctypes.c_int()
        for node in found:
            call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
            yield node, kind.value
