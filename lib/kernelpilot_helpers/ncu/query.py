"""What to look up for a class in the corpus of optimization pull requests, as a struct and as a command."""

from __future__ import annotations

import shlex

from kernelpilot_helpers.ncu import design
from kernelpilot_helpers.ncu.model import Query
from kernelpilot_helpers.ncu.report import Launch

_ARCHES = ("sm_80", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120")
"""Older ones have no records of their own: a search narrowed to them would find nothing."""
_OPERATORS = {"gemv": "gemm", "conv": "conv", "gather": "gather"}
"""Kinds whose records stand under another name."""


def query(launch: Launch, *, class_name: str, words: str, metrics: tuple[str, ...] = ()) -> Query:
    """The search for one class: mechanism words first, narrowed by what the kernel's name shows of its operator."""
    kind = design.kind(launch.kernel)
    operator = _OPERATORS.get(kind, kind)
    arch, dsl, dtype = design.arch(launch), design.language(launch.kernel), design.dtype(launch.kernel)
    parts = [words or class_name.split(":", 1)[0].split(".", 1)[-1].replace("_", " ")]
    parts += [word for word in (operator, dtype) if word and word not in parts[0].split()]
    text = " ".join(parts)
    only = f" --arch {arch}" if arch in _ARCHES else ""
    return Query(
        text=text,
        name=class_name,
        metrics=metrics,
        arch=arch,
        dsl=dsl,
        operator=operator,
        command=f"kernelpilot knowledge search {shlex.quote(text)}{only}",
    )
