"""Which kernel of one report is which of another: the same key, else the same function, else the same place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal

from kernelpilot_helpers.ncu.group import Workload, normalised
from kernelpilot_helpers.ncu.steps import function

How = Literal["key", "name", "order"]
Matched = tuple[Workload, Workload, How]


def pair(
    baseline: Iterable[Workload], candidate: Iterable[Workload]
) -> tuple[list[Matched], list[Workload], list[Workload]]:
    """Pairs by time of the baseline, then what is left over on either side.

    A lone kernel on both sides is a pair whatever its name: an edit may rename it.
    """
    before, after = list(baseline), list(candidate)
    found: list[Matched] = []
    for how, key in _KEYS:
        for left in list(before):
            right = next((g for g in after if key(g) == key(left) != ""), None)
            if right is not None:
                found.append((left, right, how))
                before.remove(left)
                after.remove(right)
    if len(before) == len(after) == 1:
        found.append((before.pop(), after.pop(), "order"))
    found.sort(key=lambda p: (-(p[0].share or 0.0), p[0].key))
    return found, before, after


def _exact(group: Workload) -> str:
    *rest, _process = group.key
    return "\n".join(rest)


def _named(group: Workload) -> str:
    return normalised(group.kernel)


def _function(group: Workload) -> str:
    """The bare name without a trailing number, with which generated kernels count their versions."""
    name = group.launch.function or function(group.kernel) or normalised(group.kernel)
    return re.sub(r"_?v?\d+$", "", name)


_KEYS: tuple[tuple[How, Callable[[Workload], str]], ...] = (("key", _exact), ("name", _named), ("name", _function))
