"""One loop on disk: its journal under the lock, and the files and the registry entry that follow from it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rlcr import journal as journals
from rlcr import registry, views
from rlcr.files import TooBig, read_regular
from rlcr.journal import Fault, Journal, crash
from rlcr.model import Done, Event, State, sha256

ROOT = Path(".humanize", "rlcr")
LOCK = ".lock"
NAME = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\d+)?")
"""Name of a loop's folder."""
UNDECIDED = ("state.md", "finalize-state.md", "unexpected-state.md")
"""State files beside which a broken journal means that nobody has ended the loop, or has not come to the end of it."""


def utc_now() -> str:
    """Now, to the second, as the journal writes it."""
    return dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Loop:
    """A loop whose lock is held by the caller."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.worktree = folder.parent.parent.parent
        self.path = folder / journals.NAME
        self.journal = journals.read(self.path) if self.path.exists() else Journal()
        if folder.is_symlink():
            here = Fault(where=folder.name, what="the loop's folder is a link: it was moved away by hand")
            self.journal = replace(self.journal, faults=(here, *self.journal.faults))
        self.was_torn = bool(self.journal.torn)

    @property
    def state(self) -> State:
        """The state after the last line."""
        return self.journal.state

    def mend(self) -> None:
        """Set a torn last line aside."""
        self.journal = journals.mend_tail(self.path, self.journal)

    def faults(self, entry: registry.Entry | None) -> tuple[Fault, ...]:
        """What is wrong with the journal, also against the registry's own note of its last line."""
        if self.journal.faults or entry is None:
            return self.journal.faults
        lines = len(self.journal.entries)
        if (entry.seq, entry.sha) == (lines, self.journal.tip) or (entry.seq == lines + 1 and not entry.sure):
            return ()
        what = f"it ends at line {lines}, the runtime wrote {entry.seq}: lines were cut, added or replaced"
        return (Fault(where=journals.NAME, what=what),)

    def put(self, event: Event, head: str) -> State:
        """Journal one event; the state after it."""
        owner = self.state.session_sha256
        self.journal = journals.append(
            self.path, self.journal, event, at=utc_now(), head=head,
            pen=lambda seq, sha: registry.pen(owner, str(self.folder), seq, sha) if owner else None,
        )  # fmt: skip
        return self.state

    def plan(self) -> str | None:
        """The plan's text as it stands; None when its words are nowhere to be found any more."""
        amended = [a.text for a in self.state.amends if a.what == "plan"]
        return amended[-1] if amended else self.first_plan()

    def first_plan(self) -> str | None:
        """The plan's text at set-up, from the repo or from the loop's copy; None when neither is that any more."""
        setup = self.state.first_setup
        if setup is None or not setup.plan:
            return None if setup is None else ""
        for path in (self.worktree / setup.plan, self.folder / "plan.md"):
            try:
                raw = read_regular(path, views.CAP)
            except TooBig:
                continue
            if raw is not None and sha256(raw) == setup.plan_sha256:
                return raw.decode("utf-8", "replace")
        return None

    def settle(self) -> None:
        """Carry out the transition that the journal holds and the files may not: files, state file, then its line."""
        state = self.state
        kinds = [e.record["event"] for e in self.journal.entries if e.state.pending == state.pending]
        if state.pending and kinds:
            files = views.publish(self.folder, state, views.pages_of(state, kinds[0], self.first_plan()))
            self.put(Done(id=state.pending, files=files), self.journal.entries[-1].record["head"])
        if not state.active:
            self._let_go(state.session_sha256)
        if state.pending:
            crash("settle.end")

    def _let_go(self, session: str) -> None:
        """Free the session of a loop that is over, unless it drives another one by now."""
        entry = registry.load(session)
        if entry is None or entry.damaged or entry.loop_dir in ("", str(self.folder)):
            registry.remove(session)

    def sure(self, **changes: object) -> None:
        """Note in the registry that the journal's last line is in place, with what else there is to note."""
        owner = self.state.session_sha256
        entry = registry.load(owner)
        if entry is not None and not entry.damaged and entry.loop_dir == str(self.folder):
            lines, tip = len(self.journal.entries), self.journal.tip
            registry.save(owner, replace(entry, seq=lines, sha=tip, sure=True, **changes))  # type: ignore[arg-type]


def folders(worktree: Path) -> Iterator[Path]:
    """Every loop folder of a worktree, newest name first."""
    base = worktree / ROOT
    if base.is_dir():
        yield from sorted((p for p in base.iterdir() if p.is_dir() and not p.is_symlink()), reverse=True)


def every(worktree: Path) -> Iterator[Path]:
    """The same, and after them what bears a loop's name and is a link: no loop is made as one."""
    yield from folders(worktree)
    base = worktree / ROOT
    if base.is_dir():
        yield from sorted((p for p in base.iterdir() if p.is_symlink() and NAME.fullmatch(p.name)), reverse=True)


def finish(worktree: Path) -> None:
    """Carry out the ends of loops that died on the way there; the caller holds the lock."""
    for folder in folders(worktree):
        loop = Loop(folder)
        if loop.state.pending and not loop.state.active and not loop.journal.faults:
            loop.mend()
            loop.settle()


def active(worktree: Path) -> Loop | None:
    """The worktree's loop that is not over, or whose journal does not let us tell."""
    for folder in every(worktree):
        loop = Loop(folder)
        if loop.path.exists() and (loop.state.active or (loop.journal.faults and loop.state.setup is not None)):
            return loop
        if loop.path.exists() and loop.journal.faults and any((folder / name).exists() for name in UNDECIDED):
            return loop
        if (loop.journal.faults or not loop.path.exists()) and _doubted(folder, worktree):
            return loop
    return None


def _doubted(folder: Path, worktree: Path) -> bool:
    """Whether the registry still holds a session to a loop of which the journal tells no end."""
    held = [entry for _, entry in registry.sessions()]
    if any(entry.loop_dir == str(folder) for entry in held):
        return True
    return any(not entry.loop_dir and entry.worktree == str(worktree) for entry in held) and (
        any((folder / name).exists() for name in (f"{journals.NAME}.broken", *UNDECIDED)) or folder.is_symlink()
    )
