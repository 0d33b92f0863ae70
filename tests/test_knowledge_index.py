"""The index on disk: checked, cached, rebuilt; and every fault named by its line."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.errors import BadRecord, ToolMissing
from kernelpilot_helpers.knowledge import corpus, store

ROOT = Path(__file__).resolve().parents[1]
ALL = knowledge.Filters()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A copy of the committed index that a test may spoil."""
    shutil.copytree(ROOT / "knowledge", tmp_path / "knowledge", ignore=shutil.ignore_patterns("facts"))
    return tmp_path / "knowledge"


@pytest.fixture(scope="module")
def only_ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records that we wrote lessons for, without the mined facts."""
    folder = tmp_path_factory.mktemp("index") / "knowledge"
    shutil.copytree(ROOT / "knowledge", folder, ignore=shutil.ignore_patterns("facts"))
    return folder


@pytest.fixture(autouse=True)
def bundle(only_ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(corpus.FACTS_VARIABLE, raising=False)
    monkeypatch.setattr(corpus, "bundle_folder", lambda: only_ours)


def edit(index: Path, line: int, **changes: Any) -> None:
    """Change fields of the record on this line (from 1)."""
    path = index / "data/records.jsonl"
    lines = path.read_text().splitlines()
    lines[line - 1] = json.dumps({**json.loads(lines[line - 1]), **changes})
    path.write_text("\n".join(lines) + "\n")


def found(index: Path, said: str, cache: Path) -> list[str]:
    return [hit.record.id for hit in knowledge.search(knowledge.read(index), said, ALL, 3, cache=cache).hits]


def test_the_committed_index_is_sound() -> None:
    """Breaks when a record that is committed does not keep the rules of the format."""
    source = knowledge.read()
    assert knowledge.check(source) == []
    loaded = knowledge.load(source).records
    assert len(loaded) == 20
    assert len({record.repo for record in loaded}) >= 6
    assert {"sm80", "sm90", "sm100", "sm120"} <= {arch for record in loaded for arch in record.archs}


def test_dates_are_utc_and_title_words_are_a_bag() -> None:
    """Breaks when a date keeps its committer's zone, or title words their order."""
    by_id = {record.id: record for record in knowledge.load(knowledge.read()).records}
    assert by_id["deepseek-ai/DeepGEMM#88"].merged_at == "2025-04-21T01:43:17Z"
    assert by_id["Dao-AILab/flash-attention#1236"].merged_at == "2024-10-15T07:21:22Z"
    assert by_id["deepseek-ai/DeepGEMM#86"].words == ("instead", "padding", "swizzling")


