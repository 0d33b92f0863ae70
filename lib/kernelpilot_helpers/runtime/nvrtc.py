"""CUDA C++ to a cubin by NVRTC, called directly: one file on disk that is hashed, stamped and loaded.

Found without importing a framework; where the library is absent and nvcc is on PATH, nvcc compiles instead.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import cubin
from .forge import (
    DEFAULT_ARCH,
    ID_BYTES,
    BuildError,
    Session,
    again,
    check_words,
    current,
    hex_id,
    make,
    refused,
    relative,
    run_compiler,
    suggests,
    target_words,
    warnings,
)
from .launch import Module

NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
INCLUDES = ("include", "include/cccl", "targets/x86_64-linux/include", "targets/sbsa-linux/include")
HEADERS = ("cuda_fp16.h", "crt/mma.h", "cooperative_groups.h", "cuda.h")
ARCH_FLAGS = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code")
"""Two of them are refused or, worse, the last one counts."""
VERBOSE = "--ptxas-options=-v"


@suggests
def nvrtc(
    source: str, *, flags: Sequence[str] = (), name: str = "kernel", arch: str = "", includes: Sequence[str] = ()
) -> Module:
    """Compile ``source`` (relative to the variant's folder) for the contract's or this GPU and load it.

    ``flags`` go to the compiler as they are (``--use_fast_math``, ``-DTILE=64``); ``arch`` is like ``sm_90a``;
    ``includes`` are further folders of headers. A second call with the same arguments returns the same module.
    Raises BuildError with the compiler's log.
    """
    session = current("build.nvrtc")
    check_words(name, [source], flags=flags, includes=includes)
    for flag in flags:
        if flag.split("=")[0] in ARCH_FLAGS:
            here = arch or session.arch or DEFAULT_ARCH
            raise BuildError(f"{flag}: leave this flag out, the architecture is what arch= names (here {here!r})")
    flags = session.lined(flags)
    file = f"{name}.cubin"
    arch = arch or session.arch or DEFAULT_ARCH
    tool = "nvrtc" if find_library() else "nvcc"
    command = [tool, f"--gpu-architecture={arch}", VERBOSE, *flags, *(f"-I{i}" for i in includes), source, file]
    known = again(session, name, file, command)
    if known is not None:
        return known  # type: ignore[no-any-return]
    path = session.target / file
    log = make(session, file, lambda: _compile(session, source, command[1:-2], path))
    data = path.read_bytes()
    module = Module(data, file, load=session.device is not None)
    found = module.read("kp_build_id").rstrip(b"\0").decode(errors="replace") if session.device is not None else ""
    said = {
        "path": file, "command": command, "build_id": found or cubin.build_id(data), "log": log[-20000:],
        "warnings": warnings(log),
    }  # fmt: skip
    if not session.known:
        said["compiler"] = f"{version() or nvcc_version(session)}, {target_words(session, arch)}"
    session.artifacts.append(said)
    session.loaded[name] = module
    return module


def stamped(text: str, key: str) -> str:
    """The source with the build id as one more global at its end (line numbers stay)."""
    return f'{text}\nextern "C" {{ __device__ char kp_build_id[{ID_BYTES + 1}] = "{hex_id(key)}"; }}\n'


def _compile(session: Session, source: str, options: Sequence[str], out: Path) -> str:
    try:
        text = (session.source / source).read_text()
    except (OSError, UnicodeDecodeError) as fault:
        raise BuildError(f"{source}: {fault}") from fault
    text = stamped(text, session.key)
    paths = [f"-I{session.source / Path(source).parent}", f"-I{session.source}", *(f"-I{p}" for p in header_dirs())]
    library = find_library()
    if library is None:
        return _by_nvcc(session, f'#line 1 "{source}"\n{text}', [*options, *paths], out)
    for part in (Path(library), *Path(library).parent.glob("libnvrtc-builtins.so*")):
        session.admit(os.path.realpath(part))
    session.during(True)
    try:
        data, log = compile_text(load_library(library), text, source, [*options, *paths])
    finally:
        session.during(False)
    log = relative(session, log)
    if not data:
        raise refused(session, f"NVRTC refused {source}", log)
    fresh = out.with_suffix(".tmp")
    fresh.write_bytes(data)
    fresh.rename(out)
    return log


def _by_nvcc(session: Session, text: str, options: Sequence[str], out: Path) -> str:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise BuildError("neither NVRTC nor nvcc was found: install torch with CUDA, or the CUDA toolkit")
    copy = out.with_suffix(".cu")
    copy.write_text(text)
    fresh = out.with_suffix(".tmp")
    log = run_compiler(session, [nvcc, "-cubin", *options, "-o", str(fresh), str(copy)])
    fresh.rename(out)
    return log


def compile_text(library: Any, text: str, name: str, options: Sequence[str]) -> tuple[bytes, str]:
    """(cubin, log) of a source text; the cubin is empty where it does not compile. Raises BuildError otherwise."""
    program = ctypes.c_void_p()
    _ask(library, "nvrtcCreateProgram", ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
    try:
        words = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        failed = library.nvrtcCompileProgram(program, len(options), words)
        log = _bytes(library, "nvrtcGetProgramLog", program).rstrip(b"\0").decode(errors="replace")
        if failed:
            return b"", log or _error(library, failed)
        return _bytes(library, "nvrtcGetCUBIN", program), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _bytes(library: Any, call: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _ask(library, f"{call}Size", program, ctypes.byref(size))
    data = ctypes.create_string_buffer(max(1, size.value))
    _ask(library, call, program, data)
    return data.raw[: size.value]


def _ask(library: Any, call: str, *args: Any) -> None:
    code = getattr(library, call)(*args)
    if code:
        raise BuildError(f"{call}: {_error(library, code)}")


def _error(library: Any, code: int) -> str:
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return str((library.nvrtcGetErrorString(code) or b"unknown error").decode())


def roots() -> Iterator[Path]:
    """Folders that may hold ``lib`` and ``include`` of a CUDA toolkit, the wheels beside torch and CuPy first."""
    for entry in sys.path:
        base = Path(entry or ".") / "nvidia"
        if base.is_dir():
            yield from sorted(base.glob("cu1[0-9]"), reverse=True)
            yield from (base / part for part in ("cuda_nvrtc", "cuda_runtime", "cuda_cccl") if (base / part).is_dir())
    for package in ("cupy", "cupy_backends"):
        found = importlib.util.find_spec(package)
        for place in (found.submodule_search_locations or ()) if found else ():
            yield Path(place) / ".data"
            yield Path(place) / "_core"
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if home:
            yield Path(home)
    nvcc = shutil.which("nvcc")
    if nvcc:
        yield Path(os.path.realpath(nvcc)).parent.parent


@lru_cache(maxsize=1)
def find_library() -> str | None:
    """Path of NVRTC, or the name by which the loader finds it; None where there is none."""
    for root in roots():
        for folder in ("lib", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"):
            for name in NAMES:
                if (root / folder / name).is_file():
                    return str(root / folder / name)
    for name in NAMES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


@lru_cache(maxsize=1)
def header_dirs() -> tuple[str, ...]:
    """Folders with CUDA's own headers: of the toolkit that has most of them, and where ``cuda/std`` is.

    Of one toolkit only, since headers of two do not fit together; wheels often lack some.
    """
    folders = [root / sub for root in roots() for sub in INCLUDES if (root / sub).is_dir()]
    whole = max(folders, key=lambda f: sum((f / h).is_file() for h in HEADERS), default=None)
    if whole is None or not (whole / HEADERS[0]).is_file():
        return ()
    library = [f for f in (whole, whole / "cccl", *folders) if (f / "cuda" / "std").is_dir()]
    return tuple(dict.fromkeys(os.path.realpath(f) for f in (whole, *library[:1])))


_loaded: dict[str, Any] = {}


def load_library(path: str) -> Any:
    """NVRTC itself, after its built-in functions: it asks the loader for them, which does not look beside it."""
    if path not in _loaded:
        for beside in sorted(Path(path).parent.glob("libnvrtc-builtins.so*")) if os.sep in path else ():
            ctypes.CDLL(str(beside), ctypes.RTLD_GLOBAL)
        _loaded[path] = ctypes.CDLL(path)
    return _loaded[path]


def nvcc_version(session: Session) -> str:
    """``nvcc 13.0``; nvcc is on PATH."""
    found = re.search(r"release ([\d.]+)", run_compiler(session, [shutil.which("nvcc") or "nvcc", "--version"]))
    return f"nvcc {found[1]}" if found else "nvcc"


def version() -> str:
    """``nvrtc 13.0``; empty without the library. Raises nothing."""
    path = find_library()
    if path is None:
        return ""
    major, minor = ctypes.c_int(), ctypes.c_int()
    load_library(path).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"nvrtc {major.value}.{minor.value}"
