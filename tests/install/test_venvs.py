"""Venvs and the interpreters for tasks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kernelpilot_install
from kernelpilot_install import taskpython
from kernelpilot_install.files import locked
from kernelpilot_install.problems import InstallError
from kernelpilot_install.venvs import RealPip, Recipe, build, outdated, read_stamp


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_failure_shows_pips_last_15_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks if the cause of a failed download is hidden or buried."""
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "python", "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i; done; exit 7")
    with pytest.raises(InstallError) as e:
        RealPip().install(tmp_path, ["x"], "packages for x")
    assert "exit 7" in e.value.what
    assert "line 15" not in e.value.what
    assert "line 16\n" in e.value.what
    assert e.value.what.endswith("line 30")
    assert "- packages for x ... failed (" in capsys.readouterr().out


def test_pip_is_called_quietly_and_isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if PYTHONPATH leaks into pip, PIP_* is dropped, or pip may ask a question."""
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin" / "python", f'echo "$@" "$PIP_X" "[$PYTHONPATH]" > "{tmp_path}/said"')
    monkeypatch.setenv("PIP_X", "kept")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    RealPip().install(tmp_path, ["numpy"], "numpy")
    said = (tmp_path / "said").read_text()
    assert said == "-I -m pip --disable-pip-version-check --no-input install --quiet numpy kept []\n"


def test_a_pip_that_outlives_a_killed_installer_keeps_the_lock(tmp_path: Path) -> None:
    """Breaks if an uninstall may remove a venv that an orphaned pip is still filling."""
    (tmp_path / "bin").mkdir()
    script(
        tmp_path / "bin" / "python", f'echo > "{tmp_path}/started"; while [ ! -e "{tmp_path}/go" ]; do sleep 0.05; done'
    )
    driver = (
        "import sys; from pathlib import Path; from kernelpilot_install.files import locked\n"
        "from kernelpilot_install.venvs import RealPip\n"
        "root = Path(sys.argv[1])\n"
        "with locked(root / 'data' / '.lock'):\n    RealPip().install(root, ['x'], 'x')\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(kernelpilot_install.__file__).parents[1])}
    process = subprocess.Popen([sys.executable, "-c", driver, str(tmp_path)], env=env, stdout=subprocess.DEVNULL)
    wait_for((tmp_path / "started").exists)
    process.kill()
    process.wait()
    with pytest.raises(InstallError) as e, locked(tmp_path / "data" / ".lock"):
        pass
    assert "another install is running" in e.value.what
    (tmp_path / "go").touch()
    wait_for(lambda: is_free(tmp_path / "data" / ".lock"))


def is_free(lock: Path) -> bool:
    try:
        with locked(lock):
            return True
    except InstallError:
        return False


def wait_for(true: Callable[[], bool]) -> None:
    """Fails after ten seconds."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_changed_recipe_and_a_broken_python_are_seen(world, tmp_path: Path) -> None:
    """Breaks if the venv of an older lock or of an uninstalled interpreter passes for current."""
    lock = tmp_path / "a.lock"
    lock.write_text("x==1", encoding="utf-8")
    r = Recipe(path=tmp_path / "v", title="t", requirements=(lock,))
    assert outdated(r, world.pip) == "absent"
    build(r, world.pip)
    assert outdated(r, world.pip) == ""
    lock.write_text("x==2", encoding="utf-8")
    assert outdated(r, world.pip) == "out of date"
    (tmp_path / "v" / "bin" / "python").unlink()
    assert outdated(r, world.pip) == "its Python does not start"
    build(r, world.pip)
    assert outdated(r, world.pip) == ""


def test_the_mark_says_unfinished_until_all_is_there(world, tmp_path: Path) -> None:
    """Breaks if a killed download leaves a mark that the next run believes."""
    r = Recipe(path=tmp_path / "v", title="t", packages=("x",))
    world.pip.fail_at = "install v"
    with pytest.raises(InstallError):
        build(r, world.pip)
    stamp = read_stamp(r.path)
    assert stamp is not None
    assert stamp["finished"] is False
    assert outdated(r, world.pip) == "unfinished"


@pytest.mark.slow
def test_real_pip_makes_a_venv_that_works_and_keeps_our_mark(tmp_path: Path) -> None:
    """Breaks if a folder emptied for a new venv loses the mark that says it is ours."""
    r = Recipe(path=tmp_path / "v e", title="t")
    build(r, RealPip())
    (r.path / "bin" / "python").unlink()
    (r.path / "junk").mkdir()
    assert outdated(r, RealPip()) == "its Python does not start"
    build(r, RealPip())
    assert outdated(r, RealPip()) == ""
    assert not (r.path / "junk").exists()


@pytest.mark.parametrize(
    ("variable", "active", "on_path", "want"),
    [
        ("good", "good", "good", "KERNELPILOT_PYTHON"),
        ("bad", "good", "good", "the active venv"),
        ("", "bad", "good", "python3 on PATH"),
        ("", "", "bad", None),
        ("gone", "", "", None),
    ],
)
def test_the_first_interpreter_that_has_the_module_is_taken(
    tmp_path: Path, variable: str, active: str, on_path: str, want: str | None
) -> None:
    """Breaks if the order changes, or an interpreter is taken without the import having worked."""
    env = {"PATH": str(tmp_path / "path")}
    for name, kind in (("variable", variable), ("active", active), ("path", on_path)):
        folder = tmp_path / name / ("bin" if name == "active" else "")
        folder.mkdir(parents=True)
        program = folder / ("python3" if name == "path" else "python")
        if kind in {"good", "bad"}:
            script(program, "echo /the/python" if kind == "good" else "exit 1")
    if variable:
        env["KERNELPILOT_PYTHON"] = f"'{tmp_path}/variable/python'"
    if active:
        env["VIRTUAL_ENV"] = str(tmp_path / "active")
    found = taskpython.find(env, taskpython.TORCH, never=tmp_path / "data")
    assert (found and found.source) == want


def test_a_real_probe_runs_the_import() -> None:
    """Breaks if the probe passes on a module that is not there."""
    assert taskpython.probe([sys.executable], "import json\n") == sys.executable
    assert taskpython.probe([sys.executable], "import no_such_module_here\n") is None
