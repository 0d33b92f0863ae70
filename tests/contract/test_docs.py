"""Documents in step with the code: commands parse, formats are named, promised sizes hold."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from kernelpilot_helpers.cli import COMMANDS, group

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/gpu.md",
    "examples/requests/README.md",
    *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs/formats").glob("*.md")),
]
TEMPLATES = ROOT / "lib/kernelpilot_helpers/scaffold/templates"


def commands(text: str) -> list[str]:
    """Lines of fenced shell blocks that begin with ``kernelpilot``, comments cut off."""
    found = []
    for block in re.findall(r"```(?:console|sh|shell|bash)\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            bare = line.split("  #")[0].strip()
            found += [part.strip() for part in bare.split("&&") if part.strip().startswith("kernelpilot ")]
    return found


def parses(line: str) -> str:
    """Empty when the real parser accepts the line, else what it says."""
    words = shlex.split(line)[1:]
    context = click.Context(group, info_name="kernelpilot")
    command = group.get_command(context, words[0])
    if command is None:
        return f"no command {words[0]!r}"
    try:
        while isinstance(command, click.Group):
            words = words[1:]
            command = command.commands[words[0]]
        command.make_context(words[0], [_sample(w) for w in words[1:]], resilient_parsing=False)
    except (click.ClickException, KeyError, IndexError) as fault:
        return f"{line}: {fault}"
    return ""


def _sample(word: str) -> str:
    """Upper-case placeholders that must exist become something that does."""
    return str(ROOT) if word in ("FOLDER", "LAYOUT", "BUNDLE") else word


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_is_parsed_by_the_real_parser(page: str) -> None:
    """Breaks when a command or flag in a document is misspelt, renamed or gone."""
    assert [fault for line in commands((ROOT / page).read_text()) if (fault := parses(line))] == []


def test_the_readme_of_a_new_repo_parses_too() -> None:
    """Breaks when the scaffolded README names what does not exist."""
    text = (TEMPLATES / "README.md").read_text().replace("@TASK@", "t")
    assert commands(text)
    assert [fault for line in commands(text) if (fault := parses(line))] == []


def test_the_check_sees_a_stale_flag() -> None:
    """Breaks if the checks above cannot fail."""
    assert parses("kernelpilot attempt x --motivatoin y") != ""
    assert parses("kernelpilot attemt x") != ""
    assert parses("kernelpilot attempt x --motivation y") == ""


def test_every_command_stands_in_readme() -> None:
    """Breaks when a command is public and nowhere described."""
    text = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"`kernelpilot {name}" not in text] == []


def test_every_format_stands_in_the_changelog_with_its_version_and_has_a_page() -> None:
    """Breaks when a format appears or changes without a line and a page."""
    found: dict[str, int] = {}
    for path in (ROOT / "lib").rglob("*.py"):
        text = path.read_text()
        for name in re.findall(r'"(kernelpilot\.[a-z-]+)"', text):
            found.setdefault(name, 1)
        own = re.search(r'^FORMAT = "(kernelpilot\.[a-z-]+)"$.*?^VERSION = (\d+)$', text, re.MULTILINE | re.DOTALL)
        if own:
            found[own[1]] = int(own[2])
    changelog = (ROOT / "CHANGELOG.md").read_text()
    pages = "\n".join(p.read_text() for p in (ROOT / "docs/formats").glob("*.md"))
    assert found
    assert sorted(n for n, version in found.items() if f"`{n}` {version}" not in changelog) == []
    assert sorted(n for n in found if n not in pages) == []


def test_agents_page_stays_short() -> None:
    """Breaks when AGENTS.md outgrows its sixty lines."""
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) <= 60


def test_nothing_of_this_machine_or_of_a_registry_is_committed() -> None:
    """Breaks when a path of a build machine or a registry's host slips into the tree."""
    hosts = ("pypi" + ".org", "python" + "hosted", "npmjs" + ".org", "deb.debian" + ".org")
    bad = []
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if not path.is_file() or parts[0] in (".git", ".venv", "build") or any(p.startswith(".") for p in parts[:-1]):
            continue
        if "__pycache__" in parts or path.suffix in (".pyc",) or any(p.endswith(".egg-info") for p in parts):
            continue
        text = path.read_text(errors="replace")
        bad += [f"{path.relative_to(ROOT)}: {host}" for host in hosts if host in text]
    assert bad == []
