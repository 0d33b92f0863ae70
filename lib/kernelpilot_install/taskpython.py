"""Find an interpreter for the tasks, which is never the tool's own: by variable, active venv, then PATH."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NUMPY_OR_TORCH = "try:\n    import numpy\nexcept Exception:\n    import torch\n"
TORCH = "import torch\n"
_CODE = "import sys\nif sys.version_info < (3, 10):\n    sys.exit(3)\n{imports}print(sys.executable)"


@dataclass(frozen=True, kw_only=True)
class Found:
    """An interpreter that has what was asked for."""

    command: str
    """As KERNELPILOT_PYTHON wants it: shell words."""
    source: str


def probe(argv: list[str], imports: str) -> str | None:
    """The interpreter's absolute path when ``imports`` work in it, else None. Starts it isolated (-I)."""
    try:
        done = subprocess.run(
            [*argv, "-I", "-c", _CODE.format(imports=imports)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else None


def find(env: Mapping[str, str], imports: str, *, variable: str = "KERNELPILOT_PYTHON", never: Path) -> Found | None:
    """The first interpreter with ``imports``; one below ``never`` (our own data) does not count."""
    if env.get(variable):
        argv = shlex.split(env[variable])
        if argv and probe(argv, imports):
            return Found(command=env[variable], source=variable)
    active = env.get("VIRTUAL_ENV")
    candidates = [(str(Path(active) / "bin" / "python"), "the active venv")] if active else []
    on_path = shutil.which("python3", path=env.get("PATH", ""))
    candidates += [(on_path, "python3 on PATH")] if on_path else []
    for program, source in candidates:
        if Path(program).is_relative_to(never):
            continue
        python = probe([program], imports)
        if python:
            return Found(command=shlex.quote(python), source=source)
    return None
