"""Sizes at which a file or a function is split by noun."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 350
FUNCTION_LINES = 60
"""The habit is 300 and 40; these are where the test says no."""


def sources() -> list[Path]:
    return [p for folder in ("lib", "scripts") for p in sorted((ROOT / folder).rglob("*.py"))]


def test_no_file_outgrows_its_noun() -> None:
    """Breaks when a module should have been split."""
    assert [
        f"{p.relative_to(ROOT)}: {n}" for p in sources() if (n := len(p.read_text().splitlines())) > FILE_LINES
    ] == []


def test_no_function_outgrows_a_screen() -> None:
    """Breaks when a function should have been split."""
    long = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_LINES:
                    long.append(f"{path.relative_to(ROOT)}:{node.name}: {lines}")
    assert long == []
