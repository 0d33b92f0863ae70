"""Read the performance map and the dispatcher, and say where they do not hold together. Never raises."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernelpilot_helpers import autotune, benchmark, dispatcher, ledger, proc, records
from kernelpilot_helpers import contract as contracts
from kernelpilot_helpers.attempt.job import JobCase
from kernelpilot_helpers.autotune import MAP_PATH, PerformanceMap, Tuned
from kernelpilot_helpers.contract import Case, Contract, Lock
from kernelpilot_helpers.contract.rules import device
from kernelpilot_helpers.dispatcher import CODE_PATH, DECISIONS_PATH, FOLDER, TABLE_PATH, Table
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.evidence.model import TuningFacts
from kernelpilot_helpers.ledger import Row
from kernelpilot_helpers.records import Fault

T = TypeVar("T")
RUNS = "artifacts/runs"
RETUNE, REDISPATCH = "kernelpilot tune", "kernelpilot dispatch"
BUILDER = f"{dispatcher.RUNTIME}/"


class _Env(msgspec.Struct):
    env: dict[str, Any] = {}


class _Intent(msgspec.Struct):
    role: str = ""
    subject: str = ""
    tree: str = ""


def collect_tuning(
    root: Path,
    *,
    contract: Contract | Fault,
    lock: Lock | Fault,
    rows: Sequence[Row],
    cases: Sequence[Case] | Sequence[JobCase],
) -> TuningFacts:
    """Map, table and their faults. ``cases`` are those of W; generated edges among them are left out.

    Resolved cases carry no regime: W is then read from its file. Without a contract or a lock nothing is compared: a
    map or table that lies there is then a fault by itself.
    """
    return _collect(root, contract, lock, rows, _written(root, contract, cases))


def _written(root: Path, contract: Contract | Fault, given: Sequence[Case] | Sequence[JobCase]) -> tuple[Case, ...]:
    found = tuple(case for case in given if isinstance(case, Case))
    if len(found) == len(given) or isinstance(contract, Fault):
        return found
    try:
        return contracts.parse_cases((root / contracts.CASES_PATH).read_bytes(), contract, at=contracts.CASES_PATH)
    except (KernelPilotError, OSError, ValueError):
        return ()  # W that cannot be read is a fault of its own; a map then covers something else


def _collect(
    root: Path, contract: Contract | Fault, lock: Lock | Fault, rows: Sequence[Row], cases: Sequence[Case]
) -> TuningFacts:
    regimes = tuple(dict.fromkeys(c.regime for c in cases if not c.edge and not c.held_out))
    map_faults: list[Fault] = []
    table_faults: list[Fault] = []
    found = _read(map_faults, root / MAP_PATH, lambda: records.load(root / MAP_PATH, autotune.OWNER), MAP_PATH)
    table = _read(
        table_faults, root / TABLE_PATH, lambda: records.load(root / TABLE_PATH, dispatcher.OWNER), TABLE_PATH
    )
    if isinstance(contract, Fault) or isinstance(lock, Fault):
        what = "cannot be checked without contract and lock"
        map_faults += [Fault(where=MAP_PATH, what=what, fix="kernelpilot lock")] if found else []
        table_faults += [Fault(where=TABLE_PATH, what=what, fix="kernelpilot lock")] if table else []
    else:
        if found is not None:
            map_faults += _guarded(MAP_PATH, lambda: [*_map(root, found, contract, lock, rows, cases)])
        lies = _lies(root, table is not None)
        if table is not None:
            table_faults += _guarded(TABLE_PATH, lambda: [*_dispatcher(root, table, found, contract, rows)])
        elif lies and not table_faults:
            table_faults.append(Fault(where=TABLE_PATH, what=f"missing, while {lies[0]} is there", fix=REDISPATCH))
    return TuningFacts(
        map=found,
        table=table,
        map_faults=tuple(map_faults),
        dispatch_faults=tuple(table_faults),
        regimes=regimes,
    )


def _read(faults: list[Fault], path: Path, load: Callable[[], T], name: str) -> T | None:
    if not path.exists():
        return None
    try:
        return load()
    except (KernelPilotError, OSError, ValueError) as fault:
        what, fix = (fault.what, fault.fix) if isinstance(fault, KernelPilotError) else (str(fault), RETUNE)
        faults.append(Fault(where=name, what=what, fix=fix))
        return None


def _guarded(name: str, check: Callable[[], list[Fault]]) -> list[Fault]:
    """A check that stumbles over what it reads is a fault of what it reads."""
    try:
        return check()
    except KernelPilotError as fault:
        return [Fault(where=name, what=str(fault), fix=fault.fix or RETUNE)]
    except (OSError, ValueError, ArithmeticError, KeyError, IndexError, RecursionError, UnicodeError) as fault:
        return [Fault(where=name, what=f"cannot be checked: {type(fault).__name__}: {fault}", fix=RETUNE)]


def _newest(rows: Sequence[Row], begin: str) -> Row | None:
    return next((r for r in reversed(rows) if r.kind == "decision" and r.reason.startswith(begin)), None)


def _sealed(root: Path, row: Row | None, path: str, command: str) -> list[Fault]:
    """Whether a file is the one that a row was written with."""
    if row is None:
        return [Fault(where=path, what="no lineage row says how it was made", fix=command)]
    if not (root / path).is_file():
        return [Fault(where=path, what=f"missing ({row.reason})", fix=f"git checkout -- {path}")]
    if row.evidence.get(path) == records.file_sha256(root / path):
        return []
    return [Fault(where=path, what=f"not the bytes of its row ({row.reason})", fix=f"git checkout -- {path}")]


def _map(
    root: Path, found: PerformanceMap, contract: Contract, lock: Lock, rows: Sequence[Row], cases: Sequence[Case]
) -> Iterator[Fault]:
    row = _newest(rows, ledger.TUNE)
    yield from _sealed(root, row, MAP_PATH, RETUNE)
    wanted = autotune.selected(rows, lock.epoch)
    if found.epoch != lock.epoch and not wanted:
        return  # of an earlier epoch, and this one has nothing to measure yet
    lacks = autotune.coverage(found, epoch=lock.epoch, wanted=wanted, cases=autotune.cases_of(contract, cases))
    yield from (Fault(where=MAP_PATH, what=what, fix=RETUNE) for what in lacks)
    if found.device != device(contract.target) or found.objective != contract.objective.metric:
        yield Fault(where=MAP_PATH, what="made for another device or objective than the contract's", fix=RETUNE)
    baseline = next((r for r in reversed(rows) if r.kind == "baseline" and r.epoch == lock.epoch), None)
    if baseline is None or baseline.tree != found.baseline_tree:
        yield Fault(where=MAP_PATH, what="measured against another baseline", fix=RETUNE)
    if row is not None:
        yield from _remade(root, found, row)


def _remade(root: Path, found: PerformanceMap, row: Row) -> Iterator[Fault]:
    """The map made again from the benches of its runs."""
    tuned = []
    for variant in found.variants:
        folder = root / RUNS / variant.run
        if variant.run not in row.runs:
            yield Fault(where=MAP_PATH, what=f"{row.reason} does not cite run {variant.run}", fix=RETUNE)
            return
        intent = _lenient(folder / "intent.json", _Intent)
        if (intent.role, intent.subject, intent.tree) != ("tune", variant.version, variant.tree):
            yield Fault(where=f"{RUNS}/{variant.run}", what=f"was not made to tune {variant.version}", fix=RETUNE)
            return
        bench = records.load(folder / "bench.json", benchmark.OWNER)
        place = benchmark.booking(_lenient(folder / "raw.json", _Env).env)
        tuned.append(
            Tuned(
                version=variant.version,
                variant=variant.variant,
                tree=variant.tree,
                run=variant.run,
                bench=bench,
                booking=place,
            )
        )
    again = autotune.build(
        epoch=found.epoch,
        at=found.at,
        device=found.device,
        objective=found.objective,
        baseline_tree=found.baseline_tree,
        cases=found.cases,
        tuned=tuned,
        left_out=found.left_out,
    )
    for mine, theirs in zip(found.cells, again.cells, strict=False):
        if mine != theirs:
            what = f"{mine.version} on {mine.case_id} is not what run of it measured"
            yield Fault(where=MAP_PATH, what=what, fix=f"git checkout -- {MAP_PATH}")
    if (again.environment, again.alpha, again.variants, len(again.cells)) != (
        found.environment, found.alpha, found.variants, len(found.cells),
    ):  # fmt: skip
        yield Fault(where=MAP_PATH, what="environment, confidence or cells are not those of its runs", fix=RETUNE)


def _lenient(path: Path, kind: type[T]) -> T:
    return msgspec.json.decode(records.read_bytes(path, fix=RETUNE), type=kind)


def _lies(root: Path, table: bool) -> list[str]:
    """Files below the folder that only a table could explain."""
    if table:
        return []
    return [path for path in _present(root) if path != f"{FOLDER}/.gitkeep"]


def _present(root: Path) -> list[str]:
    """Repo-relative paths of everything below the folder that is no byte code of an import."""
    found = (p for p in (root / FOLDER).rglob("*") if p.is_symlink() or not p.is_dir())
    return sorted(p.relative_to(root).as_posix() for p in found if "__pycache__" not in p.parts)


def listed_faults(root: Path, table: Table) -> list[Fault]:
    """Every file below ``dispatch/`` that the table does not list so. Raises nothing but OSError."""
    out = []
    present = _present(root)
    for path in sorted({*table.files, *present} - {TABLE_PATH}):
        fix = f"{REDISPATCH}  # or git checkout -- {path}"
        if path == f"{FOLDER}/.gitkeep":
            if (root / path).is_file() and (root / path).stat().st_size:
                out.append(Fault(where=path, what="is not empty", fix=fix))
        elif path not in present:
            out.append(Fault(where=path, what=f"missing; {TABLE_PATH} lists it", fix=fix))
        elif path not in table.files:
            out.append(Fault(where=path, what=f"added by hand: {TABLE_PATH} does not list it", fix=f"git rm {path}"))
        elif (root / path).is_symlink() or records.file_sha256(root / path) != table.files[path]:
            out.append(Fault(where=path, what=f"not the file that {TABLE_PATH} lists", fix=fix))
    return out


def _dispatcher(
    root: Path, table: Table, found: PerformanceMap | None, contract: Contract, rows: Sequence[Row]
) -> Iterator[Fault]:
    row = _newest(rows, ledger.DISPATCH)
    yield from _sealed(root, row, TABLE_PATH, REDISPATCH)
    yield from _sealed(root, row, DECISIONS_PATH, REDISPATCH)
    listed = listed_faults(root, table)
    yield from listed
    if found is None:
        yield Fault(where=TABLE_PATH, what="the map it rests on is missing or unreadable", fix=RETUNE)
        return
    if table.map_sha256 != records.file_sha256(root / MAP_PATH):
        yield Fault(where=TABLE_PATH, what=f"made from another map than {MAP_PATH}", fix=REDISPATCH)
        return
    wanted = dispatcher.choose(found)
    if msgspec.structs.replace(table, files={}) != wanted:
        yield Fault(where=TABLE_PATH, what="its choices are not those that the map gives", fix=REDISPATCH)
        return
    yield from (Fault(where=TABLE_PATH, what=what, fix=RETUNE) for what in dispatcher.check(table, found))
    lost = [f for f in listed if f.where != CODE_PATH and not f.where.startswith(BUILDER)]
    if not lost:
        yield from _frozen(root, table, found, contract)


def _frozen(root: Path, table: Table, found: PerformanceMap, contract: Contract) -> Iterator[Fault]:
    """Copied trees against git, and generated text against what would be generated now."""
    trees = {}
    for name, tree in dispatcher.trees_of(table, found).items():
        folder = root / dispatcher.VARIANTS / name
        trees[name] = {p.relative_to(folder).as_posix(): p.read_bytes() for p in _files(folder)}
        if _oids(trees[name]) != _committed(root, tree):
            where = f"{dispatcher.VARIANTS}/{name}"
            yield Fault(where=where, what=f"does not hold git tree {tree[:12]} of its version", fix=REDISPATCH)
    # one that was copied from another version of kernelpilot may be other files, but no more than it imports itself
    builder = {p.name: p.read_bytes() for p in _files(root / BUILDER) if f"{BUILDER}{p.name}" in table.files}
    made = dispatcher.generate(
        msgspec.structs.replace(table, files={}), found, contract=contract, trees=trees, runtime=builder
    )
    for path in (CODE_PATH, DECISIONS_PATH):
        if (root / path).is_file() and (root / path).read_bytes() != made.files[path]:
            what = "not what the map gives (or another version of kernelpilot wrote it)"
            yield Fault(where=path, what=what, fix=REDISPATCH)
    extra = set(table.files) ^ set(made.table.files)
    yield from (Fault(where=path, what="no part of this dispatcher", fix=REDISPATCH) for path in sorted(extra))


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def _oids(files: dict[str, bytes]) -> dict[str, str]:
    """Path -> git blob id of these bytes."""
    return {
        name: hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
        for name, data in files.items()
    }


def _committed(root: Path, tree: str) -> dict[str, str]:
    listed = proc.git_out(root, "ls-tree", "-r", "-z", "--full-tree", tree)
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    return {name: meta.split()[2] for meta, _, name in entries}
