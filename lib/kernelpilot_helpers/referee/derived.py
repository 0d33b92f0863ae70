"""Files that a decision row stands behind: the performance map and the dispatcher. Made from the row, after the row.

Both are functions of what the row cites, so a killed command's are made again, and a forged one is not believed.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from kernelpilot_helpers import autotune, dispatcher, ledger, proc, records
from kernelpilot_helpers.autotune import MAP_PATH, PerformanceMap
from kernelpilot_helpers.dispatcher import DECISIONS_PATH, FOLDER, TABLE_PATH, Generated
from kernelpilot_helpers.errors import BadRecord, KernelPilotError
from kernelpilot_helpers.evidence import tuning
from kernelpilot_helpers.executors import deploy
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import mapping
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace

KEEP = f"{FOLDER}/.gitkeep"
STORED = (MAP_PATH, TABLE_PATH, DECISIONS_PATH)


def kind(row: Row) -> Literal["tune", "dispatch", ""]:
    """What a decision row made, by its reason."""
    if row.kind != "decision":
        return ""
    if row.reason.startswith(ledger.TUNE):
        return "tune"
    return "dispatch" if row.reason.startswith(ledger.DISPATCH) else ""


def files(ws: Workspace, row: Row) -> dict[str, bytes]:
    """Repo-relative path -> bytes of what a row stands behind. Raises KernelPilotError where it cannot be made."""
    made = kind(row)
    if made == "tune":
        return {MAP_PATH: records.dump(mapping.map_of(ws, row.runs, row.at))}
    return generated(ws, load_map(ws)).files if made == "dispatch" else {}


def load_map(ws: Workspace) -> PerformanceMap:
    """The map, as the newest tune row says it is. Raises BadRecord when it is absent or another one."""
    found = records.load(ws.root / MAP_PATH, autotune.OWNER)
    row = next((r for r in reversed(ws.rows) if kind(r) == "tune"), None)
    if row is None or row.evidence.get(MAP_PATH) != records.file_sha256(ws.root / MAP_PATH):
        raise BadRecord("not the map that the lineage says was measured", where=MAP_PATH, fix=autotune.OWNER.fix)
    return found


def generated(ws: Workspace, found: PerformanceMap) -> Generated:
    """The dispatcher of a map. Raises KernelPilotError when git does not hold a tree."""
    table = dispatcher.choose(found)
    trees = {name: tree_files(ws.root, tree) for name, tree in dispatcher.trees_of(table, found).items()}
    runtime = {path.name: path.read_bytes() for path in sorted(deploy.source_dir().glob("*.py"))}
    return dispatcher.generate(table, found, contract=ws.contract, trees=trees, runtime=runtime)


def tree_files(root: Path, tree: str) -> dict[str, bytes]:
    """Path -> bytes of a committed tree."""
    names = [n for n in proc.git_out(root, "ls-tree", "-r", "-z", "--name-only", "--full-tree", tree).split("\0") if n]
    return {name: proc.blob(root, f"{tree}:{name}") or b"" for name in names}


def write(ws: Workspace, row: Row) -> None:
    """Put a row's files in their places; a hand edit that lies there is first copied to ``.kernelpilot/edited``."""
    made = files(ws, row)
    if not made:
        return
    _put_edits_aside(ws, made)
    for path, data in made.items():
        records.write_bytes(ws.root / path, data)
        records.crash_point("derived.file")
    if kind(row) == "dispatch":
        _prune(ws.root, made)
    records.crash_point("derived.files")


def _put_edits_aside(ws: Workspace, made: dict[str, bytes]) -> None:
    for path in proc.dirty(ws.root, *paths_of(made)):
        edited = ws.root / path
        if edited.is_file() and made.get(path) != edited.read_bytes() and path != KEEP:
            target = ws.root / LOCAL / "edited" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(edited, target)


def _prune(root: Path, made: dict[str, bytes]) -> None:
    """Remove what an earlier dispatcher left below the folder."""
    for path in sorted((root / FOLDER).rglob("*"), reverse=True):
        name = path.relative_to(root).as_posix()
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif name not in made and name != KEEP:
            path.unlink()


def paths_of(made: dict[str, bytes]) -> list[str]:
    """What git is told of these files."""
    return [MAP_PATH] if MAP_PATH in made else [FOLDER, DECISIONS_PATH]


def paths(row: Row) -> list[str]:
    """What the evidence commit of a row holds of them."""
    return {"tune": [MAP_PATH], "dispatch": [FOLDER, DECISIONS_PATH], "": []}[kind(row)]


def evidence(made: dict[str, bytes]) -> dict[str, str]:
    """The hashes of these files that a row keeps; the table holds those of all the others."""
    return {path: records.sha256(made[path]) for path in STORED if path in made}


def faults(ws: Workspace, row: Row) -> list[Fault]:
    """A row whose files do not come out again as it says."""
    try:
        now = evidence(files(ws, row))
    except (KernelPilotError, ArithmeticError, ValueError, OSError) as fault:
        return [Fault(where=row.reason, what=f"what it stands behind cannot be made again: {fault}", fix=_fix(row))]
    said = {path: row.evidence[path] for path in STORED if path in row.evidence}
    odd = sorted(path for path in now.keys() | said.keys() if now.get(path) != said.get(path))
    what = f"what the row rests on gives another one than it says ({row.reason})"
    return [Fault(where=path, what=what, fix=_fix(row)) for path in odd]


def _fix(row: Row) -> str:
    return f"kernelpilot {kind(row)}"


def stored_faults(ws: Workspace) -> list[Fault]:
    """Map, table, page and every file of the dispatcher against the newest row that speaks of them."""
    out: list[Fault] = []
    for path in STORED:
        row = next((r for r in reversed(ws.rows) if path in r.evidence), None)
        if row is None:
            continue
        fix = f"git checkout -- {path}  # or make it again: kernelpilot {kind(row)}"
        if not (ws.root / path).is_file():
            out.append(Fault(where=path, what=f"missing ({row.reason})", fix=fix))
        elif records.file_sha256(ws.root / path) != row.evidence[path]:
            what = f"not the bytes that the lineage says were written ({row.reason})"
            out.append(Fault(where=path, what=what, fix=fix))
        elif path == TABLE_PATH:
            out += tuning.listed_faults(ws.root, records.load(ws.root / path, dispatcher.OWNER))
    return out
