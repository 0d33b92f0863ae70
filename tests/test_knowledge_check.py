"""The check of facts and lessons: a sound tree passes, each fault is found and named."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.knowledge.check import Checked
from tests import knowledge_tree as tree


def whats(folder: Path) -> list[str]:
    return [fault.what for fault in knowledge.check(knowledge.read(folder))]


def test_a_whole_check_counts_what_a_search_has_and_finds_what_both_checks_find(tmp_path: Path) -> None:
    """Breaks when the records are counted wrongly, or the whole check leaves out the index or the pages."""
    sound = knowledge.read(tree.make(tmp_path / "sound"))
    assert knowledge.checked(sound) == Checked(faults=(), records=len(knowledge.load(sound).records))
    assert knowledge.checked(sound).records > 1
    bad = tree.make(tmp_path / "bad", pages={"cards/x.md": "no card\n"})
    (bad / "data" / "vocabulary.json").write_text("{}")
    source = knowledge.read(bad)
    apart = (knowledge.check(source), knowledge.check_pages(source))
    assert all(apart) and knowledge.checked(source).faults == (*apart[0], *apart[1])


def test_a_sound_tree_has_no_fault(tmp_path: Path) -> None:
    """Breaks when the check complains about what the format allows."""
    assert knowledge.check(knowledge.read(tree.make(tmp_path))) == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"sha": "0" * 39 + "9"}, "sha: read at 0000000000000000000000000000000000000009, the record is at "),
        ({"id": "a/b#7"}, "id: no mined record has it"),
        ({"label": "wide loads"}, "label: want one line of 30 to 120 characters, got 10"),
        ({"label": "x" * 121}, "label: want one line of 30 to 120 characters, got 121"),
        ({"lesson": "x" * 199}, "lesson: want one line of 200 to 700 characters, got 199"),
        ({"lesson": "x" * 701}, "lesson: want one line of 200 to 700 characters, got 701"),
        ({"lesson": tree.LESSON + "\nmore"}, "lesson: want one line of 200 to 700 characters"),
        ({"lesson": tree.LESSON + " It is 1.3x faster."}, "lesson: figure of speed '1.3x' without its source and GPU"),
        ({"lesson": tree.LESSON + " On H100 it is 1.3x faster."}, "lesson: figure of speed '1.3x' without its source"),
        ({"lesson": tree.LESSON + " Ask who@example.org."}, "lesson: holds an e-mail address"),
        ({"lesson": tree.LESSON + " Ask @bobby."}, "lesson: holds somebody's login"),
        ({"lesson": tree.LESSON + " See https://example.org/x."}, "lesson: holds an address"),
        ({"lesson": tree.LESSON + " See ~/x.cu."}, "lesson: holds a path of one machine"),
        ({"lesson": tree.LESSON + "\x1b[31m"}, "lesson: holds a control character"),
        ({"label": "sixteen-byte loads of\u202e the made-up kernel"}, "label: holds a control character"),
        ({"sha": "0" * 12}, "sha: want 40 hex digits, got '000000000000'"),
        ({"read": ["csrc/x.cu", "csrc/x.cu"]}, "read: csrc/x.cu stands twice"),
        ({"read": ["./csrc/x.cu"]}, "read: want a path relative to the repository, got './csrc/x.cu'"),
        ({"techniques": ["wide-loads", "wide-loads"]}, "techniques: wide-loads stands twice"),
        ({"read": []}, "read: name the paths that were opened"),
        ({"read": ["/csrc/x.cu"]}, "read: want a path relative to the repository, got '/csrc/x.cu'"),
        ({"read": ["csrc/other.cu"]}, "read: csrc/other.cu is no file of that change"),
        ({"techniques": ["gone"]}, "techniques: no page techniques/gone.md, which 1 of its lessons name"),
    ],
)
def test_each_fault_of_a_lesson_is_found(changes: dict[str, Any], what: str, tmp_path: Path) -> None:
    """Breaks when a lesson about nothing, at another commit, too short or with a figure passes."""
    found = whats(tree.make(tmp_path, lessons=[tree.lesson("a/b#1", **changes)]))
    assert [said for said in found if said.startswith(what)] and len(found) <= 2, found


def test_older_notes_may_be_short_but_not_empty(tmp_path: Path) -> None:
    """Breaks when the length of new lessons is asked of general.jsonl, or its own least of others."""
    folder = tree.make(tmp_path)
    (folder / "data/lessons/made.jsonl").unlink()
    older = folder / "data/lessons/general.jsonl"
    tree.write_lessons(older, [tree.lesson("a/b#1", lesson="x" * 60)])
    assert whats(folder) == []
    tree.write_lessons(older, [tree.lesson("a/b#1", lesson="x" * 59)])
    assert whats(folder) == ["lesson: want one line of 60 to 700 characters, got 59"]


def test_lessons_stand_once_and_in_order(tmp_path: Path) -> None:
    """Breaks when two files tell of the same record, or a file is not sorted."""
    folder = tree.make(tmp_path, lessons=[tree.lesson("a/b#2"), tree.lesson("a/b#1")])
    tree.write_lessons(folder / "data/lessons/other.jsonl", [tree.lesson("a/b#2")])
    said = whats(folder)
    assert "lessons are not sorted by id" in said
    assert sum(what.startswith("id: stands in ") for what in said) == 1 and len(said) == 2


def test_files_of_a_large_change_are_not_held_against_it(tmp_path: Path) -> None:
    """Breaks when a path is refused though the record lists only some of its files."""
    many = [{"path": f"csrc/{n}.cu", "add": 1, "del": 0} for n in range(40)]
    rows = [tree.row("a/b#1", files=many, n_files=300), tree.row("a/b#2"), tree.row("c/d#1")]
    assert whats(tree.make(tmp_path, rows, [tree.lesson("a/b#1", read=["csrc/999.cu"])])) == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"words": ["swap", "ab"]}, "words: not sorted"),
        ({"words": ["ab", "ab"]}, "words: not sorted, or one twice"),
        ({"words": ["AB"]}, "words: want lower case, got ['AB']"),
        ({"words": ["made\x1b"]}, "words: want single words"),
        ({"words": ["who@example.org"]}, "words: want single words without a name or an address"),
        ({"symbols": ["two words"]}, "words: want single words without a name or an address"),
        ({"kernel_files": ["/abs/x.cu"]}, "path: want one relative to the repository"),
        ({"diff_terms": {"magic": 1}}, "diff_terms: 'magic' does not stand in the vocabulary"),
        ({"kernel_files": ["csrc/../../x.cu"]}, "path: want one relative to the repository"),
        ({"files": [{"path": "/abs/x.cu", "add": 1, "del": 0}]}, "path: want one relative to the repository"),
        ({"archs": ["hopper"]}, "archs: want one that exists, like sm90, got 'hopper'"),
        ({"archs": ["sm777"]}, "archs: want one that exists, like sm90, got 'sm777'"),
        ({"dtypes": ["half"]}, "dtypes: 'half' does not stand in the vocabulary"),
        ({"kinds": ["fortran"]}, "kinds: 'fortran' does not stand in the vocabulary"),
        ({"families": ["gemm", "gemm"]}, "families: one stands twice"),
        ({"tier": "Z"}, "tier: want one of A to E, P or empty, got 'Z'"),
        ({"how": "guess"}, "how: want one of squash, merge, direct, open, api, got 'guess'"),
        ({"how": "direct"}, "pr: 2 does not go with 'direct'"),
        ({"merged_at": "2026-13-45T00:00:00Z"}, "merged_at: want a time like"),
        ({"why": "It makes the kernel faster"}, "why: want the name of a rule"),
        ({"claims": ["much faster"]}, "claims: want a figure with its unit, got 'much faster'"),
        ({"claims": ["1.3"]}, "claims: want a figure with its unit, got '1.3'"),
        ({"knet": -1}, "row: Expected `int` >= 0 - at `$.knet`"),
        ({"title": "Make it fast"}, "row: Object contains unknown field `title`"),
        ({"evidence": {"somebody said": {"lines": 1}}}, "evidence: want 'arch:sm90' or the like"),
        ({"label": "cuda gemm by who@example.org"}, "label: holds an e-mail address"),
        ({"label": "cuda gemm in ~/x"}, "label: holds a path of one machine"),
        ({"label": "cuda gemm, see http://example.org"}, "label: holds an address"),
        ({"label": "cuda\x1b[31m gemm"}, "label: holds a control character"),
        ({"label": "x" * 300}, "label: want one line below 300 characters, got 300"),
        ({"id": "x/y#2"}, "id: want owner/name#number or owner/name@sha12, got 'x/y#2'"),
    ],
)
def test_each_fault_of_a_mined_row_is_found(changes: dict[str, Any], what: str, tmp_path: Path) -> None:
    """Breaks when somebody's sentence, name, machine or word of his own passes as a fact."""
    rows = [tree.row("a/b#1"), tree.row("a/b#2", **changes)]
    said = whats(tree.make(tmp_path, rows))
    lost = [one for one in said if one.startswith("a/b: ")]  # a row that cannot be read, or counts otherwise
    assert said[0].startswith(what) and len(said) - len(lost) <= 1 + ("control" in said[-1 - len(lost)]), said


