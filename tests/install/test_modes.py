"""``--demo`` and ``--test`` without a network: what is run, with which surroundings, and what is passed on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelpilot_install import checks, demo, taskpython
from kernelpilot_install.problems import InstallError

SPY = """#!/bin/sh
for v in HOME CODEX_HOME CLAUDE_CONFIG_DIR XDG_STATE_HOME; do
    eval "test -d \\"\\$$v\\"" || exit 99
done
{
    echo "$@"; echo "$KERNELPILOT_PYTHON|$KERNELPILOT_TEST_NUMPY_PYTHON|$KERNELPILOT_TEST_TORCH_PYTHON"
    echo "$HOME"
} >> "$SAID"
test -z "$FAIL" || case "$*" in *$FAIL*) exit 7 ;; esac
"""


@pytest.fixture
def spied(world, tmp_path, monkeypatch):
    """Programs in every venv write down what they were called with."""
    install = type(world.pip).install

    def spying(self, venv: Path, args: object, title: str) -> None:
        install(self, venv, args, title)
        for name in ("kernelpilot", "python", "ruff", "shellcheck"):
            (venv / "bin" / name).write_text(SPY, encoding="utf-8")
            (venv / "bin" / name).chmod(0o755)

    monkeypatch.setattr(type(world.pip), "install", spying)
    monkeypatch.chdir(tmp_path)
    world.env |= {"PATH": "/usr/bin:/bin", "SAID": str(tmp_path / "said"), "CODEX_HOME": str(world.home / "mine")}
    monkeypatch.setattr(taskpython, "probe", lambda _argv, _imports: None)
    return world


def said(world) -> list[str]:
    return Path(world.env["SAID"]).read_text(encoding="utf-8").splitlines()


def test_the_demo_runs_privately_with_a_task_python_of_its_own(spied, tmp_path: Path) -> None:
    """Breaks if a demo touches the user's command or clients, fetches torch, or uses the tool's venv for tasks."""
    (tmp_path / "kernelpilot-demo").mkdir()
    assert demo.run(spied.options("--demo"), at=spied.at, env=spied.env, pip=spied.pip) == 0
    argv, pythons, home = said(spied)
    assert argv == f"demo --dir {tmp_path}/kernelpilot-demo-2"
    assert pythons.split("|")[0] == f"'{spied.at.data}/task-venv/bin/python'"
    assert home != str(spied.home)
    assert not Path(home).exists()
    assert [p.name for p in spied.home.iterdir()] == [".local"]
    assert not spied.at.shim.exists()
    assert "install task-venv -r requirements-task.lock" in spied.pip.calls
    assert not any("torch" in c for c in spied.pip.calls)


def test_an_earlier_demo_is_kept_and_that_is_said(spied, tmp_path: Path, capsys) -> None:
    """Breaks when a second demo silently goes elsewhere, or a full --dir is found out only after the set-up."""
    assert demo.run(spied.options("--demo"), at=spied.at, env=spied.env, pip=spied.pip) == 0
    assert "is kept" not in capsys.readouterr().out
    (tmp_path / "kernelpilot-demo").mkdir()
    assert demo.run(spied.options("--demo"), at=spied.at, env=spied.env, pip=spied.pip) == 0
    said = capsys.readouterr().out
    assert "- kernelpilot-demo is kept as an earlier run left it; this one goes to kernelpilot-demo-2\n" in said
    full = tmp_path / "my dir"
    full.mkdir()
    options = spied.options("--demo", "--dir", str(full))
    assert demo.run(options, at=spied.at, env=spied.env, pip=spied.pip) == 0
    (full / "x").write_text("", encoding="utf-8")
    calls = list(spied.pip.calls)
    with pytest.raises(InstallError) as e:
        demo.run(options, at=spied.at, env=spied.env, pip=spied.pip)
    assert e.value.fix == f"'{spied.clone}/install.sh' --demo --dir '{full}-2'"
    assert spied.pip.calls == calls


def test_a_task_venv_made_by_hand_is_used_as_it_is(spied, monkeypatch) -> None:
    """Breaks when the venv of doctor's own fix stands in the way of --demo and --test, or is rebuilt by them."""
    python = spied.at.data / "task-venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("mine", encoding="utf-8")
    monkeypatch.setattr(taskpython, "probe", lambda argv, _i: argv[0] if argv == [str(python)] else None)
    assert demo.run(spied.options("--demo"), at=spied.at, env=spied.env, pip=spied.pip) == 0
    assert said(spied)[1].split("|")[0] == f"'{python}'"
    assert checks.run(spied.options("--test", "x"), at=spied.at, env=spied.env, pip=spied.pip) == 0
    assert not any(c.startswith(("make task-venv ", "install task-venv ")) for c in spied.pip.calls)
    assert spied.run("--uninstall") == 0
    assert python.read_text(encoding="utf-8") == "mine"


