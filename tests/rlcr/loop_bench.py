"""A repository with a loop in it, made without running a client."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rlcr import views
from rlcr.model import Done
from tests.rlcr import sim

LOOP = "2026-11-30_08-00-00"
TRACKER = """# Goal Tracker
## IMMUTABLE SECTION
### Ultimate Goal
Faster, see AC-9.
### Acceptance Criteria
- AC-1: correct
### AC-2: faster
- AC-3: written down
---
## MUTABLE SECTION
### Completed and Verified
| AC | Task | Completed Round | Verified Round | Evidence |
|---|---|---|---|---|
| AC-1 | t | 0 | 1 | see AC-2 |
### Explicitly Deferred
| AC-3 | | | | |
"""


def project_in(tmp_path: Path) -> Path:
    """A repository with one commit and no loop; its name has a space."""
    folder = tmp_path / "a project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text(".humanize/\n")
    for name in ("kept", "gone"):
        (folder / name).write_text(name)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def git(folder: Path, *argv: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@t")
    return subprocess.run(["git", *identity, *argv], cwd=folder, check=True, capture_output=True, text=True).stdout


def with_loop(project: Path, name: str = LOOP) -> tuple[Path, sim.Tape]:
    """A loop after set-up and one red gate; its second transition is carried out."""
    loop = project / ".humanize" / "rlcr" / name
    loop.mkdir(parents=True)
    tape = sim.Tape(loop)
    tape.put(sim.setup(loop=name, reviewer="codex"))
    tape.put(Done(id="setup"))
    state = tape.put(sim.stop(tape.state, 1, checks=(sim.red(),)))
    tape.put(Done(id=state.pending))
    (loop / views.state_name(state)).write_text("")
    (loop / "goal-tracker.md").write_text(TRACKER)
    return loop, tape
