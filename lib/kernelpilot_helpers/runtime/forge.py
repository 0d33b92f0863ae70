"""Where an arm's compiled files come from: its session, the caches of its compilers, names, hashes and ids.

The builders (build.cc, nvrtc, extension) share what is here; candidates import ``build``.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ID_BYTES = 64
DEFAULT_ARCH = "sm_90a"
"""Compiled for where neither a GPU nor the job says which: a build without a GPU still shows registers and spills."""
CACHES = {
    "TRITON_CACHE_DIR": "triton", "TRITON_DUMP_DIR": "triton-dump", "TORCH_EXTENSIONS_DIR": "torch",
    "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUDA_CACHE_PATH": "driver", "CUPY_CACHE_DIR": "cupy",
    "NUMBA_CACHE_DIR": "numba", "CUTE_DSL_CACHE_DIR": "cute", "TILELANG_CACHE_DIR": "tilelang",
}  # fmt: skip
"""Variable to folder below the arm's build directory: no arm finds what another one, or an earlier job, compiled."""
FIXED = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "MAX_JOBS": "4"}
LOG_CHARS = 6000


class BuildError(Exception):
    """The compiler refused, or a built file is not the one that was built; the message says which."""


@dataclass(kw_only=True)
class Session:
    """Where this arm's libraries go. Set up by the worker before the candidate is imported."""

    source: Path
    target: Path
    key: str
    known: dict[str, str]
    """File name (below ``target``) to sha256 of what an earlier worker of this arm built; empty for the first one."""
    during: Callable[[bool], None]
    """Told when our own compiler run starts and ends."""
    admit: Callable[[str], None]
    """Told which file may be loaded."""
    gpu: bool = False
    """The job is one for a GPU, present or not: the compilers' caches are moved below ``target``."""
    arch: str = ""
    """``sm_90a`` and the like; empty where there is no GPU to ask."""
    device: Any = None
    """The opened ``cuda.Device``; None where modules are compiled and not loaded."""
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    loaded: dict[str, Any] = field(default_factory=dict)


_session: list[Session] = []


def begin(session: Session) -> None:
    """Make ``session`` the current one (for the worker only, before CUDA, Triton or the candidate is touched).

    Raises BuildError when a file that an earlier worker's compiler cached is no longer the same.
    """
    _session[:] = [session]
    if not (session.gpu or session.device is not None):
        return
    arch = session.arch or DEFAULT_ARCH
    os.environ.update({name: str(session.target / folder) for name, folder in CACHES.items()})
    os.environ.update(FIXED, TORCH_CUDA_ARCH_LIST=arch_list(arch))
    for name, known in session.known.items():
        if "/" in name and name.endswith(".cubin") and _changed(session.target / name, known):
            raise BuildError(f"{name} is not the file that was built for this variant")


def _changed(path: Path, known: str) -> bool:
    return not path.is_file() or sha256(path) != known


def current(what: str) -> Session:
    """The session under way; ``what`` is the builder that asks. Raises BuildError outside of one."""
    if not _session:
        raise BuildError(f"{what} works only while the referee loads a candidate")
    return _session[0]


def arch_list(arch: str) -> str:
    """``sm_90a`` as torch's extension builder writes it: ``9.0a``."""
    found = re.fullmatch(r"sm_(\d+)(\d)([af]?)", arch)
    if found is None:
        raise BuildError(f"arch {arch!r}: write it like sm_90a")
    return f"{found[1]}.{found[2]}{found[3]}"


def hex_id(key: str) -> str:
    """64 hex digits for a build key: the key itself where it is such, else its sha256."""
    return key if re.fullmatch(r"[0-9a-f]{64}", key) else hashlib.sha256(key.encode()).hexdigest()


def sha256(path: Path) -> str:
    """Hex sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def normal_sha256(path: Path, key: str) -> str:
    """Hex sha256 of a built file with the embedded build id blanked."""
    blank = path.read_bytes().replace(hex_id(key).encode(), b"0" * ID_BYTES)
    return hashlib.sha256(blank).hexdigest()


def check_words(name: str, sources: Sequence[str], **lists: Any) -> None:
    """Refuse what cannot be meant: a string for a list of words, a path out of the folder, an odd name."""
    for what, words in {"sources": sources, **lists}.items():
        if isinstance(words, str):
            raise BuildError(f"{what} is a list of words: {what}=({words!r},) has a comma before its bracket")
    for source in sources:
        if Path(source).is_absolute() or ".." in Path(source).parts:
            raise BuildError(f"{source}: give a path below the variant's folder")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name) or name.startswith("."):
        raise BuildError(f"name {name!r}: letters, digits, dot, dash and underscore only")


def again(session: Session, name: str, file: str, command: Sequence[str]) -> Any:
    """What a build called ``name`` gave before in this process, or None. Raises BuildError for two builds of a name."""
    if name not in session.loaded:
        return None
    if not any(a["path"] == file and a["command"] == command for a in session.artifacts):
        raise BuildError(f"two different builds are called {name!r}: give one of them another name")
    return session.loaded[name]


def make(session: Session, file: str, compile_it: Callable[[], str]) -> str:
    """Have ``file`` in the build folder: compiled by the arm's first worker, compared by every later one.

    Returns the compiler's log, empty where nothing was compiled. Raises BuildError for a file that is not the
    known one, or that is asked for only after the first worker's import.
    """
    path = session.target / file
    if not session.known:
        return compile_it()
    if file not in session.known:
        raise BuildError(f"{file} was not built when the candidate was imported: build at the top of the file")
    if _changed(path, session.known[file]):
        raise BuildError(f"{file} is not the file that was built for this variant")
    return ""


def run_compiler(session: Session, argv: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """Run one of our own compilers in the variant's folder; its messages. Raises BuildError with their tail."""
    session.during(True)
    try:
        done = subprocess.run(  # noqa: PLW1510
            list(argv), cwd=session.source, capture_output=True, text=True, errors="replace",
            env={**os.environ, "LC_ALL": "C", **(env or {})},
        )  # fmt: skip
    except OSError as fault:
        raise BuildError(f"{Path(argv[0]).name} could not be started: {fault}") from fault
    finally:
        session.during(False)
    log = relative(session, done.stderr + done.stdout)
    if done.returncode:
        raise BuildError(f"{Path(argv[0]).name} failed ({done.returncode}):\n{log[-LOG_CHARS:]}")
    return log


def relative(session: Session, text: str) -> str:
    """A compiler's message with the variant's and the build folder's paths cut off."""
    return text.replace(f"{session.source}/", "").replace(f"{session.target}/", "")


def scan_cache() -> list[dict[str, Any]]:
    """Every cubin that a compiler of Python kernels left in this arm's caches so far, path below the build folder."""
    session = current("build.scan_cache")
    found = []
    for folder in ("triton", "cute", "tilelang", "cupy"):
        for path in sorted((session.target / folder).rglob("*.cubin")):
            name = path.relative_to(session.target).as_posix()
            found.append({"path": name, "command": [folder, path.stem], "build_id": "", "log": ""})
    return found
