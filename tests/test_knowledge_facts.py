"""Search over mined facts: what is kept of a row, filters, order, lists, and the cache of a large index."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.knowledge import store
from tests.knowledge_made import SHA, fact, index

ROWS = [
    fact(1, words=["AB", "SwapAB", "zorb"], archs=["sm90"], diff_terms={"swap-ab": 14, "fp8": 2}),
    fact(2, words=["splitk", "zorb"], diff_terms={"split-k": 3}, select={"tier": None}),
    fact(3, words=["fused_add_rmsnorm"], families=["norm"], symbols=["FusedAddRMSNormKernel"], kinds=["triton"]),
    fact(4, words=["LPT"], how="open", families=["attention"], select={"tier": "P"}, kernel_files=["csrc/attn/y.cu"]),
    fact(5, words=["zorb"], archs=["sm100"], test_files=["tests/t.py"], diff_terms={"setmaxnreg": 4, "pdl": 1}),
    fact(6, words=["setmaxnreg"], families=["attention"], diff_terms={"setmaxnreg": 40}, repo="c/d"),
    fact(0, pr="0" * 12, sha="0" * 40, words=["quux"], how="direct", symbols=["GemmSm90.kernel"]),
    fact(86, repo="deepseek-ai/DeepGEMM", words=["instead", "mined", "padding", "swizzling"], knet=77),
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> knowledge.Source:
    return knowledge.read(index(tmp_path_factory.mktemp("made") / "index", ROWS))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def find(source: knowledge.Source, cache: Path) -> Callable[..., list[str]]:
    def found(said: str, limit: int = 5, **filters: Any) -> list[str]:
        answer = knowledge.search(source, said, knowledge.Filters(**filters), limit, cache=cache)
        return [hit.record.id for hit in answer.hits]

    return found


def searched(folder: Path, rows: list[dict[str, Any]], said: str, limit: int = 5) -> list[str]:
    source = knowledge.read(index(folder / "index", rows))
    answer = knowledge.search(source, said, knowledge.Filters(), limit, cache=folder / "cache")
    return [hit.record.id for hit in answer.hits]


def test_a_row_becomes_a_record_and_a_lesson_is_laid_over_it(source: knowledge.Source) -> None:
    """Breaks when a date keeps its zone, a direct commit looks like a pull request, or a lesson is lost."""
    by_id = {record.id: record for record in knowledge.load(source).records}
    assert len(by_id) == 20 + 7
    assert by_id["a/b#1"].merged_at == "2025-06-02T06:30:00Z"
    assert by_id["a/b#1"].words == ("ab", "swap_ab", "zorb")
    assert by_id["a/b#1"].dtypes == ("fp8",)
    assert by_id["a/b#1"].label == "x.cu: swap-ab, fp8 (gemm, sm90)"
    direct = by_id["a/b@000000000000"]
    assert (direct.pr, direct.state) == (0, "direct")
    assert knowledge.url(direct) == f"https://github.com/a/b/commit/{'0' * 40}"
    assert by_id["a/b#4"].state == "open"
    ours = by_id["deepseek-ai/DeepGEMM#86"]
    assert ours.lesson and ours.knet == 77 and "mined" in ours.words


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("swapAB", "a/b#1"),
        ("swap AB", "a/b#1"),
        ("split k zorb", "a/b#2"),
        ("fused_add_rmsnorm", "a/b#3"),
        ("FusedAddRMSNorm", "a/b#3"),
        ("GemmSm90.kernel", "a/b@000000000000"),
        ("setmaxnreg", "c/d#6"),
        ("longest processing time first", "a/b#4"),
        ("griddepcontrol.wait zorb", "a/b#5"),
    ],
)
def test_identifiers_and_aliases_meet(find: Callable[..., list[str]], said: str, expected: str) -> None:
    """Breaks when the two spellings of a name no longer lead to each other."""
    assert find(said, repo=re.split("[#@]", expected)[0])[0] == expected


def test_a_counter_leads_to_the_mechanisms_of_its_symptom(find: Callable[..., list[str]]) -> None:
    """Breaks when the full name of a counter of Nsight Compute finds nothing."""
    assert find("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum")[0] == "deepseek-ai/DeepGEMM#86"
    assert "vllm-project/vllm#22036" in find("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio", 3)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"arch": "sm_90a"}, ["a/b#1", "a/b#2"]),
        ({"arch": "blackwell"}, ["a/b#5", "a/b#2"]),
        ({"dtype": "e4m3"}, ["a/b#1", "a/b#2", "a/b#5"]),
        ({"tier": "none"}, ["a/b#2"]),
        ({"has_test": True}, ["a/b#5"]),
        ({"tokens": ("split-k>=3",)}, ["a/b#2"]),
        ({"tokens": ("split-k>=4",)}, []),
        ({"seen": frozenset({"a/b#1", SHA.format(2)})}, ["a/b#5"]),
        ({"since": "2025-06-03"}, []),
        ({"until": "2025-06-02", "has_test": True}, ["a/b#5"]),
    ],
)
def test_filters(find: Callable[..., list[str]], filters: dict[str, Any], expected: list[str]) -> None:
    """Breaks when a filter is ignored, or one that is silent about a soft fact comes before one that names it."""
    found = find("zorb", **filters)
    assert sorted(found) == sorted(expected)
    assert found[:1] == expected[:1]


def test_filters_by_language_state_symbol_and_path(find: Callable[..., list[str]]) -> None:
    """Breaks when one of these facets is not kept."""
    assert find("rmsnorm", dsl="triton") == ["a/b#3"]
    assert find("lpt", state="open") == ["a/b#4"]
    assert find("gemm", symbol="gemmsm90.k", repo="b") == ["a/b@000000000000"]
    assert find("lpt", path="csrc/attn/*") == ["a/b#4"]


@pytest.mark.parametrize(
    ("name", "value", "near"), [("dtype", "fp9", "fp8"), ("dsl", "tritn", "triton"), ("family", "norms", "norm")]
)
def test_an_unknown_value_names_near_ones(find: Callable[..., list[str]], name: str, value: str, near: str) -> None:
    """Breaks when a misspelt value looks like an empty answer."""
    with pytest.raises(Refused) as refusal:
        find("zorb", **{name: value})
    assert refusal.value.where == f"--{name}" and near in refusal.value.fix


def test_an_unknown_token_is_refused(find: Callable[..., list[str]]) -> None:
    """Breaks when --token of a mechanism that nobody adds gives nothing without a word."""
    with pytest.raises(Refused, match="no record has token 'swizle'"):
        find("zorb", tokens=("swizle>=2",))


def test_what_orders_records_of_equal_words(tmp_path: Path) -> None:
    """Breaks when tier, an open state, very many files, or a re-landing no longer count."""
    same: dict[str, Any] = {"words": ["zorb"], "diff_terms": {"tma": 3}}
    rows = [
        fact(1, **same, select={"tier": None}),
        fact(2, **same, how="open", repo="x/y"),
        fact(3, **same, n_files=90, repo="x/z"),
        fact(4, **same, repo="x/w"),
    ]
    assert searched(tmp_path / "one", rows, "zorb") == ["x/w#4", "x/z#3", "x/y#2", "a/b#1"]
    twins = [fact(n, words=["zorb"], kernel_files=[f"csrc/{n // 2}.cu"]) for n in (2, 3, 4)]
    assert searched(tmp_path / "two", twins, "zorb") == ["a/b#2", "a/b#4", "a/b#3"]


def test_hits_of_other_repositories_come_forward(tmp_path: Path) -> None:
    """Breaks when one repository's siblings fill the page before an equal hit of another."""
    rows = [fact(n, words=["zorb"], kernel_files=[f"csrc/{n}.cu"]) for n in range(1, 6)]
    rows.append(fact(9, words=["zorb"], repo="x/y", kernel_files=["csrc/9.cu"]))
    assert searched(tmp_path, rows, "zorb", 2) == ["a/b#1", "x/y#9"]


