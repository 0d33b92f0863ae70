"""A document against the records' own fields: every fault at once, each with its dotted path and value.

Fields and values that the format knows and this version does not run are refused by name, never ignored.
"""

from __future__ import annotations

import difflib
import fnmatch
import json
import re
import typing
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

LATER_FIELDS: dict[str, tuple[object, ...]] = {
    "dtypes": (),
    "static": (),
    "compile": (),
    "comm": (),
    "call.pdl": (),
    "call.reentrant": (False,),
    "reference.grad_of": ("",),
    "policy.extra_kernels": ([],),
    "tensors.*.host": (False,),
    "tensors.*.init": (),
    "tensors.*.writes": (),
    "tensors.*.valid": (),
    "tensors.*.compare": (),
    "tensors.*.numerics": (),
    "draws": (1,),
}
"""Fields of the format that this version does not run, with the values that ask for nothing beyond what it does."""

LATER_VALUES: dict[str, tuple[str, ...]] = {
    "call.style": ("return",),
    "call.timed*": ("prepare", "plan"),
    "tensors.*.role": ("state", "workspace"),
    "tensors.*.residency": ("cold:disjoint",),
    "timing.decide.*": ("host", "sustained"),
    "decide": ("host", "sustained"),
    "objective.metric": ("worst",),
}

GPU_VALUES: dict[str, tuple[str, ...]] = {
    "call.graph": ("must", "may"),
    "tensors.*.residency": ("cold",),
    "timing.decide.*": ("chained",),
    "timing.report*": ("chained", "host", "sustained"),
    "decide": ("chained",),
}
"""Values that mean something on a GPU only; the others of these fields ask a CPU for nothing beyond what it does."""

EXPRESSIONS = ("axes.*.expr", "constraints*", "tensors.*.shape*", "tensors.*.stride*", "tensors.*.offset")
_TODO = re.compile(r"\b(TODO|FIXME|TBD)\b")
_ANGLE = re.compile(r"<[A-Za-z][^<>]*>|^\.\.\.$")


def show(value: object) -> str:
    """A value as the user wrote it, cut to one short line."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _matches(path: str, patterns: Mapping[str, Any] | tuple[str, ...]) -> str | None:
    for pattern in patterns:
        deeper = "*" not in pattern or path.count(".") == pattern.count(".")
        if deeper and fnmatch.fnmatchcase(path, pattern.replace("[", "[[]")):
            return pattern
    return None


def _choices(kind: Any) -> tuple[object, ...]:
    """The values of a Literal, or of a Literal that may be left out; empty for any other type."""
    if typing.get_origin(kind) is typing.Union:
        literal = [part for part in typing.get_args(kind) if typing.get_origin(part) is Literal]
        kind = literal[0] if len(literal) == 1 else kind
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


class Walk:
    """One pass over a document for one ``device`` (cpu or gpu); ``faults`` grows in document order."""

    def __init__(self, device: str = "gpu") -> None:
        self.faults: list[str] = []
        self._device = device

    def struct(self, doc: object, kind: type[msgspec.Struct], path: str = "") -> dict[str, Any]:
        """The document's fields that are good, keyed as written; faults for all others."""
        if not isinstance(doc, dict):
            self.faults.append(f"{path} = {show(doc)}: want a table")
            return {}
        fields = {f.encode_name: f for f in msgspec.structs.fields(kind)}
        good: dict[str, Any] = {}
        for key, value in doc.items():
            here = _join(path, key)
            if key in fields:
                self._field(good, key, value, fields[key].type, here)
            else:
                self._stranger(value, here, key, list(fields))
        for name, field in fields.items():
            if field.required and name not in doc:
                self.faults.append(f"missing: {_join(path, name)}")
        return good

    def _stranger(self, value: object, here: str, key: str, known: list[str]) -> None:
        later = _matches(here, LATER_FIELDS)
        if later is not None:
            if value not in LATER_FIELDS[later]:
                self.faults.append(f"not supported yet: {here} = {show(value)}")
            return
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
        self.faults.append(f"unknown field: {here} = {show(value)} ({hint})")

    def _field(self, good: dict[str, Any], key: str, value: object, kind: Any, here: str) -> None:
        before = len(self.faults)
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            good[key] = self.struct(value, kind, here)
            return
        if origin is dict and isinstance(value, dict):
            good[key] = {}
            for name, item in value.items():
                self._field(good[key], name, item, args[1], _join(here, name))
            return
        if origin is tuple and isinstance(value, list) and args[-1] is Ellipsis:
            items: dict[str, Any] = {}
            for ix, item in enumerate(value):
                self._field(items, str(ix), item, args[0], f"{here}[{ix}]")
            if len(self.faults) == before:
                good[key] = list(items.values())
            return
        self._leaf(value, kind, here)
        if len(self.faults) == before:
            good[key] = value

    def _leaf(self, value: object, kind: Any, here: str) -> None:
        self._placeholder(value, here)
        known = _choices(kind)
        if known:
            self._choice(value, known, here)
            return
        try:
            msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError as error:
            self.faults.append(f"{here} = {show(value)}: {str(error).split(' - at')[0]}")

    def _choice(self, value: object, known: tuple[object, ...], here: str) -> None:
        if value in known and type(value) in {type(k) for k in known}:
            only = _matches(here, GPU_VALUES) if self._device == "cpu" else None
            if only is not None and value in GPU_VALUES[only]:
                self.faults.append(f"only on a GPU: {here} = {show(value)}")
            return
        later = _matches(here, LATER_VALUES)
        if later is not None and value in LATER_VALUES[later]:
            self.faults.append(f"not supported yet: {here} = {show(value)}")
        else:
            self.faults.append(f"{here} = {show(value)}: want {' or '.join(show(k) for k in known)}")

    def _placeholder(self, value: object, here: str) -> None:
        if not isinstance(value, str):
            return
        angle = _matches(here, EXPRESSIONS) is None and _ANGLE.search(value)
        if angle or _TODO.search(value):
            self.faults.append(f"placeholder: {here} = {show(value)}")
