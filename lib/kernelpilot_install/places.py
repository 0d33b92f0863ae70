"""Where things go, computed once from the environment; nothing else reads HOME or XDG variables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelpilot_install.problems import InstallError


@dataclass(frozen=True, kw_only=True)
class Places:
    """Absolute paths; none of them needs to exist."""

    clone: Path
    """The checkout this installer was started from."""
    data: Path
    """Venvs, backups and the manifest; all of it is ours."""
    shim: Path
    codex: Path
    """Codex's user folder."""
    codex_spelt: Path
    """The same as Codex spells it in its own records: with links followed where CODEX_HOME is set, else as it is."""
    claude: Path
    """Claude Code's user folder."""
    cache: Path
    """The runtime's copies, the search tables and the device lock, all of which may be deleted at any time."""
    loops: Path
    """The loop runtime's registry of sessions."""
    path: str
    """PATH as the user has it."""

    @property
    def manifest(self) -> Path:
        """The list of everything an install made."""
        return self.data / "manifest.json"

    @property
    def lock(self) -> Path:
        """Held while an installer changes anything."""
        return self.data / ".lock"

    def venv(self, *, dev: bool) -> Path:
        """The tool's venv: under the data folder, or the clone's own with ``--dev``."""
        return self.clone / ".venv" if dev else self.data / "venv"


def clone_root() -> Path:
    """The bundle's root, from this file's own place."""
    return Path(__file__).resolve().parent.parent.parent


def places(env: Mapping[str, str], clone: Path) -> Places:
    """Read the environment. Raises InstallError when HOME is missing or not absolute."""
    home_text = env.get("HOME", "")
    if not home_text.startswith("/"):
        raise InstallError("HOME is not set to an absolute path", fix='export HOME="$(cd ~ && pwd)"')
    home = Path(home_text)
    xdg = env.get("XDG_DATA_HOME", "")
    data_home = Path(xdg) if xdg.startswith("/") else home / ".local" / "share"
    state = env.get("XDG_STATE_HOME", "")
    return Places(
        clone=clone,
        data=data_home / "kernelpilot",
        shim=home / ".local" / "bin" / "kernelpilot",
        codex=Path(env.get("CODEX_HOME") or home / ".codex").absolute(),
        codex_spelt=Path(env["CODEX_HOME"]).resolve() if env.get("CODEX_HOME") else home / ".codex",
        claude=Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude").absolute(),
        cache=(Path(env["XDG_CACHE_HOME"]).absolute() if env.get("XDG_CACHE_HOME") else home / ".cache")
        / "kernelpilot",
        loops=(Path(state) if state.startswith("/") else home / ".local" / "state") / "humanize",
        path=env.get("PATH", ""),
    )


def clients_found(at: Places, env: Mapping[str, str]) -> tuple[str, ...]:
    """The clients this machine shows: a set variable, an existing folder, or the program on PATH."""
    found = []
    for name, variable, folder in (
        ("codex", "CODEX_HOME", at.codex),
        ("claude", "CLAUDE_CONFIG_DIR", at.claude),
    ):
        if env.get(variable) or folder.is_dir() or shutil.which(name, path=at.path):
            found.append(name)
    return tuple(found)
