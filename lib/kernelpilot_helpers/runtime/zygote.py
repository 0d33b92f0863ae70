"""A process that has imported the framework and nothing else; every arm's worker is a fork of it.

For a GPU it has not touched the driver either: a context does not survive a fork, so each worker makes its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import time
import traceback
from typing import Any

from . import build, frames, guard, probe, worker  # noqa: F401  (imported before the first fork)
from .procs import PR_SET_CHILD_SUBREAPER, close_all_but, die_with, look, pin, prctl
from .wire import Answerer

REAP_S = 5.0
NONE = "none"
"""No framework: a job that only builds for a GPU, in a Python that has none."""


def main(fd: int, framework: str, parent: int, device: str, *cores: int) -> int:
    """Serve fork and reap requests on ``fd`` until it closes; then kill what is left and end."""
    die_with(parent)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    pin(*cores)
    frame: Any = frames.make(framework) if framework != NONE else None
    if device == "gpu":
        from . import gpu_worker  # noqa: F401  (the worker's module for a GPU, imported before the first fork)
    gc.collect()
    gc.freeze()
    sock = socket.socket(fileno=fd)
    port = Answerer(sock)
    port.reply(port.next() or {"nonce": ""}, {"version": frame.version if frame else ""})
    while True:
        command = port.next()
        if command is None:
            break
        if command["op"] == "fork":
            port.reply(command, {"pid": _fork(command["spec"], port.fds, frame)})
        else:
            port.reply(command, _reap(command["pid"], kill=command["kill"]))
    for pid in look(os.getpid()).children:
        _kill(pid)
    return 0


def _fork(spec: dict[str, Any], fds: list[int], frame: Any) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)
        return pid
    try:
        wire, log = fds
        close_all_but({wire, log})
        worker.main(wire, log, spec, frame, parent)
    except BaseException:  # noqa: BLE001  (a fork must never return into the zygote's loop)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _kill(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _reap(pid: int, *, kill: bool) -> dict[str, Any]:
    """How ``pid`` ended, and which processes it left behind (they are killed)."""
    deadline = time.monotonic() + REAP_S
    if kill:
        _kill(pid)
    status = None
    while status is None:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = code
        elif time.monotonic() > deadline:
            _kill(pid)
        else:
            time.sleep(0.0005)
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    if os.WIFSIGNALED(status):
        return {"signal": signal.Signals(os.WTERMSIG(status)).name, "exit": None}
    return {"signal": None, "exit": os.WEXITSTATUS(status)}
