"""Pure parts of the miner: tokens, spans, titles, patches, facets, tiers."""

from __future__ import annotations

import pytest

from mining import archs, diff_facts, facets, patch, said, spans, tiers, title, tokens
from mining.repos import Source

HTTP_FIX = """import triton
@triton.jit
def kernel(x):
    y = tl.load(x)

def serve(status):
    raise HTTPError(status, num_retries=3)
"""
CUTE = '''import cutlass.cute as cute

class GemmSm90:
    def __init__(self, tile):
        """Text
def not_a_function():
        """
        self.stages = 4

    @cute.jit
    def __call__(self, a):
        self.kernel(a)

    @cute.kernel
    def kernel(
        self,
        a,
    ):
        cute.arch.sync()

def host():
    return 1
'''
CUDA = """namespace x {
template <int N>
__global__ void __launch_bounds__(128, 2)
copy_kernel(const float* in, float* out) {
  if (in) {
    out[0] = in[0];
  }
}
__global__ void declared_only(int);
struct Mainloop {
  CUTLASS_DEVICE void
  load(int k) {
    k++;
  }
};
}
"""


@pytest.mark.parametrize(
    "line", ["SM90_TMA_LOAD(x)", "tma_load(x)", "TmaLoad<X>", "tma.load", "cp.async.bulk.tensor.2d"]
)
def test_one_mechanism_in_every_spelling(line: str) -> None:
    """Breaks when case folding or the cut at case changes loses a spelling."""
    assert "tma" in tokens.mechanisms(line)


@pytest.mark.parametrize(("line", "never"), [
    ("softmax(x)", "tma"), ("customary", "tma"), ("acute(angle)", "tcgen05"),
    ("tiptop", "pdl"), ("f(split, k)", "split-k"),
    ("classmap", "wgmma"), ("atom_layout", "autotune"),
])  # fmt: skip
def test_no_mechanism_inside_a_word(line: str, never: str) -> None:
    """Breaks when matching falls back to substrings, or reaches across punctuation."""
    assert never not in tokens.mechanisms(line)


def test_lines_are_counted_not_tokens() -> None:
    """Breaks when a line that says tma twice counts twice, or the order is not by lines."""
    assert tokens.count(["tma(tma)", "ldmatrix", "ldmatrix()", ""]) == {"ldmatrix": 2, "tma": 1}


def test_python_spans_know_class_docstring_and_end() -> None:
    """Breaks when CuTe kernels are all called ``kernel``, or a docstring at column 0 ends a class."""
    found = {span.name: span for span in spans.python_spans(CUTE)}
    assert set(found) == {"GemmSm90.__init__", "GemmSm90.__call__", "GemmSm90.kernel", "host"}
    kernel = found["GemmSm90.kernel"]
    assert (kernel.first, kernel.last, kernel.kernel, kernel.entry) == (14, 19, True, True)
    assert found["GemmSm90.__init__"].kernel and not found["GemmSm90.__init__"].entry
    assert not found["host"].kernel


def test_cpp_spans_skip_launch_bounds_and_declarations() -> None:
    """Breaks when ``__launch_bounds__`` is taken for the name or a declaration swallows what follows."""
    found = [(s.name, s.first, s.last, s.entry) for s in spans.cpp_spans(CUDA)]
    assert found == [("copy_kernel", 3, 8, True), ("Mainloop.load", 11, 14, False)]


def test_deleted_comment_lines_do_not_look_like_heads() -> None:
    """Breaks when ``-- x`` deleted (printed ``--- x``) is read as the next file."""
    lines = [b"\x01" + b"a" * 40 + b"\n", b"diff --git a/k.cu b/k.cu\n", b"--- a/k.cu\n", b"+++ b/k.cu\n",
             b"@@ -1,2 +1 @@\n", b"--- gone\n", b"-diff --git a/x b/x\n", b"+@@ -9 +9 @@\n"]  # fmt: skip
    ((sha, (diff,)),) = patch.parse(lines, lambda _: True)
    assert (sha, diff.path, diff.add, diff.deleted) == ("a" * 40, "k.cu", 1, 2)
    assert diff.added == [(1, "@@ -9 +9 @@")]


def test_titles_leave_a_bag_and_nobody() -> None:
    """Breaks when order, an owner's name, an address or a repeated word survives."""
    message = title.read("Merge pull request #7 from someone/fast-path\n\nSpeed up TMA and the tma copy, by me@x.org\n")
    assert (message.how, message.pr, message.title) == ("merge", 7, "Speed up TMA and the tma copy, by me@x.org")
    assert title.bag(message.title) == ("copy", "speed", "tma")
    assert title.bag("SwapAB for DeepGEMM, fp8 on SMs by FP8Linear") == (
        "deep_gemm", "fp8", "fp8_linear", "sms", "swap_ab",
    )  # fmt: skip
    assert title.read("Merge branch 'someone:main' into x").title == ""
    assert title.read('Revert "a (#12)" (#15)').pr == 15


