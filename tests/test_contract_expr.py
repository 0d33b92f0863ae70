"""Whole-number expressions: what they mean and what they may not hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpilot_helpers.contract import expr
from kernelpilot_helpers.errors import BadRecord

SIZES = {"M": 7, "K": 64}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("K", 64),
        ("K // 2 + 8", 40),
        ("(K + 63) // 64 * 64", 64),
        ("M % 4", 3),
        ("-M + 10", 3),
        ("min(M, K, 3)", 3),
        ("max(M, K // 8)", 8),
        (12, 12),
    ],
)
def test_values(text: str | int, value: int) -> None:
    """Breaks if precedence or floor division differ from Python's."""
    assert expr.evaluate(text, SIZES, at="a") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("K % 16 == 0", True),
        ("K % 16 == 0 and M > 7", False),
        ("1 <= M < K", True),
        ("M != 7", False),
    ],
)
def test_constraints(text: str, value: bool) -> None:
    """Breaks if a chain is read as its first comparison only."""
    assert expr.holds(text, SIZES, at="c") is value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Q", "'Q' is not an axis known here (known: M, K)"),
        ("K / 2", "Div is not an operator"),
        ("K ** 9", "Pow is not an operator"),
        ("K // (M - 7)", "division by zero"),
        ("K % 0", "division by zero"),
        ("2.5", "'2.5' is not a whole number"),
        ("True", "'True' is not a whole number"),
        ("M.real", "'M.real' is not a whole number"),
        ("__import__('os')", "only min(...) and max(...)"),
        ("(lambda: 1)()", "only min(...) and max(...)"),
        ("min(M)", "at least two values"),
        ("min(*M)", "wants at least two values"),
        ("M if K else 1", "is not a whole number"),
        ("", "not an expression"),
        ("M +", "not an expression"),
        ("1" + "0" * 30, "beyond 2**62"),
        ("K * K * K * K * K * K * K * K * K * K * K", "beyond 2**62"),
        ("(" * 150 + "1" + ")" * 150, "longer than"),
    ],
)
def test_what_is_refused_names_the_expression(text: str, why: str) -> None:
    """Breaks if code runs, if a number grows without end, or if the user cannot see which expression it was."""
    with pytest.raises(BadRecord) as caught:
        expr.evaluate(text, SIZES, at="axes.T.expr")
    assert why in caught.value.what
    assert repr(text) in caught.value.what
    assert caught.value.where == "axes.T.expr"


@pytest.mark.parametrize("text", ["M > 1 or K > 1", "not M > 1", "M in (1, 2)", "M", "M is K"])
def test_constraints_know_only_comparisons_and_and(text: str) -> None:
    """Breaks if ``or`` or ``in`` slip in with another meaning than the user's."""
    with pytest.raises(BadRecord):
        expr.holds(text, SIZES, at="c")


def test_a_wrong_name_behind_a_false_part_is_still_found() -> None:
    """Breaks if ``and`` stops at the first false part."""
    with pytest.raises(BadRecord, match="'Z' is not an axis"):
        expr.holds("M > 100 and Z == 1", SIZES, at="c")


@pytest.mark.property
@given(st.text(alphabet="MK0123456789+-*/%() minax,.=<>", max_size=40))
def test_any_text_gives_a_number_or_a_named_fault(text: str) -> None:
    """Breaks if some text ends in another exception."""
    try:
        assert isinstance(expr.evaluate(text, SIZES, at="a"), int)
    except BadRecord as error:
        assert repr(text) in error.what
