"""The venvs: made, marked, and found to be current or not. Pip is reached through one protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from kernelpilot_install.files import empty_tree, sha256, write_atomic
from kernelpilot_install.problems import InstallError

STAMP = "kernelpilot-venv.json"
"""Our mark inside a venv: written first as unfinished, last with what it was built from."""
PIP = ("-I", "-m", "pip", "--disable-pip-version-check", "--no-input")
LAST_LINES = 15


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a venv is made of."""

    path: Path
    title: str
    requirements: tuple[Path, ...] = ()
    packages: tuple[str, ...] = ()
    """Requirement specifiers beside the files."""
    clone: Path | None = None
    """Checkout installed in place (editable), None for none."""

    @property
    def python(self) -> Path:
        """The venv's interpreter."""
        return self.path / "bin" / "python"

    def stamp(self) -> dict[str, object]:
        """The mark of a finished build; equal stamps need no work."""
        parts = [f.read_bytes() for f in self.requirements]
        if self.clone is not None:
            parts.append((self.clone / "pyproject.toml").read_bytes())
        made = _Stamp(
            clone="" if self.clone is None else str(self.clone),
            contents=sha256(b"\0".join([*parts, *(p.encode() for p in self.packages)])),
        )
        return asdict(made)


@dataclass(frozen=True, kw_only=True)
class _Stamp:
    clone: str
    contents: str
    finished: bool = True
    format: str = "kernelpilot.venv"
    version: int = 1


class Pip(Protocol):
    """What a venv needs from outside: an interpreter and the package installer."""

    def make(self, venv: Path) -> None:
        """Create the venv, over whatever a killed run left."""

    def install(self, venv: Path, args: Sequence[str], title: str) -> None:
        """Run ``pip install`` there. Raises InstallError with pip's last lines."""

    def works(self, venv: Path) -> bool:
        """True when the venv's interpreter starts and has pip."""


def read_stamp(venv: Path) -> dict[str, object] | None:
    """The mark of ``venv``, None without one or with one that cannot be read."""
    try:
        value = json.loads((venv / STAMP).read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def is_ours(venv: Path) -> bool:
    """True for a folder with our mark, or an empty one (killed before the mark)."""
    return (venv / STAMP).is_file() or not any(venv.iterdir())


def outdated(r: Recipe, pip: Pip) -> str:
    """Why the venv needs work, "" when it is current. Raises InstallError when the folder is somebody else's."""
    if not r.path.exists():
        return "absent"
    if not r.path.is_dir() or not is_ours(r.path):
        raise InstallError(
            "is in the way: it was not made by this installer",
            where=str(r.path),
            fix="move it away, then run this again; nothing was changed",
        )
    if not pip.works(r.path):
        return "its Python does not start"
    found = read_stamp(r.path)
    if found is None or found.get("finished") is not True:
        return "unfinished"
    return "" if found == r.stamp() else "out of date"


def build(r: Recipe, pip: Pip) -> None:
    """Make the venv what the recipe says; the mark says unfinished until the last step is done."""
    r.path.mkdir(parents=True, exist_ok=True)
    unfinished = {**r.stamp(), "finished": False}
    write_atomic(r.path / STAMP, (json.dumps(unfinished) + "\n").encode())
    if not pip.works(r.path):
        pip.make(r.path)
    wanted = [word for f in r.requirements for word in ("-r", str(f))] + list(r.packages)
    if wanted:
        pip.install(r.path, wanted, f"packages for {r.title}")
    if r.clone is not None:
        args = ["--no-deps", "--no-build-isolation", "--editable", str(r.clone)]
        pip.install(r.path, args, f"kernelpilot itself, in place from {r.clone}")
    write_atomic(r.path / STAMP, (json.dumps(r.stamp()) + "\n").encode())


class RealPip:
    """Pip of the venv itself; the user's PIP_* variables and configuration hold."""

    def make(self, venv: Path) -> None:
        """``python -m venv`` in the emptied folder; our mark stays, so a kill leaves a folder known as ours."""
        empty_tree(venv, keep=STAMP)
        self._run([sys.executable, "-I", "-m", "venv", str(venv)], f"venv {venv}", "creating a venv")

    def install(self, venv: Path, args: Sequence[str], title: str) -> None:
        """``pip install --quiet``; the heading carries the time it took."""
        argv = [str(venv / "bin" / "python"), *PIP, "install", "--quiet", *args]
        self._run(argv, title, "pip")

    def works(self, venv: Path) -> bool:
        """Start the interpreter and look for pip."""
        code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is None)"
        try:
            argv = [str(venv / "bin" / "python"), "-I", "-B", "-c", code]
            return subprocess.run(argv, capture_output=True, check=False, timeout=60).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    def _run(self, argv: list[str], title: str, tool: str) -> None:
        print(f"- {title} ...", end="", flush=True)
        start = time.monotonic()
        env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
        done = subprocess.run(
            argv,
            env=env,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        took = time.monotonic() - start
        print(f" {'done' if done.returncode == 0 else 'failed'} ({took:.0f} s)", flush=True)
        if done.returncode != 0:
            tail = "\n    ".join(done.stdout.strip().splitlines()[-LAST_LINES:])
            raise InstallError(
                f"{tool} failed (exit {done.returncode}); its last lines:\n    {tail}",
                where=title,
                fix="check the network, the disk and your PIP_* settings, then run the same command again",
            )
