"""The manifest file: strict on the way in, small on the way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelpilot_install.manifest import Book, Entry, Manifest, dump, parse
from kernelpilot_install.problems import InstallError

GOOD = {"format": "kernelpilot.manifest", "version": 1, "clone": "/c", "entries": [{"kind": "dir", "path": "/d"}]}


def test_the_file_is_what_the_format_says() -> None:
    """Breaks if a key is renamed without a new version, or empty fields fill the file."""
    m = Manifest(clone="/c", entries=(Entry(kind="dir", path="/d"),))
    assert json.loads(dump(m)) == GOOD
    assert parse(dump(m), "f") == m


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"format": "other"}, "kernelpilot.manifest"),
        ({"version": 2}, "newer"),
        ({"version": True}, "version"),
        ({"version": 0}, "version"),
        ({"clone": None}, "clone"),
        ({"entries": {}}, "entries"),
        ({"entries": [{"kind": "dir"}]}, "entries[0]"),
        ({"entries": [{"kind": "dir", "path": "/d", "more": ""}]}, "entries[0]"),
        ({"entries": [{"kind": "file", "path": "/d"}]}, "file"),
        ({"entries": [{"kind": "dir", "path": 3}]}, "no string"),
        ({"entries": ["/d"]}, "entries[0]"),
    ],
)
def test_anything_else_is_refused_by_name(change: dict[str, object], word: str) -> None:
    """Breaks if an unknown entry is dropped in silence: what it names would never be removed."""
    with pytest.raises(InstallError) as e:
        parse(json.dumps({**GOOD, **change}).encode(), "/m.json")
    assert word in str(e.value)
    assert "/m.json" in e.value.where


def test_torn_json_names_the_file() -> None:
    """Breaks if a damaged manifest ends in a traceback."""
    with pytest.raises(InstallError) as e:
        parse(b'{"format', "/m.json")
    assert e.value.where == "/m.json"


def test_the_book_keeps_order_and_saves_each_step(tmp_path: Path) -> None:
    """Breaks if a repeated note moves an entry (undo runs newest first) or a step is not on disk."""
    book = Book(tmp_path / "manifest.json")
    book.note(Entry(kind="dir", path="/a"))
    book.note(Entry(kind="link", path="/a/b", target="/x"))
    book.note(Entry(kind="dir", path="/a"))
    book.note(Entry(kind="link", path="/a/b", target="/y"))
    again = Book(tmp_path / "manifest.json").manifest
    assert [(e.path, e.target) for e in again.entries] == [("/a", ""), ("/a/b", "/y")]
    book.forget("/a/b")
    assert [e.path for e in Book(tmp_path / "manifest.json").manifest.entries] == ["/a"]
    assert (tmp_path / "manifest.json").stat().st_mode & 0o777 == 0o600
