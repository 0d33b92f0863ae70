"""A torch C++/CUDA extension: compiled once per arm in a folder of its own, imported again by later workers."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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
    suggests,
    target_words,
    warnings,
)
from .nvrtc import nvcc_version

LOCK = "lock"
STAMP = "kp_build_id.cpp"
FIX = "fix: kernelpilot doctor  # this torch is not built for CUDA; KERNELPILOT_PYTHON takes another one"


@suggests
def torch_extension(
    name: str, sources: Sequence[str], *, flags: Sequence[str] = ("-O3",), cuda_flags: Sequence[str] = ("-O3",),
    functions: Mapping[str, str] | None = None,
) -> Any:  # fmt: skip
    """Compile ``sources`` (.cpp, .cu; relative to the variant's folder) with torch's builder and import the module.

    ``functions``: name to C++ declaration (``{"run": "void run(torch::Tensor x, torch::Tensor out)"}``); the binding
    is written for you. Without it a source holds its own ``PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)``.
    Needs torch, ninja, a C++ compiler, and nvcc for .cu files. Raises BuildError with the compilers' log.
    """
    session = current("build.torch_extension")
    check_words(name, sources, flags=flags, cuda_flags=cuda_flags)
    if not name.isidentifier():
        raise BuildError(f"name {name!r}: a Python name, since it becomes a module's")
    cuda_flags = session.lined(cuda_flags)
    bound = [f"{key}={value}" for key, value in (functions or {}).items()]
    command = ["torch_extension", name, *sources, "--flags", *flags, "--cuda-flags", *cuda_flags, "--bind", *bound]
    file = f"ext-{name}/{name}.so"
    known = again(session, name, file, command)
    if known is not None:
        return known
    folder = session.target / f"ext-{name}"
    log = make(session, file, lambda: _compile(session, folder, name, sources, (flags, cuda_flags, functions or {})))
    path = session.target / file
    session.admit(os.path.realpath(path))
    module = sys.modules.get(name)
    if getattr(module, "__file__", "") != str(path):
        module = _load(path, name)
    stamp = (ctypes.c_char * (ID_BYTES + 1)).in_dll(ctypes.CDLL(str(path)), "kp_build_id").value.decode()
    said = {
        "path": file, "command": command, "build_id": stamp, "log": log[-20000:], "warnings": warnings(log),
    }  # fmt: skip
    if _cuda(sources) and not session.known:
        said["compiler"] = f"{nvcc_version(session)}, {target_words(session, session.arch or DEFAULT_ARCH)}"
    session.artifacts.append(said)
    session.loaded[name] = module
    return module


def _cuda(sources: Sequence[str]) -> bool:
    return any(s.endswith(".cu") for s in sources)


def _load(path: Path, name: str) -> Any:
    if name in sys.modules:
        raise BuildError(f"name {name!r}: a module of that name is imported already; take another")
    need_torch()  # the module's symbols are in its libraries
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def need_torch() -> None:
    """Raises BuildError without torch, also where a build without it has it stood in for."""
    try:
        import torch

        if not hasattr(torch, "__version__"):
            raise ImportError("only stood in for")
    except ImportError as fault:
        raise BuildError(f"build.torch_extension needs torch, which this Python lacks\n{FIX}") from fault


def need_cuda() -> None:
    """Raises BuildError for a torch without CUDA's headers and libraries, whose builder asks for them in vain."""
    import torch

    if getattr(torch.version, "cuda", None) is None:
        raise BuildError(f"this torch was not built for CUDA (torch.version.cuda is None): no .cu can use it\n{FIX}")


def stamp_source(key: str, functions: Mapping[str, str]) -> str:
    """The generated source: the build id, and the binding of ``functions`` where they are given."""
    stamp = f'extern "C" __attribute__((visibility("default"), used)) const char kp_build_id[{ID_BYTES + 1}]'
    text = f'{stamp};\nconst char kp_build_id[{ID_BYTES + 1}] = "{hex_id(key)}";\n'
    if not functions:
        return text
    declared = "".join(f"{d.rstrip().rstrip(';')};\n" for d in functions.values())
    bound = "".join(f'  m.def("{f}", &{f});\n' for f in functions)
    return f"#include <torch/extension.h>\n{text}{declared}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{bound}}}\n"


def _compile(session: Session, folder: Path, name: str, sources: Sequence[str], how: tuple[Any, ...]) -> str:
    need_torch()
    cuda = _cuda(sources)
    if cuda:
        need_cuda()
    from torch.utils import cpp_extension

    missing = [tool for tool in ("ninja", "c++") if shutil.which(tool) is None]
    if missing:
        raise BuildError(f"build.torch_extension needs {' and '.join(missing)} on PATH: install it (pip has ninja)")
    flags, cuda_flags, functions = how
    folder.mkdir(exist_ok=True)
    (folder / LOCK).unlink(missing_ok=True)  # a left one is waited for without end, and nobody else builds here
    (folder / STAMP).write_text(stamp_source(session.key, functions))
    maps = [f"-ffile-prefix-map={session.source}=.", f"-ffile-prefix-map={session.target}=."]
    log = folder / "build.log"
    session.during(True)
    try:
        with all_cores(), output_to(log):
            cpp_extension.load(
                name, [str(session.source / s) for s in sources] + [str(folder / STAMP)],
                extra_cflags=[*flags, *maps], extra_cuda_cflags=["-Xptxas", "-v", *cuda_flags] if cuda else None,
                extra_ldflags=["-Wl,--build-id=none"], extra_include_paths=[str(session.source)],
                build_directory=str(folder), verbose=True, with_cuda=cuda,
            )  # fmt: skip
    except (RuntimeError, ImportError, OSError) as fault:
        said = log.read_text(errors="replace") if log.is_file() else ""
        raise refused(session, name, relative(session, said) or str(fault)) from fault
    finally:
        session.during(False)
    return relative(session, log.read_text(errors="replace"))


@contextlib.contextmanager
def all_cores() -> Iterator[None]:
    """Let the compilers use every core: a worker is pinned to one."""
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Send what this process and its children write to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(fd) for fd in (1, 2)]
    out = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        for fd in (1, 2):
            os.dup2(out, fd)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for fd, old in zip((1, 2), saved, strict=True):
            os.dup2(old, fd)
            os.close(old)
        os.close(out)
