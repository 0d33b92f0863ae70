"""Links of a page: where they lead, and whether something is there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_helpers.knowledge import page_parts
from kernelpilot_helpers.knowledge.page_parts import Parts

_TITLE = r"""(?:\s+(?:"[^"]*"|'[^']*'|\([^)]*\)))?\s*"""
_TARGETS = re.compile(
    rf"\]\(\s*(?:<([^>\n]*)>|([^)\s]*)){_TITLE}\)"
    rf"|^ {{0,3}}\[[^\]]+\]:\s*(?:<([^>\n]*)>|(\S+)){_TITLE}$"
    r"""|(?:href|src)\s*=\s*["']?([^"'\s>]*)"""
    r"|<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*)>",
    re.MULTILINE | re.IGNORECASE,
)
_DEFINED = re.compile(r"^ {0,3}\[([^\]]+)\]:", re.MULTILINE)
_USED = re.compile(r"(?<![\w\]])\[([^\[\]]+)\]\[([^\[\]]*)\]")


def faults(page: Parts, folder: Path) -> Iterator[tuple[str, str]]:
    """(what, fix) of each link that leads nowhere, out of the tree, or to a name that is not defined."""
    prose = page_parts.uncoded(page.prose)
    for found in _TARGETS.finditer(prose):
        target = next((part for part in found.groups() if part is not None), "")
        if why := _fault(target, page.path, folder):
            bare = target.partition("#")[0] or target
            short = bare if len(bare) <= 120 else f"{bare[:120]}..."
            yield f"link to {short}: {why}", "mend the link"
    defined = {name.casefold() for name in _DEFINED.findall(prose)}
    for text, label in _USED.findall(prose):
        if (label or text).casefold() not in defined:
            yield f"link to [{label or text}]: nowhere defined", f"add '[{label or text}]: PATH', or mend the link"


def _fault(target: str, path: str, folder: Path) -> str:
    """Why the target is none; empty for a good one."""
    if scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", target):
        return "" if scheme[1].lower() in ("http", "https") else "only pages of the tree and web addresses are linked"
    bare = target.partition("#")[0].partition("?")[0]
    if not bare:
        return "" if target else "no target"
    inside = os.path.normpath(f"{path.rpartition('/')[0]}/{bare}".lstrip("/"))
    if target.startswith(("/", "~", "\\")) or inside == ".." or inside.startswith("../"):
        return "leaves the tree"
    try:
        there = (folder / inside).exists()
    except OSError:  # a name longer than any
        there = False
    return "" if there else "nothing there"
