"""Ask a program one short question, within a bound."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """``code`` is None when the program could not be started or did not end; ``why`` then says so."""

    code: int | None
    out: str = ""
    err: str = ""
    why: str = ""

    @property
    def first(self) -> str:
        """The first line it said, on stdout or else on stderr."""
        lines = (self.out.strip() or self.err.strip()).splitlines()
        return lines[0].strip() if lines else ""


def ask(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, seconds: float = PATIENCE_S) -> Answer:
    """Run a program without input; it and its children are killed after ``seconds``."""
    quiet = {**env, "PYTHONDONTWRITEBYTECODE": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        child = subprocess.Popen(
            list(argv),
            env=quiet,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as e:
        return Answer(code=None, why=f"cannot be started: {e.strerror or e}")
    with child:
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            return Answer(code=None, why=f"did not answer within {seconds:.0f} s")
    return Answer(code=child.returncode, out=out, err=err)
