"""One user's HOME, a small clone, and what install.sh leaves in them, for tests of the doctor."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kernelpilot_install import hooks, skills
from kernelpilot_install.doctor import Check, Here, examine
from kernelpilot_install.manifest import Book, Entry
from kernelpilot_install.places import places


@dataclass
class World:
    """One user's HOME and a small clone; ``look`` is the doctor without its process."""

    home: Path
    clone: Path
    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def here(self, **more: object) -> Here:
        argv = (sys.executable,)
        at = places(self.env, self.clone)
        return Here(at=at, env=self.env, folder=self.folder, **{"task_argv": argv, **more})

    def look(self, **more: object) -> list[Check]:
        return examine(self.here(**more))

    def of(self, name: str, **more: object) -> list[Check]:
        return [c for c in self.look(**more) if c.name == name]

    def one(self, name: str, **more: object) -> Check:
        (found,) = self.of(name, **more)
        return found

    def ask(self, check: Callable[..., Iterator[Check]], *words: object, **more: object) -> Check:
        """The one answer of one check, without all the others."""
        (found,) = check(self.here(**more), *words)
        return found

    def install(self) -> None:
        """What install.sh leaves: links, hooks, manifest."""
        at = places(self.env, self.clone)
        at.data.mkdir(parents=True)
        book = Book(at.manifest)
        book.belongs_to(self.clone)
        for root in (at.codex, at.claude):
            (root / "skills").mkdir(parents=True)
        for w in skills.wanted(self.clone, {"codex": at.codex, "claude": at.claude}):
            w.path.symlink_to(w.target)
            book.note(Entry(kind="link", path=str(w.path), target=str(w.target)))
        for client, root in (("codex", at.codex), ("claude", at.claude)):
            made = hooks.register(client, root, self.clone / hooks.LAUNCHER, book.manifest)
            assert made is not None
            made.path.write_bytes(made.data)

    def tree(self) -> dict[str, bytes]:
        files = [p for base in (self.home, self.folder, self.clone) for p in base.rglob("*") if p.is_file()]
        return {str(p): p.read_bytes() for p in files}


def make_world(tmp_path: Path) -> World:
    """A HOME and a clone with spaces in their names, and an empty folder to stand in."""
    home, clone, folder = tmp_path / "my home", tmp_path / "a clone", tmp_path / "repo"
    for p in (home, folder, clone / "skills" / "alpha"):
        p.mkdir(parents=True)
    (clone / "skills" / "alpha" / "SKILL.md").write_text("---\nname: alpha\n---\n", encoding="utf-8")
    launch = clone / hooks.LAUNCHER
    launch.parent.mkdir(parents=True)
    launch.write_text("#!/bin/sh\n", encoding="utf-8")
    launch.chmod(0o755)
    path = f"{tmp_path}/nothing:/usr/bin:/bin"
    return World(home=home, clone=clone, folder=folder, env={"HOME": str(home), "PATH": path})
