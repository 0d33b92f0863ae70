"""Pages: found beside the records, held back by filters that speak against them, shown by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.errors import BadRecord
from tests.knowledge_made import fact, only, page

ROWS = [fact(n, words=["zorb", "swap_ab"], kernel_files=[f"csrc/{n}.cu"]) for n in range(1, 7)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = only(tmp_path_factory.mktemp("made") / "index", ROWS)
    lead: dict[str, str] = {"Kind": "technique", "Mechanisms": "`swap-ab`", "Families": "gemm, grouped-gemm"}
    page(out, "techniques/swap-ab", "Swap the operands", Architectures="sm90 and newer", Types="fp8, bf16", **lead)
    lead = {"Kind": "symptom", "Mechanisms": "`swizzle`, `bank-conflict`", "Classes": "`mem.smem_conflict`"}
    page(out, "symptoms/banks", "Replays in shared memory", **lead)
    page(out, "cards/dispatch/gemm", "Dispatch of gemm", "Uses fancy_tile_picker for zorb.", Kind="card")
    page(out, "cards/bugs/gemm", "Bugs of gemm", Kind="card")
    page(out, "routing/topics/index", "Topics about swap ab", Kind="index")
    page(out, "notes", "Swap AB without a lead table", "| a | b |\n| --- | --- |\n")
    return out


def paths(folder: Path, said: str, **filters: Any) -> list[str]:
    answer = knowledge.search(
        knowledge.read(folder), said, knowledge.Filters(**filters), 5, cache=folder.parent / "cache"
    )
    return [hit.path for hit in answer.pages]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("swap ab for small M", ["techniques/swap-ab.md"]),
        ("swapAB", ["techniques/swap-ab.md"]),
        ("shared store conflicts", ["symptoms/banks.md"]),
        ("mem.smem_conflict", ["symptoms/banks.md"]),
        ("fancy_tile_picker", ["cards/dispatch/gemm.md"]),
        ("softmax backward", []),
    ],
)
def test_a_page_is_found_by_name_mechanism_class_or_symptom(folder: Path, said: str, expected: list[str]) -> None:
    """Breaks when a page that says what was asked is not named, or one that only shares a word is."""
    assert paths(folder, said) == expected


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"family": "gemm"}, True),
        ({"arch": "sm_90a"}, True),
        ({"arch": "sm100"}, True),
        ({"arch": "sm80"}, False),
        ({"dtype": "e4m3"}, True),
        ({"dtype": "int8"}, False),
    ],
)
def test_a_filter_speaks_against_a_page_that_names_other_things(
    folder: Path, filters: dict[str, str], found: bool
) -> None:
    """Breaks when sm_80 is sent to a page of sm_90, or sm_100 is kept from one of sm_90 and newer."""
    assert paths(folder, "swap ab", **filters) == (["techniques/swap-ab.md"] if found else [])


def test_pages_take_no_rank_among_the_records(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a page pushes a record out of the JSON answer, or the printed one outgrows ten lines."""
    where = ["--index", str(folder)]
    assert main(["knowledge", "search", "swap ab zorb", "--json", *where]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["hits"]) == 6
    assert said["pages"][0] == {
        "path": "techniques/swap-ab.md",
        "title": "Swap the operands",
        "kind": "technique",
        "why": "about: swap-ab; words: swap, ab",
    }
    assert main(["knowledge", "search", "swap ab", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 10 and max(map(len, lines)) < 160
    assert lines[0].startswith("page techniques/swap-ab.md  Swap the operands")
    assert main(["knowledge", "search", "fancy_tile_picker", *where]) == 0
    said = capsys.readouterr().out
    assert said.startswith("page cards/dispatch/gemm.md") and "\nno record found" in said


@pytest.mark.parametrize(
    "name", ["techniques/swap-ab", "techniques/swap-ab.md", "knowledge/techniques/swap-ab.md", "swap-ab", "Swap-AB"]
)
@pytest.mark.parametrize("command", ["show", "open"])
def test_a_page_is_shown_by_any_of_its_names(
    folder: Path, command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when the path that a route or a search printed does not lead to the page."""
    assert main(["knowledge", command, name, "--index", str(folder)]) == 0
    assert capsys.readouterr().out == (folder / "techniques/swap-ab.md").read_text()
    assert main(["knowledge", command, name, "--index", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["page"]
    assert (said["kind"], said["archs"], said["newer"]) == ("technique", ["sm90"], True)
    assert (said["families"], said["dtypes"]) == (["gemm", "grouped-gemm"], ["fp8", "bf16"])


def test_a_page_that_is_not_there_or_not_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a name of two pages shows either, or a slip of the pen is left without the right name."""
    with knowledge.opened(knowledge.read(folder), folder.parent / "cache") as tables:
        with pytest.raises(BadRecord, match="names 2 pages: cards/bugs/gemm, cards/dispatch/gemm"):
            knowledge.listing.named(tables, "gemm")
        assert isinstance(knowledge.listing.named(tables, "notes"), knowledge.Page)
        assert isinstance(knowledge.listing.named(tables, "b#3"), knowledge.Record)
    assert main(["knowledge", "show", "techniques/swapab", "--index", str(folder)]) == 1
    assert "fix: kernelpilot knowledge show techniques/swap-ab" in capsys.readouterr().err


def test_a_changed_page_makes_new_tables(tmp_path: Path) -> None:
    """Breaks when an edited page is answered from the old cache."""
    folder = only(tmp_path / "index", ROWS)
    page(folder, "techniques/a", "Quuxing", Kind="technique")
    assert paths(folder, "quuxing") == ["techniques/a.md"]
    page(folder, "techniques/a", "Else", Kind="technique")
    assert paths(folder, "quuxing") == []


def test_without_mined_facts_the_fix_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when an index without facts answers from twenty lessons, or ends in a traceback."""
    folder = only(tmp_path / "index", ROWS)
    (folder / "data/facts/made.jsonl.gz").unlink()
    assert main(["knowledge", "search", "swap ab", "--index", str(folder)]) == 1
    said = capsys.readouterr().err
    assert "has no mined facts" in said and "fix: git checkout -- knowledge/data" in said


@pytest.mark.parametrize(
    ("said", "page"),
    [
        ("int8_scaled_mm", "cards/baselines/int8-scaled-mm.md"),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "symptoms/shared-bank-conflicts.md"),
        ("B200 TMEM capacity", "hardware/sm100.md"),
        ("warp specialization", "techniques/warp-specialization.md"),
    ],
)
def test_a_page_about_just_this_stands_first(said: str, page: str, tmp_path: Path) -> None:
    """Breaks when the page that answers a question stands behind records that hold its words."""
    source = knowledge.read(Path(__file__).resolve().parents[1] / "knowledge")
    found = knowledge.search(source, said, knowledge.Filters(), 5, cache=tmp_path).pages
    assert (found[0].path, found[0].first) == (page, True)
    assert not any(
        hit.first for hit in knowledge.search(source, "tiny M", knowledge.Filters(), 5, cache=tmp_path).pages
    )
