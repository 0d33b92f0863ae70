"""Rules 4 and 8 on evidence written by hand: checkouts that moved, and code that was copied or only looks alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import gate, scaffold
from kernelpilot_helpers.contract.model import Checkout, Contract, Framework, Lock, SourcePolicy
from kernelpilot_helpers.evidence.model import CheckoutFacts, Evidence
from kernelpilot_helpers.gate import shingles
from kernelpilot_helpers.ledger import Provenance
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.records import Fault
from tests.evidence_sim import BASELINE, CONTRACT, GIT, GOOD, VARIANTS, evidence, row
from tests.test_gate_fixes import faults

LOCKED = Checkout(head="a" * 40, status="s", edited=0, place="p")
GONE = CheckoutFacts(now=Fault(where="framework sgl", what="its checkout is gone", fix="kernelpilot lock"))
KERNEL = """\
#include <cuda_bf16.h>
// Licence line that nobody copies.
__device__ float block_sum(float part, float* scratch) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 16; step > 0; step /= 2) part += __shfl_xor_sync(0xffffffff, part, step);
  if (lane == 0) scratch[warp] = part;
  __syncthreads();
  part = threadIdx.x < blockDim.x / 32 ? scratch[lane] : 0.0f;
  for (int step = 16; step > 0; step /= 2) part += __shfl_xor_sync(0xffffffff, part, step);
  if (threadIdx.x == 0) scratch[0] = part;
  __syncthreads();
  return scratch[0];
}
"""
"""144 tokens: 12, 18, 26, 13, 4, 19, 26, 15, 4, 6 and 1 in its lines from the third on."""
REFLOWED = KERNEL.replace("// Licence line that nobody copies.", "/* all mine */").replace(";\n", ";  // step\n\n")
RENAMED = KERNEL
for _old, _new in (
    ("part", "p"),
    ("scratch", "mem"),
    ("lane", "l"),
    ("warp", "w"),
    ("step", "o"),
    ("block_sum", "sum"),
):
    RENAMED = RENAMED.replace(_old, _new)


def contract(source: str = "from_scratch", **framework: Any) -> Contract:
    named = (Framework(name="sgl", **framework),) if framework else ()
    return msgspec.structs.replace(CONTRACT, policy=SourcePolicy(source=source), framework=named)  # type: ignore[arg-type]


def said(e: Evidence, rule: str) -> list[tuple[str, str, str]]:
    """(severity, where, what) of one rule; every fix can be pasted."""
    mine = [f for f in gate.decide(e, POLICY, final=False).findings if f.rule == rule]
    assert [faults(f.fix) for f in mine] == [[] for _ in mine]
    return [(f.severity, f.where, f.what) for f in mine]


def unevaluated(e: Evidence, rule: str) -> list[str]:
    missing = gate.decide(e, POLICY, final=False).not_evaluated
    return [words for words in missing if words.startswith(f"{rule}: ")]


def watched(now: CheckoutFacts | None, **framework: Any) -> Evidence:
    lock = msgspec.structs.replace(GOOD.lock, frameworks={"sgl": LOCKED})  # type: ignore[type-var]
    made = contract("derived", **(framework or {"in_place": False}))
    return evidence(contract=made, lock=lock, checkouts={"sgl": now} if now else {})


def at(**changes: Any) -> CheckoutFacts:
    return CheckoutFacts(now=msgspec.structs.replace(LOCKED, **changes), path="/x y/sgl", edits=("a.py",))


def test_a_checkout_as_it_was_locked_is_silent_and_evaluated() -> None:
    """Breaks when an untouched checkout is accused, one that was dirty at the lock included, or nobody looks at all."""
    assert said(watched(at()), "4") == [] and unevaluated(watched(at()), "4") == []
    dirty = msgspec.structs.replace(LOCKED, edited=3, status="t")
    lock = msgspec.structs.replace(GOOD.lock, frameworks={"sgl": dirty})  # type: ignore[type-var]
    assert said(replace(watched(at(edited=3, status="t")), lock=lock), "4") == []


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (at(head="b" * 40), "HEAD is bbbbbbbbbbbb; the lock recorded aaaaaaaaaaaa"),
        (at(status="t", edited=1), "its files are not as they were when it was locked (edited or new: none then, 1"),
        (GONE, "nobody knows whether it was edited: its checkout is gone"),
        (None, "nobody knows whether it was edited: nobody looked at its checkout"),
    ],
)
def test_a_checkout_that_moved_or_cannot_be_seen_blocks(now: CheckoutFacts | None, what: str) -> None:
    """Breaks when an edited, updated, removed or unread checkout passes."""
    found = said(watched(now), "4")
    assert [(severity, where) for severity, where, _ in found] == [("block", "framework sgl")]
    assert found[0][2].startswith(what)


def test_a_lock_of_before_the_framework_was_named_blocks() -> None:
    """Breaks when a framework that no lock recorded counts as unchanged."""
    found = said(replace(watched(at()), lock=GOOD.lock), "4")
    assert [(severity, where) for severity, where, _ in found] == [("block", "artifacts/contract.lock.json")]


def test_edits_in_place_are_allowed_only_where_the_contract_says_so() -> None:
    """Breaks when in_place does not free a checkout, or is told as a pass."""
    e = watched(at(head="b" * 40), in_place=True)
    assert said(e, "4") == []
    assert unevaluated(e, "4") == ["4: the contract allows edits in place of sgl"]


def test_another_copy_is_shown_and_does_not_block() -> None:
    """Breaks when a clean clone beside the edited one is looked at in silence, or a second machine is refused."""
    assert [severity for severity, _, _ in said(watched(at(place="q")), "4")] == ["trend"]


def test_without_frameworks_and_licences_both_rules_say_why_they_were_not_evaluated() -> None:
    """Breaks when a contract of before these fields is accused, or its rules count as passed."""
    assert said(GOOD, "4") == said(GOOD, "8") == []
    assert unevaluated(GOOD, "4") == ["4: the contract names no framework checkout"]
    assert unevaluated(GOOD, "8")[0].startswith("8: the contract allows derived work")
    nothing = evidence(contract=contract())
    assert unevaluated(nothing, "8") == ["8: neither the lock nor a framework's sources hold code to compare with"]


def copied(text: str, *, name: str = "kernel.cu", **changes: Any) -> Evidence:
    """A from-scratch variant with this file, beside a baseline that holds ``KERNEL``."""
    fields: dict[str, Any] = {"contract": contract(), "originals": {"baseline/sum.cu": KERNEL}, **changes}
    return evidence(sources={f"{VARIANTS}/fused/{name}": text}, **fields)


def test_a_copy_is_found_whatever_its_white_space_and_comments() -> None:
    """Breaks when a reformatted copy passes, or the finding lacks both files, the lines or the count."""
    for name, text in (("kernel.cu", KERNEL), ("kernel.cu", REFLOWED), ("notes", KERNEL)):
        (found,) = said(copied(text, name=name), "8")
        assert found[:2] == ("block", f"{VARIANTS}/fused/{name}")
    assert said(copied("int a;\n" + KERNEL), "8")[0][2] == (
        "shares 144 tokens with baseline/sum.cu (144 in one stretch: lines 4-14 are its lines 3-13); "
        "the contract says from_scratch"
    )


def test_a_kernel_inside_a_python_string_is_found() -> None:
    """Breaks when CUDA source that python hands to the compiler is one opaque token."""
    python = f'"""Doc."""\nimport x\nSOURCE = r"""\n{KERNEL}"""\n'
    (found,) = said(copied(python, name="candidate.py"), "8")
    assert "lines 6-16 are its lines 3-13" in found[2]


def test_renamed_names_are_not_found_and_a_short_stretch_is_allowed() -> None:
    """Breaks when the page promises less or more than what is compared: names as written, 100 tokens."""
    assert said(copied(RENAMED), "8") == []
    few = "\n".join(KERNEL.splitlines()[3:8])
    assert said(copied(few), "8") == []


def test_what_kernelpilot_hands_out_is_nobodys_copy() -> None:
    """Breaks when a baseline and a variant that both began as our template accuse each other."""
    given = scaffold.given(CONTRACT)
    name = "cuda/add_rmsnorm/variants/cuda_nvrtc/kernel.cu"
    ours = given[name]
    assert said(copied(ours, originals={"baseline/k.cu": ours}), "8") != []
    assert said(copied(ours, originals={"baseline/k.cu": ours}, given=given), "8") == []
    both = ours + KERNEL
    assert "shares 144 tokens" in said(copied(both, originals={"baseline/k.cu": both}, given=given), "8")[0][2]


def test_the_built_in_variants_share_nothing_with_their_baselines() -> None:
    """Breaks when a template is changed so that whoever starts from it in a from-scratch task is accused."""
    for op in ("norm", "gemm"):
        request = scaffold.example(op=op, gpu="H100")
        held = {path: data.decode() for path, data in scaffold.files(request).items()}
        base = {path: text for path, text in held.items() if path.startswith("baseline/")}
        mine = {
            path: text for path, text in held.items() if path.startswith("templates/") and path.endswith((".py", "u"))
        }
        assert base and len(mine) > 2
        for text in mine.values():
            assert said(copied(text, name="candidate.py", originals=base), "8") == []


def test_a_table_of_numbers_and_a_repeated_idiom_are_nobodys_code() -> None:
    """Breaks when rows of zeros match each other, or one line counts as often as it is repeated."""
    zeros = "const int t[] = {" + "0, " * 300 + "0};\n"
    assert said(copied(zeros, originals={"baseline/t.cu": zeros}), "8") == []
    idiom = "if (cudaFuncSetAttribute(f, cudaFuncAttributeSomething, n) != cudaSuccess) return fail(n, f, 12, here);\n"
    assert said(copied(idiom * 9, originals={"baseline/t.cu": idiom}), "8") == []


SOURCE = at()
OURS = {"sources": ("csrc/sum.cu",)}
THEIRS = {"sgl": replace(at(), sources={"csrc/sum.cu": KERNEL})}


def framework(source: str, text: str, **changes: Any) -> Evidence:
    made = replace(watched(THEIRS["sgl"]), contract=contract(source, **OURS), sources={f"{VARIANTS}/fused/k.cu": text})
    return replace(made, **changes)


def test_derived_work_needs_a_row_that_names_the_file() -> None:
    """Breaks when a framework's code or a licensed baseline is laundered, or a row that names it is not enough."""
    (found,) = said(framework("derived", REFLOWED), "8")
    assert "shares 144 tokens with sgl: csrc/sum.cu" in found[2] and "no provenance of v001_fused names it" in found[2]
    told = Provenance(url="https://github.com/a/b", commit="1" * 40, licence="MIT", files=("k.cu",), delta="d")
    assert said(framework("derived", REFLOWED, rows=(BASELINE, row(provenance=(told,)))), "8") == []
    assert len(said(framework("from_scratch", KERNEL, rows=(BASELINE, row(provenance=(told,)))), "8")) == 1
    licensed = {"baseline/sum.cu": "// SPDX-License-Identifier: MIT\n" + KERNEL}
    assert len(said(copied(KERNEL, contract=contract("derived"), originals=licensed), "8")) == 1
    assert said(copied(KERNEL, contract=contract("derived")), "8") == []