def test_the_demos_exit_code_is_passed_on(spied) -> None:
    """Breaks if a failed demo ends in success."""
    spied.env["FAIL"] = "demo"
    assert demo.run(spied.options("--demo", "--dir", "d"), at=spied.at, env=spied.env, pip=spied.pip) == 7


def test_a_demo_does_not_repoint_another_clones_tool(spied, second_clone) -> None:
    """Breaks if trying a second checkout changes what the installed command runs."""
    spied.run()
    spied.clone = second_clone
    demo.run(spied.options("--demo"), at=spied.at, env=spied.env, pip=spied.pip)
    assert any(c.startswith("install demo-venv") for c in spied.pip.calls)
    assert sum(c.startswith("install venv --no-deps") for c in spied.pip.calls) == 1
    assert spied.run("--uninstall") == 0
    assert spied.tree() == {}


def test_all_checks_run_and_one_failure_counts(spied, capsys) -> None:
    """Breaks if a failing linter stops the tests, is forgotten in the exit code, or pytest is not last."""
    spied.env["FAIL"] = "mypy"
    assert checks.run(spied.options("--test"), at=spied.at, env=spied.env, pip=spied.pip) == 1
    calls = said(spied)[::3]
    assert [c.split()[0] for c in calls[:2]] == ["check", "format"]
    assert calls[2] == "-m mypy"
    assert calls[-2:] == ["-m pytest -m not measures -n 2 --dist loadfile", "-m pytest -m measures"]
    out = capsys.readouterr().out
    assert "before pytest: 3 of 4 checks passed\n  FAILED: mypy --strict\n" in out
    assert out.rstrip().endswith("== pytest, what measures")


def test_pytest_gets_the_task_pythons_and_nothing_of_the_user(spied, monkeypatch, capsys) -> None:
    """Breaks if tests lose an interpreter, or see one that the user set for real work."""
    python = f"{spied.at.data}/task-venv-torch/bin/python"
    monkeypatch.setattr(taskpython, "probe", lambda argv, _i: python if argv == [python] else None)
    monkeypatch.setattr(checks, "DISK_BYTES", 0)
    spied.env["KERNELPILOT_PYTHON"] = "/mine"
    options = spied.options("--test", "-k", "splice")
    assert checks.run(options, at=spied.at, env=spied.env, pip=spied.pip) == 0
    argv, pythons, _home = said(spied)
    assert argv == "-m pytest -k splice"
    assert pythons == f"|{spied.at.data}/task-venv/bin/python|{python}"
    assert "install task-venv-torch torch==2.13.0" in spied.pip.calls
    assert "about 1 GB" in capsys.readouterr().out


@pytest.mark.parametrize("reason", ["disk", "download"])
def test_without_torch_the_rest_still_runs(spied, monkeypatch, capsys, reason: str) -> None:
    """Breaks if a missing wheel or a full disk fails the whole run, or is passed over in silence."""
    monkeypatch.setattr(checks, "DISK_BYTES", 10**18 if reason == "disk" else 0)
    spied.pip.fail_at = "torch==" if reason == "download" else ""
    assert checks.run(spied.options("--test", "x"), at=spied.at, env=spied.env, pip=spied.pip) == 0
    assert said(spied)[1].endswith("/task-venv/bin/python|")
    assert "the torch tests will be skipped" in capsys.readouterr().out
    assert any("torch==" in c for c in spied.pip.calls) == (reason == "download")


def test_shell_files_are_found_by_name_and_by_first_line(tmp_path: Path) -> None:
    """Breaks if a script without a suffix escapes shellcheck, or a Python file is sent to it."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name, text in {
        "a.sh": "",
        "run": "#!/usr/bin/env bash\n",
        "hook": "#!/bin/sh -e\n",
        "tool": "#!/usr/bin/env python3\n",
        "notes.md": "# sh\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert checks.shell_files(tmp_path) == ["a.sh", "hook", "run"]
