"""The functions that a GPU measurement rests on, so that one that was exchanged is seen."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any

from . import cuda, frames, graphs, inventory, machine, probe, score, shape, wire

MODULES = (cuda, graphs, machine, shape, score, wire, probe, frames, inventory)
FRAMEWORK = {
    "Event": ("elapsed_time", "record", "synchronize", "query", "__new__"),
    "CUDAGraph": ("replay", "capture_begin", "capture_end"),
    "ExternalStream": ("synchronize", "__new__"),
}
"""Classes of torch.cuda and their methods."""


def snapshot(*things: Any) -> dict[str, Any]:
    """Functions and classes by name; of ``things`` also what shadows a method of their class, and callables held."""
    import torch

    found: dict[str, Any] = {"torch.cuda.synchronize": torch.cuda.synchronize}
    for name, methods in FRAMEWORK.items():
        kind = getattr(torch.cuda, name)
        found[f"torch.cuda.{name}"] = kind
        found.update((f"torch.cuda.{name}.{m}", _held(kind, m)) for m in methods)
    for module in MODULES:
        found.update(_functions(module.__name__.rpartition(".")[2], vars(module), module.__name__))
    for thing in things:
        for kind in type(thing).__mro__[:-1]:
            found.update(_functions(kind.__name__, dict(vars(kind)), kind.__module__))
        found.update(_own(thing))
    return found


def _held(kind: Any, name: str) -> Any:
    """The attribute as its class holds it: the same object at every look."""
    return next((vars(k)[name] for k in getattr(kind, "__mro__", ()) if name in vars(k)), None)


def _functions(prefix: str, names: dict[str, Any], module: str) -> Iterator[tuple[str, Any]]:
    for name, value in list(names.items()):
        if isinstance(value, type) and value.__module__ == module:
            yield f"{prefix}.{name}", value
            yield from _functions(name, dict(vars(value)), module)
        elif isinstance(value, types.FunctionType | property | staticmethod | classmethod) or _constant(name, value):
            yield f"{prefix}.{name}", value


def _constant(name: str, value: Any) -> bool:
    """Which kernels are our own, and which records are no kernels, is data."""
    return name.strip("_").isupper() and isinstance(value, tuple | str | int | re.Pattern)


def _own(thing: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds beside its class: methods that are shadowed (else None), and bound functions."""
    kind, held = type(thing), vars(thing)
    for name in dict.fromkeys(n for k in kind.__mro__ for n, v in vars(k).items() if isinstance(v, types.FunctionType)):
        yield f"{kind.__name__}().{name}", held.get(name)
    for name, value in list(held.items()):
        if isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
            yield f"{kind.__name__}().{name}", value
