"""Search over mined facts: what is kept of a row, filters, order, lists, and the cache of a large index."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.cli.knowledge_lines import clipped
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.knowledge import holders, store
from kernelpilot_helpers.knowledge.question import ask
from tests.knowledge_made import SHA, fact, index, only, ours, page

SWIZZLED = "deepseek-ai/DeepGEMM#86"
ROWS = [
    fact(1, words=["AB", "SwapAB", "zorb"], archs=["sm90"], diff_terms={"swap-ab": 14, "fp8": 2}),
    fact(2, words=["splitk", "zorb"], diff_terms={"split-k": 3}, select={"tier": None}),
    fact(3, words=["fused_add_rmsnorm"], families=["norm"], symbols=["FusedAddRMSNormKernel"], kinds=["triton"]),
    fact(4, words=["LPT"], how="open", families=["attention"], select={"tier": "P"}, kernel_files=["csrc/attn/y.cu"]),
    fact(5, words=["zorb"], archs=["sm100"], test_files=["tests/t.py"], diff_terms={"setmaxnreg": 4, "pdl": 1}),
    fact(6, words=["setmaxnreg"], families=["attention"], diff_terms={"setmaxnreg": 40}, repo="c/d"),
    fact(0, pr="0" * 12, sha="0" * 40, words=["quux"], how="direct", symbols=["GemmSm90.kernel"]),
    {**next(row for row in ours() if row["id"] == SWIZZLED), "words": ["instead", "mined", "swizzling"], "knet": 77},
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
        found = holders.held(tables, "griddepcontrol", knowledge.Filters(), 50)
        assert found.mechanism == "pdl" and "a/b#5" in [holder.record.id for holder in found.holders]
        most = holders.held(tables, "setmaxnreg", knowledge.Filters(repo="b"), 2).holders
        assert [(h.record.id, h.lines, h.names) for h in most] == [("a/b#5", 4, True)]
        (plain,) = holders.held(tables, "quux", knowledge.Filters(), 2).holders
        assert (plain.record.id, plain.lines) == ("a/b@000000000000", 0)
        alike = listing.like(tables, listing.find(tables, "b#5"), knowledge.Filters(), 3)
        assert "a/b#5" not in [r.id for r in alike] and "c/d#6" in [r.id for r in alike]
        unread, left = listing.unread(tables, "", knowledge.Filters(seen=frozenset({"a/b#1"})), 30)
        tiers = [record.tier or "-" for record in unread]
        assert left == 26 and "a/b#1" not in [r.id for r in unread]
        assert tiers == sorted(tiers, key=lambda tier: "ABCED".find(tier) if tier in "ABCED" else 9)
        assert len({record.repo for record in unread[:8]}) == 8
        assert listing.facets(tables)["state"] == {"merged": 25, "direct": 1, "open": 1}


def test_what_somebody_read_is_handed_out_first(tmp_path: Path) -> None:
    """Breaks when a newer change that nobody read comes before one of the same tier with a lesson."""
    source = knowledge.read(index(tmp_path / "i", [fact(99, repo="deepseek-ai/DeepGEMM")]))
    with knowledge.opened(source, tmp_path / "cache") as tables:
        found, _ = knowledge.listing.unread(tables, "", knowledge.Filters(repo="DeepGEMM"), 9)
    assert [(record.id[-2:], record.tier) for record in found] == [("86", "A"), ("99", "A"), ("88", "B")]


def test_names_of_a_record(source: knowledge.Source, cache: Path) -> None:
    """Breaks when a short id, a commit, its address or a file below it is not understood."""
    with knowledge.opened(source, cache) as tables:
        for name in ("b@000000000000", "A/B@000000000000", f"https://github.com/a/b/commit/{'0' * 40}", "0" * 12):
            assert knowledge.listing.find(tables, name).id == "a/b@000000000000"
        assert knowledge.listing.find(tables, "https://github.com/a/b/pull/5/files").id == "a/b#5"


def test_a_broken_facts_file_is_named(tmp_path: Path) -> None:
    """Breaks when damage to the facts is searched over, or ends in a traceback."""
    folder = index(tmp_path / "i", ROWS)
    path = folder / "data/facts/made.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadRecord) as fault:
        knowledge.search(knowledge.read(folder), "zorb", knowledge.Filters(), 1, cache=tmp_path / "c")
    assert fault.value.where == str(path)
    assert knowledge.check(knowledge.read(folder))[0].where == str(path)


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


def test_a_cache_that_breaks_under_a_question_is_made_anew(source: knowledge.Source, tmp_path: Path) -> None:
    """Breaks when a file that its seal fits, and that SQLite cannot read, ends a search."""
    ask = lambda: [h.record.id for h in knowledge.search(source, "zorb", knowledge.Filters(), 5, cache=tmp_path).hits]  # noqa: E731
    good = ask()
    (path,) = tmp_path.glob("*.sqlite")
    data = path.read_bytes()
    broken = data[: len(data) // 2] + bytes(len(data) - len(data) // 2)
    path.write_bytes(broken)
    seal = store.Seal(sha256=hashlib.sha256(broken).hexdigest(), stamp=(0, 0, 0, 0))
    store.seal_of(path).write_bytes(msgspec.json.encode(seal))
    assert ask() == good


def test_the_command_takes_the_filters_and_stays_short(
    source: knowledge.Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when an option is lost, a default page outgrows ten lines of 160 characters, or --json loses a hit."""
    where = ["--index", source.folder]
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


