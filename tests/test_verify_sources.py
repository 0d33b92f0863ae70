"""Sources are looked up in clones: what is there passes, what is not fails, what cannot be looked up is unchecked."""

from __future__ import annotations

import gzip
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import knowledge_tree as tree

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
MESSAGE = "Make the loader of the wide kernel much faster by vector loads\n\nIt helps with long rows only.\n"


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    for name in [n for n in sys.modules if n == "verify_sources" or n.split(".")[0] == "source_check"]:
        sys.modules.pop(name)
    return importlib.import_module("verify_sources")


def git(repo: Path, *args: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", str(repo), *who, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Made:
    """Clones below ``clones``, a tree beside them, and what one run says."""

    def __init__(self, folder: Path, verify: Any) -> None:
        self.folder, self.verify = folder, verify
        self.repo = folder / "clones" / "a+b"
        self.repo.mkdir(parents=True)
        git(self.repo, "init", "-q")
        self.first = self.commit({"csrc/other.cu": "int other;\n"}, "begin")
        self.sha = self.commit({"csrc/x.cu": "struct Loader { void load_row(); };  // told\n/* noted\n*/\n"}, MESSAGE)

    def commit(self, files: dict[str, str], message: str) -> str:
        for path, text in files.items():
            (self.repo / path).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / path).write_text(text)
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-q", "-m", message)
        return git(self.repo, "rev-parse", "HEAD")

    def run(self, page: str = "", lessons: tuple[dict[str, Any], ...] = (), *options: str, how: str = "squash") -> Any:
        """(exit code, document)."""
        rows = [tree.row("a/b#1", sha=self.sha, how=how), tree.row("c/d#1")]
        at = tree.make(self.folder / "tree", rows, [{"sha": self.sha, **one} for one in lessons], {"cards/x.md": page})
        out = self.folder / "out.json"
        base = ["--clones", str(self.folder / "clones"), "--knowledge", str(at), "--out", str(out)]
        return self.verify.main([*base, *options]), json.loads(out.read_text())


@pytest.fixture
def made(tmp_path: Path, verify: Any) -> Made:
    return Made(tmp_path, verify)


def of(document: Any) -> list[tuple[str, str]]:
    return [(failure["kind"], failure["why"]) for failure in document["failures"]]


def test_what_is_there_passes(made: Made) -> None:
    """Breaks when a sound reference or lesson is refused."""
    page = f"see `a/b@{made.sha[:12]}:csrc/x.cu#Loader.load_row` and `a/b@{made.sha[:12]}:csrc` (a/b#1)\n"
    told = tree.lesson("a/b#1", sha=made.sha)
    code, document = made.run(page, (told,))
    assert (code, document["failures"], document["unchecked"]) == (0, [], [])
    assert document["format"] == "kernelpilot.knowledge-sources" and document["version"] == 1
    assert {kind: counts["passed"] for kind, counts in document["counts"].items()} == {
        "ref": 2,
        "lesson": 1,
        "read": 1,
        "words": 2,
    }


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("000000000000:csrc/x.cu", "no such commit"),
        ("SHA:csrc/gone.cu", "no such path at that commit"),
        ("FIRST:csrc/x.cu", "no such path at that commit"),
        ("SHA:csrc/x.cu#load", "'load' is no whole word of that file"),
        ("SHA:csrc/x.cu#Loader.gone", "'gone' is no whole word of that file"),
        ("SHA:csrc#Loader", "'Loader' is no whole word of that file"),
        ("SHA:csrc/x.cu#told", "'told' stands only in comments of that file"),
        ("SHA:csrc/x.cu#noted", "'noted' stands only in comments of that file"),
        ("SHA:csrc/x.cu#0", "no source reference: want owner/name@SHA12:path#symbol"),
        ("SHA:csrc/x.cu#struct", "no source reference: want owner/name@SHA12:path#symbol"),
        ("SHA:./csrc/x.cu", "no source reference: want owner/name@SHA12:path#symbol"),
        ("main:csrc/x.cu", "no source reference: want owner/name@SHA12:path#symbol"),
        ("v1.2.3:", "no source reference: want owner/name@SHA12:path#symbol"),
    ],
)
def test_each_fault_of_a_reference_is_found(made: Made, ref: str, why: str) -> None:
    """Breaks when a reference to nothing, to another commit, or to a part of a name passes."""
    ref = ref.replace("SHA", made.sha[:12]).replace("FIRST", made.first[:12])
    code, document = made.run(f"line one\n`a/b@{ref}`\n")
    assert (code, of(document)) == (1, [("ref", why)])
    assert document["failures"][0]["where"] == "cards/x.md:2"


