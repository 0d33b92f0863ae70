"""Which Python is taken, and that the reason is said when none will do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.errors import BadRecord, ToolMissing
from kernelpilot_helpers.executors import task_python
from kernelpilot_helpers.executors.task_python import explicit_argv, find
from kernelpilot_install import taskpython


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


def test_order_active_environment_then_path_then_our_small_venv(tmp_path: Path) -> None:
    venv = fake_python(tmp_path / "venv/bin/python", facts("torch"))
    path = fake_python(tmp_path / "bin/python3", facts("numpy"))
    small = fake_python(tmp_path / "home/.local/share/kernelpilot/task-venv/bin/python", facts("numpy"))
    environ = {"HOME": str(tmp_path / "home"), "VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": str(tmp_path / "bin")}
    assert find(environ=environ).argv == (str(venv),)
    assert find(environ=environ).framework == "torch"
    del environ["VIRTUAL_ENV"]
    assert find(environ=environ).argv == (str(path),)
    environ["PATH"] = str(tmp_path)
    assert find(environ=environ).argv == (str(small),)
    with pytest.raises(ToolMissing, match="no python3 on PATH"):
        find(environ={**environ, "XDG_DATA_HOME": str(tmp_path / "data")})
    moved = fake_python(tmp_path / "data/kernelpilot/task-venv/bin/python", facts(""))
    with pytest.raises(ToolMissing) as caught:
        find(environ={**environ, "XDG_DATA_HOME": str(tmp_path / "data")})
    assert f"{moved} has neither numpy nor torch" in caught.value.what


@pytest.mark.parametrize(("home", "data"), [("home", ""), ("my home", ""), ("home", "my data")])
def test_the_fix_is_a_line_for_a_shell_and_makes_the_last_candidate(tmp_path: Path, home: str, data: str) -> None:
    """Breaks when the printed line holds a placeholder, trips over a space, or makes what is then not found."""
    made = fake_python(tmp_path / "made", facts("numpy"))
    maker = tmp_path / "bin/python3"
    maker.parent.mkdir()
    venv = 'mkdir -p "$3/bin" && cp MADE "$3/bin/python" && cp /bin/true "$3/bin/pip"'.replace("MADE", str(made))
    maker.write_text(f'#!/bin/sh\ntest "$1 $2" = "-m venv" || exit 1\n{venv}\n')
    maker.chmod(0o755)
    environ = {"HOME": str(tmp_path / home), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    environ |= {"XDG_DATA_HOME": str(tmp_path / data)} if data else {}
    line = taskpython.how_to_make(environ)
    shell = ["sh", "-c", f"{line} && printenv KERNELPILOT_PYTHON"]
    said = subprocess.run(shell, env=environ, capture_output=True, text=True, check=True, timeout=60).stdout
    argv = explicit_argv(tmp_path, {"KERNELPILOT_PYTHON": said})
    assert find(explicit=argv).framework == "numpy"
    assert find(environ={**environ, "PATH": ""}).argv == argv
    with pytest.raises(ToolMissing) as caught:
        find(environ={"HOME": str(tmp_path), "PATH": ""})
    assert caught.value.fix == taskpython.how_to_make({"HOME": str(tmp_path)})


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
    fake_python(tmp_path / ".local/share/kernelpilot/task-venv/bin/python", facts())
    with pytest.raises(ToolMissing, match="no-such-python"):
        find(explicit=["no-such-python"], environ={"HOME": str(tmp_path)})
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


def cuda(version: str) -> str:
    return facts("torch").replace("}", f', "cuda": "{version}"}}')


def test_a_gpu_task_prefers_a_torch_with_cuda_and_says_what_it_passed_over(tmp_path: Path) -> None:
    """Breaks if a GPU job starts in a Python that cannot see the GPU while another one could."""
    plain = fake_python(tmp_path / "venv/bin/python", cuda(""))
    good = fake_python(tmp_path / "bin/python3", cuda("13.0"))
    environ = {"HOME": str(tmp_path), "VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": str(tmp_path / "bin")}
    found = find(environ=environ, framework="torch")
    assert (found.argv, found.cuda) == ((str(good),), "13.0")
    assert found.note == f"{plain} has a torch without CUDA"
    assert find(environ=environ).argv == (str(plain),)
    good.unlink()
    second = find(environ=environ, framework="torch")
    assert (second.argv, second.cuda) == ((str(plain),), "")


def test_a_gpu_task_without_any_torch_is_told_what_to_name(tmp_path: Path) -> None:
    """Breaks if numpy alone is taken for a GPU task, or the fix makes a venv that has no torch either."""
    fake_python(tmp_path / "bin/python3", facts(""))
    environ = {"HOME": str(tmp_path), "PATH": str(tmp_path / "bin")}
    with pytest.raises(ToolMissing) as caught:
        find(environ=environ, framework="torch")
    assert caught.value.what.startswith("no Python with torch: ") and "has no torch" in caught.value.what
    assert caught.value.fix.startswith("export KERNELPILOT_PYTHON=")
    with pytest.raises(ToolMissing, match="has no torch"):
        find(explicit=[str(tmp_path / "bin/python3")], framework="torch")


def test_the_contract_says_what_its_python_needs(tmp_path: Path) -> None:
    """Breaks if a GPU contract is measured in a numpy Python, or a repo without a contract needs torch."""
    good = Path(__file__).parent / "golden" / "contract" / "good"
    assert task_python.framework_for(tmp_path) == "any"
    for name, want in (("gpu_add_rmsnorm", "torch"), ("fused_add_rmsnorm", "any")):
        (tmp_path / "contract.toml").write_bytes((good / f"{name}.toml").read_bytes())
        assert task_python.framework_for(tmp_path) == want
