"""What ``mark-read`` takes as a proof that a source was read, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import ledger, proc
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.cli import knowledge_hypothesis
from kernelpilot_helpers.gate import research
from tests.knowledge_made import fact, index
from tests.test_knowledge_open import made

CODE = "__global__ void wide_kernel(float* out) {\n  out[threadIdx.x] = 1.0f;  // a kernel\n}\n"
WHY = "wider loads, DRAM throughput 60 -> 80 %"


class World:
    """A scaffolded repo, an index of records b#7 (in the clone), b#8 and b#9, and a file that was saved."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.clone = folder / "b"
        rows = [fact(7, sha=made(self.clone), test_files=["t.py"]), fact(8, test_files=["tests/t8.py"]), fact(9)]
        self.index = index(folder / "i", rows)
        self.work = folder / "work"
        self.saved = folder / "saved.cu"
        self.saved.write_text(CODE)
        self.capsys = capsys
        assert main(["scaffold", str(self.work), "--task", "t"]) == 0
        capsys.readouterr()

    def mark(self, *words: str, json_: bool = False) -> tuple[int, str, str]:
        """Code, stdout, stderr."""
        into = ["--into", str(self.work), "--index", str(self.index), *(["--json"] if json_ else [])]
        code = main(["knowledge", "mark-read", *words, *into])
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def ideas(self) -> tuple[ledger.Idea, ...]:
        """What was noted."""
        return ledger.load_ideas(self.work)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    monkeypatch.delenv("KERNELPILOT_CLONES", raising=False)
    return World(tmp_path, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--file", "../../../x"), "changes no file"),
        (("--file", "not/in/change.cu"), "changes no file"),
        (("--file", "./csrc/x.cu"), "one of: csrc/x.cu"),
        (("--content", "/dev/null"), ""),
        (("--content", "EMPTY"), "is empty"),
        (("--content", "HELLO"), "holds 6 bytes"),
        (("--content", "BINARY"), "is no text"),
        (("--symbol", "NoSuchSymbol"), "holds no 'NoSuchSymbol'"),
        (("--symbol", "wide"), "holds no 'wide'"),
        (("--also", "tests/t8.py"), "nothing shows what was read: tests/t8.py"),
        (("--also", "tests/t8.py=EMPTY"), "is empty"),
        (("--also", "gone.py=SAVED"), "changes no file 'gone.py'"),
    ],
)
def test_what_proves_nothing_is_refused(world: World, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """Breaks when a path, a content, a symbol or a second file that nobody read is noted as read."""
    files = {"EMPTY": b" \n", "HELLO": b"hello\n", "BINARY": bytes(range(256)) * 9, "SAVED": CODE.encode()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    given = list(words)
    for at, word in enumerate(given):
        for name in files:
            given[at] = given[at].replace(name, str(tmp_path / name)) if word.endswith(name) else given[at]
    content = () if "--content" in words else ("--content", str(world.saved))
    code, out, err = world.mark("b#8", "--hypothesis", WHY, *given, *content)
    assert code in (1, 2) and out == "" and said in err
    assert world.ideas() == () and not proc.dirty(world.work)


def test_content_by_hand_is_noted_as_such(world: World) -> None:
    """Breaks when the row of a content given by hand looks like one that a clone showed, or loses its sha256."""
    also = f"tests/t8.py={world.saved}"
    args = ("--content", str(world.saved), "--symbol", "wide_kernel", "--also", also)
    assert world.mark("b#8", "--hypothesis", WHY, *args)[0] == 0
    sha = hashlib.sha256(CODE.encode()).hexdigest()
    (idea,) = world.ideas()
    assert idea.opened == (
        f"csrc/x.cu sha256:{sha}",
        "csrc/x.cu: content given by hand, no clone",
        f"tests/t8.py sha256:{sha}",
        "tests/t8.py: content given by hand, no clone",
    )


def test_a_clone_decides(world: World) -> None:
    """Breaks when a content by hand overrules a clone, or a changed file that the record does not name is refused."""
    here = ("--clone", str(world.clone), "--hypothesis", WHY)
    code, _, err = world.mark("b#7", *here, "--content", str(world.saved))
    assert code == 1 and "which the clone holds" in err
    code, _, err = world.mark("b#7", *here, "--symbol", "wide_kernel")
    assert code == 1 and "holds no 'wide_kernel'" in err
    code, _, err = world.mark("b#7", *here, "--file", "dot.png")
    assert code == 1 and "is no text" in err
    assert world.ideas() == ()
    assert world.mark("b#7", *here, "--file", "csrc/big.cuh", "--symbol", "line_00007", "--also", "t.py")[0] == 0
    (idea,) = world.ideas()
    assert [note.partition(" ")[0] for note in idea.opened] == ["csrc/big.cuh", "t.py"]
    assert all(" sha256:" in note for note in idea.opened)


@pytest.mark.parametrize(
    ("hypothesis", "why"),
    [
        ("wider loads", "no mechanism in 3 words, and it names no figure"),
        ("wider vector loads help", "it names no figure with a number"),
        ("faster 5 %", "it names no mechanism in 3 words"),
    ],
)
def test_a_hypothesis_that_will_not_count_is_said_at_once(world: World, hypothesis: str, why: str) -> None:
    """Breaks when the writer learns only from the gate that a hypothesis was not counted."""
    assert research.mechanism(hypothesis) == ""
    code, _, err = world.mark("b#8", "--hypothesis", hypothesis, "--content", str(world.saved))
    assert code == 0 and "will not count" in err and why in err
    assert len(world.ideas()) == 1


def test_a_hypothesis_that_counts_is_not_talked_about(world: World) -> None:
    """Breaks when a good hypothesis is doubted, or the same one again is not."""
    content = ("--content", str(world.saved))
    assert world.mark("b#8", "--hypothesis", WHY, *content)[2] == ""
    code, _, err = world.mark("b#9", "--hypothesis", "Wider loads: DRAM throughput 50 -> 90 %", *content)
    assert code == 0 and f"it is that of {world.ideas()[0].key}" in err
    idea = ["ledger", "idea", "--source-repo", "a/b", "--commit", "0" * 40, "--path", "x.cu", "--repo", str(world.work)]
    assert main([*idea, "--hypothesis", "faster"]) == 0
    assert "will not count" in world.capsys.readouterr().err
    assert main(["knowledge", "mark-read", "--help"]) == 0
    shown = " ".join(world.capsys.readouterr().out.split())
    assert knowledge_hypothesis.COUNTS[:60] in shown


def commits(repo: Path) -> int:
    done = subprocess.run(["git", "-C", str(repo), "rev-list", "--count", "HEAD"], check=True, capture_output=True)
    return int(done.stdout)


def listed(folder: Path, *lines: str) -> tuple[str, str]:
    (folder / "list.tsv").write_text("# id, hypothesis, path, symbol\n" + "".join(f"{line}\n" for line in lines))
    return "--from", str(folder / "list.tsv")


def test_a_list_is_noted_in_one_commit(world: World, tmp_path: Path) -> None:
    """Breaks when a list makes a commit a line, or loses a path or a symbol."""
    before = commits(world.work)
    lines = (f"b#7\t{WHY}", "b#7\tlarge header read in pieces, 600 lines\tcsrc/big.cuh\tline_00007")
    code, out, _ = world.mark(*listed(tmp_path, *lines), "--clone", str(world.clone), json_=True)
    said = json.loads(out)
    assert code == 0 and commits(world.work) == before + 1
    assert [(row["id"], row["path"]) for row in said["sources"]] == [("b#7", "csrc/x.cu"), ("b#7", "csrc/big.cuh")]
    assert [idea.symbol for idea in world.ideas()] == ["", "line_00007"]
    assert [row["key"] for row in said["sources"]] == [idea.key for idea in world.ideas()]
    assert said["key"] == world.ideas()[0].key and not proc.dirty(world.work)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("b#7\tfine words 7", "nobody#1\tfine words 8", "b#7\tx\tgone.cu"), ("list.tsv:3: no record", "gone.cu")),
        (("b#7\tfine words 7", "b#7\tthe same again 8"), ("list.tsv:3: ", "was read already")),
        (("b#7", "b#7\ta\tb\tc\td"), ("line 2: want 2 to 4 cells", "line 3: want")),
        ((), ("holds no line",)),
    ],
)
def test_a_list_with_a_fault_notes_nothing(
    world: World, tmp_path: Path, lines: tuple[str, ...], said: tuple[str, ...]
) -> None:
    """Breaks when a part of a list is noted, or a fault of several is not named."""
    code, _, err = world.mark(*listed(tmp_path, *lines), "--clone", str(world.clone))
    assert code == 1 and all(part in err for part in said)
    assert world.ideas() == () and not proc.dirty(world.work)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("b#7",),
        ("b#7", "b#8", "--hypothesis", WHY),
        ("b#7", "b#8", "--hypothesis", WHY, "--hypothesis", WHY, "--file", "csrc/x.cu"),
        ("--hypothesis", WHY),
    ],
)
def test_each_source_wants_a_hypothesis_of_its_own(world: World, words: tuple[str, ...]) -> None:
    """Breaks when one hypothesis stands for several sources."""
    assert world.mark(*words)[0] == 2
    assert world.ideas() == ()


