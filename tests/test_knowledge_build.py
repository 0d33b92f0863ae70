"""The generated pages of the knowledge tree: what they list, that they fit, and that they are in step."""

from __future__ import annotations

import gzip
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import knowledge_tree as tree

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "scripts"
MARKS = "<!-- map: python scripts/build_knowledge.py writes from here -->\n<!-- map: to here -->\n"
MARK = "<!-- generated: python scripts/build_knowledge.py -->"
LEAD = "# T\n\n| Field | Value |\n| --- | --- |\n| Kind | index |\n\n"


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    for name in [n for n in sys.modules if n == "build_knowledge" or n.split(".")[0] == "knowledge_build"]:
        sys.modules.pop(name)
    return importlib.import_module("build_knowledge")


def rows_of(page: str) -> list[str]:
    """Lines of its last table."""
    return [line for line in page.rpartition("| --- |\n")[2].splitlines() if line.startswith("| ")]


def many(count: int, **changes: Any) -> list[dict[str, Any]]:
    """So many records of a/b, the later ones stronger."""
    return [tree.row(f"a/b#{n}", **{"score": float(n), **changes}) for n in range(1, count + 1)]


def made(build: Any, folder: Path) -> dict[str, str]:
    return {path: data.decode() for path, data in build.made(folder).items()}


