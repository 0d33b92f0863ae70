"""Search over the committed index: what is found, why, what is refused, and that no text can break it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.knowledge import corpus, text
from tests import knowledge_made


@pytest.fixture(scope="module")
def only_ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twenty records of the general lessons, without other mined facts or pages."""
    return knowledge_made.index(tmp_path_factory.mktemp("made") / "index", [])


@pytest.fixture(autouse=True)
def bundle(only_ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(corpus.FACTS_VARIABLE, raising=False)
    monkeypatch.setattr(corpus, "bundle_folder", lambda: only_ours)


@pytest.fixture(scope="module")
def source(only_ours: Path) -> knowledge.Source:
    return knowledge.read(only_ours)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def ids(answer: knowledge.Answer) -> list[str]:
    return [hit.record.id for hit in answer.hits]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("my shared memory stores have bank conflicts", "deepseek-ai/DeepGEMM#86"),
        ("GEMM with tiny M leaves the tensor pipe low", "vllm-project/vllm#20396"),
        ("spills to local memory in a wide tile", "NVIDIA/cutlass#2219"),
        ("uncoalesced scalar loads when writing the cache", "vllm-project/vllm#22036"),
        ("launch overhead between short kernels", "flashinfer-ai/flashinfer#1117"),
        ("low occupancy because of shared memory", "sgl-project/sglang#17747"),
        ("grid smaller than the machine, long K", "Dao-AILab/quack#158"),
        ("barrier stalls in a quantization kernel", "vllm-project/vllm#44173"),
        ("double precision instructions in top-p", "flashinfer-ai/flashinfer#2945"),
        ("causal tiles finish unevenly", "Dao-AILab/flash-attention#2218"),
        ("two blocks load the same operand from L2", "deepseek-ai/DeepGEMM#88"),
        ("choose experts for each token in one launch", "sgl-project/sglang#4530"),
    ],
)
def test_a_question_finds_its_record_among_the_first_three(
    source: knowledge.Source, cache: Path, said: str, expected: str
) -> None:
    """Breaks when ranking, aliases or symptoms stop leading from a complaint to the mechanism."""
    assert expected in ids(knowledge.search(source, said, knowledge.Filters(), 3, cache=cache))


@pytest.mark.parametrize(
    ("said", "expected", "field"),
    [
        ("int8_scaled_mm", "sgl-project/sglang#3035", "context: int8_scaled_mm"),
        ("cp.async", "Dao-AILab/quack#132", "terms: cp.async"),
        ("silu_and_mul_per_block_quant_kernel", "vllm-project/vllm#44173", "silu_and_mul_per_block_quant_kernel"),
        ("SiluAndMul", "vllm-project/vllm#44173", "symbols: silu mul"),
        ("fusedQKNormRopeKernel", "vllm-project/vllm#27165", "symbols: fusedQKNormRopeKernel"),
        ("qk norm rope", "vllm-project/vllm#27165", "symbols: qk, norm, rope"),
        ("sm_90a register", "NVIDIA/cutlass#2219", "facets: sm_90a"),
        ("scaled_mm_sm90_fp8.cu", "vllm-project/vllm#20396", "paths: scaled_mm_sm90_fp8.cu"),
        ("split_kv", "Dao-AILab/flash-attention#1236", "terms: split_kv"),
        ("SplitKV", "Dao-AILab/flash-attention#1236", "terms: SplitKV"),
    ],
)
def test_an_identifier_is_found_whole_and_in_parts(
    source: knowledge.Source, cache: Path, said: str, expected: str, field: str
) -> None:
    """Breaks when underscores, dots or case changes hide an identifier, or why does not name the field."""
    best = knowledge.search(source, said, knowledge.Filters(), 1, cache=cache).hits[0]
    assert best.record.id == expected
    assert field in best.why


def test_parts_of_identifiers() -> None:
    """Breaks when the words of an identifier change, which would need new cache files (store.LAYOUT)."""
    assert text.chunk_tokens("int8_scaled_mm") == ["int8_scaled_mm", "int8scalmm", "int8", "scal", "mm"]
    assert text.chunk_tokens("cp.async") == ["cp.async", "cpasync", "cp", "async"]
    assert text.parts("FlashAttentionForwardSm100") == ["flash", "attention", "forward", "sm100"]
    assert text.parts("RMSNorm") == ["rms", "norm"]
    assert text.parts("SMs") == ["sm"]
    assert {text.stem(word) for word in ("swizzle", "swizzled", "swizzling")} == {"swizzl"}
    assert [text.normal_arch(a) for a in ("sm_90a", "SM100", "compute_80", "sm")] == ["sm90", "sm100", "sm80", ""]