def test_each_fault_of_a_lesson_is_found(made: Made) -> None:
    """Breaks when a lesson at a commit that nobody has, or about a file that it does not touch, passes."""
    code, document = made.run(lessons=(tree.lesson("a/b#1", sha="0" * 40),))
    assert (code, of(document)[0]) == (1, ("lesson", "no such commit"))
    code, document = made.run(lessons=(tree.lesson("a/b#1", sha=made.sha, read=["csrc/other.cu"]),))
    assert (code, of(document)) == (1, [("read", "that commit does not change this path")])


def test_files_of_an_open_candidate_come_from_its_record(made: Made) -> None:
    """Breaks when the head of a pull request, one commit of several, is held against the whole change."""
    made.sha = made.commit({"csrc/late.cu": "int late;\n"}, "last")
    told = tree.lesson("a/b#1", sha=made.sha, read=["csrc/x.cu", "csrc/late.cu"])
    assert made.run("", (told,), how="open")[0] == 0
    assert made.run("", (told,), how="squash")[0] == 1


def test_borrowed_words_are_found(made: Made) -> None:
    """Breaks when six words in a row of a commit's message stand in a lesson or a page that cites it."""
    words = "The loader of the wide kernel, much improved."
    told = tree.lesson("a/b#1", sha=made.sha, lesson=f"{tree.LESSON} {words}")
    page = f"a/b#1: of the wide\nkernel much faster by vectors\n\na/b#1 and `{words}`\n\n```\n{words}\n```\n"
    code, document = made.run(page, (told,))
    assert (code, [f["where"] for f in document["failures"]]) == (
        1,
        ["data/lessons/made.jsonl (a/b#1)", "cards/x.md:1", "cards/x.md:4", "cards/x.md:6"],
    )
    assert [f["what"] for f in document["failures"]] == [
        "the loader of the wide kernel",
        "of the wide kernel much faster",
        "the loader of the wide kernel",
        "the loader of the wide kernel",
    ]
    fine = tree.lesson("a/b#1", sha=made.sha, lesson=f"{tree.LESSON} Loader of the wide kernel")
    assert made.run(f"{words}\n", (fine,))[0] == 0, "five words, and a page that cites nothing"


def test_no_clone_is_unchecked_and_never_passed(made: Made) -> None:
    """Breaks when what nobody could look up counts as looked up."""
    told = tree.lesson("c/d#1")
    code, document = made.run(f"`c/d@{made.sha[:12]}:csrc/x.cu`\n", (told,))
    assert code == 1 and document["counts"]["ref"] == {"passed": 0, "failed": 0, "unchecked": 1}
    assert made.run(f"`c/d@{made.sha[:12]}:csrc/x.cu`\n", (told,), "--allow-unchecked")[0] == 0
    assert [(row["kind"], row["why"], row["count"]) for row in document["unchecked"]] == [
        ("lesson", "no clone of c/d", 1),
        ("read", "no clone of c/d", 1),
        ("ref", "no clone of c/d", 1),
        ("words", "1 cited commits are in no clone", 1),
    ]


