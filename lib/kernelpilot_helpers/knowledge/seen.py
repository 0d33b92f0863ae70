"""Which records the source-idea ledger says were read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelpilot_helpers.ledger import Idea


def seen_names(ideas: Iterable[Idea]) -> frozenset[str]:
    """Ids and commits of what was read, as ``Filters.seen`` takes them."""
    out: set[str] = set()
    for idea in ideas:
        out.add(idea.commit.lower())
        number = re.search(r"([0-9]+)/?$", idea.pr)
        if number:
            out.add(f"{idea.repo}#{number[1]}".lower())
    return frozenset(out)
