"""What must be there before anything is written: Python with venv, a C compiler, git."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from kernelpilot_install.problems import InstallError

MINIMUM = (3, 10)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The facts the check decides on; read by ``look``."""

    python: tuple[int, int]
    modules: frozenset[str]
    """Of venv and ensurepip, those that can be imported."""
    programs: frozenset[str]
    """Of cc, git, apt-get and dnf, those on PATH."""
    macos: bool
    developer_tools: bool = True
    """macOS: cc and git are stubs until the command line tools are there."""


def look(path: str) -> Machine:
    """Read this machine; ``path`` is the PATH to search."""
    macos = sys.platform == "darwin"
    return Machine(
        python=(sys.version_info.major, sys.version_info.minor),
        modules=frozenset(m for m in ("venv", "ensurepip") if importlib.util.find_spec(m)),
        programs=frozenset(p for p in ("cc", "git", "apt-get", "dnf") if shutil.which(p, path=path)),
        macos=macos,
        developer_tools=not macos or _has_developer_tools(),
    )


def _has_developer_tools() -> bool:
    try:
        return subprocess.run(["xcode-select", "-p"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def missing(m: Machine) -> list[tuple[str, str]]:
    """(what is absent, its remedy) for every absence, in the order to mend them."""
    minor = m.python[1]
    found = []
    if m.python < MINIMUM:
        what = f"Python {m.python[0]}.{minor} is too old: 3.10 or newer is needed"
        found.append((what, _remedy(m, apt="python3 python3-venv", dnf="python3")))
    elif not {"venv", "ensurepip"} <= m.modules:
        gone = " and ".join(sorted({"venv", "ensurepip"} - m.modules))
        what = f"this Python ({m.python[0]}.{minor}) has no {gone}, so it cannot make a venv"
        found.append((what, _remedy(m, apt=f"python3.{minor}-venv", dnf="python3")))
    if "cc" not in m.programs or not m.developer_tools:
        found.append(("no C compiler: `cc` is not on PATH", _remedy(m, apt="gcc libc6-dev", dnf="gcc")))
    if "git" not in m.programs:
        found.append(("`git` is not on PATH", _remedy(m, apt="git", dnf="git")))
    return found


def _remedy(m: Machine, *, apt: str, dnf: str) -> str:
    """The line for this machine's package manager; all three where none is recognised."""
    lines = {
        "apt": f"sudo apt-get install {apt}",
        "dnf": f"sudo dnf install {dnf}",
        "mac": "xcode-select --install",
    }
    if m.macos:
        return lines["mac"]
    if "apt-get" in m.programs:
        return lines["apt"]
    if "dnf" in m.programs:
        return lines["dnf"]
    return f"Debian, Ubuntu: {lines['apt']}; Fedora: {lines['dnf']}; macOS: {lines['mac']}"


def require(path: str, looker: Callable[[str], Machine] = look) -> None:
    """Raise one InstallError that names every absence; nothing has been written by then."""
    absences = missing(looker(path))
    if absences:
        what = "\n       ".join(a for a, _ in absences)
        fix = "\n       ".join(dict.fromkeys(r for _, r in absences))
        raise InstallError(what, fix=f"{fix}\n       then run ./install.sh again. Nothing was changed.")