def test_several_clones_of_one_repository_are_tried_in_turn(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a fork's second half is not looked at, or a wrong folder is taken for an empty clone."""
    (made.folder / "clones/fork+b").mkdir()
    git(made.folder / "clones", "clone", "-q", "--bare", "a+b", "fork+b/repo")
    (made.folder / "clones/half").mkdir()
    git(made.folder / "clones/half", "init", "-q")
    page = f"`c/d@{made.sha[:12]}:csrc/x.cu#Loader`\n"
    assert made.run(page, (), "--alias", "c/d=half")[0] == 1
    code, document = made.run(page, (), "--alias", "c/d=half", "--alias", "c/d=fork+b")
    assert (code, document["counts"]["ref"]["passed"]) == (0, 1)
    assert (
        made.verify.main(
            ["--clones", str(made.folder / "clones"), "--knowledge", str(made.folder / "tree"), "--alias", "c/d=gone"]
        )
        == 1
    )
    assert "gone: not a git repository" in capsys.readouterr().err


def test_only_one_file_is_looked_at_when_asked(made: Made) -> None:
    """Breaks when --only passes over the faults that it should show."""
    page = f"`a/b@{made.sha[:12]}:gone.cu`\n"
    assert made.run(page, (tree.lesson("a/b#1", sha=made.sha),), "--only", "data/lessons")[0] == 0
    assert made.run(page, (), "--only", "cards/")[0] == 1


def test_a_stray_backtick_hides_nothing(made: Made) -> None:
    """Breaks when references are found by pairs of backticks."""
    page = f"a stray ` here and `a/b@{made.sha[:12]}:gone.cu` there\n\n```\na `a/b@{made.sha[:12]}:code.cu`\n```\n"
    code, document = made.run(page)
    assert (code, of(document)) == (1, [("ref", "no such path at that commit")])


def test_lessons_that_cannot_be_read_are_failures(made: Made) -> None:
    """Breaks when a line that is no lesson, an id that is none, or half a commit is passed over."""
    good = tree.lesson("a/b#1", sha=made.sha)
    code, document = made.run("", (good, {**good, "id": "foo"}, {**good, "sha": made.sha[:12]}, {"id": "a/b#2"}))
    whys = [why for _, why in of(document)]
    assert code == 1 and {kind for kind, _ in of(document)} == {"lesson"} and len(whys) == 3
    assert whys[1:] == ["id: want owner/name#number or owner/name@sha12", "sha: want 40 hex digits"]
    assert document["counts"]["lesson"] == {"passed": 1, "failed": 3, "unchecked": 0}


def test_nothing_to_look_up_is_no_pass(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a wrong folder, a wrong --only or an empty tree ends with exit code 0."""
    page = f"`a/b@{made.sha[:12]}:csrc/x.cu`\n"
    assert made.run(page)[0] == 0
    at = {"--clones": made.folder / "clones", "--knowledge": made.folder / "tree"}

    def said(**changes: str) -> str:
        options = {**at, **{f"--{name}": value for name, value in changes.items()}}
        assert made.verify.main([str(part) for pair in options.items() for part in pair]) == 1
        return capsys.readouterr().err

    assert "gone: no such folder" in said(knowledge="gone")
    assert "gone: no such folder of clones" in said(clones="gone")
    assert "no claim stands in such a place" in said(only="gemm.jsonl")
    assert "no mined facts" in said(facts=str(made.folder))
    assert "nothing could be looked up" in said(clones=str(made.folder / "tree"))
    (made.folder / "tree/cards/x.md").write_text("nothing\n")
    assert "no reference and no lesson to look up" in said()


def test_damaged_facts_are_named_in_words(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when facts that are no gzip file, or a row without its commit, end in a traceback."""
    assert made.run(f"`a/b@{made.sha[:12]}:csrc/x.cu`\n")[0] == 0
    facts = made.folder / "tree/data/facts/a+b.jsonl.gz"
    good = gzip.decompress(facts.read_bytes())
    options = ["--clones", str(made.folder / "clones"), "--knowledge", str(made.folder / "tree")]
    for data, what in (
        (b"text", f"{facts}: is no gzip file"),
        (gzip.compress(good + b'{"id":"a/b#2"}\n'), f"{facts}:3: row: "),
    ):
        facts.write_bytes(data)
        assert made.verify.main(options) == 1
        assert what in capsys.readouterr().err


def test_comments_are_told_from_code(verify: Any) -> None:
    """Breaks when a comment counts as code, or a string with slashes as a comment."""
    without = importlib.import_module("source_check.comments").without
    assert without('a("http://x"); // b\n/* c\nd */ e', "x.cuh") == 'a("http://x");  \n  e'
    assert without('a = "#1"  # b', "x.py") == 'a = "#1"   '
    assert without("# a // b", "x.md") == "# a // b"
