"""Bytes on disk: what may be written, what may be read, and what a crash or a full disk leaves behind."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord, KernelPilotError, NewerFormat
from kernelpilot_helpers.records import Owner


class Doc(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str = "t.doc"
    version: int = 2
    name: str
    x: float = 0.0


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    n: int
    text: str = ""
    prev: str = ""


DOC = Owner(format="t.doc", version=2, type=Doc, fix="mend it")
LOG = Owner(format="t.log", version=1, type=Line, fix="mend it")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b'{"format":"t.doc","version":2,"name":"a","name":"b"}', "duplicate key 'name'"),
        (b'{"format":"t.doc","version":2,"name":"a","x":NaN}', "NaN"),
        (b'{"format":"t.doc","version":2,"name":"a","x":-Infinity}', "-Infinity"),
        (b'{"format":"t.doc","version":2,"name":"a","x":1e999}', "beyond a double"),
        (b'{"format":"t.doc","version":2,"name":"\xff"}', "utf-8"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "want a JSON object, got list"),
        (b'{"format":"other","version":2,"name":"a"}', "want 't.doc', got 'other'"),
        (b'{"format":"t.doc","version":true,"name":"a"}', "got True"),
        (b'{"format":"t.doc","version":0,"name":"a"}', "got 0"),
        (b'{"format":"t.doc","version":2,"name":1}', "$.name"),
        (b'{"format":"t.doc","version":2,"name":"a","y":1}', "unknown field `y`"),
        (b'{"format":"t.doc","version":2}', "missing required field `name`"),
    ],
)
def test_a_bad_document_is_named_with_its_place_and_cure(data: bytes, word: str) -> None:
    """Breaks if one of these is read as something, or ends in a traceback."""
    with pytest.raises(BadRecord) as caught:
        records.parse(data, DOC, at="file.json")
    assert word in caught.value.what
    assert (caught.value.where, caught.value.fix) == ("file.json", "mend it")


def test_newer_documents_are_refused_and_stay() -> None:
    """Breaks if an old tool reads, and then rewrites, a newer file."""
    with pytest.raises(NewerFormat, match=r"version 3 is newer .* \(up to 2\)"):
        records.parse(b'{"format":"t.doc","version":3,"name":"a"}', DOC, at="f")


def test_older_documents_are_upgraded_step_by_step() -> None:
    """Breaks if the version is not raised with the content."""
    owner: Owner[Doc] = Owner(
        format="t.doc",
        version=2,
        type=Doc,
        fix="",
        upgrades={1: lambda d: {"format": d["format"], "name": d["title"].upper()}},
    )
    assert records.parse(b'{"format":"t.doc","version":1,"title":"a"}', owner, at="f") == Doc(name="A")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_a_number_is_never_written(value: float) -> None:
    """Breaks if NaN becomes null in a file and only the next reader notices."""
    with pytest.raises(BadRecord, match=r"Doc\.x"):
        records.dump(Doc(name="a", x=value))
    with pytest.raises(BadRecord, match=r"record\.a\[1\]"):
        records.encode({"a": [1.0, value]})


def test_text_that_is_not_utf8_is_refused_by_name() -> None:
    """Breaks if a command line with stray bytes ends in a UnicodeEncodeError."""
    stray = b"caf\xe9".decode("utf-8", "surrogateescape")
    with pytest.raises(BadRecord, match="UTF-8"):
        records.encode({"text": stray})
    with pytest.raises(BadRecord, match="UTF-8"):
        records.dump(Doc(name=stray))


def test_save_replaces_whole_and_leaves_nothing_beside(tmp_path: Path) -> None:
    """Breaks if a temporary file stays, or the document does not come back equal."""
    path = tmp_path / "deep" / "doc.json"
    for name in ("one", "two é"):
        records.save(path, Doc(name=name))
    assert records.load(path, DOC) == Doc(name="two é")
    assert [p.name for p in path.parent.iterdir()] == ["doc.json"]


def test_a_refusing_disk_is_an_error_with_a_cure_and_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks if a full disk shows a traceback, destroys the old file or leaves half of a new one."""
    path = tmp_path / "doc.json"
    records.save(path, Doc(name="old"))

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KernelPilotError, match="No space left"):
        records.save(path, Doc(name="new"))
    monkeypatch.undo()
    assert records.load(path, DOC).name == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_load_of_what_is_no_file_names_it(tmp_path: Path) -> None:
    """Breaks if a missing file or a directory in its place is a traceback."""
    with pytest.raises(BadRecord, match="no such file"):
        records.load(tmp_path / "gone.json", DOC)
    with pytest.raises(BadRecord, match="cannot be read"):
        records.load(tmp_path, DOC)