def test_ids_follow_from_repository_number_and_commit(tmp_path: Path) -> None:
    """Breaks when an id names another change, or two ids differ in case only, which no search tells apart."""
    direct = tree.row("a/b#9", id="a/b@000000000009", sha=f"{9:012x}{0:028x}", pr=None, how="direct")
    assert whats(tree.make(tmp_path / "a", [tree.row("a/b#1"), direct])) == []
    wrong = {**direct, "id": "a/b@000000000008"}
    said = whats(tree.make(tmp_path / "b", [tree.row("a/b#1"), wrong]))
    assert said == ["id: want owner/name#number or owner/name@sha12, got 'a/b@000000000008'"]
    twins = [tree.row("a/b#1"), tree.row("A/b#1")]
    assert whats(tree.make(tmp_path / "c", twins)) == ["id: A/b#1 differs from it only in upper and lower case"]


def test_rows_stand_in_order_and_in_their_file(tmp_path: Path) -> None:
    """Breaks when rows are mixed up or a file is renamed unseen."""
    rows = [tree.row("a/b#2"), tree.row("a/b#1")]
    assert whats(tree.make(tmp_path, rows)) == ["rows are not sorted: pull requests by number, then commits by id"]
    facts = tree.make(tmp_path / "b", [tree.row("a/b#1")]) / "data/facts"
    (facts / "a+b.jsonl.gz").rename(facts / "a+c.jsonl.gz")
    assert whats(tmp_path / "b") == ["repo: a/b does not belong in this file"]


