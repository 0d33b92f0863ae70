"""A small bundle, a private HOME and a pip that downloads nothing."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kernelpilot_install import steps
from kernelpilot_install.options import Options, parse
from kernelpilot_install.places import Places, places
from kernelpilot_install.problems import InstallError


@dataclass
class FakePip:
    """Makes a venv of empty files and keeps what it was asked for."""

    calls: list[str] = field(default_factory=list)
    fail_at: str = ""

    def make(self, venv: Path) -> None:
        self._call(f"make {venv.name}")
        (venv / "bin").mkdir(exist_ok=True)
        (venv / "bin" / "python").write_text("", encoding="utf-8")

    def install(self, venv: Path, args: Sequence[str], title: str) -> None:
        self._call(f"install {venv.name} {' '.join(Path(a).name for a in args)}")
        (venv / "bin" / "kernelpilot").write_text("", encoding="utf-8")

    def works(self, venv: Path) -> bool:
        return (venv / "bin" / "python").is_file()

    def _call(self, words: str) -> None:
        self.calls.append(words)
        if self.fail_at and self.fail_at in words:
            raise InstallError("pip failed", where=words)


@dataclass
class World:
    """One user on one machine; ``run`` is the installer without its process."""

    home: Path
    clone: Path
    env: dict[str, str]
    pip: FakePip = field(default_factory=FakePip)

    @property
    def at(self) -> Places:
        return places(self.env, self.clone)

    def options(self, *argv: str) -> Options:
        return parse(argv)

    def run(self, *argv: str) -> int:
        options = parse(argv)
        if options.mode == "uninstall":
            return steps.uninstall(options, at=self.at)
        return steps.run(options, at=self.at, env=self.env, pip=self.pip)

    def tree(self) -> dict[str, str]:
        """Everything below HOME: kind, mode and content by relative path."""
        found = {}
        for p in sorted(self.home.rglob("*")):
            name = p.relative_to(self.home).as_posix()
            if p.is_symlink():
                found[name] = f"-> {p.readlink()}"
            elif p.is_dir():
                found[name] = "dir"
            else:
                found[name] = f"{stat.S_IMODE(p.stat().st_mode):o} {p.read_bytes()!r}"
        return found


def make_bundle(root: Path, *, hook: bool = False) -> Path:
    """A checkout with one skill, and with the loop's runtime when ``hook``."""
    (root / "skills" / "alpha").mkdir(parents=True)
    (root / "skills" / "alpha" / "SKILL.md").write_text("---\nname: alpha\n---\n", encoding="utf-8")
    (root / "skills" / "notes").mkdir()
    (root / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    for name in ("requirements.lock", "requirements-dev.lock", "requirements-task.lock"):
        (root / name).write_text("x==1\n", encoding="utf-8")
    if hook:
        (root / "vendor" / "humanize" / "hooks").mkdir(parents=True)
        launcher = root / "vendor" / "humanize" / "hooks" / "stop-hook"
        launcher.write_text("#!/bin/sh\n", encoding="utf-8")
        launcher.chmod(0o755)
    return root


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A HOME with a space in its name, a bundle without a hook, and a PATH with nothing on it."""
    home = tmp_path / "home dir"
    home.mkdir()
    clone = make_bundle(tmp_path / "clone one")
    return World(home=home, clone=clone, env={"HOME": str(home), "PATH": str(tmp_path / "nothing")})


@pytest.fixture
def hooked(tmp_path: Path) -> World:
    """The same with a bundle that has the loop's runtime and its Stop hook."""
    home = tmp_path / "home dir"
    home.mkdir()
    clone = make_bundle(tmp_path / "clone one", hook=True)
    return World(home=home, clone=clone, env={"HOME": str(home), "PATH": str(tmp_path / "nothing")})


@pytest.fixture
def second_clone(tmp_path: Path) -> Path:
    """Another checkout of the same bundle."""
    return make_bundle(tmp_path / "clone two", hook=True)
