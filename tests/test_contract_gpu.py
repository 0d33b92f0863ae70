"""What a contract may say of a GPU: figures, residency, memory, several baselines, and what a job gets of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelpilot_helpers import contract
from kernelpilot_helpers.attempt.resolve import resolve
from kernelpilot_helpers.contract.model import Case
from kernelpilot_helpers.errors import BadRecord

GOOD = Path(__file__).parent / "golden" / "contract" / "good"
HEAD = '{"format":"kernelpilot.cases","version":1}\n'


def load(name: str) -> contract.Contract:
    return contract.parse((GOOD / f"{name}.toml").read_bytes(), at="contract.toml")


NORM = load("gpu_add_rmsnorm")
MM = load("gpu_int8_scaled_mm")
DECODE = {"case_id": "m64", "axes": {"M": 64, "N": 6144, "K": 4096}, "regime": "decode"}


def mm(**flags: object) -> Case:
    doc = json.dumps({**DECODE, "flags": flags})
    return contract.parse_cases(f"{HEAD}{doc}\n".encode(), MM, at="cases.jsonl")[0]


def test_the_two_contracts_say_what_they_say() -> None:
    """Breaks if a GPU's field is accepted and lost, or a second baseline is dropped."""
    assert [b.fn for b in NORM.baseline] == ["baseline/candidate.py:entry", "baseline/compiled.py:entry"]
    assert (NORM.call.graph, NORM.timing.decide["decode"]) == ("must", "chained")
    assert NORM.timing.report == ("chained", "pipelined", "isolated", "host", "sustained")
    assert (MM.call.graph, MM.tensors["b"].residency, MM.tensors["out"].residency) == (None, "cold", None)


def test_int8_scaled_mm_resolves_with_and_without_its_bias() -> None:
    """Breaks if a flag's dtype, the transposed static or a tensor's residency does not reach the job."""
    with_bias = resolve(MM, mm(bias=True, out_dtype="bf16"))
    by = {t.name: t for t in with_bias.tensors}
    assert list(by) == ["a", "b", "scale_a", "scale_b", "bias", "out"]
    assert (by["b"].role, by["b"].shape, by["b"].stride) == ("static", (4096, 6144), (1, 4096))
    assert {n: t.dtype for n, t in by.items()} == {
        "a": "int8", "b": "int8", "scale_a": "float32", "scale_b": "float32", "bias": "bfloat16", "out": "bfloat16",
    }  # fmt: skip
    assert {n: t.residency for n, t in by.items()} == {
        "a": "hot", "b": "cold", "scale_a": "hot", "scale_b": "cold", "bias": "cold", "out": "cold",
    }  # fmt: skip
    bare = resolve(MM, mm(bias=False, out_dtype="f16"))
    assert [(t.name, t.dtype) for t in bare.tensors][-2:] == [("scale_b", "float32"), ("out", "float16")]


def test_the_deciding_figure_is_the_cases_then_its_regimes_then_pipelined() -> None:
    """Breaks if a decode case is judged by throughput, or the CPU is asked for a figure that it has not."""

    def figure(**more: str) -> str:
        return resolve(NORM, Case(case_id="c", axes={"M": 16, "N": 4096}, **more)).figure  # type: ignore[arg-type]

    assert figure(regime="decode") == "chained"
    assert figure(regime="prefill") == "pipelined"
    assert figure(regime="other") == "pipelined"
    assert figure(regime="decode", decide="isolated") == "isolated"
    cpu = load("fused_add_rmsnorm")
    assert resolve(cpu, Case(case_id="c", axes={"M": 16, "N": 4096}, decide="isolated")).figure == "pipelined"


def test_one_edge_moves_every_tensor_and_keeps_the_promised_alignment() -> None:
    """Breaks if a kernel may rely on more alignment than its contract promises, or is refused for relying on it."""
    cases = (mm(bias=True, out_dtype="bf16"),)
    moved = next(c for c in contract.edges(MM, cases) if c.case_id == "edge__offset")
    # align 16: sixteen int8, eight bf16; align 64 (default): sixteen f32
    assert moved.offsets == {"a": 16, "b": 16, "scale_a": 16, "scale_b": 16, "bias": 8, "out": 8}
    job = resolve(MM, moved)
    width = {"int8": 1, "float32": 4, "bfloat16": 2}
    assert all(t.offset > 0 and t.offset * width[t.dtype] % t.align == 0 for t in job.tensors)
    assert (job.timed, job.required) == (False, False)
    dropped = next(c for c in contract.edges(MM, (mm(bias=False, out_dtype="bf16"),)) if c.case_id == "edge__offset")
    assert "bias" not in dropped.offsets


def test_an_element_that_is_its_own_alignment_moves_by_one() -> None:
    """Breaks if the edge never leaves the 16-byte grid where the contract promises nothing of it."""
    text = (GOOD / "gpu_add_rmsnorm.toml").read_text().replace("align = 16", "align = 2")
    loose = contract.parse(text.encode(), at="c")
    case = Case(case_id="c", axes={"M": 16, "N": 4096})
    moved = next(c for c in contract.edges(loose, (case,)) if c.case_id == "edge__offset")
    assert moved.offsets == {"x": 1, "residual": 1, "weight": 1}


def test_the_cpu_gets_no_moved_edge() -> None:
    """Breaks if every lock on a CPU pays for one more case."""
    cpu = load("fused_add_rmsnorm")
    assert not [c for c in contract.edges(cpu, (Case(case_id="c", axes={"M": 64, "N": 512}),)) if c.offsets]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('arch = "sm_90a"', 'arch = "90"', 'target.arch = "90": want a name such as "sm_90a"'),
        ('graph = "must"', 'graph = "always"', 'call.graph = "always": want "must" or "may" or "never"'),
        ('id = "compiled"', 'id = "eager"', "baseline: 2 entries have the id 'eager'"),
        ('decode = "chained"', 'decode = "sustained"', 'not supported yet: timing.decide.decode = "sustained"'),
        ('gpu = "H200"', 'gpu = "cpu"', "only on a GPU: baseline has 2 entries (eager, compiled); keep one"),
    ],
)
def test_what_is_refused_by_name(old: str, new: str, why: str) -> None:
    """Breaks if a field of a GPU contract is misread in silence."""
    text = (GOOD / "gpu_add_rmsnorm.toml").read_text()
    assert old in text
    with pytest.raises(BadRecord) as caught:
        contract.parse(text.replace(old, new).encode(), at="c")
    assert why in caught.value.what
