"""The real clients: those that the environment names, else the pinned ones from npm, kept for the next run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout

PINS = json.loads(Path(__file__).with_name("versions.json").read_text())
FOUND = {name: f"{name.upper()}_BIN" for name in PINS}
"""The variable that names each client's program."""
USER = dict(os.environ)
"""The environment as it was before the tests got a private HOME: npm's settings and the cache are the user's."""
LIMIT_S = 150
"""Seconds that npm may take, and that a second run waits for the first."""


class NotHere(Exception):
    """Why the clients cannot be had on this machine."""


def clients() -> dict[str, str]:
    """Absolute path of each client. Raises NotHere with the reason."""
    named = {name: USER[variable] for name, variable in FOUND.items() if USER.get(variable)}
    if len(named) < len(PINS):
        named = {**_installed(), **named}
    for name, program in named.items():
        try:
            done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as bad:
            raise NotHere(f"{name} does not start: {bad}") from None
        if done.returncode:
            raise NotHere(f"{name} does not start: {(done.stderr or done.stdout).strip()[:200]}")
    return named


def _installed() -> dict[str, str]:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotHere(f"no node or npm on PATH, and {' and '.join(FOUND.values())} are not set")
    cache = USER.get("XDG_CACHE_HOME") or f"{USER.get('HOME') or Path.home()}/.cache"
    home = Path(cache).absolute() / "kernelpilot" / "clients"
    folder = home / "-".join(f"{name}-{pin['version']}" for name, pin in PINS.items())
    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / ".lock", timeout=LIMIT_S):
            if not folder.is_dir():
                with tempfile.TemporaryDirectory(dir=home, prefix="new-", ignore_cleanup_errors=True) as new:
                    _npm(npm, Path(new) / "all")
                    (Path(new) / "all").rename(folder)
    except Timeout:
        raise NotHere(f"another run was still installing them after {LIMIT_S} s") from None
    except OSError as bad:
        raise NotHere(f"the cache cannot be written: {bad}") from None
    return {name: str(folder / "node_modules" / ".bin" / name) for name in PINS}


def _npm(npm: str, folder: Path) -> None:
    wanted = [f"{pin['package']}@{pin['version']}" for pin in PINS.values()]
    folder.mkdir()
    argv = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--no-save", *wanted]
    try:
        done = subprocess.run(
            argv, cwd=folder, env=USER, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NotHere(f"npm did not install them within {LIMIT_S} s") from None
    missing = [name for name in PINS if not (folder / "node_modules" / ".bin" / name).exists()]
    if done.returncode or missing:
        code = re.search(r"^npm \S+ code (\S+)", done.stderr, re.MULTILINE)
        raise NotHere(f"npm could not install {' '.join(wanted)}: {code[1] if code else f'exit {done.returncode}'}")