def test_claims_are_figures_with_units() -> None:
    """Breaks when any number counts, or a figure loses its unit."""
    body = "Gives a speedup of 1.16x and 28 % lower latency\n2x4 tiles, 64x64\nreaches 1550 TFLOPS\n40% of files moved"
    assert title.claims("", body) == ("1.16x", "28%", "1550TFLOPS")


def archs_of(**texts: list[str]) -> dict[str, dict[str, int]]:
    """What ``archs`` concludes of title, paths, kernels, functions around, lines, and texts of files."""
    seen = archs.Said()
    for where in ("title", "paths", "symbols", "around"):
        for text in texts.get(where, []):
            seen.add(archs.named(text), where)
    lines = texts.get("lines", [])
    for line in lines:
        seen.line(line)
    return seen.conclude(tokens.count(lines), texts.get("texts", []))


def test_architecture_is_never_a_default() -> None:
    """Breaks when nothing said becomes something, or one comparing line is enough."""
    assert archs_of(paths=["csrc/softmax.cu"], symbols=["softmax"], lines=["if (sm == 90)", "arch::Sm90{}"]) == {}
    found = archs_of(title=["for Hopper"], paths=["a/sm100_fp8_gemm.cuh"], lines=["arch::Sm103 x;"] * 2)
    assert found == {"sm90": {"title": 1}, "sm100": {"paths": 1}, "sm103": {"lines": 2}}


@pytest.mark.parametrize(("texts", "found"), [
    ({"lines": ["#if __CUDA_ARCH__ >= 700", "#if __CUDA_ARCH__ >= 900", "#if __CUDA_ARCH__ < 530"] * 2}, []),
    ({"lines": ["NV_IF_TARGET(NV_PROVIDES_SM_90, (x();))"] * 3}, []),
    ({"lines": ["#if __CUDA_ARCH__ >= 1000"] * 2}, ["sm100"]),
    ({"lines": ["#if __CUDA_ARCH__ == 890"] * 2}, ["sm89"]),
    ({"lines": ["f<cutlass::arch::Sm90>();"] * 2}, ["sm90"]),
    ({"lines": ["SM75_U16x8_LDSM_T{}", "SM80_CP_ASYNC_CACHEALWAYS<T>{}"] * 2}, ["sm80"]),
    ({"lines": ["SM90_TMA_LOAD{}", "namespace x::sm90;"] * 3, "paths": ["csrc/sm100/fwd.cu"]}, ["sm100"]),
    ({"around": ["sm89_dispatch"], "paths": ["gemm/fp8_sm90.cuh"]}, ["sm90"]),
    ({"around": ["sm100_dispatch"], "paths": ["gemm/fp8_sm90.cuh"]}, ["sm90"]),
    ({"around": ["fmha_sm90_dispatch"]}, ["sm90"]),
    ({"symbols": ["GemmSm100.kernel"]}, ["sm100"]),
    ({"lines": ["wgmma_fence();"] * 2}, ["sm90"]),
    ({"lines": ["clusterlaunchcontrol.try_cancel"] * 2}, ["sm100"]),
    ({"lines": ["tmem_load(x);"] * 2, "paths": ["gemm_sm120.cuh"]}, ["sm120"]),
    ({"texts": ["warpgroup_arrive();\nwarpgroup_wait<0>();"]}, ["sm90"]),
    ({"texts": ["warpgroup_arrive();\nwarpgroup_wait<0>();", "tcgen05.ld tmem"]}, []),
])  # fmt: skip
def test_what_counts_for_an_architecture(texts: dict[str, list[str]], found: list[str]) -> None:
    """Breaks when a bound or an old instruction names a target, or an instruction of one generation does not."""
    assert list(archs_of(**texts)) == found


