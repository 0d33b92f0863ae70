"""The command line: what is ours, what is pytest's, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpilot_install.options import Options, parse


def test_the_default_is_a_plain_install() -> None:
    """Breaks if a bare ./install.sh means anything else."""
    assert parse([]) == Options()


def test_the_rest_after_test_is_pytests_in_order() -> None:
    """Breaks if an argument of pytest is eaten, abbreviated into ours or reordered."""
    o = parse(["--test", "-k", "a or b", "--dur", "3", "tests/install", "-x", "--torch", "torch"])
    assert o.pytest_args == ("-k", "a or b", "--dur", "3", "tests/install", "-x")
    assert (o.mode, o.torch) == ("test", "torch")


@pytest.mark.parametrize(
    "argv",
    [["--dem"], ["extra"], ["--demo", "--test"], ["--dir", "d"], ["--torch", "t"], ["--client", "vim"]],
)
def test_a_wrong_line_is_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks if a misspelt mode falls through to a real install."""
    with pytest.raises(SystemExit) as e:
        parse(argv)
    assert e.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_project_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if links depend on the folder the installer was called from."""
    monkeypatch.chdir(tmp_path)
    assert parse(["--project", "."]).project == tmp_path


def test_another_humanize_is_refused_by_name(capsys) -> None:
    """Breaks if --humanize is taken and ignored: its hook would write no journal that the gate can read."""
    with pytest.raises(SystemExit) as stop:
        parse(["--humanize", "/somewhere"])
    assert stop.value.code == 2
    assert "--humanize is not supported" in capsys.readouterr().err
