"""Pure parts of the miner: tokens, spans, titles, patches, facets, tiers."""

from __future__ import annotations

import pytest

from mining import diff_facts, facets, patch, said, spans, tiers, title, tokens
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


def test_architecture_is_never_a_default() -> None:
    """Breaks when nothing said becomes something, or one comparing line is enough."""
    none = facets.tally(paths=["csrc/softmax.cu"], symbols=["softmax"], named={}, lines=["if (sm == 90)"])
    assert none.values("arch", 2) == ()
    named = {"arch": said.read("for Hopper", "").archs}
    some = facets.tally(paths=["a/sm100_fp8_gemm.cuh"], symbols=(), named=named, lines=["__CUDA_ARCH__ >= 800"] * 2)
    assert some.values("arch", 2) == ("sm80", "sm90", "sm100")
    assert some.seen["arch:sm80"] == {"lines": 2} and some.seen["arch:sm100"] == {"paths": 1}
    assert some.values("dtype", 2) == ("fp8",)


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
])  # fmt: skip
def test_tiers(name: str, terms: dict[str, int], tier: str, why: str) -> None:
    """Breaks when a kind of change lands in another tier."""
    weight = tiers.Weight(
        said=said.read(name, ""), terms=terms, kernel_lines=70, knet=90, n_files=2,
        new_kernels=1, other_files=False, compiler_only=False, benches=0,
    )  # fmt: skip
    chosen = tiers.choose(weight)
    assert (chosen.tier, chosen.why) == (tier, why)


def test_fragments_of_hunks_keep_line_numbers_and_end_blocks() -> None:
    """Breaks when a kernel of one hunk swallows the lines of the next, or lines lose their numbers."""
    text = "@@ -1,1 +1,2 @@\n __global__ void a(int x) {\n+  tma(x);\n@@ -9,1 +10,2 @@\n   host();\n+  more();"
    diff = patch.of_text("k.cu", text)
    assert diff.added == [(2, "  tma(x);"), (11, "  more();")]
    assert diff.fragment.split("\n")[9:] == ["  host();", "  more();"]
    assert [(s.name, s.first, s.last) for s in spans.cpp_spans(diff.fragment)] == [("a", 1, 3)]
