"""Source text without its comments, where the language is known by the path's ending."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_SLASHES = ".c .cc .cpp .cu .cuh .cxx .h .hh .hpp .hxx .inl .inc .js .rs .java .ptx .td .mlir"
_HASHES = ".py .pyi .pyx .sh .cmake .toml .yaml .yml"
SLASHES, HASHES = frozenset(_SLASHES.split()), frozenset(_HASHES.split())
_STRING = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_SLASHED = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_HASHED = re.compile(rf'(""".*?"""|\'\'\'.*?\'\'\'|{_STRING})|#[^\n]*', re.DOTALL)


def without(text: str, path: str) -> str:
    """Comments become a space; strings stay, and so does all of a language that is not known."""
    ending = PurePosixPath(path).suffix.lower()
    pattern = _SLASHED if ending in SLASHES else _HASHED if ending in HASHES else None
    return pattern.sub(lambda found: found[1] or " ", text) if pattern else text
