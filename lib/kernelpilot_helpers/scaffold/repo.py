"""Make the standalone repo whole or not at all, and look whether one still is whole."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from kernelpilot_helpers import contract, proc, records
from kernelpilot_helpers.errors import BadRecord, KernelPilotError, Refused
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.scaffold import content
from kernelpilot_helpers.scaffold.request import Request

REQUIRED_FILES = (
    "README.md",
    ".gitignore",
    "contract.toml",
    "workloads/cases.jsonl",
    "tests/test_correctness.py",
    "benchmarks/bench.py",
    "bindings/README.md",
    "dispatch/.gitkeep",
    "src/{task}/current",
    "src/{task}/variants/.gitkeep",
    "artifacts/lineage.jsonl",
    "artifacts/source-ideas.jsonl",
    "artifacts/attempt-ledger.md",
    "artifacts/optimization-ledger.md",
    "artifacts/source-idea-ledger.md",
    "artifacts/research-digest.md",
    "artifacts/profile-digests/README.md",
    "artifacts/runs/.gitkeep",
)
"""Repo-relative; ``{task}`` is the contract's task name. Reference and baseline come from the contract itself."""

RESEARCH_SECTIONS = (
    "Baseline findings",
    "Source findings",
    "Candidate routes",
    "Expected bottlenecks",
    "First measurements",
)
RESTORE = "git checkout HEAD -- {path}  # or a new repo: kernelpilot scaffold DIR --task NAME"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaffolded:
    """A repo that stands: where, its first commit, and the stubs still to be written before ``lock``."""

    path: Path
    commit: str
    todo: tuple[str, ...]


def required_files(made: contract.Contract) -> tuple[str, ...]:
    """Every path that must be committed before work starts."""
    fixed = tuple(path.format(task=made.task.name) for path in REQUIRED_FILES)
    return tuple(dict.fromkeys((*fixed, *contract.lock.required_paths(made))))


def _refuse_place(directory: Path, *, parent_ok: bool) -> None:
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise Refused("exists and is not a folder", where=str(directory), fix="name a new folder")
    if directory.exists() and any(directory.iterdir()):
        raise Refused("exists and is not empty", where=str(directory), fix="name a new folder, or empty this one")
    above = next((p for p in directory.parents if (p / ".git").exists()), None)
    if above is not None and not parent_ok:
        raise Refused(
            f"lies inside another git repository: {above}",
            where=str(directory),
            fix="name a folder outside it, or add --parent-ok",
        )


def _new_parents(directory: Path) -> list[Path]:
    """Folders above ``directory`` that do not exist yet, innermost first."""
    return [p for p in directory.parents if not p.exists()]


def make(request: Request, directory: Path, *, kernelpilot: Path, parent_ok: bool = False) -> Scaffolded:
    """Build the repo beside its place, commit it, check it, and move it there (by one rename into a new place).

    ``kernelpilot`` is the executable that ``.humanize/evidence.json`` will name. Raises Refused for a place that is
    taken or nested, ToolMissing without git; after any failure nothing of the repo is left.
    """
    directory = Path(os.path.abspath(directory))  # noqa: PTH100 - resolve() would follow a symlink at the place itself
    _refuse_place(directory, parent_ok=parent_ok)
    proc.run(["git", "--version"])
    made = content.files(request)
    parents = _new_parents(directory)
    building = directory.with_name(f".{directory.name}.{os.getpid()}.new")
    try:
        building.mkdir(parents=True)
        commit = _fill(building, request, made, kernelpilot)
        _move(building, directory)
    except BaseException as error:
        shutil.rmtree(building, ignore_errors=True)
        for parent in parents:
            if parent.exists() and not any(parent.iterdir()):
                parent.rmdir()
        if isinstance(error, OSError):
            what = f"cannot be written: {error.strerror or error}"
            raise KernelPilotError(what, where=str(directory), fix="check the place and the disk: df -h") from None
        raise
    return Scaffolded(path=directory, commit=commit, todo=content.todo(request))


def _move(building: Path, directory: Path) -> None:
    if not directory.exists():
        building.rename(directory)
        return
    # An empty folder stays the folder it is: a shell may be standing in it, or something be mounted there.
    moved: list[Path] = []
    try:
        for child in sorted(building.iterdir(), key=lambda p: (p.name == ".git", p.name)):
            moved.append(child.rename(directory / child.name))
        building.rmdir()
    except BaseException:
        for path in moved:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise


def _fill(repo: Path, request: Request, made: dict[str, bytes], kernelpilot: Path) -> str:
    for path, data in made.items():
        target = repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    write_evidence(repo, kernelpilot)
    proc.git(repo, "init", "-q")
    proc.git(repo, "symbolic-ref", "HEAD", "refs/heads/main")
    # -f: a user's own global ignore file may name artifacts/ or *.md, and the repo must be whole all the same.
    proc.git(repo, "add", "-f", "--", *made)
    commit = proc.commit(repo, f"scaffold {request.contract.task.name}", ["."])
    faults = check(repo)
    if faults or commit is None:
        words = "; ".join(f"{f.where}: {f.what}" for f in faults) or "git committed nothing"
        raise KernelPilotError(
            f"the new repo is not whole: {words}", where=str(repo), fix="check your git configuration"
        )
    return commit


def write_evidence(repo: Path, kernelpilot: Path) -> None:
    """(Re)write ``.humanize/evidence.json``, which is this machine's and never committed."""
    target = repo / content.EVIDENCE_PATH
    target.parent.mkdir(parents=True, exist_ok=True)
    records.write_bytes(target, content.evidence(Path(os.path.abspath(kernelpilot))))  # noqa: PTH100 - keep the shim


def check(repo: Path) -> list[Fault]:
    """What a repo lacks of what ``make`` made: one fault a file, each with its remedy."""
    at = repo / contract.CONTRACT_PATH
    if not at.is_file():
        fix = "kernelpilot scaffold DIR --task NAME"
        return [Fault(where=contract.CONTRACT_PATH, what="missing: this is no kernel repo", fix=fix)]
    try:
        made = contract.parse(at.read_bytes(), at=contract.CONTRACT_PATH)
    except BadRecord as error:
        return [Fault(where=error.where, what=error.what, fix=error.fix)]
    out = [*_files(repo, required_files(made))]
    if proc.git(repo, "check-ignore", "-q", ".humanize/x", check=False).code != 0:
        fix = "add the line .humanize* to .gitignore and commit it"
        out.append(Fault(where=".gitignore", what=".humanize is not ignored", fix=fix))
    cases = repo / contract.CASES_PATH
    if cases.is_file():
        try:
            contract.parse_cases(cases.read_bytes(), made, at=contract.CASES_PATH)
        except BadRecord as error:
            out.append(Fault(where=error.where, what=error.what, fix=error.fix))
    return out


def _files(repo: Path, paths: tuple[str, ...]) -> list[Fault]:
    committed = set(proc.git(repo, "ls-tree", "-r", "-z", "--name-only", "HEAD", check=False).out.split("\0"))
    out = []
    for path in paths:
        if not (repo / path).is_file():
            out.append(Fault(where=path, what="missing", fix=RESTORE.format(path=path)))
        elif path not in committed:
            out.append(Fault(where=path, what="not committed", fix=f"git add -f {path} && git commit"))
    return out
