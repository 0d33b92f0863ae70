"""A private home for demo and tests: no client setting of the user is read or written from there."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

DROPPED = frozenset(
    {
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "PYTHONPATH",
        "PYTHONHOME",
        "CODEX_THREAD_ID",
        "CODEX_SESSION_ID",
        "CLAUDE_CODE_SESSION_ID",
    }
)


@contextlib.contextmanager
def private_environment(env: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A copy of ``env`` whose homes lie in a temporary folder, removed at the end."""
    base = Path(tempfile.mkdtemp(prefix="kernelpilot-home-"))
    homes = {
        "HOME": base,
        "CODEX_HOME": base / "codex",
        "CLAUDE_CONFIG_DIR": base / "claude",
        "XDG_STATE_HOME": base / "state",
    }
    for folder in homes.values():
        folder.mkdir(exist_ok=True)
    try:
        yield {**{k: v for k, v in env.items() if k not in DROPPED}, **{k: str(v) for k, v in homes.items()}}
    finally:
        shutil.rmtree(base, ignore_errors=True)