@pytest.mark.parametrize(
    "words",
    [
        ["--since", "2025-13-01"],
        ["--since", "2025-02-30"],
        ["--since", "2025-06-02", "--until", "2025-06-01"],
        ["--path", "*a" * 30_000],
        ["--path", "*" * 13],
        ["--token", "swizle"],
    ],
)
def test_a_filter_that_cannot_be_meant_is_bad_usage(source: knowledge.Source, words: list[str]) -> None:
    """Breaks when a day that is none, an empty stretch or a monstrous pattern is searched for, or ends in a crash."""
    assert main(["knowledge", "search", "zorb", *words, "--index", source.folder]) == 2


def test_very_many_tokens_and_very_many_seen(find: Callable[..., list[str]]) -> None:
    """Breaks when a condition a token, or a mark a source that was read, is more than SQLite takes."""
    assert find("zorb", tokens=("split-k",) * 1200) == ["a/b#2"]
    assert find("zorb", tokens=tuple(f"split-k>={n % 3 + 1}" for n in range(1200))) == ["a/b#2"]
    assert find("zorb", tokens=("split-k>=1", "split-k>=4")) == []
    seen = frozenset({f"x/y#{n}" for n in range(40_000)} | {"a/b#2"})
    assert find("zorb", tokens=("split-k",), seen=seen) == []


def test_term_tells_who_names_a_token_and_who_only_adds_its_mechanism(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a record without the identifier looks like one that holds it, or a page that does is not found."""
    rows = [fact(1, diff_terms={"pdl": 90}), fact(2, words=["griddepcontrol.wait", "early"], diff_terms={"pdl": 1})]
    folder = only(tmp_path / "i", rows)
    counter = "l1tex__data_zorb_conflicts.sum"
    page(folder, "symptoms/zorb", "Zorb", body=f"Look at `{counter}` first.", Kind="symptom")

    def term(*words: str) -> Any:
        assert main(["knowledge", "term", *words, "--json", "--index", str(folder)]) == 0
        return json.loads(capsys.readouterr().out)

    said = term("griddepcontrol.wait")
    assert said["mechanism"] == "pdl"
    assert [(r["id"], r["lines"], r["names"]) for r in said["records"]] == [("a/b#2", 1, True), ("a/b#1", 90, False)]
    assert [(r["id"], r["names"]) for r in term("pdl")["records"]] == [("a/b#1", True), ("a/b#2", True)]
    assert main(["knowledge", "term", "griddepcontrol.wait", "--index", str(folder)]) == 0
    assert "of these 2 records 1 name it" in capsys.readouterr().out
    assert [p["path"] for p in term(counter)["pages"]] == ["symptoms/zorb.md"]
    assert "wgmma" in term("wgmmma")["suggestions"]


def test_like_without_an_answer_names_the_filter(source: knowledge.Source, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a filter that lets nothing through ends in the word none."""
    assert main(["knowledge", "like", "b#3", "--since", "2031-01-01", "--json", "--index", source.folder]) == 0
    assert json.loads(capsys.readouterr().out) == {"records": [], "suggestions": ["--since"]}


def test_a_line_is_cut_between_words() -> None:
    """Breaks when a reader takes half a word for a word."""
    assert clipped("one two three", 13) == "one two three"
    assert clipped("one two three", 12) == "one two ..."
    assert clipped("    " + "x" * 40, 20) == "    " + "x" * 12 + " ..."


def test_show_says_what_a_tier_means(source: knowledge.Source, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a letter that nobody knows stands alone."""
    assert main(["knowledge", "show", "b#4", "--index", source.folder]) == 0
    assert "tier P: a fix in device code" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "arch"),
    [
        *(("H100", "sm90"), ("H200", "sm90"), ("B200", "sm100"), ("A100", "sm80"), ("L40S", "sm89")),
        *(("RTX 4090", "sm89"), ("RTX4090", "sm89"), ("RTX 5090", "sm120"), ("RTX5090", "sm120")),
    ],
)
def test_a_product_names_its_architecture(source: knowledge.Source, cache: Path, said: str, arch: str) -> None:
    """Breaks when somebody who names the machine, not sm_NN, is not understood."""
    with knowledge.opened(source, cache) as tables:
        heard = ask(f"gemm on {said}", knowledge.listing.lexicon(tables)).concepts
    assert [name for token, (name, _) in heard.items() if token[1] == "a"] == [arch]


@pytest.mark.parametrize("bad", ["value", "arch"])
def test_a_digest_of_monstrous_numbers_is_no_crash(source: knowledge.Source, tmp_path: Path, bad: str) -> None:
    """Breaks when a number that no float holds, or an architecture of thousands of digits, ends in a traceback."""
    group = {"kernel": "k", "occupancy": {"x": 10**400 if bad == "value" else 1}}
    step = {"query": {"arch": "sm_" + "9" * 5000}}
    digest = {"format": "kernelpilot.ncu-digest", "class": "mem.smem_conflict", "groups": [group], "next_step": step}
    (tmp_path / "d.json").write_text(json.dumps(digest))
    code = main(["knowledge", "route", str(tmp_path / "d.json"), "--index", source.folder])
    assert code == (1 if bad == "value" else 0)
