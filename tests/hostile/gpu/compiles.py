"""The CUDA of the zoo, as its candidates ask for it, compiled without a GPU."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

SHARED = Path(__file__).parent / "shared"
ARCH = "sm_90a"


def kernels(folder: Path) -> list[tuple[Path, tuple[str, ...]]]:
    """(source, macros) of every kernel of a candidate: its own files, and each use of the shared one."""
    found: list[tuple[Path, tuple[str, ...]]] = [(path, ()) for path in sorted(folder.glob("*.cu"))]
    try:
        tree = ast.parse((folder / "candidate.py").read_text())
    except SyntaxError:
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "rms.make" and not _named(node, "source"):
            found.append((SHARED / "rms.cu", tuple(ast.literal_eval(argument) for argument in node.args)))
    return found


def _named(node: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in node.keywords)


def compiled(nvcc: str, path: Path, flags: tuple[str, ...], folder: Path) -> str:
    """What the compiler said; empty when it made a cubin."""
    argv = [nvcc, "-cubin", f"-arch={ARCH}", *flags, "-o", str(folder / "kernel.cubin"), str(path)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    return (done.stderr or done.stdout or "no message")[:800] if done.returncode else ""
