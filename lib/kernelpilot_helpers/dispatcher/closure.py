"""Which files of our runtime a dispatcher needs: the builder and every module that it imports, computed. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

START = "build.py"
"""The one module that a version may import."""


def closure(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Names among ``files`` that the builder reaches by relative imports, wherever in a file these stand; sorted.

    A name that is not there is left out, and so is what only a file that is no Python would have imported.
    """
    reached: set[str] = set()
    ahead = [START]
    while ahead:
        name = ahead.pop()
        if name in files and name not in reached:
            reached.add(name)
            ahead += _imported(files[name])
    return tuple(sorted(reached))


def _imported(source: bytes) -> Iterator[str]:
    """File names that relative imports may mean: ``from . import a`` and ``from .a import b`` both mean ``a.py``."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from (f"{name}.py" for name in names)
