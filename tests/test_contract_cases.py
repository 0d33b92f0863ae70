"""W: cases, their edges, and what a job gets of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import contract
from kernelpilot_helpers.attempt.job import TensorSpec
from kernelpilot_helpers.attempt.resolve import resolve
from kernelpilot_helpers.errors import BadRecord, NewerFormat

GOOD = Path(__file__).parent / "golden" / "contract" / "good"
HEAD = '{"format":"kernelpilot.cases","version":1}\n'


def load(name: str) -> contract.Contract:
    return contract.parse((GOOD / f"{name}.toml").read_bytes(), at="contract.toml")


NORM = load("fused_add_rmsnorm")
MM = load("int8_scaled_mm")


def lines(*cases: dict[str, Any], head: str = HEAD) -> bytes:
    return (head + "".join(json.dumps(case) + "\n" for case in cases)).encode()


def norm(case_id: str, m: int, n: int, **more: Any) -> dict[str, Any]:
    return {"case_id": case_id, "axes": {"M": m, "N": n}, **more}


def mm(case_id: str, **more: Any) -> dict[str, Any]:
    axes = {"M": 64, "N": 6144, "K": 4096}
    return {"case_id": case_id, "axes": axes, "flags": {"bias": True, "out_dtype": "bf16"}, "regime": "decode", **more}


PREFILL = {"case_id": "p", "axes": {"M": 4096, "N": 4096, "K": 4096}, "flags": {"out_dtype": "f16"}}
PREFILL["regime"] = "prefill"


def refused(data: bytes, made: contract.Contract = NORM) -> str:
    with pytest.raises(BadRecord) as caught:
        contract.parse_cases(data, made, at="cases.jsonl")
    return caught.value.what


def test_cases_keep_their_order_and_survive_a_round_trip() -> None:
    """Breaks if dump loses a field or a default changes the meaning of a short line."""
    data = lines(
        norm("b", 64, 512, calls=32, padded_from=57, source={"kind": "model", "ref": "L8B", "sampling": ""}),
        norm("a", 8, 512, held_out=True, gen={"x": "uniform(-1,1)"}, strides={"x": [1024, 1]}),
        norm("c", 8, 8, required=False),
    )
    cases = contract.parse_cases(data, NORM, at="cases.jsonl")
    assert [c.case_id for c in cases] == ["b", "a", "c"]
    assert (cases[0].calls, cases[0].required, cases[0].regime) == (32, True, "default")
    assert contract.parse_cases(contract.dump_cases(cases), NORM, at="again") == cases


def test_a_duplicate_case_id_is_refused() -> None:
    """Breaks if the last of two cases wins: an earlier system printed a 4472x gain that way."""
    assert "duplicate case_id 'a' (2 times)" in refused(lines(norm("a", 8, 512), norm("a", 16, 512)))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (HEAD.encode(), "no case at all"),
        (lines(norm("a", 8, 512, edge=True)), "no required case to time"),
        (lines(norm("a", 8, 512, required=False)), "no required case to time"),
        (lines(norm("a", 5000, 512)), "a: axes.M = 5000: the contract allows 1 to 4096"),
        (lines({"case_id": "a", "axes": {"M": 8}}), "a: axes.N is missing"),
        (lines({"case_id": "a", "axes": {"M": 8, "N": 8, "H": 2}}), "a: axes.H is not an axis of the contract"),
        (lines(norm("a", 8, 512, flags={"bias": True})), "a: flags.bias = true: no tensor of the contract uses it"),
        (lines(norm("a", 8, 512, draws=100)), "line 2: not supported yet: draws = 100"),
        (lines(norm("a", 8, 512, decide="chained")), 'line 2: only on a GPU: decide = "chained"'),
        (lines(norm("a", 8, 512, decide="host")), 'line 2: not supported yet: decide = "host"'),
        (lines(norm("a", 8, 512, offsets={"y": 1})), "a: offsets.y: no such tensor"),
        (lines(norm("a", 8, 512, offsets={"x": -1})), "offset -1 is below 0"),
        (lines(norm("a", 8, 512, held=True)), "line 2: unknown field: held = true (did you mean held_out?)"),
        (lines({"axes": {"M": 8, "N": 8}}), "line 2: missing: case_id"),
        (lines(norm("a", 8, 512, calls=0)), "a: calls = 0"),
        (lines(norm("edge__x", 8, 512)), "edge__ is kept for generated edge cases"),
        (lines(norm("a b", 8, 512)), "want a name without spaces"),
        (lines(norm("a", 8, 512, gen={"x": "zeros"})), "a: gen.x = \"zeros\": a constant input hides"),
        (lines(norm("a", 8, 512, gen={"out": "normal(0,1)"})), "a: gen.out: an output is filled with poison"),
        (lines(norm("a", 8, 512, strides={"y": [1, 1]})), "a: strides.y: no such tensor"),
        (lines(norm("a", 8, 512, strides={"x": [4, 1]})), "overlap"),
        (lines(norm("a", 8, 512, required="false")), 'line 2: required = "false": Expected `bool`, got `str`'),
        (HEAD.encode() + b'{"case_id":"a","case_id":"b"}\n', "line 2: not valid JSON: duplicate key 'case_id'"),
        (lines(norm("a", 8, 512), head='{"format":"kernelpilot.case","version":1}\n'), "kernelpilot.cases"),
        (lines(norm("a", 8, 512), head=""), "the first line must be"),
    ],
)  # fmt: skip
def test_what_is_refused(data: bytes, why: str) -> None:
    """Breaks if a narrowed, misspelt or impossible workload is taken as it is."""
    assert why in refused(data)


def test_a_newer_file_is_refused_by_name() -> None:
    """Breaks if a newer workload is read with fields ignored."""
    with pytest.raises(NewerFormat):
        contract.parse_cases(lines(norm("a", 8, 8), head='{"format":"kernelpilot.cases","version":2}\n'), NORM, at="c")


def test_flags_are_what_the_tensors_use() -> None:
    """Breaks if a case may leave out the flag that picks an output's dtype."""
    bad = mm("a", flags={"bias": "false"})
    what = refused(lines(bad, PREFILL), MM)
    assert 'a: flags.bias = "false": want true or false' in what
    assert "a: flags.out_dtype is missing: it picks a dtype" in what
    assert 'flags.out_dtype = "fp9"' in refused(lines(mm("a", flags={"out_dtype": "fp9"}), PREFILL), MM)


