"""Compile a candidate's sources and reach them: the one part of the runtime that a candidate may import.

    from kernelpilot_runtime import build
    LIB = build.cc("kernel.c", flags=("-O3",))          # ctypes.CDLL, compiled once per arm
    def entry(*, x, out): LIB.kernel(build.ptr(x), build.ptr(out), x.shape[0])

``build.ptr`` returns a Python int: declare ``argtypes`` with ``ctypes.c_void_p`` or it is cut to 32 bits.

On a GPU: ``build.nvrtc`` (CUDA C++ compiled in memory), ``build.torch_extension``, ``build.launch_ex``,
``build.tensor_map``, ``build.i64`` and ``build.f64``. Every build happens at the top of the candidate's file.
"""

from __future__ import annotations

import ctypes
import difflib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .extension import torch_extension
from .forge import (
    ID_BYTES,
    BuildError,
    Session,
    again,
    begin,
    check_words,
    current,
    hex_id,
    make,
    normal_sha256,
    run_compiler,
    scan_cache,
    sha256,
    suggests,
    warnings,
)
from .launch import Kernel, LaunchError, Module, f64, i64, launch_ex
from .nvrtc import nvrtc
from .tma import TensorMap, tensor_map

__all__ = [
    "BuildError", "Kernel", "LaunchError", "Module", "Session", "TensorMap", "begin", "cc", "f64", "hex_id", "i64",
    "launch_ex", "normal_sha256", "nvrtc", "ptr", "scan_cache", "sha256", "tensor_map", "torch_extension",
]  # fmt: skip


MEANT = {"nvcc": "nvrtc", "cuda": "nvrtc", "load": "torch_extension", "load_inline": "torch_extension", "gcc": "cc"}


def __getattr__(name: str) -> Any:
    """Answer a mistyped builder with the one that is meant."""
    near = [MEANT[name]] if name in MEANT else difflib.get_close_matches(name, __all__, 1)
    raise AttributeError(f"build has no {name!r}" + (f": did you mean build.{near[0]}?" if near else ""))


def ptr(tensor: Any) -> int:
    """Address of the first element of a numpy array or torch tensor."""
    try:
        return tensor.data_ptr()  # type: ignore[no-any-return]
    except AttributeError:
        return tensor.__array_interface__["data"][0]  # type: ignore[no-any-return]


@suggests
def cc(source: str, *, flags: Sequence[str] = ("-O3",), libs: Sequence[str] = (), name: str = "kernel") -> ctypes.CDLL:
    """Compile ``source`` (relative to the variant's folder) into a shared library and load it.

    ``flags`` go to ``cc`` as they are; ``libs`` are names for ``-l``. A second call with the same arguments
    returns the same library. Raises BuildError with the compiler's message.
    """
    session = current("build.cc")
    check_words(name, [source], flags=flags, libs=libs)
    file = f"{name}.so"
    command = _command(source, flags, libs, file)
    known = again(session, name, file, command)
    if known is not None:
        return known  # type: ignore[no-any-return]
    out = session.target / file
    log = make(session, file, lambda: _compile(session, command, out))
    session.admit(str(out))
    library = ctypes.CDLL(str(out))
    found = (ctypes.c_char * (ID_BYTES + 1)).in_dll(library, "kp_build_id").value.decode()
    said = {"path": file, "command": command, "build_id": found, "warnings": warnings(log)}
    session.artifacts.append(said)
    session.loaded[name] = library
    return library


def _command(source: str, flags: Sequence[str], libs: Sequence[str], file: str) -> list[str]:
    return [
        "cc", *flags, "-shared", "-fPIC", "-Wl,--build-id=none",
        source, "kp_build_id.c", "-o", file, *(f"-l{lib}" for lib in libs),
    ]  # fmt: skip


def _compile(session: Session, command: list[str], out: Path) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        raise BuildError("cc is not on PATH: install a C compiler")
    stamp = session.target / "kp_build_id.c"
    stamp.write_text(f'const char kp_build_id[{ID_BYTES + 1}] = "{hex_id(session.key)}";\n')
    fresh = out.with_suffix(".tmp")
    real = {"cc": compiler, "kp_build_id.c": str(stamp), out.name: str(fresh)}
    maps = [f"-ffile-prefix-map={session.source}=.", f"-ffile-prefix-map={session.target}=."]
    log = run_compiler(session, [*(real.get(part, part) for part in command), *maps])
    fresh.rename(out)
    return log