@pytest.mark.parametrize(("paths", "title_says", "lines", "dtypes"), [
    (["w8a8/scaled_mm_fp8.cuh"], "Swap AB", [], ("fp8",)),
    (["w8a8/scaled_mm.cuh"], "Swap AB", [], ("int8",)),
    (["w8a8/int8/fp8.cuh"], "", [], ("fp8", "int8")),
    (["a.cu"], "int4 packed gemm", ["int4 v = load();"] * 2, ("int4",)),
    (["a.cu"], "", ["const int8_t lane = threadIdx.x & 31;", "uint8_t x; int4 y;"] * 2, ()),
    (["a.cu"], "", ["load<int8_t>(x);"] * 2, ("int8",)),
    (["a.cu"], "", ["tl.int8"] * 2, ("int8",)),
])  # fmt: skip
def test_what_counts_for_a_dtype(paths: list[str], title_says: str, lines: list[str], dtypes: tuple[str, ...]) -> None:
    """Breaks when a folder called w8a8 makes fp8 work int8, or a byte or a vector is a number format."""
    named = {"dtype": said.read(title_says, "").dtypes}
    found = facets.tally(paths=paths, kernels=(), context=(), lines=lines, named=named)
    assert found.values("dtype", facets.LINES_FOR_DTYPE) == dtypes


@pytest.mark.parametrize(("paths", "kernels", "title_says", "families"), [
    (["attention/mla.cuh"], ["logits_mask"], "", ("attention", "mla")),
    (["lib/Transforms/OptimizePartitionWarps.cpp"], ["pipeline"], "Reduce register pressure", ()),
    (["attention/cascade.cuh"], ["merge_states_reduce"], "", ("attention",)),
    (["a/sums.cu"], ["row_reduce_kernel"], "", ("scan-sort-reduce",)),
    (["a/fused.cu"], ["fmha_reduction_kernel"], "", ("attention",)),
    (["src/op/reduce.h"], [], "", ("scan-sort-reduce",)),
    (["csrc/custom_all_reduce.cu"], [], "", ("comm",)),
    (["cub/device/dispatch_rle.cuh"], ["head_flag_decode_t.Kernel"], "", ()),
    (["cub/device/dispatch_transform.cuh"], [], "", ("scan-sort-reduce",)),
    (["cub/device/dispatch_x.cuh"], [], "Tune transform", ("scan-sort-reduce",)),
    (["a/moe_topk.cu"], [], "", ("moe",)),
    (["a/topk.cu"], [], "", ("sampling",)),
    (["attention/decode.cuh"], [], "", ("attention",)),
])  # fmt: skip
def test_what_counts_for_a_family(
    paths: list[str], kernels: list[str], title_says: str, families: tuple[str, ...]
) -> None:
    """Breaks when a word that any kernel may use makes a family."""
    name = said.read(title_says, "")
    found = facets.tally(
        paths=paths, kernels=kernels, context=(), lines=(), named={"family": name.families}, algorithms=name.algorithms
    )
    assert found.values("family", 1) == families


def change_of(
    path: str, added: list[tuple[int, str]], removed: list[tuple[int, str]], name: str = "x"
) -> diff_facts.Change:
    diff = patch.FileDiff(path=path, add=len(added), deleted=len(removed), added=added, removed=removed)
    return diff_facts.Change(
        id="o/r#1",
        pr=1,
        sha="a" * 40,
        date="2025-01-01T00:00:00Z",
        how="squash",
        said=said.read(name, ""),
        files=(diff,),
    )


def test_python_outside_kernels_is_no_kernel_work() -> None:
    """Breaks when the marker of a file lets an HTTP fix in."""
    change = change_of("srv/common.py", [(7, "    raise HTTPError(status, num_retries=3)")], [(7, "    pass")])
    assert diff_facts.facts_of(change, Source(repo="o/r"), lambda _: HTTP_FIX) is None
    inside = change_of("srv/common.py", [(4, "    y = tl.load(x)")], [])
    found = diff_facts.facts_of(inside, Source(repo="o/r"), lambda _: HTTP_FIX)
    assert found is not None and found.symbols == ("kernel",) and found.kernel_lines == 1


def test_only_the_named_folders_of_a_library_of_headers() -> None:
    """Breaks when every header of a library whose headers are all device code counts as a kernel."""
    change = change_of("lib/include/pair.cuh", [(1, "__device__ void f();")], [])
    assert diff_facts.facts_of(change, Source(repo="o/r", only=("cub/",)), lambda _: "__device__ void f();") is None
    assert diff_facts.facts_of(change, Source(repo="o/r", only=("lib/",)), lambda _: "__device__ void f();") is not None


def test_launch_choices_count_beside_kernels() -> None:
    """Breaks when the host line that sets num_stages is lost, or counts as a kernel line."""
    change = change_of("srv/common.py", [(7, "    config = dict(num_stages=4)")], [])
    found = diff_facts.facts_of(change, Source(repo="o/r"), lambda _: HTTP_FIX)
    assert found is not None and found.diff_terms == {"num_stages": 1} and found.kernel_lines == 0