def test_lists(source: knowledge.Source, cache: Path) -> None:
    """Breaks when term, like, next or facets lose their order."""
    listing = knowledge.listing
    with knowledge.opened(source, cache) as tables:
        name, found = listing.with_token(tables, "griddepcontrol", knowledge.Filters(), 50)
        assert name == "pdl" and "a/b#5" in [record.id for record, _ in found]
        _, most = listing.with_token(tables, "setmaxnreg", knowledge.Filters(repo="b"), 2)
        assert [(record.id, lines) for record, lines in most] == [("a/b#5", 4)]
        assert [r.id for r, _ in listing.with_token(tables, "quux", knowledge.Filters(), 2)[1]] == ["a/b@000000000000"]
        alike = listing.like(tables, listing.find(tables, "b#5"), knowledge.Filters(), 3)
        assert "a/b#5" not in [r.id for r in alike] and "c/d#6" in [r.id for r in alike]
        unread, left = listing.unread(tables, "", knowledge.Filters(seen=frozenset({"a/b#1"})), 30)
        tiers = [record.tier or "-" for record in unread]
        assert left == 26 and "a/b#1" not in [r.id for r in unread]
        assert tiers == sorted(tiers, key=lambda tier: "ABCED".find(tier) if tier in "ABCED" else 9)
        assert len({record.repo for record in unread[:8]}) == 8
        assert listing.facets(tables)["state"] == {"merged": 25, "direct": 1, "open": 1}


