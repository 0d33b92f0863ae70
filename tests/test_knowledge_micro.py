"""From the recorded reports of kernels whose bottleneck is known to a technique, and the pages that the table names."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import knowledge
from kernelpilot_helpers.knowledge.lexicon import compiled
from kernelpilot_helpers.knowledge.page import parsed
from kernelpilot_helpers.knowledge.route import judged, stop_of
from kernelpilot_helpers.ncu import examine, load
from kernelpilot_helpers.ncu.families import FAMILIES
from tests.knowledge_made import ROOT, fact, only, page

GOLDEN = ROOT / "tests/golden/ncu"
KNOWLEDGE = ROOT / "knowledge"
SILENT = {"exec.divergence", "launch.block_partial_warp", "lat.imc", "none.at_limit"}
"""Classes whose cure is in the kernel's own branches, constants or block size, or that have none without a figure."""
BEST = {
    "atomic_hot": "atomics-local-first",
    "barrier_skew": "warp-reduce",
    "byte_store": "wide-stores",
    "conflict_barrier": "smem-swizzle",
    "dram_copy": "fewer-bytes",
    "fma_chain": "packed-arithmetic",
    "fma_serial": "more-chains",
    "gemm_fma": "use-tensor-cores",
    "icache": "smaller-code",
    "imbalance": "even-tiles",
    "l1_bound": "reuse-in-registers",
    "l2_bound": "reuse-in-registers",
    "launch_bound": "fuse-or-chain-small",
    "low_occ_smem": "fit-more-blocks",
    "one_block": "split-work",
    "pointer_chase": "wider-loads-in-flight",
    "sfu_heavy": "exp-on-fma",
    "smem_column": "smem-swizzle",
    "spill": "spill-bound",
    "spill_chase": "spill-bound",
    "strided_load": "wide-loads",
    "strided_low_occ": "wide-loads",
    "tail": "even-tiles",
    "tensor_gemm": "narrower-type",
}
"""Micro-kernel -> the rule of the edit that its faster twin makes."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = only(tmp_path_factory.mktemp("made") / "index", [fact(1, diff_terms={"swizzle": 3})])
    page(folder, "symptoms/branches", "Branches", Kind="symptom", Classes="`exec.divergence`")
    return folder


def led(index: Path, name: str) -> tuple[knowledge.Case, knowledge.Routes]:
    """The case of a recorded report, and where it leads."""
    path = GOLDEN / name
    report = load.read(lzma.decompress(path.read_bytes()), name=path.stem, sha256="")
    data = examine.dump(examine.digest_of(report).digest)
    with knowledge.opened(knowledge.read(index), index.parent / "cache") as tables:
        case = knowledge.case_of(data, knowledge.listing.lexicon(tables), at=name)
        return case, knowledge.route(tables, case, 10, stop=stop_of(data))


def micro(index: Path, name: str) -> tuple[knowledge.Case, knowledge.Routes]:
    return led(index, f"micro/{name}.facts.json.xz")


@pytest.mark.parametrize(("name", "rule"), BEST.items())
def test_a_known_bottleneck_leads_to_its_cure_first(index: Path, name: str, rule: str) -> None:
    """Breaks when another technique comes before the one that is known to mend the kernel."""
    assert micro(index, name)[1].routes[0].rule == rule


def test_every_recorded_micro_kernel_is_judged() -> None:
    """Breaks when a new micro-kernel is recorded and nobody says which technique it needs."""
    recorded = {path.name.partition(".")[0] for path in (GOLDEN / "micro").glob("*.facts.json.xz")}
    assert recorded == {*BEST, "divergence"}


def test_a_class_without_a_rule_still_has_its_page(index: Path) -> None:
    """Breaks when a digest of divergent warps is sent to a technique that does not help, or to nothing."""
    case, found = micro(index, "divergence")
    assert (case.class_name, found.routes) == ("exec.divergence", ())
    assert [hit.path for hit in found.pages] == ["symptoms/branches.md"]


@pytest.mark.parametrize(
    ("name", "about", "rule"),
    [
        ("gemm_small_m.raw.csv.xz", (("gemm",), ("fp16",)), "split-work"),
        ("gemv.raw.csv.xz", (("gemm",), ("bf16",)), "fewer-bytes"),
        ("gemm_large.raw.csv.xz", (("gemm",), ("bf16",)), "narrower-type"),
        ("sdpa.raw.csv.xz", (("attention",), ("fp16",)), "overlap-softmax"),
        ("triton_rms.raw.csv.xz", (("norm",), ()), "norm-quant"),
    ],
)
def test_family_and_type_of_a_library_kernel_are_heard(
    index: Path, name: str, about: tuple[tuple[str, ...], tuple[str, ...]], rule: str
) -> None:
    """Breaks when a rule for one kind of kernel speaks of another, or the family of a digest is not understood."""
    case, found = led(index, name)
    assert (case.families, case.dtypes) == about
    assert found.routes[0].rule == rule


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("gemm_small_m.raw.csv.xz", ["split-work", "tensor-small-m", "fuse-or-chain-small"]),
        ("gemv.raw.csv.xz", ["fewer-bytes"]),
        ("copy_vec4.details.csv.xz", ["fewer-bytes"]),
        ("reg_spill.raw.csv.xz", ["spill-bound", "spill-unroll"]),
    ],
)
def test_what_the_page_of_the_class_rules_out_is_not_told(index: Path, name: str, rules: list[str]) -> None:
    """Breaks when a small grid is sent to more resident blocks, a stream to multicast, a plain kernel to setmaxnreg."""
    _, found = led(index, name)
    assert [item.rule for item in found.routes] == rules
    assert found.stop.startswith("Stop tuning how this kernel moves its bytes") is (name == "copy_vec4.details.csv.xz")


def test_registers_move_between_roles_only_where_tensor_cores_have_roles(index: Path) -> None:
    """Breaks when a spilling kernel without warp roles is told to hand registers over, or one with them is not."""
    case, _ = led(index, "reg_spill.raw.csv.xz")
    (rule,) = (rule for rule in knowledge.rules() if rule.name == "fewer-registers")
    gemm = msgspec.structs.replace(case, families=("gemm",))
    assert judged(rule, gemm) == ((), "")
    busy = msgspec.structs.replace(gemm, values={**case.values, "tensor": 40.0})
    assert judged(rule, busy)[0][0] == "class mem.spill"
    (row,) = (rule for rule in knowledge.rules() if rule.name == "spill-row")
    assert judged(row, msgspec.structs.replace(case, families=("norm",)))[0][0] == "class mem.spill"


def test_a_rules_classes_stand_on_its_page() -> None:
    """Breaks when a rule sends a class to a page that does not say it is about that class."""
    amiss: dict[str, set[str]] = {}
    for rule in knowledge.rules():
        named = parsed(rule.page, (KNOWLEDGE / rule.page).read_bytes()).classes
        missing = {name for name in rule.classes if not {name, name.partition(":")[0].rstrip("*")} & set(named)}
        if missing:
            amiss[rule.name] = missing
    assert amiss == {}


def classes() -> list[str]:
    """Class names as digests spell them: families of edits are named ``class/kind``, a pipe is ``class:pipe``."""
    parted = [name.partition("/") for name in FAMILIES]
    pipes = {f"{name}:{kind}" for name, _, kind in parted if name == "exec.pipe_bound" and kind}
    return sorted(pipes | {name for name, _, _ in parted if name != "exec.pipe_bound"} | {"none.at_limit"})


@pytest.mark.parametrize("name", classes())
def test_each_class_of_a_digest_is_answered_or_silent_on_purpose(name: str) -> None:
    """Breaks when a digest gets a class that the table does not know."""
    silent = knowledge.Case(class_name=name, kernel="k", capability=90, families=(), dtypes=(), values={}, metrics={})
    spoken = [rule.name for rule in knowledge.rules() if judged(rule, silent)[0]]
    assert bool(spoken) is (name not in SILENT), spoken


def test_a_rule_of_one_family_is_silent_where_none_is_named() -> None:
    """Breaks when a kernel of unknown kind is told to split its KV range."""
    (rule,) = (rule for rule in knowledge.rules() if rule.name == "split-kv")
    values = {"waves": 0.3}
    case = knowledge.Case(
        class_name="launch.grid_small", kernel="k", capability=90, families=(), dtypes=(), values=values, metrics={}
    )
    assert judged(rule, case) == ((), "")
    decode = msgspec.structs.replace(case, families=("attention",))
    assert judged(rule, decode) == (("class launch.grid_small", "waves = 0.3 (< 1)"), "")


def test_a_stall_that_the_digest_does_not_list_is_none(index: Path) -> None:
    """Breaks when a serial chain of arithmetic is told to load earlier: it waits for no load."""
    case, found = micro(index, "fma_serial")
    assert "stall.long_scoreboard" not in case.values and "stall.wait" in case.values
    assert "wider-loads-in-flight" not in [item.rule for item in found.routes]
    (rule,) = (rule for rule in knowledge.rules() if rule.name == "more-chains")
    unmeasured = msgspec.structs.replace(case, values={})
    assert judged(rule, unmeasured) == (("class lat.dependency",), "")


def test_the_pages_of_the_table_exist() -> None:
    """Breaks when a route leads to a page that is not there."""
    missing = sorted({rule.page for rule in knowledge.rules()} - {str(p.relative_to(KNOWLEDGE)) for p in pages()})
    assert missing == []


def test_every_technique_is_led_to() -> None:
    """Breaks when a technique page is written that neither a rule nor a topic page names."""
    topics = "\n".join(path.read_text() for path in (KNOWLEDGE / "routing/topics").glob("*.md"))
    linked = {f"techniques/{name}.md" for name in re.findall(r"techniques/([a-z0-9-]+)\.md", topics)}
    written = {str(path.relative_to(KNOWLEDGE)) for path in pages() if path.parent.name == "techniques"}
    assert sorted(written - linked - {rule.page for rule in knowledge.rules()}) == []


def test_the_pages_that_the_skill_names_exist() -> None:
    """Breaks when the first thing that an agent is told to read is renamed."""
    text = (ROOT / "skills/kernel-knowledge/SKILL.md").read_text()
    shown = set(re.findall(r"kernelpilot knowledge show ([a-z/-]+)$", text, re.MULTILINE))
    lists = re.findall(r"`([a-z/-]+/)NAME` \((.*?), \.\.\.\)", text)
    named = {folder + name for folder, names in lists for name in re.findall(r"`([a-z-]+)`", names)}
    assert len(shown) >= 3 and len(named) >= 6
    assert sorted(page for page in shown | named if not (KNOWLEDGE / f"{page}.md").is_file()) == []


def pages() -> list[Path]:
    return sorted(KNOWLEDGE.rglob("*.md"))


def test_names_in_the_table_are_the_vocabularys(index: Path) -> None:
    """Breaks when a rule waits for a family or a type that no digest can name."""
    words = knowledge.load(knowledge.read(index)).vocabulary
    assert compiled(words).heard("fused rmsnorm", "f")
    for rule in knowledge.rules():
        assert set(rule.family) <= set(words.families) and set(rule.dtype) <= set(words.dtypes), rule.name
        assert rule.page.startswith("techniques/"), rule.name