def test_a_lost_corpus_is_no_sound_one(tmp_path: Path) -> None:
    """Breaks when a file of facts, some of its rows, the list of repositories, or all lessons can vanish unseen."""

    def said(name: str, change: Callable[[Path], object]) -> list[str]:
        folder = tree.make(tmp_path / name)
        change(folder / "data/facts")
        return whats(folder)

    def cut(facts: Path) -> None:
        lines = gzip.decompress((facts / "a+b.jsonl.gz").read_bytes()).splitlines(keepends=True)
        (facts / "a+b.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[:-1])))

    assert said("gone", lambda facts: (facts / "c+d.jsonl.gz").unlink()) == [
        "c/d: 1 records, but no file of facts holds one"
    ]
    assert "a/b: records: says 2, its facts hold 1" in said("cut", cut)
    assert said("empty", lambda facts: (facts / "c+d.jsonl.gz").write_bytes(b""))[0] == "is an empty file"
    assert said("text", lambda facts: (facts / "c+d.jsonl.gz").write_bytes(b"{}"))[0].startswith("is no gzip file")
    assert said("list", lambda facts: (facts / "repos.json").unlink()) == ["no such file"]
    assert said("garbage", lambda facts: (facts / "repos.json").write_text("[]"))[0].startswith("Expected `object`")
    assert said("lessons", lambda facts: (facts / "../lessons/made.jsonl").unlink()) == ["no lessons (*.jsonl)"]
    header = '{"format":"kernelpilot.lessons","version":1}\n'
    assert said("none", lambda f: (f / "../lessons/made.jsonl").write_text(header)) == ["holds no lesson"]


@pytest.mark.parametrize("header", ['{"format":"kernelpilot.knowledge-facts","version":9}', '{"format":"x"}', "{}"])
def test_facts_have_their_header(header: str, tmp_path: Path) -> None:
    """Breaks when facts of another format or version are taken for ours."""
    folder = tree.make(tmp_path, [tree.row("a/b#1")])
    path = folder / "data/facts/a+b.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines()
    path.write_bytes(gzip.compress(b"\n".join([header.encode(), *lines[1:]])))
    assert "header" in whats(folder)[0]


def test_a_row_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """Breaks when the first fault of a file ends its check."""
    rows = [tree.row("a/b#1", knet="many"), tree.row("a/b#2", tier="Z")]
    said = whats(tree.make(tmp_path, rows, [tree.lesson("a/b#2")]))
    assert said[0].startswith("row: Expected `int`") and said[1].startswith("tier: want one of")


def test_a_row_that_stands_twice_and_one_that_is_cut(tmp_path: Path) -> None:
    """Breaks when damage to the facts ends in a traceback, or hides faults of vocabulary and pages."""
    folder = tree.make(tmp_path, [tree.row("a/b#1"), tree.row("a/b#1")])
    assert whats(folder) == ["id: stands twice"]
    facts = folder / "data/facts/a+b.jsonl.gz"
    facts.write_bytes(facts.read_bytes()[:-20])
    source = knowledge.read(folder)
    assert next(fault.where for fault in knowledge.check(source)) == str(facts)
    vocabulary, page = folder / "data/vocabulary.json", folder / "techniques/wide-loads.md"
    vocabulary.write_text("{}")
    page.write_text(page.read_text().replace("2026-11-30", "yesterday"))
    said = [f.what.partition(":")[0] for f in knowledge.check_pages(knowledge.read(folder))]
    assert said == ["names of the pages were not looked up", "names of the pages were not looked up", "Read at"]
