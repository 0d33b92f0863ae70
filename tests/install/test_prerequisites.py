"""What must be there first: each absence has a name and a remedy, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpilot_install.prerequisites import Machine, look, missing, require
from kernelpilot_install.problems import InstallError

MODULES = frozenset({"venv", "ensurepip"})
PROGRAMS = frozenset({"cc", "git", "apt-get"})


def machine(**change: object) -> Machine:
    facts = {"python": (3, 11), "modules": MODULES, "programs": PROGRAMS, "macos": False, **change}
    return Machine(**facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "what", "remedy"),
    [
        ({"python": (3, 9)}, "3.9 is too old", "sudo apt-get install python3 python3-venv"),
        ({"modules": frozenset({"venv"})}, "no ensurepip", "sudo apt-get install python3.11-venv"),
        ({"modules": frozenset()}, "no ensurepip and venv", "sudo apt-get install python3.11-venv"),
        ({"programs": PROGRAMS - {"cc"}}, "`cc`", "sudo apt-get install gcc libc6-dev"),
        ({"programs": PROGRAMS - {"git"}}, "`git`", "sudo apt-get install git"),
        ({"programs": frozenset({"cc", "dnf"})}, "`git`", "sudo dnf install git"),
        ({"macos": True, "developer_tools": False}, "`cc`", "xcode-select --install"),
    ],
)
def test_each_absence_is_named_with_its_remedy(change: dict[str, object], what: str, remedy: str) -> None:
    """Breaks if one absence hides behind another's words or gets the wrong package manager's line."""
    [(said, fix)] = missing(machine(**change))
    assert what in said
    assert fix == remedy


def test_an_unknown_system_gets_all_three_lines() -> None:
    """Breaks if a machine without apt or dnf is told nothing."""
    [(_, fix)] = missing(machine(programs=frozenset({"cc"})))
    assert [word in fix for word in ("apt-get install git", "dnf install git", "xcode-select")] == [True] * 3


def test_a_whole_machine_misses_nothing() -> None:
    """Breaks if a complete machine is refused."""
    assert missing(machine()) == []


def test_all_absences_come_in_one_message() -> None:
    """Breaks if the user has to run the installer once per missing program."""
    with pytest.raises(InstallError) as e:
        require("", lambda _path: machine(programs=frozenset({"apt-get"})))
    assert "`cc`" in str(e.value)
    assert "`git`" in str(e.value)
    assert "Nothing was changed" in e.value.fix


def test_programs_are_looked_up_on_the_given_path(tmp_path: Path) -> None:
    """Breaks if the check asks the installer's own PATH, or counts a file that cannot be run."""
    (tmp_path / "cc").write_text("", encoding="utf-8")
    (tmp_path / "cc").chmod(0o755)
    (tmp_path / "git").write_text("", encoding="utf-8")
    assert look(str(tmp_path)).programs == {"cc"}
