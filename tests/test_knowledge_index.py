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

from kernelpilot_helpers import knowledge, proc
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.errors import BadRecord, ToolMissing
from kernelpilot_helpers.knowledge import corpus, store, tables
from tests import knowledge_made

ROOT = Path(__file__).resolve().parents[1]
ALL = knowledge.Filters()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index that a test may spoil."""
    return knowledge_made.index(tmp_path / "knowledge", [])


@pytest.fixture(scope="module")
def only_ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twenty records of the general lessons, without other mined facts or pages."""
    return knowledge_made.index(tmp_path_factory.mktemp("index") / "knowledge", [])


@pytest.fixture(autouse=True)
def bundle(only_ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(corpus.FACTS_VARIABLE, raising=False)
    monkeypatch.setattr(corpus, "bundle_folder", lambda: only_ours)


def edit(index: Path, line: int, **changes: Any) -> None:
    """Change fields of the lesson on this line (from 1)."""
    path = index / knowledge_made.LESSONS
    lines = path.read_text().splitlines()
    lines[line - 1] = json.dumps({**json.loads(lines[line - 1]), **changes})
    path.write_text("\n".join(lines) + "\n")


def found(index: Path, said: str, cache: Path) -> list[str]:
    return [hit.record.id for hit in knowledge.search(knowledge.read(index), said, ALL, 3, cache=cache).hits]


def test_the_committed_general_lessons_fit_their_records() -> None:
    """Breaks when a committed lesson no longer fits its record, or the twenty lose their spread."""
    source = knowledge.read()
    loaded = knowledge.load(source).records
    assert all(record.lesson and record.read for record in loaded)
    assert len(loaded) == 20
    assert len({record.repo for record in loaded}) >= 6
    assert {"sm80", "sm90", "sm100", "sm120"} <= {arch for record in loaded for arch in record.archs}


def test_dates_are_utc_and_title_words_are_a_bag() -> None:
    """Breaks when a date keeps its committer's zone, or title words their order."""
    by_id = {record.id: record for record in knowledge.load(knowledge.read()).records}
    assert by_id["deepseek-ai/DeepGEMM#88"].merged_at == "2025-04-21T01:43:17Z"
    assert by_id["Dao-AILab/flash-attention#1236"].merged_at == "2024-10-15T07:21:22Z"
    assert by_id["deepseek-ai/DeepGEMM#86"].words == ("instead", "padding", "swizzling", "use")


def test_a_lesson_read_at_another_commit_says_nothing(index: Path) -> None:
    """Breaks when words about an older diff are shown for the present one, or a stray lesson ends the search."""
    first = knowledge.load(knowledge.read(index)).records[0]
    assert first.label == "split-KV decode on Hopper with a combine kernel and a heuristic for the number of splits"
    assert (first.read[0], first.techniques) == ("hopper/flash_api.cpp", ("split-kv",))
    edit(index, 2, sha="0" * 40)
    edit(index, 3, id="nobody/nothing#1")
    loaded = knowledge.load(knowledge.read(index)).records
    assert (len(loaded), loaded[0].id, loaded[0].lesson, loaded[0].read) == (20, first.id, "", ())
    assert loaded[0].label.startswith("cuda attention")


def test_a_garbled_line_is_named(index: Path, tmp_path: Path) -> None:
    """Breaks when a broken index is searched in part, or the user is not told where it is broken."""
    path = index / knowledge_made.LESSONS
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
    (first,) = cache.glob("*.sqlite")
    before = first.stat().st_mtime_ns
    found(index, "swizzle", cache)
    assert [p.stat().st_mtime_ns for p in cache.glob("*.sqlite")] == [before]
    edit(index, 2, label="zebra crossing")
    assert len(found(index, "zebra", cache)) == 1
    assert sorted(p.suffix for p in cache.iterdir()) == [".seal", ".seal", ".sqlite", ".sqlite"]


def test_cache_files_do_not_pile_up(index: Path, tmp_path: Path) -> None:
    """Breaks when every update of the index leaves a file for ever."""
    for number in range(store.KEEP + 3):
        edit(index, 2, label=f"label {number}")
        found(index, "label", tmp_path / "cache")
    left = sorted(p.suffix for p in (tmp_path / "cache").iterdir())
    assert left == [".seal"] * (store.KEEP + 1) + [".sqlite"] * (store.KEEP + 1)


@pytest.mark.parametrize("damage", ["empty", "text", "zeros", "cut", "foreign"])
def test_a_broken_cache_is_made_anew(index: Path, tmp_path: Path, damage: str) -> None:
    """Breaks when a damaged cache file answers, or needs the user's hand."""
    cache = tmp_path / "cache"
    good = found(index, "swizzle", cache)
    (path,) = cache.glob("*.sqlite")
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
    good = found(index, "swizzle", cache)
    (path,) = cache.glob("*.sqlite")
    data = path.read_bytes()
    for at in range(4096, len(data) - 64, len(data) // 8):
        path.write_bytes(data[:at] + bytes(64) + data[at + 64 :])
        assert found(index, "swizzle", cache) == good


def shown(index: Path, cache: Path) -> str:
    label: str = knowledge.search(knowledge.read(index), "swizzle", ALL, 1, cache=cache).hits[0].record.label
    return label


def test_text_changed_inside_a_cache_is_never_served(index: Path, tmp_path: Path) -> None:
    """Breaks when a cache file is believed whose words, but not whose form, were changed; a file's times may lie."""
    cache = tmp_path / "cache"
    good = shown(index, cache)
    (path,) = cache.glob("*.sqlite")
    before, data = path.stat(), path.read_bytes()
    word = good.split()[0].encode()
    assert data.count(word) >= 1
    path.write_bytes(data.replace(word, b"X" * len(word)))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert shown(index, cache) == good
    assert word in path.read_bytes()


def test_a_copied_cache_is_believed_by_its_bytes(index: Path, tmp_path: Path) -> None:
    """Breaks when a cache that was copied with other times is built anew, or one without its seal is believed."""
    good = shown(index, tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copyfile)
    (path,) = (tmp_path / "two").glob("*.sqlite")
    node = path.stat().st_ino
    assert shown(index, tmp_path / "two") == good
    assert path.stat().st_ino == node
    store.seal_of(path).unlink()
    assert shown(index, tmp_path / "two") == good
    assert path.stat().st_ino != node


def test_what_a_killed_build_left_is_swept(index: Path, tmp_path: Path) -> None:
    """Breaks when half-built files stay for ever, or those of a build that runs are taken away."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for name in (".knowledge-a.tmp", ".knowledge-a.tmp-journal", ".knowledge-b.tmp", "other.tmp"):
        (cache / name).write_text("x")
        if "-b" not in name:
            os.utime(cache / name, (1.0, 1.0))
    found(index, "swizzle", cache)
    assert sorted(p.name for p in cache.iterdir() if p.suffix[:4] == ".tmp") == [".knowledge-b.tmp", "other.tmp"]


def test_a_user_without_a_home_searches_in_memory(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a uid that no passwd entry names ends a search in a traceback."""

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    answer = knowledge.search(knowledge.read(index), "swizzle", ALL, 1)
    assert answer.hits[0].record.id == "deepseek-ai/DeepGEMM#86"
    with pytest.raises(ToolMissing, match="no home directory"):
        proc.cache_dir()


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
    left = sorted(p.name for p in (tmp_path / "kernelpilot").iterdir())
    assert len(left) == 2 and left[0].startswith("knowledge-") and left[1] == left[0].replace(".seal", ".sqlite")


def test_sqlite_without_full_text_search_is_named() -> None:
    """Breaks when a Python without FTS5 ends in 'no such module'."""

    class Bare(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *rest)

    connection = sqlite3.connect(":memory:", factory=Bare)
    with pytest.raises(ToolMissing, match="FTS5"):
        tables.fill(connection, knowledge.load(knowledge.read()), "0")
    connection.close()