def test_several_sources_by_hand(world: World, tmp_path: Path) -> None:
    """Breaks when as many hypotheses as ids are not taken in their order."""
    where = ("--clone", str(world.clone), "--reread-reason", "the list names it twice")
    code, _, _ = world.mark("b#7", "b#7", "--hypothesis", "first idea 1", "--hypothesis", "second idea 2", *where)
    assert code == 0
    assert [idea.hypothesis for idea in world.ideas()] == ["first idea 1", "second idea 2"]


Next = Callable[..., dict[str, Any]]


@pytest.fixture
def next_(world: World, capsys: pytest.CaptureFixture[str]) -> Next:
    def run(*words: str) -> dict[str, Any]:
        assert main(["knowledge", "next", *words, "--json", "--index", str(world.index)]) == 0
        out: dict[str, Any] = json.loads(capsys.readouterr().out)
        return out

    return run


@pytest.mark.parametrize("kind", ["binary", "empty", "foreign", "newer"])
def test_next_refuses_a_ledger_that_it_cannot_read(
    world: World, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when sources that were read are handed out again because their ledger could not be read."""
    data = {
        "binary": bytes(range(256)),
        "empty": b"",
        "foreign": b'{"format": "x", "version": 1}\n',
        "newer": b'{"format": "kernelpilot.source-ideas", "version": 9}\n',
    }[kind]
    (tmp_path / "seen.jsonl").write_bytes(data)
    assert main(["knowledge", "next", "--seen", str(tmp_path / "seen.jsonl"), "--index", str(world.index)]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "seen.jsonl" in said.err


def test_next_in_a_repo_puts_the_family_of_its_contract_first(
    world: World, next_: Next, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when what is handed out in a repo has nothing to do with its task, or TEXT and --family do not decide."""
    (tmp_path / "elsewhere").mkdir()
    plain = next_("--into", str(tmp_path / "elsewhere"), "--want", "30")
    assert plain["families"] == []
    below = world.work / "src"
    found = next_("--into", str(below), "--want", "30")
    assert "norm" in found["families"] and found["unread"] == plain["unread"] == 23
    norm = {"Dao-AILab/quack#132", "flashinfer-ai/flashinfer#1255", "vllm-project/vllm#27165"}
    assert {record["id"] for record in found["records"][:3]} == norm
    assert {r["id"] for r in found["records"]} == {r["id"] for r in plain["records"]}
    assert next_("--into", str(below), "--family", "moe")["families"] == []
    assert next_("swizzle", "--into", str(below))["families"] == []
    assert main(["knowledge", "next", "--into", str(below), "--want", "1", "--index", str(world.index)]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("contract.toml: task t: norm")
    (world.work / "contract.toml").write_text("x")
    assert main(["knowledge", "next", "--into", str(below), "--want", "1", "--index", str(world.index)]) == 0
    assert "no family comes first" in capsys.readouterr().err


def test_next_counts_beyond_what_it_hands_out(next_: Next) -> None:
    """Breaks when the total is what was wanted, and when a text that finds nothing ends without a word."""
    few = next_("gemm", "--want", "2")
    assert len(few["records"]) == 2 and few["unread"] >= len(next_("gemm", "--want", "50")["records"]) > 2
    assert "swizzle" in next_("swizzel")["suggestions"]
