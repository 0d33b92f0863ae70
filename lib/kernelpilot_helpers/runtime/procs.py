"""Small facts and settings of Linux processes; every one of them is best effort where the kernel lacks it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3


def prctl(option: int, value: int) -> None:
    """``prctl(2)``; does nothing where there is none."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def keep_memory() -> None:
    """Let this process's allocator keep freed memory: large arrays come and go, and page faults cost more."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for option in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            libc.mallopt(option, 1 << 30)


def die_with(parent: int) -> None:
    """Be killed when ``parent`` ends, also where it ended just now."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


@dataclass(frozen=True, kw_only=True)
class Look:
    """A process at one moment."""

    main_runs: bool
    """Its main thread is on a processor or waiting for one."""
    others_run: bool
    """Some other thread of it is."""
    children: tuple[int, ...]


def look(pid: int, known: frozenset[int] = frozenset()) -> Look:
    """What the kernel says of ``pid``; a process that is gone does nothing. Threads in ``known`` may run."""
    main, others = False, False
    offspring: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            runs = _read(f"/proc/{pid}/task/{task}/stat").rpartition(b") ")[2][:1] in (b"R", b"D")
            main |= runs and int(task) == pid
            others |= runs and int(task) != pid and int(task) not in known
            offspring += [int(c) for c in _read(f"/proc/{pid}/task/{task}/children").split()]
    return Look(main_runs=main, others_run=others, children=tuple(offspring))


def threads(pid: int) -> frozenset[int]:
    """Threads of ``pid`` at this moment."""
    with contextlib.suppress(OSError):
        return frozenset(int(task) for task in os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
    return frozenset()


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)


def mapped_libraries(pid: int) -> list[str]:
    """Files mapped executable into ``pid``, each once."""
    found: dict[str, None] = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            parts = line.split(None, 5)
            if len(parts) == 6 and "x" in parts[1] and parts[5].startswith("/"):
                found[parts[5].removesuffix(" (deleted)")] = None
    return list(found)


def cores() -> tuple[int, int]:
    """(oracle's core, arms' core): the first and the last one this process may use."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


def everywhere() -> tuple[int, ...]:
    """Every core this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def pin(*cores: int) -> None:
    """Stay on these cores."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, set(cores))


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor from 3 on that is not in ``keep``: an inherited pipe end hides an end of file."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        fd = int(name)
        if fd > 2 and fd not in keep:
            with contextlib.suppress(OSError):
                os.close(fd)


AWAKE = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
parent = int(sys.argv[2])
while os.getppid() == parent:
    for _ in range(20000):
        pass
"""


def keep_awake(core: int | None) -> subprocess.Popen[bytes] | None:
    """Keep the arms' core from sleeping between blocks: a spinner that runs only when nothing else wants the core.

    A halted core wakes in hundreds of microseconds on a virtual machine, longer than a block takes. SCHED_IDLE
    yields to a woken worker at once. None where the arms share the parent's core or the system has no such class.
    """
    if core is None or not hasattr(os, "SCHED_IDLE"):
        return None
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", AWAKE, str(core), str(os.getpid())],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={},
    )  # fmt: skip
