"""The real bundle, not a stand-in, installed into a fresh HOME beside what other tools put there."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from kernelpilot_install import hooks, skills
from tests.install.conftest import World

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "vendor" / "humanize" / "hooks" / "stop-hook"
NAMES = ["humanize", "humanize-kernel-agent-loop", "kernel-knowledge", "ncu-report", "profile-evidence"]
CODEX = b"""{
  "description": "mine",
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "notify-send done", "timeout": 5}]}
    ],
    "SessionStart": [{"hooks": [{"type": "command", "command": "echo hi"}]}]
  }
}"""
CLAUDE = b"""{\r\n\t"env": {"TOKEN": "[secret]"},\r\n\t"permissions": {"allow": ["Bash(ls:*)"]},\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}\r\n\t\t]\r\n\t}\r\n}\r\n"""  # noqa: E501


@pytest.fixture
def real(tmp_path: Path) -> World:
    """A user with foreign hooks in both clients, and a skill of his own."""
    home = tmp_path / "my home"
    for folder in (".codex/skills/mine", ".claude"):
        (home / folder).mkdir(parents=True)
    (home / ".codex" / "skills" / "mine" / "SKILL.md").write_text("mine", encoding="utf-8")
    (home / ".codex" / "hooks.json").write_bytes(CODEX)
    (home / ".claude" / "settings.json").write_bytes(CLAUDE)
    (home / ".claude" / "settings.json").chmod(0o600)
    return World(home=home, clone=ROOT, env={"HOME": str(home), "PATH": str(tmp_path / "nothing")})


def test_the_bundle_holds_what_an_install_links() -> None:
    """Breaks when a skill, the runtime or its launcher is not where the installer looks, or cannot be started."""
    assert sorted(skills.bundle_folders(ROOT)) == NAMES
    assert hooks.launcher(ROOT) == LAUNCHER
    assert LAUNCHER.read_bytes().startswith(b"#!/bin/sh")
    assert os.access(LAUNCHER, os.X_OK)


def test_install_rerun_uninstall_beside_foreign_hooks(real: World, capsys) -> None:
    """Breaks when foreign hooks move (their Codex trust goes by position), ours doubles, or a byte stays behind."""
    before = real.tree()
    assert real.run() == 0
    for folder in (".codex", ".claude"):
        root = real.home / folder / "skills"
        assert {p.name: p.resolve() for p in root.iterdir() if p.is_symlink()} == {
            n: ROOT / ("vendor/humanize" if n == "humanize" else f"skills/{n}") for n in NAMES
        }
    codex = json.loads((real.home / ".codex" / "hooks.json").read_text())
    claude = json.loads((real.home / ".claude" / "settings.json").read_text())
    ours = {
        "type": "command",
        "command": shlex.quote(str(LAUNCHER)),
        "timeout": 3600,
        "statusMessage": "KernelPilot: Stop gate",
    }
    for now, was in ((codex, json.loads(CODEX)), (claude, json.loads(CLAUDE))):
        assert now["hooks"]["Stop"] == [*was["hooks"]["Stop"], {"hooks": [ours]}]
        now["hooks"]["Stop"].pop()
        assert now == was
    assert not (real.home / ".agents").exists()
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said[-2:]] == ["the Stop hook is pending review", "restart Codex"]
    installed = real.tree()
    assert real.run() == 0
    assert real.tree() == installed
    assert "nothing changed" in capsys.readouterr().out
    assert real.run("--uninstall") == 0
    assert real.tree() == before


def test_a_bundle_under_a_path_with_a_space(real: World, tmp_path: Path) -> None:
    """Breaks when the command is not one shell word, or a rerun does not know its own quoted command again."""
    clone = tmp_path / "a clone"
    clone.mkdir()
    for entry in ROOT.iterdir():
        if not entry.name.startswith("."):
            (clone / entry.name).symlink_to(entry)
    real.clone = clone
    assert real.run("--client", "claude") == 0
    text = (real.home / ".claude" / "settings.json").read_text()
    command = json.loads(text)["hooks"]["Stop"][-1]["hooks"][0]["command"]
    assert shlex.split(command) == [str(clone / "vendor" / "humanize" / "hooks" / "stop-hook")]
    assert real.run("--client", "claude") == 0
    assert (real.home / ".claude" / "settings.json").read_text() == text