@pytest.mark.parametrize(("name", "terms", "tier", "why"), [
    ("Speed up the copy", {"tma": 3}, "A", "perf-title"),
    ("TMA multicast for B", {"tma": 3, "multicast": 1}, "B", "mechanism-title"),
    ("Add decode kernel", {"tma": 3, "swizzle": 2, "mbarrier": 2}, "C", "new-kernel"),
    ("Some words", {"tma": 3, "swizzle": 1, "wgmma": 1, "cluster": 1, "stmatrix": 1}, "E", "mechanism-heavy"),
    ("Fix race in the copy", {"tma": 3}, "P", "pitfall"),
    ("Fix performance regression", {"tma": 3}, "A", "perf-title"),
    ('Revert "Speed up the copy"', {"tma": 3}, "", "revert"),
    ("[ROCm] Speed up the copy", {"tma": 3}, "", "other-hardware"),
    ("Fix typos", {"tma": 3}, "", "ci-docs-build"),
    ("Move headers", {"tma": 3}, "", "refactor"),
    ("Remove old kernels", {}, "", "refactor"),
    ("Remove redundant exponentials", {}, "A", "perf-title"),
    ("Removes the unnecessary barrier", {}, "A", "perf-title"),
    ("Some words", {"tma": 1}, "", "weak"),
    ("Fixed size segmented reduce", {"tma": 1}, "", "weak"),
    ("Fix TMA example", {"tma": 1}, "", "weak"),
    ("fix: [Fmha] revert an optimization that hangs", {"tma": 1}, "", "revert"),
    ("Cutlass MLA: Disable split kv due to a bug elsewhere", {"split-kv": 1}, "P", "pitfall"),
    ("Disable split kv due to https://github.com/o/r/issues/2", {"split-kv": 1}, "", "switched-off"),
    ("Implement the new tuning API for scan", {"scan": 9}, "", "refactor"),
    ("Fix layout of V", {"tma": 1}, "P", "pitfall"),
    ("Fix race in the TMA example", {"tma": 1}, "P", "pitfall"),
    ("Use ruff instead of yapf for formatting", {"tma": 1}, "", "ci-docs-build"),
    ("Improve performance regression testing", {"num_stages": 1}, "", "ci-docs-build"),
])  # fmt: skip
def test_tiers(name: str, terms: dict[str, int], tier: str, why: str) -> None:
    """Breaks when a kind of change lands in another tier."""
    weight = tiers.Weight(
        said=said.read(name, ""), terms=terms, kernel_lines=70, knet=90, n_files=2,
        new_kernels=1, other_files=False, compiler_only=False, benches=0,
    )  # fmt: skip
    chosen = tiers.choose(weight)
    assert (chosen.tier, chosen.why) == (tier, why)


@pytest.mark.parametrize(("name", "terms", "kernel_lines", "tier"), [
    ("Speed up the copy", {}, 2, "A"), ("Overlap the stores", {"fp8": 4}, 0, "A"),
    ("Improve the copy", {}, 2, ""), ("Improve scan", {}, 16, ""), ("Improve scan", {}, 66, "A"),
    ("Registration by macros instead of bindings", {"fp8": 6, "allreduce": 4}, 0, ""),
    ("Improve the choice", {"num_warps": 4}, 0, "A"),
])  # fmt: skip
def test_a_title_of_speed_needs_a_kernel_behind_it(
    name: str, terms: dict[str, int], kernel_lines: int, tier: str
) -> None:
    """Breaks when a vague title over a few lines without a mechanism, or over a binding, is an optimization."""
    weight = tiers.Weight(
        said=said.read(name, ""), terms=terms, kernel_lines=kernel_lines, knet=20, n_files=2,
        new_kernels=0, other_files=False, compiler_only=False, benches=0,
    )  # fmt: skip
    assert tiers.choose(weight).tier == tier


def test_fragments_of_hunks_keep_line_numbers_and_end_blocks() -> None:
    """Breaks when a kernel of one hunk swallows the lines of the next, or lines lose their numbers."""
    text = "@@ -1,1 +1,2 @@\n __global__ void a(int x) {\n+  tma(x);\n@@ -9,1 +10,2 @@\n   host();\n+  more();"
    diff = patch.of_text("k.cu", text)
    assert diff.added == [(2, "  tma(x);"), (11, "  more();")]
    assert diff.fragment.split("\n")[9:] == ["  host();", "  more();"]
    assert [(s.name, s.first, s.last) for s in spans.cpp_spans(diff.fragment)] == [("a", 1, 3)]
