"""Where an arm's compiled files come from: its session, the caches of its compilers, names, hashes and ids.

The builders (build.cc, nvrtc, extension) share what is here; candidates import ``build``.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import inspect
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
ID_BYTES = 64
ACCELERATED = (9, 10, 12)
"""Major compute capabilities whose own instructions need the architecture's name with an a."""
DEFAULT_ARCH = "sm_90a"
"""Compiled for where neither a GPU nor the job says which: a build without a GPU still shows registers and spills."""
WANTED = "CUDA_KERNELPILOT_ARCH"
"""Variable by which the job's own architecture reaches the workers; empty where the contract names none."""
CACHES = {
    "TRITON_CACHE_DIR": "triton", "TRITON_DUMP_DIR": "triton-dump", "TORCH_EXTENSIONS_DIR": "torch",
    "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUDA_CACHE_PATH": "driver", "CUPY_CACHE_DIR": "cupy",
    "NUMBA_CACHE_DIR": "numba", "CUTE_DSL_CACHE_DIR": "cute", "TILELANG_CACHE_DIR": "tilelang",
}  # fmt: skip
"""Variable to folder below the arm's build directory: no arm finds what another one, or an earlier job, compiled."""
FIXED = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "MAX_JOBS": "4"}
LINE_FLAGS = frozenset({"-lineinfo", "--generate-line-info"})
LOG_CHARS = 6000
SAID_CHARS = 5000
"""Of a failed compiler's messages: what is cut off later, at the front, must not be its errors."""
LOG_SUFFIX = ".log"
WARNINGS = 10
WARNING = re.compile(r"\bwarning\b|Potential Performance Loss", re.IGNORECASE)
ERROR = re.compile(r"\berror\b", re.IGNORECASE)


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
    """``sm_90a`` and the like: the job's, else the GPU's; empty where neither says."""
    device: Any = None
    """The opened ``cuda.Device``; None where modules are compiled and not loaded."""
    lines: bool = False
    """Built for a profiler: GPU code gets line tables, which change no instruction."""
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    loaded: dict[str, Any] = field(default_factory=dict)

    def lined(self, flags: Sequence[str]) -> tuple[str, ...]:
        """Flags of a compiler of GPU code, with line tables where this build is for a profiler."""
        more = () if not self.lines or LINE_FLAGS & set(flags) else ("-lineinfo",)
        return (*flags, *more)


_session: list[Session] = []


def begin(session: Session) -> None:
    """Make ``session`` the current one (for the worker only, before CUDA, Triton or the candidate is touched).

    Raises BuildError when a file that an earlier worker's compiler cached is no longer the same.
    """
    _session[:] = [session]
    if not (session.gpu or session.device is not None):
        return
    _settle_arch(session, os.environ.get(WANTED, ""))
    arch = session.arch or DEFAULT_ARCH
    os.environ.update({name: str(session.target / folder) for name, folder in CACHES.items()})
    os.environ.update(FIXED, TORCH_CUDA_ARCH_LIST=arch_list(arch))
    for name, known in session.known.items():
        if "/" in name and name.endswith(".cubin") and _changed(session.target / name, known):
            raise BuildError(f"{name} is not the file that was built for this variant")


def _settle_arch(session: Session, wanted: str) -> None:
    """The job's own architecture goes before the GPU's, which must be able to run it where it is to run."""
    if not wanted:
        return
    arch_list(wanted)
    number = wanted.rstrip("af")
    if session.device is not None and session.arch and session.arch.rstrip("af") != number:
        raise BuildError(
            f"the contract's target.arch is {wanted} and this GPU is {session.arch}: take a GPU of that kind, "
            "or change target.arch in contract.toml"
        )
    session.arch = wanted


def target_words(session: Session, arch: str) -> str:
    """Which architecture was built for; says so where it is only a guess."""
    guessed = not session.arch and arch == DEFAULT_ARCH
    return f"{arch}; no GPU here: built for {arch}" if guessed else arch


def suggests(function: Callable[P, T]) -> Callable[P, T]:
    """A builder that answers a mistyped argument with the one that is meant. Raises BuildError."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def asked(*args: P.args, **named: P.kwargs) -> T:
        for word in named:
            if word not in known:
                near = difflib.get_close_matches(word, known, 1)
                help_ = f"did you mean {near[0]}=?" if near else f"it takes {', '.join(known)}"
                raise BuildError(f"build.{function.__name__} has no argument {word!r}: {help_}")
        return function(*args, **named)

    return asked


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


def arch_name(major: int, minor: int) -> str:
    """The compiler's name for a compute capability, with its own instructions where it has some."""
    return f"sm_{major}{minor}" + ("a" if major in ACCELERATED else "")


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
    """Run one of our own compilers in the variant's folder; its messages. Raises BuildError with them, errors first."""
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
        raise refused(session, f"{Path(argv[0]).name} failed ({done.returncode})", log)
    return log


def refused(session: Session, what: str, log: str) -> BuildError:
    """The error for a compiler that failed; the whole log stays in the build folder."""
    number = len(list(session.target.glob(f"*{LOG_SUFFIX}"))) + 1
    (session.target / f"compiler-{number}{LOG_SUFFIX}").write_text(log)
    text = errors_first(log) or "the compiler said nothing"
    return BuildError(f"{what}:\n{text[:SAID_CHARS]}")


def errors_first(log: str) -> str:
    """The messages of a compiler with an error in them, then the others; what ptxas only tells is left out.

    A message is a line and the indented ones below it (the source and the caret).
    """
    messages = _messages(log)
    plain = [m for m in messages if not _told(m)]
    return "\n".join([*(m for m in plain if ERROR.search(m)), *(m for m in plain if not ERROR.search(m))])


def warnings(log: str) -> list[str]:
    """The first lines of a compiler's messages that warn."""
    return list(dict.fromkeys(line.strip() for line in log.splitlines() if WARNING.search(line)))[:WARNINGS]


def _messages(log: str) -> list[str]:
    found: list[str] = []
    for line in log.splitlines():
        if not line.strip():
            continue
        if found and line[0].isspace():
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def _told(message: str) -> bool:
    return message.startswith("ptxas info") and not WARNING.search(message)


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
