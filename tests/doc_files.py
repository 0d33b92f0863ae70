"""The files that a page shows: a line that begins with a file's name in code, then its fenced block."""

from __future__ import annotations

import re
from pathlib import Path

_SHOWN = re.compile(r"^`([\w./-]+\.\w+)`[^\n]*\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def write(page: Path, folder: Path) -> list[str]:
    """Write them below ``folder``; their names in the order of the page."""
    shown = _SHOWN.findall(page.read_text(encoding="utf-8"))
    for name, text in shown:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [name for name, _ in shown]