def test_generated_pages_are_in_step_with_the_tree(build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when facts, lessons or a lead table changed and scripts/build_knowledge.py was not run."""
    code = build.main(["--check"])
    assert code == 0, capsys.readouterr()


def test_a_list_holds_the_strongest_and_every_lesson(build: Any, tmp_path: Path) -> None:
    """Breaks when a read record is missing, background is listed, or the order is another one."""
    rows = [
        *many(12),
        tree.row("a/b#50", tier="", score=99.0),
        tree.row("a/b#51", tier="P"),
        tree.row("a/b#52", tier="B", score=50.0),
        tree.row("a/b#53", how="open", score=99.0),
    ]
    page = made(build, tree.make(tmp_path, rows, [tree.lesson("a/b#1")]))["references/prs/b.md"]
    ids = re.findall(r"\[#(\d+)\]", page)
    assert ids == ["1", *map(str, range(12, 1, -1)), "52"]
    assert "15 changes that touch kernels; by tier: A 12, B 1, P 1, none 1." in page
    assert "Read at HEAD `ffffffffffff`." in page and "kernelpilot knowledge search WORDS --repo a/b" in page
    assert re.search(
        r"\[#1\]\(https://github.com/a/b/pull/1\) \| 2026-01-02 \| A \| sm90 \| gemm \| L sixteen-byte", page
    )


def test_lessons_that_do_not_fit_get_a_further_page(build: Any, tmp_path: Path) -> None:
    """Breaks when a page outgrows what one reads, or lessons fall off its end."""
    told = [tree.lesson(f"a/b#{n}", label="w" * 120) for n in range(1, 101)]
    pages = made(build, tree.make(tmp_path, many(120), sorted(told, key=lambda row: row["id"])))
    lists = [text for path, text in pages.items() if re.fullmatch(r"references/prs/b(-\d)?\.md", path)]
    assert len(lists) == 2 and all(len(text.encode()) < 12_000 for text in pages.values())
    assert {int(n) for text in lists for n in re.findall(r"\[#(\d+)\]", text)} >= set(range(1, 101))


def test_a_repository_of_few_selected_pull_requests_gets_no_list(build: Any, tmp_path: Path) -> None:
    """Breaks when source-only repositories get a page of three lines."""
    pages = made(build, tree.make(tmp_path, [*many(10), tree.row("c/d#1")]))
    assert "references/prs/b.md" in pages and "references/prs/d.md" not in pages
    assert "c/d (source only)" in pages["references/prs/index.md"]


def test_topics_cover_the_vocabulary_and_spread(build: Any, tmp_path: Path) -> None:
    """Breaks when a family leads to no topic page, or one repository fills a list."""
    topics = importlib.import_module("knowledge_build.topics")
    vocabulary = json.loads((ROOT / "knowledge/data/vocabulary.json").read_text())
    mapped = {name for topic in topics.TOPICS.values() for name in topic.families}
    assert mapped | set(topics.ELSEWHERE) == set(vocabulary["families"])
    assert {name for topic in topics.TOPICS.values() for name in topic.mechanisms} <= set(vocabulary["mechanisms"])
    assert {name for topic in topics.TOPICS.values() for name in topic.dtypes} <= set(vocabulary["dtypes"])
    rows = [*many(30, score=20.0), *(tree.row(f"c/d#{n}", score=1.0, tier="B") for n in range(1, 6))]
    page = made(build, tree.make(tmp_path, rows))["references/prs/by-topic/matmul-gemm.md"]
    first = [row.split(" ")[1] for row in rows_of(page)[:16]]
    assert first[:2] == ["b", "b"] and first.count("d") >= 3


def test_what_is_about_a_topic_stands_before_what_mentions_it(build: Any, tmp_path: Path) -> None:
    """Breaks when a strong record of another matter leads a topic's list."""
    said = {"family:gemm": {"title": 4}, "family:norm": {"lines": 9}}
    rows = [
        tree.row("a/b#1", families=["gemm", "norm"], evidence=said),  # 3 of 6: half of it is about norm
        tree.row("c/d#2", families=["norm"], tier="C", evidence={"family:norm": {"paths": 1}}),
    ]
    pages = made(build, tree.make(tmp_path, rows, []))
    first = {slug: rows_of(pages[f"references/prs/by-topic/{slug}.md"])[0] for slug in ("matmul-gemm", "normalization")}
    assert "[#1]" in first["matmul-gemm"] and "[#2]" in first["normalization"]
    topics = importlib.import_module("knowledge_build.topics")
    found = importlib.import_module("knowledge_build.tree").read(tmp_path)
    shares = [topics.about(row, topics.TOPICS["normalization"]) for row in found.rows]
    assert shares == [0.5, 1.0]


@pytest.mark.parametrize(
    ("changes", "slugs"),
    [
        ({"families": ["norm"]}, {"normalization"}),
        ({"families": ["gemm"], "dtypes": ["fp8", "nvfp4"]}, {"matmul-gemm", "quantization-fp8", "quantization-fp4"}),
        ({"families": ["attention"], "dtypes": ["fp8"]}, {"attention"}),
        ({"families": [], "diff_terms": {"pdl": 1}}, {"launch-and-graphs"}),
        ({"families": ["compiler"]}, set()),
    ],
)
def test_a_record_stands_under_its_topics(build: Any, tmp_path: Path, changes: dict[str, Any], slugs: set[str]) -> None:
    """Breaks when the map from facts to topic pages changes silently."""
    pages = made(build, tree.make(tmp_path, [tree.row("a/b#1", **changes)], []))
    found = {path.split("/")[-1][:-3] for path, text in pages.items() if "by-topic/" in path and "[#1]" in text}
    assert found == slugs


def test_the_watchlist_says_where_and_when_each_was_seen(build: Any, tmp_path: Path) -> None:
    """Breaks when a candidate has no head to compare with, or landed and weak ones are listed."""
    rows = [
        tree.row("a/b#1", merged_at="2026-03-04T00:00:00Z"),
        tree.row("a/b#7", how="open", merged_at="2026-02-01T00:00:00Z", n_files=4, score=9.0),
        tree.row("a/b#8", how="open", tier=""),
        *(tree.row(f"a/b#{n}", how="open") for n in range(100, 190)),
    ]
    page = made(build, tree.make(tmp_path, rows, [tree.lesson("a/b#1")]))["references/prs/open-watchlist.md"]
    line = next(row for row in rows_of(page) if "[#7]" in row)
    assert "| 2026-03-04 | 000000000000 | 2026-02-01 | A | x.cu of 4 | gemm: vectorized |" in line
    assert "re-check before use" in page and "git ls-remote" in page
    assert "[#8]" not in page and "[#1]" not in page and len(rows_of(page)) <= 60


def test_routing_tables_follow_the_lead_tables(build: Any, tmp_path: Path) -> None:
    """Breaks when a class leads to no technique, or a page is not listed with a line about it."""
    lead = "# {0}\n\n| Field | Value |\n| --- | --- |\n| Kind | {1} |\n| Families | gemm |\n\n{0} in short. More.\n"
    pages = {
        "techniques/wide-loads.md": tree.TECHNIQUE,
        "routing/topics/matmul-gemm.md": lead.format("Products", "topic"),
        "routing/frameworks/b.md": lead.format("Frame", "framework"),
        "references/source-guides/b.md": lead.format("Guide", "source-guide"),
        "README.md": f"# Knowledge\n\nOurs.\n\n{MARKS}",
    }
    out = made(build, tree.make(tmp_path, many(10), pages=pages))
    records = "[records](../../references/prs/by-topic/matmul-gemm.md)"
    assert f"| [matmul-gemm](matmul-gemm.md) | {records} | Products in short |" in out["routing/topics/index.md"]
    assert "| `mem.uncoalesced` | [wide-loads] |" in out["routing/topics/index.md"]
    assert "\n[wide-loads]: ../../techniques/wide-loads.md\n" in out["routing/topics/index.md"]
    guide = "[guide](../../references/source-guides/b.md) | [records](../../references/prs/b.md)"
    assert f"| [b](b.md) | {guide} | Frame in short |" in out["routing/frameworks/index.md"]
    assert "| [source-guides/b](source-guides/b.md) | source-guide |  | Guide in short |" in out["references/index.md"]
    assert max(map(len, out["README.md"].splitlines())) <= 120
    assert out["README.md"].startswith("# Knowledge\n\nOurs.\n") and "techniques/wide-loads.md" in out["README.md"]


def test_a_table_of_pages_is_never_cut(build: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when pages fall off the end of a routing table unseen."""
    page = "# T\n\n| Field | Value |\n| --- | --- |\n| Kind | framework |\n\n" + "word " * 20 + "\n"
    folder = tree.make(tmp_path, many(10), pages={f"routing/frameworks/f{n}.md": page for n in range(90)})
    assert build.main(["--knowledge", str(folder)]) == 1
    assert "# Frameworks: its lines do not fit in 11600 bytes" in capsys.readouterr().err


def test_the_index_holds_every_page(build: Any, tmp_path: Path) -> None:
    """Breaks when a page is missing from index.json or its sum is of other bytes."""
    folder = tree.make(tmp_path, many(10))
    assert build.main(["--knowledge", str(folder)]) == 0
    index = json.loads((folder / "index.json").read_text())
    assert (index["format"], index["version"]) == ("kernelpilot.knowledge-index", 1)
    assert index["corpus"] == {"records": 10, "lessons": 1, "heads": {"a/b": {"HEAD": "f" * 40}}}
    by_path = {page["path"]: page for page in index["pages"]}
    assert set(by_path) == {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    page = by_path["techniques/wide-loads.md"]
    data = (folder / page["path"]).read_bytes()
    assert (page["bytes"], page["kind"], page["archs"]) == (len(data), "technique", ["sm80"])
    assert (page["mechanisms"], page["classes"], page["evidence"][0]) == (["vectorized"], ["mem.uncoalesced"], "a/b#1")
    assert index["counts"]["technique"] == 1 and index["counts"]["index"] == len(by_path) - 1


def test_writing_twice_changes_nothing_and_check_sees_each_step(
    build: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a second run gives other bytes, an edit goes unseen, or an old list stays behind."""
    folder = tree.make(
        tmp_path, many(10), pages={"techniques/wide-loads.md": tree.TECHNIQUE, "README.md": f"# K\n\n{MARKS}"}
    )
    assert build.main(["--knowledge", str(folder), "--check"]) == 1
    assert build.main(["--knowledge", str(folder)]) == 0
    assert build.main(["--knowledge", str(folder)]) == 0
    assert ", 0 written, 0 removed" in capsys.readouterr().out
    page = folder / "references/prs/b.md"
    page.write_text(page.read_text() + "by hand\n")
    (folder / "references/prs/old.md").write_text(page.read_text())
    assert build.main(["--knowledge", str(folder), "--check"]) == 1
    said = capsys.readouterr().out
    assert f"{page}: out of step" in said and f"{folder}/references/prs/old.md: nothing makes it any more" in said
    assert build.main(["--knowledge", str(folder)]) == 0
    assert build.main(["--knowledge", str(folder), "--check"]) == 0 and not (folder / "references/prs/old.md").exists()


def test_no_facts_is_a_fault_with_a_fix(build: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a tree without facts gets empty lists."""
    assert build.main(["--knowledge", str(tmp_path)]) == 1
    assert "no mined facts" in capsys.readouterr().err


def test_only_what_the_script_wrote_is_deleted_or_written_over(
    build: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a page that quotes the mark, or stands where no script writes, is deleted or lost."""
    old = "references/prs/old.md"
    pages = {
        "techniques/wide-loads.md": tree.TECHNIQUE + f"\n{MARK}\n",
        "cards/x.md": f"{LEAD}{MARK}\n",
        "references/prs/quotes.md": f"{LEAD}Ours.\n\n{MARK}\n",
        old: f"{LEAD}{MARK}\n",
    }
    folder = tree.make(tmp_path, many(10), pages=pages)
    assert build.main(["--knowledge", str(folder)]) == 0
    assert [name for name in pages if not (folder / name).exists()] == [old]
    (folder / "references/prs/b.md").write_text(f"{LEAD}By hand.\n")
    capsys.readouterr()
    assert build.main(["--knowledge", str(folder)]) == 1
    assert "references/prs/b.md: written by hand" in capsys.readouterr().err
    assert (folder / "references/prs/b.md").read_text() == f"{LEAD}By hand.\n"


@pytest.mark.parametrize("readme", ["# K\n", f"# K\n{MARKS.splitlines()[0]}\n", f"# K\n{MARKS}{MARKS}"])
def test_a_readme_without_its_marks_gets_no_second_map(
    build: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], readme: str
) -> None:
    """Breaks when a lost mark ends in two maps, one of which is never written again."""
    folder = tree.make(tmp_path, many(10), pages={"README.md": readme})
    assert build.main(["--knowledge", str(folder)]) == 1
    assert "README.md: want the two marks of the map once each" in capsys.readouterr().err
    assert (folder / "README.md").read_text() == readme


def test_a_damaged_tree_is_named_in_words(build: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a file that cannot be read ends in a traceback."""
    folder = tree.make(tmp_path, many(10))
    facts, page = folder / "data/facts/a+b.jsonl.gz", folder / "cards/x.md"
    good = facts.read_bytes()
    page.parent.mkdir()

    def said() -> str:
        assert build.main(["--knowledge", str(folder)]) == 1
        return capsys.readouterr().err

    for data, what in ((b"text", "is no gzip file"), (b"", "is an empty file"), (gzip.compress(b"{}\n"), "no header")):
        facts.write_bytes(data)
        assert what in said() and not (folder / "index.json").exists()
    facts.write_bytes(gzip.compress(gzip.decompress(good) + b'{"id":"a/b#9"}\n'))
    assert f"{facts}:12: " in said()
    facts.write_bytes(good)
    page.write_bytes(b"# \xff\n")
    assert f"{page}: not UTF-8" in said()
    page.unlink()
    page.symlink_to("gone.md")
    assert f"{page}: no such file" in said()
    page.unlink()
    page.mkdir()
    assert f"{page}: cannot be read" in said()
