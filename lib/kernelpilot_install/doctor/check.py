"""What a check says, and the surroundings that every check looks at."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kernelpilot_install.places import Places

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One answer. ``fix`` is the command or edit that mends it, empty for ``ok``."""

    name: str
    status: Status
    what: str
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A place in this repo that still holds a placeholder, and what mends it."""

    where: str
    what: str
    fix: str
    grave: bool = False
    """Whether it is too late for it; before the contract is locked, a placeholder is only work to be done."""


def edit(path: Path, what: str) -> str:
    """A line for a shell that opens ``path``, and says what to do there."""
    return f'"${{EDITOR:-vi}}" {shlex.quote(str(path))}  # {what}'


@dataclass(frozen=True, kw_only=True)
class Here:
    """Where the doctor looks."""

    at: Places
    env: Mapping[str, str]
    folder: Path
    """The folder the user stands in, absolute."""
    client: str | None = None
    """codex, claude or both; None is: those found."""
    task_argv: tuple[str, ...] | None = None
    """The task's Python where the user named one."""
    task_fault: str = ""
    """Why the user's own naming of it cannot be read."""
    gpu_target: str = ""
    """``target.gpu`` of this repo's contract where that is a GPU."""
    ping: bool = False
    """Whether each reviewer is called once."""
    placeholders: tuple[Spot, ...] = ()
    """Found by the caller, who knows the repo's formats."""

    @property
    def root(self) -> Path | None:
        """Root of the git worktree around ``folder``, None outside of one."""
        return next((p for p in (self.folder, *self.folder.parents) if (p / ".git").exists()), None)
