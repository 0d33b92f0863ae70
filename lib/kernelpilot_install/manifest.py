"""The manifest: every change an install makes, written before it is made, so any kill can be mended.

FORMAT ``kernelpilot.manifest`` version 1: {"format", "version", "clone", "entries": [Entry, ...]}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal, get_args

from kernelpilot_install.files import crash_point, write_atomic
from kernelpilot_install.problems import InstallError

FORMAT = "kernelpilot.manifest"
VERSION = 1

Kind = Literal["dir", "venv", "link", "copy", "shim", "splice"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One change. Fields that a kind does not use are empty."""

    kind: Kind
    """dir: removed when empty. venv: carries our mark. splice: text inside somebody else's file."""
    path: str
    target: str = ""
    """Of a link or copy: where it comes from."""
    sha256: str = ""
    """Of a shim or splice: the file we wrote. Of a copy: its tree."""
    before: str = ""
    """Of a splice: the file's digest before, "" where there was no file."""
    inserted: str = ""
    """Of a splice: the exact text put in."""
    group: str = ""
    """Of a splice: our hook group as JSON."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is installed; ``clone`` is "" until a plain install put something into the user's folders."""

    clone: str = ""
    entries: tuple[Entry, ...] = ()

    def entry(self, path: Path) -> Entry | None:
        """The entry of ``path``, None where this install did not make it."""
        return next((e for e in self.entries if e.path == str(path)), None)


def parse(data: bytes, at: str) -> Manifest:
    """Read a manifest strictly. Raises InstallError naming the file and the field."""
    try:
        root = json.loads(data)
    except ValueError as e:
        raise _bad(f"not JSON ({e})", at) from None
    if not isinstance(root, dict) or root.get("format") != FORMAT:
        raise _bad(f"not a {FORMAT} file", at)
    version = root.get("version")
    if type(version) is not int or version < 1:
        raise _bad(f"version: want an integer from 1, got {version!r}", at)
    if version > VERSION:
        raise InstallError(
            f"written by a newer installer (version {version}; this one reads {VERSION})",
            where=at,
            fix="run the install.sh of the newer clone",
        )
    clone, entries = root.get("clone"), root.get("entries")
    if not isinstance(clone, str) or not isinstance(entries, list):
        raise _bad("want clone as a string and entries as a list", at)
    return Manifest(clone=clone, entries=tuple(_entry(e, f"{at}: entries[{i}]") for i, e in enumerate(entries)))


def _entry(value: object, at: str) -> Entry:
    known = {f.name for f in fields(Entry)}
    if not isinstance(value, dict) or not {"kind", "path"} <= value.keys() <= known:
        raise _bad("want an object with kind and path and no unknown key", at)
    if value["kind"] not in get_args(Kind) or not all(isinstance(v, str) for v in value.values()):
        raise _bad(f"unknown kind {value['kind']!r} or a value that is no string", at)
    return Entry(**value)


def _bad(what: str, at: str) -> InstallError:
    fix = "repair or remove that file by hand, then run ./install.sh again"
    return InstallError(what, where=at, fix=fix)


def dump(m: Manifest) -> bytes:
    """The file's bytes; empty fields are left out."""
    entries = [{k: v for k, v in asdict(e).items() if v} for e in m.entries]
    root = {"format": FORMAT, "version": VERSION, "clone": m.clone, "entries": entries}
    return (json.dumps(root, indent=1) + "\n").encode()


class Book:
    """The manifest on disk; every method leaves it saved."""

    def __init__(self, path: Path) -> None:
        """Read ``path``; an absent file is an empty manifest. Raises InstallError like ``parse``."""
        self.path = path
        self.saves = 0
        self.manifest = parse(path.read_bytes(), str(path)) if path.is_file() else Manifest()

    def note(self, *entries: Entry) -> None:
        """Record changes that are about to be made; a path's older entry gives way in place."""
        kept = {e.path: e for e in self.manifest.entries}
        kept.update({e.path: e for e in entries})
        self._save(self.manifest.clone, kept.values())

    def forget(self, path: str) -> None:
        """Drop the entry of a path whose change has been undone."""
        self._save(self.manifest.clone, [e for e in self.manifest.entries if e.path != path])

    def belongs_to(self, clone: Path) -> None:
        """Say which checkout the user's folders point to."""
        if self.manifest.clone != str(clone):
            self._save(str(clone), self.manifest.entries)

    def _save(self, clone: str, entries: Iterable[Entry]) -> None:
        new = Manifest(clone=clone, entries=tuple(entries))
        if new == self.manifest and self.path.is_file():
            return
        write_atomic(self.path, dump(new), mode=0o600)
        self.manifest = new
        self.saves += 1
        crash_point(f"save-{self.saves}")