def test_labels_and_lessons_come_from_the_notes() -> None:
    """Breaks when a record is edited by hand, or the notes without making the index anew."""
    notes = json.loads((ROOT / "scripts/knowledge_notes.json").read_text())["records"]
    ours = {record.id: (record.label, record.lesson) for record in knowledge.load(knowledge.read()).records}
    assert {note["id"]: (note["label"], note["lesson"]) for note in notes} == ours


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"words": ["swap", "AB"]}, "words: not sorted and unique"),
        ({"words": ["ab", "ab"]}, "words: not sorted and unique"),
        ({"words": ["a whole sentence"]}, "words: want single words"),
        ({"words": ["@somebody"]}, "words: want single words"),
        ({"sha": "0" * 39}, "sha: want 40 hex digits"),
        ({"label": "  "}, "label: want one line"),
        ({"lesson": "x" * 300}, "lesson: want one line of 1 to 299 characters, got 300"),
        ({"merged_at": "2025-01-21T22:21:54+08:00"}, "merged_at: want UTC"),
        ({"id": "NVIDIA/cutlass#1"}, "id: want owner/name#number"),
        ({"kernel_files": ["/abs/x.cu"]}, "path: want one relative"),
        ({"kernel_files": []}, "kernel_files"),
        ({"claims": ["much faster"]}, "claims: want a number"),
        ({"families": ["gemms"]}, "does not stand in the vocabulary"),
        ({"diff_terms": {"magic": 1}}, "does not stand in the vocabulary"),
        ({"author": "somebody"}, "unknown field"),
        ({"pr": "7"}, "Expected `int`"),
    ],
)
def test_check_finds_each_fault(
    index: Path, changes: dict[str, Any], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a rule of the format is not enforced."""
    edit(index, 2, **changes)
    assert main(["knowledge", "check", "--index", str(index), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["pass", "records", "findings"]
    assert any(what in finding["what"] for finding in said["findings"]), said


def test_check_finds_a_record_that_stands_twice(index: Path) -> None:
    """Breaks when the same pull request may count twice."""
    path = index / "data/records.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[-1]]) + "\n")
    assert [fault.what for fault in knowledge.check(knowledge.read(index))] == ["id: stands twice"]


def test_check_passes_with_exit_0(capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when the check finds something in the committed index, or says it differently."""
    assert main(["knowledge", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"pass": True, "records": 20, "findings": []}


def test_a_garbled_line_is_named(index: Path, tmp_path: Path) -> None:
    """Breaks when a broken index is searched in part, or the user is not told where it is broken."""
    path = index / "data/records.jsonl"
    lines = path.read_bytes().splitlines()
    lines[6] = lines[6][:50] + b"\xff{"
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(BadRecord) as fault:
        found(index, "gemm", tmp_path / "cache")
    assert fault.value.where == f"{path}:7"
    assert fault.value.fix == "git checkout -- knowledge/data"
    path.write_bytes(b"")
    with pytest.raises(BadRecord):
        found(index, "gemm", tmp_path / "cache")


def test_a_missing_index_is_one_error_with_the_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a copy without the data ends in a traceback."""
    assert main(["knowledge", "search", "gemm", "--index", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "the knowledge index is missing" in said and "git checkout -- knowledge/data" in said


def test_the_cache_is_made_once_and_a_changed_index_gets_its_own(index: Path, tmp_path: Path) -> None:
    """Breaks when an old cache answers for a new index, or every search builds anew."""
    cache = tmp_path / "cache"
    assert found(index, "swizzle", cache)[0] == "deepseek-ai/DeepGEMM#86"
    (first,) = cache.iterdir()
    before = first.stat().st_mtime_ns
    found(index, "swizzle", cache)
    assert [p.stat().st_mtime_ns for p in cache.iterdir()] == [before]
    edit(index, 2, label="zebra crossing")
    assert len(found(index, "zebra", cache)) == 1
    assert len(list(cache.iterdir())) == 2


def test_cache_files_do_not_pile_up(index: Path, tmp_path: Path) -> None:
    """Breaks when every update of the index leaves a file for ever."""
    for number in range(store.KEEP + 3):
        edit(index, 2, label=f"label {number}")
        found(index, "label", tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == store.KEEP + 1


@pytest.mark.parametrize("damage", ["empty", "text", "zeros", "cut", "foreign"])
def test_a_broken_cache_is_made_anew(index: Path, tmp_path: Path, damage: str) -> None:
    """Breaks when a damaged cache file answers, or needs the user's hand."""
    cache = tmp_path / "cache"
    good = found(index, "swizzle", cache)
    (path,) = cache.iterdir()
    data = path.read_bytes()
    if damage == "foreign":
        path.unlink()
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE meta (sha256)")
        other.close()
    else:
        path.write_bytes(
            {"empty": b"", "text": b"not a database\n" * 99, "zeros": bytes(len(data)), "cut": data[:5000]}[damage]
        )
    assert found(index, "swizzle", cache) == good
    assert path.read_bytes()[:15] == b"SQLite format 3"


def test_flipped_bytes_anywhere_never_end_in_a_traceback(index: Path, tmp_path: Path) -> None:
    """Breaks when damage that opens and passes as a database ends a search otherwise than with an answer."""
    cache = tmp_path / "cache"
    found(index, "swizzle", cache)
    (path,) = cache.iterdir()
    data = path.read_bytes()
    for at in range(4096, len(data) - 64, len(data) // 24):
        path.write_bytes(data[:at] + bytes(64) + data[at + 64 :])
        assert len(found(index, "swizzle", cache)) in range(4)


def test_without_a_writable_cache_the_tables_are_in_memory(index: Path, tmp_path: Path) -> None:
    """Breaks when a read-only home forbids a search."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert found(index, "swizzle", blocked / "cache")[0] == "deepseek-ai/DeepGEMM#86"
    assert found(index, "swizzle", Path("/proc/nowhere"))[0] == "deepseek-ai/DeepGEMM#86"


def test_two_processes_build_at_once(only_ours: Path, tmp_path: Path) -> None:
    """Breaks when the first use by two agents at the same time fails or leaves rubbish."""
    argv = [sys.executable, "-m", "kernelpilot_helpers.knowledge", "search", "swizzle", "--limit", "1", "--json"]
    argv += ["--index", str(only_ours)]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    running = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert json.loads(out)["hits"][0]["id"] == "deepseek-ai/DeepGEMM#86"
    left = [p.name for p in (tmp_path / "kernelpilot").iterdir()]
    assert len(left) == 1 and left[0].startswith("knowledge-") and left[0].endswith(".sqlite")


def test_sqlite_without_full_text_search_is_named() -> None:
    """Breaks when a Python without FTS5 ends in 'no such module'."""

    class Bare(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *rest)

    connection = sqlite3.connect(":memory:", factory=Bare)
    with pytest.raises(ToolMissing, match="FTS5"):
        store.fill(connection, knowledge.load(knowledge.read()), "0")
    connection.close()


def test_the_pick_without_facts_says_what_it_wants(tmp_path: Path) -> None:
    """Breaks when the maintainers' script ends in a traceback in a clone that has no facts file."""
    script = ROOT / "scripts/pick_knowledge.py"
    for path in (tmp_path / "absent.gz", ROOT / "README.md"):
        done = subprocess.run(
            [sys.executable, str(script), str(path), "--out", str(tmp_path / "out")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1 and "a mined facts file" in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()
