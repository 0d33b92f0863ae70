"""Whole-number expressions of axes: ``K // 2 + 8``, and constraints such as ``K % 16 == 0 and M <= N``.

Parsed by ``ast`` and walked here; nothing is ever handed to ``eval``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from kernelpilot_helpers.errors import BadRecord

LENGTH_MAX = 200
VALUE_MAX = 2**62
FIX = "use axis names, whole numbers, + - * // % ( ) min max; comparisons joined by 'and' in a constraint"

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
_CALLS: dict[str, Callable[..., int]] = {"min": min, "max": max}


class _Bad(Exception):
    """Why an expression has no value; the public functions add the expression itself."""


class _Zero(_Bad):
    """Division by zero: depends on the values, not on the expression."""


def _parse(text: str) -> ast.expr:
    if len(text) > LENGTH_MAX:
        raise _Bad(f"longer than {LENGTH_MAX} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _Bad("not an expression") from None


def _bounded(value: int) -> int:
    if abs(value) > VALUE_MAX:
        raise _Bad("a value beyond 2**62")
    return value


def _binary(node: ast.BinOp, names: Mapping[str, int]) -> int:
    step = _BINARY.get(type(node.op))
    if step is None:
        raise _Bad(f"{type(node.op).__name__} is not an operator of this language")
    left, right = _number(node.left, names), _number(node.right, names)
    if right == 0 and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
        raise _Zero("division by zero")
    return _bounded(step(left, right))


def _call(node: ast.Call, names: Mapping[str, int]) -> int:
    if not isinstance(node.func, ast.Name) or node.func.id not in _CALLS or node.keywords:
        raise _Bad("only min(...) and max(...) may be called")
    if len(node.args) < 2:
        raise _Bad(f"{node.func.id} wants at least two values")
    return _CALLS[node.func.id](*(_number(arg, names) for arg in node.args))


def _number(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _bounded(node.value)
    if isinstance(node, ast.Name):
        if node.id not in names:
            known = ", ".join(names) or "none"
            raise _Bad(f"{node.id!r} is not an axis known here (known: {known})")
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, names)
    if isinstance(node, ast.BinOp):
        return _binary(node, names)
    if isinstance(node, ast.Call):
        return _call(node, names)
    raise _Bad(f"{ast.unparse(node)!r} is not a whole number")


def _truth(node: ast.expr, names: Mapping[str, int]) -> bool:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        parts = [_truth(part, names) for part in node.values]  # all of them: a bad name must not hide behind a false
        return all(parts)
    if isinstance(node, ast.Compare):
        values = [_number(part, names) for part in (node.left, *node.comparators)]
        steps = [_COMPARE.get(type(op)) for op in node.ops]
        if None in steps:
            raise _Bad(f"{ast.unparse(node)!r} is not a comparison of numbers")
        return all(step(a, b) for step, a, b in zip(steps, values, values[1:], strict=False) if step)
    raise _Bad(f"{ast.unparse(node)!r} is not a comparison")


def evaluate(text: str | int, names: Mapping[str, int], *, at: str) -> int:
    """Value of an expression. Raises BadRecord naming the expression.

    >>> evaluate("K // 2 + max(M, 8)", {"K": 64, "M": 1}, at="axes.T.expr")
    40
    """
    if isinstance(text, int):
        return text
    try:
        return _number(_parse(text), names)
    except _Bad as bad:
        raise BadRecord(f"{text!r}: {bad}", where=at, fix=FIX) from None


def holds(text: str, names: Mapping[str, int], *, at: str) -> bool:
    """Whether a constraint is true; every part is evaluated, so that a bad name is never hidden by ``and``.

    >>> holds("K % 16 == 0 and M <= K", {"K": 64, "M": 1}, at="constraints[0]")
    True
    """
    try:
        return _truth(_parse(text), names)
    except _Bad as bad:
        raise BadRecord(f"{text!r}: {bad}", where=at, fix=FIX) from None


def check(text: str | int, axes: Mapping[str, int], *, at: str, constraint: bool = False) -> None:
    """Raises BadRecord where an expression could not be evaluated for any sizes of these axes."""
    if isinstance(text, int):
        return
    try:
        node = _parse(text)
        _ = _truth(node, axes) if constraint else _number(node, axes)
    except _Zero:
        return  # these sample sizes only; each case is evaluated with its own
    except _Bad as bad:
        raise BadRecord(f"{text!r}: {bad}", where=at, fix=FIX) from None
