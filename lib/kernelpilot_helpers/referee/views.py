"""The rendered ledgers and ``current``, kept equal to the lineage; hand edits are put aside, never dropped."""

from __future__ import annotations

from pathlib import Path

from kernelpilot_helpers import benchmark, ledger, records
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.ledger.model import Row
from kernelpilot_helpers.referee.runs import run_dir
from kernelpilot_helpers.referee.workspace import LOCAL, Workspace


def bench_facts(workspace: Workspace) -> dict[str, ledger.BenchFacts]:
    """Per run id, what the ledgers print of its ``bench.json``; unreadable files are left out."""
    out: dict[str, ledger.BenchFacts] = {}
    for row in workspace.rows:
        for run in row.runs:
            path = run_dir(workspace.root, run) / "bench.json"
            if not path.exists():
                continue
            try:
                bench = records.load(path, benchmark.OWNER)
            except BadRecord:
                continue
            out[run] = ledger.facts_of(
                [(c.case_id, c.speedup, c.a_us, c.b_us) for c in bench.cases], confidence=1 - bench.alpha
            )
    return out


def rendered(workspace: Workspace) -> dict[str, str]:
    """Path -> text of every ledger as the lineage says it must be."""
    ideas = ledger.load_ideas(workspace.root)
    return ledger.views(workspace.rows, bench_facts(workspace), ideas)


def drifted(workspace: Workspace) -> list[str]:
    """Ledgers whose text differs from the rendered one."""
    return [path for path, text in rendered(workspace).items() if text_of(workspace.root / path) != text]


def text_of(path: Path) -> str | None:
    """A ledger as stored, None when it is absent or not text."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def require_rendered(workspace: Workspace) -> None:
    """Refuse to render over somebody's edit. Raises Refused naming the files."""
    edited = drifted(workspace)
    if edited:
        raise Refused(
            "edited by hand; the lineage is the truth and these files are rendered from it",
            where=", ".join(edited),
            fix="kernelpilot ledger render  # keeps your edit aside; kernelpilot ledger check says what differs",
        )


def render(workspace: Workspace, *, put_aside: bool) -> list[str]:
    """Write the ledgers; with ``put_aside`` an edited one is first copied below ``.kernelpilot/edited``."""
    changed: list[str] = []
    for path, text in rendered(workspace).items():
        target = workspace.root / path
        if target.exists() and target.read_bytes() == text.encode():
            continue
        if put_aside and target.exists():
            aside = workspace.root / LOCAL / "edited"
            number = len(list(aside.glob(f"{target.name}.*"))) if aside.exists() else 0
            records.write_bytes(aside / f"{target.name}.{number + 1}", target.read_bytes())
        records.write_text(target, text)
        changed.append(path)
    return changed


def current_path(workspace: Workspace) -> Path:
    """``src/<task>/current``."""
    return workspace.root / "src" / workspace.task / "current"


def set_current(workspace: Workspace, row: Row) -> None:
    """Name the selected variant."""
    records.write_text(current_path(workspace), f"{row.variant}\n")