def test_a_variant_that_is_being_edited_waits_for_its_own_rule() -> None:
    """Breaks when a file that is no committed version is accused: rules 10 and 13 speak of it."""
    assert said(replace(copied(KERNEL), git=replace(GIT, variants={"fused": "9" * 40})), "8") == []


def test_what_cannot_be_compared_is_no_pass() -> None:
    """Breaks when a file that is no text, an unread source, or a package without sources passes in silence."""
    tracked = GIT.tracked | {f"{VARIANTS}/fused/blob.bin"}
    e = replace(copied("int a;"), git=replace(GIT, tracked=tracked))
    assert [where for _, where, _ in said(e, "8")] == [f"{VARIANTS}/fused/blob.bin"]
    assert [where for _, where, _ in said(framework("derived", "x", checkouts={"sgl": GONE}), "8")] == ["framework sgl"]
    bad = replace(at(), source_faults=(Fault(where="framework sgl: a", what="no such file", fix="ls"),))
    assert [where for _, where, _ in said(framework("derived", "x", checkouts={"sgl": bad}), "8")] == [
        "framework sgl: a"
    ]
    wheel = msgspec.structs.replace(CONTRACT.baseline[0], requires=("sgl-kernel",))
    asks = msgspec.structs.replace(contract(), baseline=(wheel,))
    assert unevaluated(copied("int a;", contract=asks), "8")[0].startswith("8: compared with baseline/ only")


def test_tokens_of_both_languages() -> None:
    """Breaks when a comment, an import or a signature of the contract counts, or a line number slips."""
    python = "from a import (\n    b,\n)\n\ndef entry(*, x, y=(1, 2)) -> None:\n"
    python += '    """Doc\n    more."""\n    y[0] = x  # why\n'
    assert shingles.code(python, python=True) == shingles.Code(words=("y", "[", "0", "]", "=", "x"), lines=(8,) * 6)
    c = "#include <a.h>\n#pragma once\n/* a\n b */ x<<=1.5e-3f; // c\n"
    assert shingles.code(c, python=False).words == ("x", "<<", "=", "1.5e-3f", ";")
    assert set(shingles.code(c, python=False).lines) == {4}


def test_an_old_lock_has_no_frameworks() -> None:
    """Breaks when a lock of before the field cannot be read any more."""
    old = {"epoch": 1, "files": {}, "locked_at": "", "why": "", "mutation_score": ""}
    assert msgspec.convert(old, Lock).frameworks == {}
