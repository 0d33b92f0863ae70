"""Find an interpreter for the tasks, which is never the tool's own: by variable, active venv, then PATH."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NUMPY_OR_TORCH = "try:\n    import numpy\nexcept Exception:\n    import torch\n"
NUMPY = "import numpy\n"
TORCH = "import torch\n"
MADE = Path("kernelpilot", "task-venv")
"""Below the data home: the venv that ``--demo`` makes, or the user with the line of ``how_to_make``."""
_CODE = "import sys\nif sys.version_info < (3, 10):\n    sys.exit(3)\n{imports}print(sys.executable)"


@dataclass(frozen=True, kw_only=True)
class Found:
    """An interpreter that has what was asked for."""

    command: str
    """As KERNELPILOT_PYTHON wants it: shell words."""
    source: str


def made(env: Mapping[str, str]) -> Path | None:
    """The interpreter of our small venv for tasks, None where there is none."""
    folder = _folder(env)
    python = None if folder is None else folder / "bin" / "python"
    return python if python is not None and python.exists() else None


def how_to_make(env: Mapping[str, str]) -> str:
    """One line for a shell: make that venv with numpy and name it as the task's Python."""
    folder, home = _folder(env), env.get("HOME", "")
    if folder is None or (folder == Path(home, ".local", "share") / MADE and home == shlex.quote(home)):
        path = f"~/.local/share/{MADE}"
        named = f"{path}/bin/python"
    else:
        path = shlex.quote(str(folder))
        named = shlex.quote(shlex.quote(str(folder / "bin" / "python")))  # the variable holds shell words
    return f"python3 -m venv {path} && {path}/bin/pip install numpy && export KERNELPILOT_PYTHON={named}"


def _folder(env: Mapping[str, str]) -> Path | None:
    xdg, home = env.get("XDG_DATA_HOME", ""), env.get("HOME", "")
    if xdg.startswith("/"):
        return Path(xdg) / MADE
    return Path(home, ".local", "share") / MADE if home.startswith("/") else None


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