def test_killed_while_saving_the_old_document_stands(tmp_path: Path) -> None:
    """Breaks if the file is written in place instead of renamed over."""
    path = tmp_path / "a.json"
    path.write_text("old")
    call = f"records.write_text(pathlib.Path({str(path)!r}), 'new')"
    code = f"import pathlib; from kernelpilot_helpers import records; {call}"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "KP_CRASH_AT": "save.tmp"}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def log_of(path: Path, *numbers: int, chained: bool = False) -> Path:
    for n in numbers:
        records.append(path, Line(n=n), LOG, chained=chained)
    return path


def test_several_rows_are_added_or_none_of_them(tmp_path: Path) -> None:
    """Breaks if a kill leaves the first rows of a batch, a torn tail is built upon, or the header is forgotten."""
    path = tmp_path / "l.jsonl"
    records.append_all(path, [Line(n=1), Line(n=2)], LOG)
    before = path.read_bytes()
    assert [r.n for r in records.read_log(path, LOG).rows] == [1, 2]
    code = (
        "import pathlib, sys; from tests.test_records import LOG, Line; from kernelpilot_helpers import records;"
        f"records.append_all(pathlib.Path({str(path)!r}), [Line(n=3), Line(n=4)], LOG)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "KP_CRASH_AT": "save.tmp"}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    path.write_bytes(before + b'{"n":')
    records.append_all(path, [Line(n=5)], LOG)
    log = records.read_log(path, LOG)
    assert ([r.n for r in log.rows], log.faults) == ([1, 2, 5], ())
    assert path.with_name("l.jsonl.torn").read_bytes() == b'{"n":\n'


def test_a_log_has_one_header_and_one_line_a_row(tmp_path: Path) -> None:
    """Breaks if the header is repeated, or a newline in a text splits its row."""
    path = log_of(tmp_path / "a" / "l.jsonl", 1)
    records.append(path, Line(n=2, text="a\nb\u2028c"), LOG)
    data = path.read_bytes()
    assert data.split(b"\n")[0] == b'{"format":"t.log","version":1}'
    assert data.count(b"\n") == 3
    log = records.read_log(path, LOG)
    assert [r.n for r in log.rows] == [1, 2]
    assert log.rows[1].text == "a\nb\u2028c"
    assert log.faults == ()


def test_a_torn_tail_is_kept_aside_and_told(tmp_path: Path) -> None:
    """Breaks if half a row is guessed whole, lost for good, or glued to the next row."""
    path = log_of(tmp_path / "l.jsonl", 1, 2, chained=True)
    with path.open("ab") as file:
        file.write(b'{"n":3,"te')
    log = records.read_log(path, LOG, chained=True)
    assert [r.n for r in log.rows] == [1, 2]
    assert [f.where for f in log.faults] == [f"{path}:4"]
    log_of(path, 4, chained=True)
    again = records.read_log(path, LOG, chained=True)
    assert ([r.n for r in again.rows], again.faults) == ([1, 2, 4], ())
    assert (tmp_path / "l.jsonl.torn").read_bytes() == b'{"n":3,"te\n'


def test_repair_says_whether_there_was_anything(tmp_path: Path) -> None:
    """Breaks if repair makes a file, or touches a whole one."""
    assert records.repair(tmp_path / "none.jsonl") is False
    assert not (tmp_path / "none.jsonl").exists()
    path = log_of(tmp_path / "l.jsonl", 1)
    assert records.repair(path) is False
    path.write_bytes(path.read_bytes() + b"{")
    assert records.repair(path) is True
    assert records.read_log(path, LOG).faults == ()


@pytest.mark.parametrize(("step", "kept"), [("append.torn", [1]), ("append.done", [1, 2])])
def test_killed_while_appending_no_acknowledged_row_is_lost(tmp_path: Path, step: str, kept: list[int]) -> None:
    """Breaks if kill -9 loses a row whose append had returned, or leaves a log that cannot go on."""
    path = log_of(tmp_path / "l.jsonl", 1, chained=True)
    pid = os.fork()
    if pid == 0:
        os.environ["KP_CRASH_AT"] = step
        log_of(path, 2, chained=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    log_of(path, 3, chained=True)
    log = records.read_log(path, LOG, chained=True)
    assert ([r.n for r in log.rows], log.faults) == ([*kept, 3], ())


def test_a_row_cut_short_by_the_disk_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if a short write counts as a row: the command would print a verdict that is not on disk."""
    path = log_of(tmp_path / "l.jsonl", 1, chained=True)
    before = path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:5]))
    with pytest.raises(KernelPilotError, match="No space left"):
        log_of(path, 2, chained=True)
    monkeypatch.undo()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("head", "error"),
    [
        (b'{"version":"v1"}\n', BadRecord),
        (b'{"format":"t.log","version":2}\n', NewerFormat),
        (b'{"format":"other","version":1}\n', BadRecord),
        (b"\n", BadRecord),
    ],
)
def test_nothing_is_appended_under_a_foreign_header(tmp_path: Path, head: bytes, error: type[Exception]) -> None:
    """Breaks if an old tool, or one for another file, adds rows to a log it cannot read."""
    path = tmp_path / "l.jsonl"
    path.write_bytes(head)
    with pytest.raises(error):
        log_of(path, 1)
    assert path.read_bytes() == head


def test_rows_of_two_versions_never_share_a_header(tmp_path: Path) -> None:
    """Breaks if new rows go under an old header and are upgraded a second time when read."""
    path = log_of(tmp_path / "l.jsonl", 1)
    newer: Owner[Line] = Owner(format="t.log", version=2, type=Line, fix="", upgrades={1: lambda d: {"n": d["n"] * 10}})
    assert [r.n for r in records.read_log(path, newer).rows] == [10]
    with pytest.raises(BadRecord, match="of version 1, this tool appends version 2"):
        records.append(path, Line(n=5), newer)


def test_every_bad_line_is_told_and_the_good_ones_read(tmp_path: Path) -> None:
    """Breaks if one bad line hides the rest, or is dropped without a word."""
    path = log_of(tmp_path / "l.jsonl", 1)
    with path.open("ab") as file:
        file.write(b"\n[1]\n{}\n" + b'{"n":2}\n' + b"[" * 100_000 + b"\n")
    log = records.read_log(path, LOG, chained=True)
    assert [r.n for r in log.rows] == [1, 2]
    lines = [int(f.where.rpartition(":")[2]) for f in log.faults]
    assert set(lines) >= {3, 4, 5, 7}


@pytest.mark.parametrize("data", [b"", b'{"format":"t.log"}\n', b"no json\n", b'{"format":"t.log","version":1}'])
def test_a_log_without_a_sound_header_has_no_rows(data: bytes) -> None:
    """Breaks if an empty or headless log counts as an empty history."""
    log = records.parse_log(data, LOG, at="l")
    assert log.rows == ()
    assert log.faults != ()


def test_an_absent_log_is_a_fault_not_an_empty_history(tmp_path: Path) -> None:
    """Breaks if deleting the lineage looks like a fresh start."""
    assert [f.what for f in records.read_log(tmp_path / "l.jsonl", LOG).faults] == ["no such file"]


def _write_many(path: Path, first: int) -> None:
    log_of(path, *range(first, first + 20), chained=True)


def test_two_writers_at_once_keep_the_chain(tmp_path: Path) -> None:
    """Breaks if read-hash-append is not one locked step."""
    path = tmp_path / "l.jsonl"
    context: Any = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(path, start)) for start in (0, 100)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    log = records.read_log(path, LOG, chained=True)
    assert log.faults == ()
    assert sorted(r.n for r in log.rows) == [*range(20), *range(100, 120)]
