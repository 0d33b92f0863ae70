"""Edit families: for each class, and for kinds of kernels, one change and the metric that must move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelpilot_helpers.ncu.families_execution import EXECUTION
from kernelpilot_helpers.ncu.families_memory import MEMORY
from kernelpilot_helpers.ncu.family import Family

__all__ = ["FAMILIES", "Family", "find"]

FAMILIES: Mapping[str, Family] = {**MEMORY, **EXECUTION}
"""``class`` or ``class/kind``: the kind of kernel, or what the report says of it."""


def find(name: str, *, details: Sequence[str] = ()) -> Family:
    """The family of a class; the first of ``details`` that has one of its own wins. A pipe's name is a detail too."""
    base, _, pipe = name.partition(":")
    for detail in (*details, pipe):
        if detail and (family := FAMILIES.get(f"{base}/{detail}")) is not None:
            return family
    return FAMILIES[base]