def test_a_decide_entry_without_a_regime_is_found() -> None:
    """Breaks if a misspelt regime silently falls back to the default figure."""
    assert "timing.decide.prefill names no case's regime (decode)" in refused(lines(mm("a")), MM)


def test_constraints_bind_every_case() -> None:
    """Breaks if constraints are checked on the contract alone."""
    text = (
        (GOOD / "fused_add_rmsnorm.toml")
        .read_text()
        .replace("version = 1", "version = 1\nconstraints = ['N % 8 == 0']")
    )
    made = contract.parse(text.encode(), at="c")
    assert "a: breaks the constraint 'N % 8 == 0'" in refused(lines(norm("a", 8, 513)), made)
    cases = contract.parse_cases(lines(norm("a", 8, 512)), made, at="c")
    assert {c.axes["N"] for c in contract.edges(made, cases)} == {8, 16}


def test_edges_of_the_norm() -> None:
    """Breaks if an edge is lost, leaves the ranges, repeats a size of W, or is timed."""
    cases = contract.parse_cases(lines(norm("big", 512, 4096), norm("small", 64, 512)), NORM, at="c")
    edges = contract.edges(NORM, cases)
    assert {c.case_id: (c.axes["M"], c.axes["N"]) for c in edges} == {
        "edge__M_min": (1, 16),
        "edge__M_minus1": (511, 16),
        "edge__M_plus1": (513, 16),
        "edge__M_odd": (257, 16),
        "edge__M_ragged": (543, 16),
        "edge__N_min": (16, 8),
        "edge__N_minus1": (16, 4095),
        "edge__N_plus1": (16, 4097),
        "edge__N_odd": (16, 2049),
        "edge__N_ragged": (16, 4127),
        "edge__all_min": (1, 8),
        "edge__all_odd": (33, 65),
        "edge__all_ragged": (95, 159),
    }
    assert all(c.edge and not c.required and not contract.timed(c) for c in edges)
    assert contract.edges(NORM, cases) == edges


