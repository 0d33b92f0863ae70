"""Phase 1: load every arm once, which builds it, and say what program came out."""

from __future__ import annotations

import ast
import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import usage
from .arms import Nursery
from .forge import LOG_SUFFIX, WARNINGS, hex_id, normal_sha256, sha256
from .session import ArmDied, Session
from .spec import Arm

BINARY_SUFFIXES = (".so", ".o", ".a", ".pyc", ".pyd", ".dylib", ".dll", ".cubin", ".fatbin")
MAGIC = (b"\x7fELF", b"MZ", b"!<arch>", b"\xca\xfe\xba\xbe")
COMPILED = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hxx", ".inc", ".s")
CUDA = (".cu", ".cuh")
EXTENSION = "ext-"
"""How the folder of a torch extension is called."""
KEPT = "built"
"""Folder of the job directory that keeps what was built, where a job does nothing else."""
SCAN_MAX = 2000


def build_all(session: Session, nursery: Nursery, compiler: str) -> None:
    """Build every arm; raises ArmDied at the first that cannot be built or loaded (its Build is kept)."""
    for arm in session.arms.values():
        started = time.monotonic()
        try:
            built = _build(session, nursery, arm)
        except ArmDied as gone:
            seconds = time.monotonic() - started
            session.builds.append(_record(arm, ok=False, seconds=seconds, log=gone.died.get("log", "")))
            if not session.job["phases"]:
                keep_logs(session, arm)
            raise
        artifacts, loaded, same, log = built
        for artifact in artifacts:
            artifact.setdefault("compiler", compiler)
        record = _record(arm, ok=True, seconds=time.monotonic() - started, build_id_ok=same, log=log)
        record.update(artifacts=artifacts, loaded=loaded, binary_id=binary_id(session.source(arm), artifacts))
        session.builds.append(record)
        if not session.job["phases"]:
            keep(session, arm, artifacts)


def _record(arm: Arm, **fields: Any) -> dict[str, Any]:
    return {"arm": arm.name, "build_key": arm.build_key, "binary_id": "", **fields}


def _build(session: Session, nursery: Nursery, arm: Arm) -> tuple[list[dict[str, Any]], list[Any], bool, str]:
    """(artefacts, loaded libraries, whether every stamp is the arm's, what the compilers warned of)."""
    source = session.source(arm)
    binaries = binary_files(source)
    if binaries:
        for name in binaries:
            session.event(arm.name, "build.binary_in_source", name)
        log = f"binary files in the source: {', '.join(binaries)}"
        raise ArmDied({"arm": arm.name, "stage": "build", "log": log})
    worker = nursery.fork(arm)
    folder = session.build_dir(arm)
    try:
        reply = worker.load()
        artifacts = [_artifact(folder, arm, said) for said in reply["artifacts"]]
        session.known[arm.name] = {a["path"]: a["sha256"] for a in artifacts}
        loaded = [(Path(p).name, sha256(Path(p))) for p in worker.loaded()]
    finally:
        worker.finish()
    warned = [str(w) for said in reply["artifacts"] for w in said.get("warnings", ())]
    log = "\n".join(dict.fromkeys(warned[:WARNINGS]))
    return artifacts, loaded, all(a["build_id"] == hex_id(arm.build_key) for a in artifacts), log


def _artifact(folder: Path, arm: Arm, said: dict[str, Any]) -> dict[str, Any]:
    """What lies in the build folder under the name that the worker gave; the hashes are taken here."""
    name = below(folder, str(said["path"]))
    data = (folder / name).read_bytes()
    resources = usage.of_build(data, str(said.get("log", "")))
    return {
        "path": name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "normal_sha256": normal_sha256(folder / name, arm.build_key),
        "build_id": str(said["build_id"]),
        "command": [str(part) for part in said["command"]],
        **({"usage": resources} if resources else {}),
        **({"compiler": str(said["compiler"])} if said.get("compiler") else {}),
    }


def below(folder: Path, name: str) -> str:
    """``name`` as a path inside ``folder``: the last part alone where it leads out of it (a worker said it)."""
    path = Path(name)
    inside = not path.is_absolute() and (folder / path).resolve().is_relative_to(folder.resolve())
    return path.as_posix() if inside else path.name


def add_cached(session: Session, arm: Arm, said: Sequence[dict[str, Any]], compiler: str) -> None:
    """Take up what ``build.scan_cache`` found in a worker of ``arm``: artefacts, and files later workers must find.

    The program's identity is not touched: a cached cubin comes of Python source that is part of it already.
    """
    folder = session.build_dir(arm)
    record = next((b for b in session.builds if b["arm"] == arm.name and b["ok"]), None)
    known = session.known.setdefault(arm.name, {})
    for entry in said[:SCAN_MAX]:
        name = below(folder, str(entry["path"]))
        if name in known or not (folder / name).is_file():
            continue
        artifact = {**_artifact(folder, arm, entry), "compiler": compiler}
        known[name] = artifact["sha256"]
        if record is not None:
            record["artifacts"].append(artifact)


def keep(session: Session, arm: Arm, artifacts: Sequence[dict[str, Any]]) -> None:
    """Copy what was built beside the job, where somebody may look into it after the build folder is gone."""
    for artifact in artifacts:
        copy = session.jobdir / KEPT / arm.name / artifact["path"]
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(session.build_dir(arm) / artifact["path"], copy)


def keep_logs(session: Session, arm: Arm) -> None:
    """Copy what a compiler that failed had to say, whole."""
    for log in sorted(session.build_dir(arm).glob(f"*{LOG_SUFFIX}")):
        if log.is_file() and not log.is_symlink():
            copy = session.jobdir / KEPT / arm.name / log.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log, copy)


def binary_files(source: Path) -> list[str]:
    """Files that are machine code or byte code by their suffix or first bytes, relative to ``source``."""
    found = []
    for path in _files(source):
        with path.open("rb") as file:
            head = file.read(8)
        if path.suffix in BINARY_SUFFIXES or head.startswith(MAGIC):
            found.append(str(path.relative_to(source)))
    return found


def _files(source: Path) -> list[Path]:
    return sorted(p for p in source.rglob("*") if p.is_file() and not p.is_symlink())


def binary_id(source: Path, artifacts: list[dict[str, Any]]) -> str:
    """One hash of the program: built libraries, Python without comments and docstrings, other files' bytes.

    C sources are left out where something was built, CUDA sources where a cubin was: the built file stands for them.
    A CUDA source that no build names stays: the candidate may compile it by itself.
    Not so for a torch extension, whose bytes hold names that nvcc makes of the folder's path: there the sources stand.
    """
    whole = [a for a in artifacts if not a["path"].startswith(EXTENSION)]
    parts: list[list[Any]] = [["library", a["path"], a["normal_sha256"]] for a in whole]
    parts += [["extension", a["path"], a["command"]] for a in artifacts if a not in whole]
    cubin = any(a["path"].endswith(".cubin") for a in whole)
    named = {word for a in whole for word in a["command"]}
    compiled = ((COMPILED if whole else ()) + (CUDA if cubin else ())) if len(whole) == len(artifacts) else ()
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        if path.suffix == ".py":
            parts.append(["python", name, _python(path)])
        elif path.suffix not in compiled or (path.suffix == ".cu" and name not in named):
            parts.append(["file", name, sha256(path)])
    return hashlib.sha256(repr(sorted(parts)).encode()).hexdigest()


def _python(path: Path) -> str:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return sha256(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
