"""The command table: quick, complete, and free of heavy imports."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.cli import COMMANDS, group

CONTEXT = click.Context(group)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_json(name: str) -> None:
    """Breaks when a command is listed but cannot be imported, has no help, or cannot be scripted."""
    command = group.get_command(CONTEXT, name)
    assert command is not None and command.help
    leaves = list(command.commands.values()) if isinstance(command, click.Group) else [command]
    for leaf in leaves:
        assert leaf.help, leaf.name
        assert any("--json" in p.opts for p in leaf.params), f"{name} {leaf.name}"


def test_every_command_file_is_listed() -> None:
    """Breaks when a command's file exists that nobody can call."""
    import kernelpilot_helpers.cli as cli

    files = {p.stem.removesuffix("_command") for p in Path(cli.__file__).parent.glob("*_command.py")}
    assert files == set(COMMANDS)


def _best_ms(code: list[str], runs: int = 7) -> float:
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, *code], check=True, capture_output=True)
        best = min(best, (time.perf_counter() - start) * 1000)
    return best


def test_help_answers_within_150_ms() -> None:
    """Breaks when something heavy is imported before a command is chosen (the figure is the best of seven)."""
    assert _best_ms(["-m", "kernelpilot_helpers", "--help"]) < 150


def test_importing_the_package_costs_less_than_30_ms() -> None:
    """Breaks when the package's __init__ imports anything; the interpreter's own start is subtracted."""
    assert _best_ms(["-c", "import kernelpilot_helpers"]) - _best_ms(["-c", "pass"]) < 30


def test_help_imports_no_heavy_package() -> None:
    """Breaks when --help pays for what only a command needs."""
    code = (
        "import sys\nfrom kernelpilot_helpers.__main__ import main\nmain(['--help'])\n"
        "print('HEAVY', sorted({'msgspec','rich','jinja2','numpy','torch','pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_an_unknown_command_is_usage() -> None:
    """Breaks when a typo looks like a finding or like a bug of ours."""
    done = subprocess.run(
        [sys.executable, "-m", "kernelpilot_helpers", "atempt"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "No such command 'atempt'. Did you mean 'attempt'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_word_that_is_like_no_command_gets_no_guess(capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when any word at all is answered with some command."""
    assert main(["zzz"]) == 2
    assert "No such command 'zzz'.\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "where", "what"),
    [
        (["tunee"], "kernelpilot", "No such command 'tunee'. Did you mean 'tune'?"),
        (["attempt", "x", "--motivatoin", "y"], "kernelpilot attempt", "No such option"),
        (["knowledge", "search", "  "], "kernelpilot knowledge search", "TEXT is empty"),
        (["ncu", "digest"], "kernelpilot ncu digest", "Missing argument 'FILE...'"),
    ],
)
def test_a_usage_error_with_json_is_an_object(
    argv: list[str], where: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a script that asked for JSON gets an empty stdout, or stderr loses the words for people."""
    assert main([*argv, "--json"]) == 2
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert sorted(error) == ["fix", "what", "where"]
    assert error["what"].startswith(what)
    assert (error["where"], error["fix"]) == (where, f"{where} --help")
    assert what in said.err
    assert main(argv) == 2
    assert capsys.readouterr().out == ""