def test_names_of_a_record(source: knowledge.Source, cache: Path) -> None:
    """Breaks when a short id, a commit, its address or a file below it is not understood."""
    with knowledge.opened(source, cache) as tables:
        for name in ("b@000000000000", "A/B@000000000000", f"https://github.com/a/b/commit/{'0' * 40}", "0" * 12):
            assert knowledge.listing.find(tables, name).id == "a/b@000000000000"
        assert knowledge.listing.find(tables, "https://github.com/a/b/pull/5/files").id == "a/b#5"


def test_check_finds_what_is_wrong_with_mined_facts(tmp_path: Path) -> None:
    """Breaks when the check passes somebody's sentence, address, a foreign path or an unknown mechanism."""
    bad = [
        fact(1),
        fact(1, words=["swap", "AB"]),
        fact(2, words=["who@example.org"]),
        fact(3, kernel_files=["/abs/x.cu"]),
        fact(4, diff_terms={"magic": 1}),
        fact(5, sha="12"),
    ]
    said = {fault.what.partition(":")[0] for fault in knowledge.check(knowledge.read(index(tmp_path / "i", bad)))}
    assert said == {"id", "words", "path", "diff_terms", "sha"}
    assert knowledge.check(knowledge.read(index(tmp_path / "good", ROWS))) == []


def test_check_of_pages(tmp_path: Path) -> None:
    """Breaks when a page too long to read, a dead link or an address passes."""
    (tmp_path / "a.md").write_text("[b](b.md) [web](https://example.org/x) [c](gone.md#part)")
    (tmp_path / "b.md").write_text("x" * 12_288)
    (tmp_path / "d.md").write_text("ask who@example.org")
    whats = [fault.what for fault in knowledge.check_pages(tmp_path)]
    assert whats == [
        "link to gone.md: nothing there",
        "12288 bytes: a page stays below 12288, so that it is read whole",
        "holds an e-mail address",
    ]


def test_a_broken_facts_file_is_named(tmp_path: Path) -> None:
    """Breaks when damage to the facts is searched over, or ends in a traceback."""
    folder = index(tmp_path / "i", ROWS)
    path = folder / "data/facts/made.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadRecord) as fault:
        knowledge.search(knowledge.read(folder), "zorb", knowledge.Filters(), 1, cache=tmp_path / "c")
    assert fault.value.where == str(path)
    assert [f.where for f in knowledge.check(knowledge.read(folder))] == [str(path)]


def test_facts_with_a_header(tmp_path: Path) -> None:
    """Breaks when the miner's own files are not read, or those of a newer tool are read in part."""
    row = fact(7, words=["zorb"], pr=None) | {"id": "a/b@000000000007", "tier": "E"}
    del row["select"]
    header = {"format": "kernelpilot.knowledge-facts", "version": 1}
    source = knowledge.read(index(tmp_path / "one", [header, row]))
    (record,) = (r for r in knowledge.load(source).records if r.repo == "a/b")
    assert (record.id, record.pr, record.tier, record.state) == ("a/b@000000000007", 0, "E", "direct")
    for bad, what in (({**header, "version": 2}, "newer"), ({**header, "format": "x"}, "format: want")):
        with pytest.raises(BadRecord, match=what):
            knowledge.load(knowledge.read(index(tmp_path / what[:3], [bad, row])))


def test_a_broken_large_cache_is_made_anew(
    source: knowledge.Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a file too large to look through whole ends a search once it turns out broken."""
    monkeypatch.setattr(store, "SMALL", 0)
    ask = lambda: [h.record.id for h in knowledge.search(source, "zorb", knowledge.Filters(), 5, cache=tmp_path).hits]  # noqa: E731
    good = ask()
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    for broken in (data[: len(data) // 2], data[:8192] + bytes(len(data) - 8192)):
        path.write_bytes(broken)
        assert ask() == good


def test_the_command_takes_the_filters_and_stays_short(
    source: knowledge.Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when an option is lost, a default page outgrows ten lines of 160 characters, or --json loses a hit."""
    where = ["--index", str(Path(source.records_path).parents[1])]
    assert main(["knowledge", "search", "zorb", "--dtype", "fp8", "--dsl", "cuda", "--tier", "A", *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("a/b#1  x.cu: swap-ab") and len(lines) <= 10 and max(map(len, lines)) < 160
    assert "csrc/x.cu  words: zorb" in lines[1]
    assert main(["knowledge", "search", "zorb", "--dtype", "fp9", *where]) == 2
    assert "fp8" in capsys.readouterr().err
    assert main(["knowledge", "search", "zorb", "--since", "June", *where]) == 2
    assert main(["knowledge", "term", "setmaxnreg", "--limit", "1", "--json", *where]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["mechanism"] == "setmaxnreg" and said["records"][0]["lines"] == 40
    assert main(["knowledge", "like", "b#5", "--json", *where]) == 0
    assert main(["knowledge", "facets", *where]) == 0
    assert "state: merged 25, direct 1, open 1" in capsys.readouterr().out
