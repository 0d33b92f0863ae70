"""Which Python is taken, and that the reason is said when none will do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.errors import BadRecord, ToolMissing
from kernelpilot_helpers.executors import task_python
from kernelpilot_helpers.executors.task_python import explicit_argv, find


def fake_python(path: Path, answer: str) -> Path:
    """An executable that answers the probe with fixed text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho noise\necho '{answer}'\n")
    path.chmod(0o755)
    return path


def facts(framework: str = "torch", *, python: str = "[3, 12]", prefix: str = "/elsewhere") -> str:
    return f'{{"python": {python}, "prefix": "{prefix}", "framework": "{framework}", "version": "2.1"}}'


def test_the_named_python_is_taken_even_if_it_is_the_tools_own() -> None:
    found = find(explicit=[sys.executable])
    assert found.argv == (sys.executable,)
    assert found.framework == "numpy"


def test_order_active_environment_then_path_then_fallback(tmp_path: Path) -> None:
    venv = fake_python(tmp_path / "venv/bin/python", facts("torch"))
    path = fake_python(tmp_path / "bin/python3", facts("numpy"))
    last = fake_python(tmp_path / "last", facts("numpy"))
    environ = {"VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": str(tmp_path / "bin")}
    assert find(environ=environ).argv == (str(venv),)
    assert find(environ=environ).framework == "torch"
    del environ["VIRTUAL_ENV"]
    assert find(environ=environ).argv == (str(path),)
    assert find(environ={"PATH": str(tmp_path)}, fallback=last).argv == (str(last),)


def test_an_environment_without_frameworks_or_too_old_is_passed_over_with_its_reason(tmp_path: Path) -> None:
    fake_python(tmp_path / "venv/bin/python", facts(""))
    fake_python(tmp_path / "bin/python3", facts("numpy", python="[3, 9]"))
    environ = {"VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": str(tmp_path / "bin")}
    with pytest.raises(ToolMissing) as caught:
        find(environ=environ)
    assert "neither numpy nor torch" in caught.value.what
    assert "3.9" in caught.value.what
    assert "KERNELPILOT_PYTHON" in caught.value.fix


def test_the_tools_own_environment_is_never_taken_by_accident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_python.sys, "prefix", str(tmp_path / "own"))
    fake_python(tmp_path / "own/bin/python", facts("numpy", prefix=str(tmp_path / "own")))
    with pytest.raises(ToolMissing, match="the tool's own"):
        find(environ={"VIRTUAL_ENV": str(tmp_path / "own"), "PATH": ""})


def test_a_named_python_that_fails_is_not_passed_over(tmp_path: Path) -> None:
    good = fake_python(tmp_path / "good", facts())
    with pytest.raises(ToolMissing, match="no-such-python"):
        find(explicit=["no-such-python"], fallback=good)
    with pytest.raises(ToolMissing, match="cannot be asked"):
        find(explicit=[str(fake_python(tmp_path / "mute", "not json"))])


def test_the_variable_wins_over_the_file_and_both_are_checked(tmp_path: Path) -> None:
    file = tmp_path / ".kernelpilot" / "local.toml"
    assert explicit_argv(tmp_path, {}) is None
    file.parent.mkdir()
    file.write_text('[python]\nargv = ["conda", "run", "python"]\n')
    assert explicit_argv(tmp_path, {}) == ("conda", "run", "python")
    assert explicit_argv(tmp_path, {"KERNELPILOT_PYTHON": "'/a b/python' -X dev"}) == ("/a b/python", "-X", "dev")
    with pytest.raises(BadRecord):
        explicit_argv(tmp_path, {"KERNELPILOT_PYTHON": "'unclosed"})
    file.write_text('[python]\nargv = "python"\n')
    with pytest.raises(BadRecord, match="list of strings"):
        explicit_argv(tmp_path, {})
    file.write_text("[python\n")
    with pytest.raises(BadRecord, match=r"local\.toml"):
        explicit_argv(tmp_path, {})