def test_filters_keep_only_what_they_say(source: knowledge.Source, cache: Path) -> None:
    """Breaks when a filter is ignored, or its other spelling is not understood."""
    found = knowledge.search(source, "kernel", knowledge.Filters(repo="sglang", family="moe"), 50, cache=cache)
    assert sorted(ids(found)) == ["sgl-project/sglang#4530", "sgl-project/sglang#7884"]
    found = knowledge.search(source, "gemm", knowledge.Filters(arch="sm_120"), 50, cache=cache)
    assert ids(found)[0] == "Dao-AILab/quack#158"
    assert sorted(ids(found)[1:]) == ["deepseek-ai/DeepGEMM#86", "deepseek-ai/DeepGEMM#88"]  # name no architecture
    for family in ("norm", "normalization"):
        found = knowledge.search(source, "fused", knowledge.Filters(family=family), 50, cache=cache)
        assert sorted(ids(found)) == ["flashinfer-ai/flashinfer#1255", "vllm-project/vllm#27165"]


def test_an_unknown_filter_value_names_the_known_ones(source: knowledge.Source, cache: Path) -> None:
    """Breaks when a misspelt filter looks like an empty answer."""
    for filters in (
        knowledge.Filters(repo="a/b"),
        knowledge.Filters(arch="sm_42"),
        knowledge.Filters(family="gem"),
    ):
        with pytest.raises(Refused) as refusal:
            knowledge.search(source, "gemm", filters, 1, cache=cache)
        assert refusal.value.fix.startswith("one of: ")
    assert "gemm" in refusal.value.fix and "norm" in refusal.value.fix


@pytest.mark.parametrize(
    ("said", "near"), [("swizzel", "swizzle"), ("persistant", "persistent"), ("multicasting_x", "multicast")]
)
def test_no_hit_suggests_near_words(source: knowledge.Source, cache: Path, said: str, near: str) -> None:
    """Breaks when a misspelling ends in an empty answer without a hint."""
    answer = knowledge.search(source, said, knowledge.Filters(), 5, cache=cache)
    if said != "multicasting_x":
        assert answer.hits == ()
        assert near in answer.suggestions
    else:
        assert ids(answer)[0] == "deepseek-ai/DeepGEMM#88"


def test_no_hit_and_nothing_near_names_the_families(source: knowledge.Source, cache: Path) -> None:
    """Breaks when unrelated words are called near, or an answer is empty without a hint."""
    kinds = {"zzzzqqqq": "families", "漢字": "families", "...": "families", "the of and": "stop", "banana": "families"}
    for said, kind in kinds.items():
        answer = knowledge.search(source, said, knowledge.Filters(), 5, cache=cache)
        assert (answer.hits, answer.kind) == ((), kind), said
        assert answer.suggestions[:2] == ("quant", "scan-sort-reduce")


def test_filters_that_let_nothing_through_are_named(source: knowledge.Source, cache: Path) -> None:
    """Breaks when a filter that excludes every hit looks like a word that nobody knows."""
    answer = knowledge.search(source, "swizzle", knowledge.Filters(family="rope", repo="DeepGEMM"), 5, cache=cache)
    assert (answer.hits, answer.kind, answer.suggestions) == ((), "filters", ("--family",))


@pytest.mark.parametrize(
    "said",
    [
        '"',
        "'; DROP TABLE fts; --",
        "a NEAR b",
        "NEAR(tma, 2)",
        "tma AND NOT (",
        "words:tma",
        "{words label}: tma",
        "tma*",
        "^tma",
        "-tma +gemm",
        "\x00tma\x00",
        "\ufb01ne \uff34\uff2d\uff21 ñ e\u0301 \ud7ff 🚀",
        "\udcff tma",
        "_" * 500 + "." * 500,
        "x" * 10_000,
        "tma (gemm) " * 1000,
        " ".join(f"w{n}" for n in range(3000)),
    ],
)
def test_no_text_breaks_a_search(source: knowledge.Source, cache: Path, said: str) -> None:
    """Breaks when the full-text language shines through, or a long text costs seconds."""
    start = time.perf_counter()
    answer = knowledge.search(source, said, knowledge.Filters(), 10, cache=cache)
    assert time.perf_counter() - start < 5
    assert not (answer.hits and answer.suggestions)
    assert len(answer.suggestions) <= 6


def test_operators_are_words(source: knowledge.Source, cache: Path) -> None:
    """Breaks when a prefix star or a column filter changes what is found."""
    plain = ids(knowledge.search(source, "tma store", knowledge.Filters(), 10, cache=cache))
    assert ids(knowledge.search(source, '"tma"* store^', knowledge.Filters(), 10, cache=cache)) == plain