def test_edges_use_listed_values_only() -> None:
    """Breaks if a values axis gets a size that the contract does not list, or an unused listed one is skipped."""
    cases = contract.parse_cases(lines(mm("a"), PREFILL), MM, at="c")
    edges = contract.edges(MM, cases)
    assert {c.axes["N"] for c in edges} == {4096, 6144}
    assert "edge__N_is4096" in {c.case_id for c in edges}
    assert all(c.flags == {"bias": True, "out_dtype": "bf16"} for c in edges)


def test_resolve_gives_numbers_only() -> None:
    """Breaks if an expression, a flag or a scalar reaches the runtime unresolved."""
    case, other = contract.parse_cases(lines(mm("a"), PREFILL), MM, at="c")
    job = resolve(MM, case)
    assert job.axes == {"M": 64, "N": 6144, "K": 4096, "lda": 4160}
    assert job.timed
    assert job.tensors[0] == TensorSpec(
        name="a", role="in", dtype="int8", shape=(64, 4096), stride=(4160, 1), align=128, gen="integers(-127,128)",
    )  # fmt: skip
    assert [(t.name, t.dtype, t.stride) for t in job.tensors[1:]] == [
        ("b", "int8", (1, 4096)),
        ("scale_a", "float32", (1,)),
        ("scale_b", "float32", (1,)),
        ("bias", "bfloat16", (1,)),
        ("out", "bfloat16", (6144, 1)),
    ]
    assert [(t.name, t.dtype) for t in resolve(MM, other).tensors if t.role != "in"] == [
        ("b", "int8"), ("scale_b", "float32"), ("out", "float16"),
    ]  # fmt: skip


def test_resolve_scalars_generators_and_overrides() -> None:
    """Breaks if const(1e-6) becomes text or a case's own generator or stride is ignored."""
    data = lines(
        norm("t", 4, 512), norm("h", 4, 512, held_out=True, gen={"x": "normal(0, 2)"}, strides={"x": [600, 1]})
    )
    first, second = (resolve(NORM, c) for c in contract.parse_cases(data, NORM, at="c"))
    by = {t.name: t for t in first.tensors}
    assert (by["eps"].value, by["eps"].shape) == (1e-6, ())
    assert (by["weight"].gen, by["x"].gen) == ("uniform(0.5,1.5)", "normal(0,1)")
    assert (second.timed, second.held_out) == (False, True)
    assert (second.tensors[0].gen, second.tensors[0].stride) == ("normal(0,2)", (600, 1))


def test_resolve_reads_scalars_from_flags() -> None:
    """Breaks if a flag of the wrong kind is passed on to a kernel."""
    two = load("two_outputs")
    case = {"case_id": "a", "axes": {"M": 2, "G": 3}, "flags": {"limit": 7}}
    job = resolve(two, contract.parse_cases(lines(case), two, at="c")[0])
    assert [t.shape for t in job.tensors] == [(2, 384), (2, 384), (2, 3), ()]
    assert (job.tensors[0].offset, job.tensors[3].value) == (1, 7)
    assert "flags.limit = 1.5: want a whole number" in refused(lines({**case, "flags": {"limit": 1.5}}), two)
    assert "flags.limit = true: want a number" in refused(lines({**case, "flags": {"limit": True}}), two)
