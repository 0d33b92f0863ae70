"""Which captured nodes lie between a span's marks: hand-made graphs, and the words for a capture that failed."""

from __future__ import annotations

import pytest

from kernelpilot_helpers.runtime.graphs import fault_of
from kernelpilot_helpers.runtime.shape import COPY, FILL, HOST, KERNEL, RECORD, count

SERIAL = [FILL, RECORD, KERNEL, KERNEL, RECORD, FILL, RECORD, KERNEL, KERNEL, RECORD]
CHAIN = [(n, n + 1) for n in range(9)]
SPANS = [(1, 4), (6, 9)]


def test_a_chain_has_its_flushes_outside_and_its_calls_inside() -> None:
    shape = count(SERIAL, CHAIN, SPANS)
    assert (shape.kernels, shape.hosts, shape.inside, shape.outside) == (4, 0, 4, 2)


def test_a_kernel_that_may_start_before_its_span_is_outside() -> None:
    """Breaks when a stream forked in the first group may compute the second group's call during the flush."""
    edges = [*CHAIN, (2, 10), (10, 9)]
    assert count([*SERIAL, KERNEL], edges, SPANS).outside == 3


def test_a_kernel_that_nothing_waits_for_is_outside() -> None:
    edges = [*CHAIN, (7, 10)]
    assert count([*SERIAL, KERNEL], edges, SPANS).outside == 3


def test_a_second_stream_that_is_forked_and_joined_in_its_span_is_inside() -> None:
    """Breaks when an honest two-stream kernel is taken for work outside the span."""
    edges = [*CHAIN, (6, 10), (10, 8)]
    shape = count([*SERIAL, COPY], edges, SPANS)
    assert (shape.inside, shape.outside) == (5, 2)


def test_host_functions_are_counted() -> None:
    assert count([*SERIAL, HOST], [*CHAIN, (6, 10), (10, 9)], SPANS).hosts == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("cuLaunchKernel: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT (906)", "capture.legacy_stream"),
        ("cuEventSynchronize: CUDA_ERROR_CAPTURED_EVENT (907)", "capture.sync"),
        ("CUDA error: operation not permitted when stream is capturing\nCUDA kernel errors might", "capture.sync"),
        ("CUDA error: capturing stream has unjoined work", "capture.unjoined"),
        ("CUDA error: operation failed due to a previous error during capture", "capture.invalid"),
        ("no attribute 'x'", "capture.failed"),
    ],
)
def test_a_failed_capture_has_a_name(text: str, code: str) -> None:
    fault = fault_of(RuntimeError(text))
    assert fault.code == code
    assert "\n" not in fault.text
