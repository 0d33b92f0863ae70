"""One way to write a record as bytes: sorted keys, six significant digits, a list of plain values on one line."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from kernelpilot_helpers.ncu.quantity import rounded

_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
T = TypeVar("T")


def numbers(plain: Any) -> Any:
    """The same value with every float at six significant digits; what is no finite number becomes None.

    >>> numbers({"a": [0.1234567, 3, float("nan")]})
    {'a': [0.123457, 3, None]}
    """
    if isinstance(plain, float):
        return rounded(plain) if math.isfinite(plain) else None
    if isinstance(plain, dict):
        return {key: numbers(value) for key, value in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [numbers(value) for value in plain]
    return plain


def settled(record: T, text: Callable[[str], str]) -> T:
    """A record, and all in it, with ``text`` applied to every text and every float at six significant digits.

    Keys stay as they are. Raises nothing that ``text`` does not raise.
    """
    return _settled(record, text)  # type: ignore[no-any-return]


def _settled(value: Any, text: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, float):
        return rounded(value) if math.isfinite(value) else None
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: _settled(getattr(value, name), text) for name in value.__struct_fields__})
    if isinstance(value, tuple):
        return tuple(_settled(item, text) for item in value)
    if isinstance(value, dict):
        return {key: _settled(item, text) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: _settled(getattr(value, field.name), text) for field in dataclasses.fields(value)}
        return type(value)(**named)
    return value


def dump(plain: Any) -> bytes:
    """JSON text with a final newline. The same value gives the same bytes on every machine."""
    return (_laid_out(plain, "\n") + "\n").encode("utf-8", "backslashreplace")


def _laid_out(plain: Any, end: str) -> str:
    # The standard encoder indents in Python, value by value: three times the time of one that indents containers only.
    inner = end + " "
    if isinstance(plain, dict) and plain:
        parts = [f"{_PLAIN(key)}: {_laid_out(plain[key], inner)}" for key in sorted(plain)]
        return "{" + inner + f",{inner}".join(parts) + end + "}"
    if isinstance(plain, (list, tuple)) and any(isinstance(item, (dict, list, tuple)) for item in plain):
        return "[" + inner + f",{inner}".join(_laid_out(item, inner) for item in plain) + end + "]"
    return _PLAIN(plain)
