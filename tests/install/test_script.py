"""install.sh as a user starts it: a real process, a HOME with a space, any folder, any link."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def start(*argv: str, home: Path, program: Path = ROOT / "install.sh", **more: str) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "PATH": os.environ["PATH"], **more}
    return subprocess.run(
        [str(program), *argv], env=env, cwd=home, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "my home"
    folder.mkdir()
    return folder


def test_dry_run_from_anywhere_through_links(home: Path, tmp_path: Path) -> None:
    """Breaks if the script finds the clone by its cwd or by the link's own folder, or a dry run writes."""
    (home / ".codex").mkdir()
    link, relative = tmp_path / "a link", tmp_path / "b"
    link.symlink_to(ROOT / "install.sh")
    relative.symlink_to("a link")
    done = start("--dry-run", home=home, program=relative)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"would create venv {home}/.local/share/kernelpilot/venv (absent)" in done.stdout
    assert done.stdout.rstrip().endswith("dry run: nothing was changed")
    assert [p.name for p in home.rglob("*")] == [".codex"]


def test_uninstall_without_an_install_says_so(home: Path) -> None:
    """Breaks if uninstalling nothing fails or writes."""
    done = start("--uninstall", home=home)
    assert done.returncode == 0
    assert "nothing is installed" in done.stdout
    assert list(home.iterdir()) == []


def test_faults_are_one_message_without_a_traceback(home: Path) -> None:
    """Breaks if a user's damaged file ends in a Python traceback or in exit 0."""
    folder = home / ".local" / "share" / "kernelpilot"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{", encoding="utf-8")
    done = start("--uninstall", home=home)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {folder}/manifest.json: not JSON")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("version", ["", "3.9.18"])
def test_no_fitting_python_is_said_by_the_script_itself(home: Path, tmp_path: Path, version: str) -> None:
    """Breaks if an absent or too old Python ends in 'command not found' or a syntax error."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("dirname", "cat", "readlink"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    if version:
        old = programs / "python3"
        text = f'#!/bin/sh\ncase "$*" in *platform*) echo {version};; *) exit 1;; esac\n'
        old.write_text(text, encoding="utf-8")
        old.chmod(0o755)
    done = start(home=home, PATH=str(programs))
    assert done.returncode == 1
    assert f"needs Python 3.10 or newer; found: {version or 'none'}\n" in done.stderr.replace("  ", " ")
    for remedy in ("apt-get install python3 python3-venv", "dnf install python3", "xcode-select --install"):
        assert remedy in done.stderr
    assert list(home.iterdir()) == []


def test_a_missing_compiler_stops_before_anything_is_written(home: Path, tmp_path: Path) -> None:
    """Breaks if the venv is made first and the compiler missed only by the demo."""
    programs = tmp_path / "bin"
    programs.mkdir()
    python = subprocess.run(
        ["python3", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True
    ).stdout.strip()
    for name, target in {"dirname": "/usr/bin/dirname", "python3": python, "git": "/usr/bin/git"}.items():
        (programs / name).symlink_to(target)
    done = start(home=home, PATH=str(programs))
    assert done.returncode == 1
    assert done.stderr.startswith("error: no C compiler: `cc` is not on PATH\n  fix: ")
    assert list(home.iterdir()) == []
