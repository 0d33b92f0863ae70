"""What stands in a line of a page: references, record ids, backticks, and how long it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernelpilot_helpers.knowledge import check_foreign, page_parts
from kernelpilot_helpers.knowledge.check_lead import Names
from kernelpilot_helpers.knowledge.page_parts import LIKE_REF, Parts

LONGEST_LINE = 120


def faults(page: Parts, repos: Names, ids: Names) -> Iterator[tuple[int, str, str]]:
    """(line, what, fix) of each finding; ``repos`` may be named by a reference, ``ids`` are the corpus's records."""
    prose, unclosed = page_parts.unfenced(page.text)
    if unclosed:
        yield unclosed, "a block of code that is never closed", "close it"
    yield from _references(prose, repos)
    for number, block in page_parts.blocks(prose):
        if not unclosed and "`" in page_parts.uncoded(block):
            yield number, "a backtick without its other one: what is code and what is not?", "close or remove it"
    for number, line in enumerate(prose.split("\n"), start=1):
        for name in page_parts.ids(line):
            if name not in ids and not line.startswith("| Evidence "):  # the check of the lead table says it
                yield number, f"{name} is no record of the corpus", f"kernelpilot knowledge show '{name}'"
        if len(line) > LONGEST_LINE and not re.search(r"^\s*\||https?://", line) and not LIKE_REF.search(line):
            what = f"{len(line)} characters: a line outside a table stays within {LONGEST_LINE}"
            yield number, what, "break the line"
    for number, line in enumerate(page.text.split("\n"), start=1):
        yield from ((number, what, fix) for what, fix in check_foreign.faults(line))


def _references(prose: str, repos: Names) -> Iterator[tuple[int, str, str]]:
    syntax = "write `owner/name@SHA12:path#symbol` in backticks, with 12 hex digits"
    for number, written, ref, quoted in page_parts.references(prose):
        if ref is None or not quoted:
            yield number, f"{written}: no source reference as it should be written", syntax
        elif ref.repo not in repos:
            yield number, f"{written}: repository {ref.repo} is not known", f"one of: {', '.join(sorted(repos))}"
