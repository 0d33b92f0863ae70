"""The changes an install can make. Each is described, noted in the manifest, then made; remaking one is harmless."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernelpilot_install.files import file_hash, sha256, sync_folder, temporary, tree_hash, write_atomic
from kernelpilot_install.hooks import Registration
from kernelpilot_install.manifest import Book, Entry
from kernelpilot_install.skills import Wanted
from kernelpilot_install.undo import carry_out, clear_leftover, judge
from kernelpilot_install.venvs import Pip, Recipe, build

SHIM_MARK = "# kernelpilot's command, made by install.sh; install.sh --uninstall removes it"


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a change works with."""

    book: Book
    pip: Pip


class Change(Protocol):
    """One step of a plan."""

    def describe(self) -> str:
        """One line for the user."""

    def make(self, on: Tools) -> None:
        """Note it in the manifest, then do it."""


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder that did not exist; uninstall removes it when it is empty again."""

    path: Path

    def describe(self) -> str:
        """One line for the user."""
        return f"create folder {self.path}"

    def make(self, on: Tools) -> None:
        """Note it, then create it."""
        on.book.note(Entry(kind="dir", path=str(self.path)))
        self.path.mkdir(exist_ok=True)
        sync_folder(self.path.parent)


@dataclass(frozen=True, kw_only=True)
class Venv:
    """A venv to make or to bring up to date."""

    recipe: Recipe
    why: str

    def describe(self) -> str:
        """One line for the user."""
        return f"{'create' if self.why == 'absent' else 'update'} venv {self.recipe.path} ({self.why})"

    def make(self, on: Tools) -> None:
        """Note it, then build it."""
        on.book.note(Entry(kind="venv", path=str(self.recipe.path)))
        build(self.recipe, on.pip)


@dataclass(frozen=True, kw_only=True)
class Shim:
    """The user's command."""

    path: Path
    venv: Path

    @property
    def data(self) -> bytes:
        """A shell script that starts the venv's own command."""
        program = shlex.quote(str(self.venv / "bin" / "kernelpilot"))
        return f'#!/bin/sh\n{SHIM_MARK}\nexec {program} "$@"\n'.encode()

    def current(self) -> bool:
        """True when nothing has to be written."""
        return file_hash(self.path) == sha256(self.data)

    def describe(self) -> str:
        """One line for the user."""
        return f"write command {self.path}"

    def make(self, on: Tools) -> None:
        """Note it, then write it."""
        _retire(on.book, self.path)
        on.book.note(Entry(kind="shim", path=str(self.path), sha256=sha256(self.data)))
        write_atomic(self.path, self.data, mode=0o755)


@dataclass(frozen=True, kw_only=True)
class Skill:
    """A folder of the bundle, linked into a client's skills; copied where the file system has no links."""

    link: Wanted

    def describe(self) -> str:
        """One line for the user."""
        return f"link {self.link.path} -> {self.link.target}"

    def make(self, on: Tools) -> None:
        """Note a link and make it; where that fails, note a copy and make that."""
        path, target = self.link.path, self.link.target
        _retire(on.book, path)
        clear_leftover(path)
        part = temporary(path)
        try:
            part.symlink_to(target, target_is_directory=True)
        except OSError:
            shutil.copytree(target, part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            on.book.note(Entry(kind="copy", path=str(path), target=str(target), sha256=tree_hash(part)))
        else:
            on.book.note(Entry(kind="link", path=str(path), target=str(target)))
        part.rename(path)
        sync_folder(path.parent)


def _retire(book: Book, path: Path) -> None:
    """Undo our older change of ``path`` while the manifest still describes it; the new entry comes after."""
    old = book.manifest.entry(path)
    if old is not None:
        carry_out(old, judge(old))


@dataclass(frozen=True, kw_only=True)
class Hook:
    """Our group in a client's settings."""

    registration: Registration

    def describe(self) -> str:
        """One line for the user."""
        return f"add the Stop hook to {self.registration.path}"

    def make(self, on: Tools) -> None:
        """Note it, then replace the file behind any link in one rename, keeping its mode."""
        _retire(on.book, self.registration.path)
        on.book.note(self.registration.entry)
        real = self.registration.path.resolve()
        mode = real.stat().st_mode & 0o7777 if real.exists() else 0o600
        write_atomic(real, self.registration.data, mode=mode)


def folders(paths: Iterable[Path]) -> list[Folder]:
    """The folders to create so that each of ``paths`` exists, outermost first, each once."""
    found: dict[Path, None] = {}
    for path in paths:
        missing = [p for p in (path, *path.parents) if not p.exists()]
        found.update(dict.fromkeys(reversed(missing)))
    return [Folder(path=p) for p in found]
