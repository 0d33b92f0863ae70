"""The pin files: what pyproject asks for, for every Python it allows, and nothing of one machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-task.lock")
MINORS = (10, 11, 12, 13)
MARKER = re.compile(r"python_full_version (<|>=|==) '3\.(\d+)(?:\.\*)?'$")


def applies(marker: str, minor: int) -> bool:
    """Whether a pin's marker holds on Linux with CPython 3.<minor>; fails on a form it does not know."""
    marker = marker.strip()
    if marker in {"", "platform_python_implementation != 'PyPy'"}:
        return True
    if marker == "sys_platform == 'win32'":
        return False
    match = MARKER.match(marker)
    assert match, marker
    other = int(match[2])
    return {"<": minor < other, ">=": minor >= other, "==": minor == other}[match[1]]


def pins(name: str, minor: int) -> dict[str, tuple[int, ...]]:
    """Package to version for one Python; fails on a second pin of the same package."""
    found: dict[str, tuple[int, ...]] = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        pin, _, marker = line.partition(";")
        package, _, version = pin.strip().partition("==")
        if applies(marker, minor):
            assert package not in found, line
            found[package] = tuple(int(part) for part in version.split(".") if part.isdigit())  # 2026.1.post1
    return found


def wanted(table: str, minor: int) -> dict[str, tuple[int, ...]]:
    """Package to lower bound, read from one list of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(rf"^{re.escape(table)} = \[(.*?)\]$", text, re.DOTALL | re.MULTILINE)
    assert match, table
    found = {}
    form = r"\"([\w-]+)>=([\d.]+)(?:; python_version (<|>=) '3\.(\d+)')?\""
    rows = re.findall(form, match[1])
    assert len(rows) == match[1].count('"') // 2
    for package, bound, relation, other in rows:
        if not relation or (minor < int(other)) == (relation == "<"):
            found[package] = tuple(int(part) for part in bound.split("."))
    return found


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize(
    ("lock", "tables"),
    [
        ("requirements.lock", ("dependencies", "requires")),
        ("requirements-dev.lock", ("dependencies", "dev", "requires")),
    ],
)
def test_the_pins_satisfy_pyproject(lock: str, tables: tuple[str, ...], minor: int) -> None:
    """Breaks if a dependency is added or its bound raised without making the locks again."""
    found = pins(lock, minor)
    for table in tables:
        for package, bound in wanted(table, minor).items():
            assert found[package] >= bound, (lock, package, minor)


@pytest.mark.parametrize("minor", MINORS)
def test_tool_tests_and_tasks_agree_on_versions(minor: int) -> None:
    """Breaks if the tests run on other versions than the user gets."""
    dev = pins("requirements-dev.lock", minor)
    for lock in ("requirements.lock", "requirements-task.lock"):
        assert pins(lock, minor).items() <= dev.items()
    assert set(pins("requirements-task.lock", minor)) == {"numpy"}


@pytest.mark.parametrize("lock", LOCKS)
def test_no_index_and_no_path_is_pinned(lock: str) -> None:
    """Breaks if the maker's own index or folder lands in a lock."""
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if "://" in line or line.startswith("-") or re.search(r"(^|\s)/\w", line)]
    assert odd == []
