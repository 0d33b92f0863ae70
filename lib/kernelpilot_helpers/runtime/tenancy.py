"""A job's hold on one GPU: the lock that jobs share, other people's processes on it, our own context, its sensors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from . import cuda, gpulock, nvml
from .spec import JobError

TIMED = ("time", "figures", "ceilings")
"""Phases whose numbers another process on the same GPU would spoil."""


def required(framework_there: bool) -> None:
    """Raises JobError where this machine or this Python cannot run a job on a GPU."""
    if not framework_there:
        raise JobError("gpu.absent: this Python has no torch, which GPU jobs need: install it there")
    if not cuda.present():
        raise JobError("gpu.absent: no driver with a GPU here: run nvidia-smi to see what the machine has")


@contextlib.contextmanager
def hold(phases: Sequence[str], wait_s: float) -> Iterator[tuple[Any, Any]]:
    """The opened ``cuda.Device`` and its sensors (None where there are none), locked while the block runs.

    Raises JobError: ``gpu.busy`` where another job holds the GPU for longer than ``wait_s`` seconds, or a job that
    times something shares it with a foreign process; ``gpu.absent`` where torch cannot use it.
    """
    known = _uuid()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(gpulock.hold(known, wait_s))
        except gpulock.GpuBusy as busy:
            raise JobError(str(busy)) from busy
        sensors = nvml.open_nvml(known)
        if sensors is not None:
            stack.callback(sensors.close)
            if set(phases) & set(TIMED):
                alone(sensors.processes())
        yield _open(), sensors


def alone(processes: Sequence[tuple[int, int]]) -> None:
    """Raises JobError where one of ``processes``, (pid, MiB), is not this one."""
    for pid, mib in processes:
        if pid != os.getpid():
            raise JobError(f"gpu.busy: pid {pid} ({mib} MiB) holds this GPU: end it or wait for it")


def still_alone(sensors: Any, workers: Collection[int]) -> None:
    """Raises JobError where a process that is not of this job has come to the GPU while it was timed.

    Only where the driver speaks of the pids that we know: it lists this process, too. The code is not ``gpu.busy``,
    for which nothing is recorded: a candidate could get rid of a measurement by starting a process.
    """
    listed = dict(sensors.processes()) if sensors is not None else {}
    if os.getpid() in listed:
        for pid in listed.keys() - {os.getpid(), *workers}:
            if not os.path.exists(f"/proc/{pid}"):  # noqa: PTH110 - a worker that ended just now is listed for a moment
                continue
            raise JobError(f"gpu.shared: pid {pid} ({listed[pid]} MiB) came to this GPU while it was timed: try again")


def _uuid() -> str:
    """The first visible GPU's UUID, without a context: other jobs that wait for the lock must not look like tenants."""
    known = getattr(cuda, "first_uuid", None)
    try:
        return str(known() if known else cuda.open_device().facts["gpu_uuid"])
    except cuda.CudaError as fault:
        raise JobError(f"gpu.absent: {fault}") from fault


def _open() -> Any:
    try:
        return cuda.open_device()
    except cuda.CudaError as fault:
        raise JobError(f"gpu.absent: {fault}") from fault
    except (AssertionError, RuntimeError) as fault:  # how torch says that it was built without CUDA
        raise JobError(f"gpu.absent: torch cannot use the GPU: {str(fault).strip().splitlines()[0]}") from fault