def test_a_query_is_quick(source: knowledge.Source, cache: Path) -> None:
    """Breaks when a query costs more than 100 ms once the tables exist (the best of five)."""
    knowledge.search(source, "warm", knowledge.Filters(), 1, cache=cache)
    best = 1.0
    for _ in range(5):
        start = time.perf_counter()
        knowledge.search(source, "fp8 gemm bank conflicts small M", knowledge.Filters(), 10, cache=cache)
        best = min(best, time.perf_counter() - start)
    assert best < 0.1


def test_search_prints_stable_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a script that reads --json would break."""
    assert main(["knowledge", "search", "bank", "conflicts", "--limit", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["hits", "pages", "suggestions"]
    assert len(said["hits"]) == 2 and said["pages"] == said["suggestions"] == []
    keys = ["id", "label", "why", "score", "lesson", "repo", "pr", "url", "files", "symbols", "archs", "families"]
    keys += ["dtypes", "tier", "state", "sha"]
    assert list(said["hits"][0]) == keys
    assert said["hits"][0]["url"] == "https://github.com/deepseek-ai/DeepGEMM/pull/86"
    assert said["hits"][0]["score"] > said["hits"][1]["score"] > 0


def test_exit_codes_of_search(capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when no hit is an error, or bad usage is not."""
    assert main(["knowledge", "search", "zzzzqqqq", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == []
    assert main(["knowledge", "search", "gemm", "--arch", "sm_42"]) == 2
    assert "sm100, sm103, sm120, sm80, sm90" in capsys.readouterr().err
    for bad in (["   "], [], ["gemm", "--limit", "0"]):
        assert main(["knowledge", "search", *bad]) == 2


@pytest.mark.parametrize(
    "name",
    [
        "vllm-project/vllm#21083",
        "vllm#21083",
        "https://github.com/vllm-project/vllm/pull/21083/",
        "774d0c014b8699d244ba2889d872591ca535b80f",
        "774d0c01",
    ],
)
def test_show_knows_every_form_of_an_id(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when an id, an address or a commit that somebody has at hand is not understood."""
    assert main(["knowledge", "show", name, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["record", "url", "open_first"]
    assert said["record"]["id"] == "vllm-project/vllm#21083"
    assert said["url"] == "https://github.com/vllm-project/vllm/pull/21083"


def test_show_opens_code_then_test_then_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when prose or an instantiation file comes before the kernel."""
    assert main(["knowledge", "show", "flashinfer#2037", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["open_first"] == [
        "include/flashinfer/pos_enc.cuh",
        "csrc/rope.cu",
        "tests/attention/test_rope.py",
        "benchmarks/bench_rope_quantize_fp8_append_cache.py",
        "include/flashinfer/utils.cuh",
        "csrc/flashinfer_rope_binding.cu",
    ]
    assert main(["knowledge", "show", "flashinfer#2945"]) == 0
    page = capsys.readouterr().out
    assert "numbers it names, not measured here: 7x" in page and "include/flashinfer/sampling.cuh" in page
    assert main(["knowledge", "show", "DeepGEMM#86"]) == 0
    page = capsys.readouterr().out
    assert "  lesson read from: deep_gemm/include/deep_gemm/fp8_gemm.cuh, indexing/main.cu" in page
    assert "  techniques: techniques/smem-swizzle" in page


def test_show_of_an_unknown_id_names_one_only_after_a_slip(capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a wrong number ends in a traceback or without a hint."""
    assert main(["knowledge", "show", "vllm-project/vllm#2039"]) == 1
    assert "vllm-project/vllm#20396" in capsys.readouterr().err
    assert main(["knowledge", "show", "vlm-project/vlm#21083"]) == 1
    assert "show 'vllm-project/vllm#21083'" in capsys.readouterr().err
    for unrelated in ("sgl-project/sglang#99", "nobody/nothing#1", "deepseek-ai/DeepGEMM#87"):
        assert main(["knowledge", "show", unrelated]) == 1
        assert "fix: kernelpilot knowledge search TEXT" in capsys.readouterr().err, unrelated


def test_a_known_type_that_no_record_names_leaves_the_silent_ones(source: knowledge.Source, cache: Path) -> None:
    """Breaks when --dtype fp8 is bad usage in an index that knows no data types."""
    assert ids(knowledge.search(source, "swizzle", knowledge.Filters(dtype="e4m3"), 1, cache=cache)) == [
        "deepseek-ai/DeepGEMM#86"
    ]
