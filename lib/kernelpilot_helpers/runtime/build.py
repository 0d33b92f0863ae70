"""Compile a candidate's C and reach it: the one part of the runtime that a candidate may import.

    from kernelpilot_runtime import build
    LIB = build.cc("kernel.c", flags=("-O3",))          # ctypes.CDLL, compiled once per arm
    def entry(*, x, out): LIB.kernel(build.ptr(x), build.ptr(out), x.shape[0])

``build.ptr`` returns a Python int: declare ``argtypes`` with ``ctypes.c_void_p`` or it is cut to 32 bits.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ID_BYTES = 64


class BuildError(Exception):
    """The compiler refused, or a built file is not the one that was built; the message says which."""


@dataclass(kw_only=True)
class Session:
    """Where this arm's libraries go. Set up by the worker before the candidate is imported."""

    source: Path
    target: Path
    key: str
    known: dict[str, str]
    """File name to sha256 of what an earlier worker of this arm built; empty for the first one."""
    during: Callable[[bool], None]
    """Told when our own compiler run starts and ends."""
    admit: Callable[[str], None]
    """Told which file may be loaded."""
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    loaded: dict[str, ctypes.CDLL] = field(default_factory=dict)


_session: list[Session] = []


def begin(session: Session) -> None:
    """Make ``session`` the current one (for the worker only)."""
    _session[:] = [session]


def hex_id(key: str) -> str:
    """64 hex digits for a build key: the key itself where it is such, else its sha256."""
    return key if re.fullmatch(r"[0-9a-f]{64}", key) else hashlib.sha256(key.encode()).hexdigest()


def ptr(tensor: Any) -> int:
    """Address of the first element of a numpy array or torch tensor."""
    try:
        return tensor.data_ptr()  # type: ignore[no-any-return]
    except AttributeError:
        return tensor.__array_interface__["data"][0]  # type: ignore[no-any-return]


def cc(source: str, *, flags: Sequence[str] = ("-O3",), libs: Sequence[str] = (), name: str = "kernel") -> ctypes.CDLL:
    """Compile ``source`` (relative to the variant's folder) into a shared library and load it.

    ``flags`` go to ``cc`` as they are; ``libs`` are names for ``-l``. A second call with the same arguments
    returns the same library. Raises BuildError with the compiler's message.
    """
    if not _session:
        raise BuildError("build.cc works only while the referee loads a candidate")
    if isinstance(flags, str) or isinstance(libs, str):
        raise BuildError(f"flags and libs are lists of words: flags=({flags!r},) has a comma before its bracket")
    session = _session[0]
    if Path(source).is_absolute() or ".." in Path(source).parts:
        raise BuildError(f"{source}: give a path below the variant's folder")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise BuildError(f"name {name!r}: letters, digits, dot, dash and underscore only")
    file = f"{name}.so"
    command = _command(source, flags, libs, file)
    if name in session.loaded:
        if any(a["path"] == file and a["command"] != command for a in session.artifacts):
            raise BuildError(f"two different builds are called {name!r}: give one of them another name")
        return session.loaded[name]
    out = session.target / file
    if not session.known:
        _compile(session, command, out)
    elif not out.is_file() or sha256(out) != session.known.get(file):
        raise BuildError(f"{file} is not the file that was built for this variant")
    session.admit(str(out))
    library = ctypes.CDLL(str(out))
    found = (ctypes.c_char * (ID_BYTES + 1)).in_dll(library, "kp_build_id").value.decode()
    session.artifacts.append({"path": file, "command": command, "build_id": found})
    session.loaded[name] = library
    return library


def _command(source: str, flags: Sequence[str], libs: Sequence[str], file: str) -> list[str]:
    return [
        "cc", *flags, "-shared", "-fPIC", "-Wl,--build-id=none",
        source, "kp_build_id.c", "-o", file, *(f"-l{lib}" for lib in libs),
    ]  # fmt: skip


def _compile(session: Session, command: list[str], out: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise BuildError("cc is not on PATH: install a C compiler")
    stamp = session.target / "kp_build_id.c"
    stamp.write_text(f'const char kp_build_id[{ID_BYTES + 1}] = "{hex_id(session.key)}";\n')
    fresh = out.with_suffix(".tmp")
    real = {"cc": compiler, "kp_build_id.c": str(stamp), out.name: str(fresh)}
    maps = [f"-ffile-prefix-map={session.source}=.", f"-ffile-prefix-map={session.target}=."]
    argv = [real.get(part, part) for part in command]
    session.during(True)
    try:
        done = subprocess.run(  # noqa: PLW1510
            [*argv, *maps], cwd=session.source, capture_output=True, text=True, errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except OSError as fault:
        raise BuildError(f"cc could not be started: {fault}") from fault
    finally:
        session.during(False)
    if done.returncode:
        raise BuildError(f"cc failed ({done.returncode}):\n{done.stderr[-6000:]}")
    fresh.rename(out)


def sha256(path: Path) -> str:
    """Hex sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def normal_sha256(path: Path, key: str) -> str:
    """Hex sha256 of a built file with the embedded build id blanked."""
    blank = path.read_bytes().replace(hex_id(key).encode(), b"0" * ID_BYTES)
    return hashlib.sha256(blank).hexdigest()
