"""The environment that evidence and git are run in: what a shell happens to hold does not decide what they find."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rlcr.model import sha256

OURS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "LD_LIBRARY_PATH")
"""Exceptions: harmless ones, and the one that a task's own Python may need (a part of ``digest``)."""
NAMED = ("GIT_AUTHOR_", "GIT_COMMITTER_")
LOADED = ("PYTHON", "LD_", "DYLD_", "BASH_FUNC_", "PERL5", "GIT_", "RLCR_")
LOADERS = (
    "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PERLLIB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH",
    "BUN_OPTIONS",
)  # fmt: skip
"""Names that load code into a program, or files and settings into git."""

VOLATILE = (
    "PWD", "OLDPWD", "SHLVL", "_", "COLUMNS", "LINES", "TMPDIR", "TMP", "TEMP", "TMPPREFIX", "LANG", "PAGER",
    "GH_PAGER", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "TMUX", "AI_AGENT", "TRACEPARENT", "KP_CRASH_AT",
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY",
)  # fmt: skip
PER_SHELL = ("TERM", "LC_", "CODEX_", "CLAUDE", "RLCR_")
"""What differs between two shells of one user and leads no program anywhere else."""


def clean(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` without what could change an honest program's answer from the outside."""
    return {
        name: value for name, value in env.items()
        if name in OURS or name.startswith(NAMED) or not (name in LOADERS or name.startswith(LOADED))
    }  # fmt: skip


def digest(env: Mapping[str, str]) -> str:
    """SHA-256 of what an evidence command could be led by: PATH, HOME, LD_LIBRARY_PATH, and all else that is kept."""
    left = {k: v for k, v in clean(env).items() if k not in VOLATILE and not k.startswith((*PER_SHELL, *NAMED))}
    return sha256(json.dumps(left, sort_keys=True))
