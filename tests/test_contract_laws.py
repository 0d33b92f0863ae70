"""Laws over generated contracts and workloads."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpilot_helpers import contract
from kernelpilot_helpers.attempt.resolve import resolve
from kernelpilot_helpers.contract.sizes import in_axis
from kernelpilot_helpers.errors import BadRecord

NAMES = st.sampled_from(["x", "y", "w", "bias", "out2", "scale"])
VAR = st.tuples(st.integers(1, 8), st.integers(8, 4096)).map(lambda v: {"var": list(v)})
VALUES = st.lists(st.integers(1, 512), min_size=1, max_size=4, unique=True).map(lambda v: {"values": v})
EXPR = st.sampled_from([{"expr": "M * N"}, {"expr": "max(M, N) // 2 + 1"}])
TENSOR = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["in", "static", "inout"]),
        "dtype": st.sampled_from(["f32", "bf16", "int8", "uint8", "bool", "float64"]),
        "shape": st.sampled_from([["M", "N"], ["N"], ["T", 3], ["M", "N + 1", 2]]),
    },
    optional={"offset": st.integers(0, 3), "align": st.sampled_from([1, 16, 128])},
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    tensors: dict[str, Any] = draw(st.dictionaries(NAMES, TENSOR, min_size=1, max_size=4))
    tensors["out"] = {"role": "out", "dtype": draw(st.sampled_from(["f32", "i32"])), "shape": ["M", "N"]}
    return {
        "format": "kernelpilot.contract",
        "version": 1,
        "task": {"name": "t", "op": "other", "summary": draw(st.text(alphabet='ab"\\\n\té#', max_size=12))},
        "target": {"gpu": "cpu", "speedup": draw(st.floats(1.001, 9.0))},
        "axes": {"M": draw(VAR), "N": draw(VALUES), "T": draw(EXPR)},
        "baseline": [{"id": "b"}],
        "tensors": tensors,
    }


@pytest.mark.property
@settings(deadline=None, max_examples=60)
@given(documents())
def test_dump_is_undone_by_parse(doc: dict[str, Any]) -> None:
    """Breaks if a quote, an order or a default is lost on the way through TOML."""
    made = contract.from_document(doc, at="c")
    assert contract.parse(contract.dump(made), at="c") == made


@pytest.mark.property
@settings(deadline=None, max_examples=60)
@given(documents(), st.data())
def test_edges_always_resolve_inside_the_contract(doc: dict[str, Any], data: st.DataObject) -> None:
    """Breaks if a generated edge case leaves a range, repeats W, or cannot be laid out."""
    made = contract.from_document(doc, at="c")
    low, high = doc["axes"]["M"]["var"]
    axes = {
        "M": data.draw(st.integers(low, high)),
        "N": data.draw(st.sampled_from(doc["axes"]["N"]["values"])),
    }
    cases = (contract.Case(case_id="a", axes=axes),)
    contract.cases.check(cases, made, at="c")
    edges = contract.edges(made, cases)
    assert axes not in [c.axes for c in edges]
    assert len({c.case_id for c in edges}) == len(edges) == len({tuple(c.axes.items()) for c in edges})
    for case in edges:
        assert all(in_axis(made.axes[name], size) for name, size in case.axes.items())
        assert min(min(t.shape) for t in resolve(made, case).tensors) >= 1


@pytest.mark.property
@settings(deadline=None, max_examples=100)
@given(documents(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4), st.lists), st.data())
def test_any_value_anywhere_is_taken_or_refused(doc: dict[str, Any], junk: Any, data: st.DataObject) -> None:
    """Breaks if an odd value ends in a traceback instead of a fault."""
    table = data.draw(st.sampled_from([doc, doc["task"], doc["target"], doc["axes"], doc["tensors"]["out"]]))
    table[data.draw(st.sampled_from(sorted(table)))] = junk
    try:
        contract.from_document(doc, at="c")
    except BadRecord as error:
        assert error.what
