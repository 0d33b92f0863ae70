"""Whether ``entry`` takes what the contract gives it: read from the file, which is not imported for this."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path


def wanted(function: str, tensors: Sequence[str]) -> str:
    """How the function is to be written."""
    return f"def {function}(*, {', '.join(tensors)}):"


def faults(file: Path, function: str, tensors: Sequence[str], *, more: bool) -> tuple[str, ...]:
    """One sentence for each name that the call and the function do not share, and one for no function at all.

    The call gives every name of ``tensors`` as a keyword argument; with ``more`` a ``prepare`` of the same file may
    add others. A function that is decorated, assigned or imported is not judged: only running it tells its names.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()  # the import has told it
    if not _names(tree, function):
        return (f"{file.name} has no function {function}: write {wanted(function, tensors)}",)
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function]
    if not found or found[-1].decorator_list:
        return ()
    prepared = more and _names(tree, "prepare")
    return tuple(_of(found[-1], tensors, prepared=prepared))


def _names(tree: ast.Module, name: str) -> bool:
    """Whether the file may bind ``name`` anywhere; a star import may."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) in (name, "*"):
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Name) and node.id in ("globals", "setattr", "exec"):
            return True
    return False


def _of(function: ast.FunctionDef, tensors: Sequence[str], *, prepared: bool) -> Iterator[str]:
    args = function.args
    named = [a.arg for a in (*args.args, *args.kwonlyargs)]
    plain = [a.arg for a in (*args.posonlyargs, *args.args)]
    optional = plain[len(plain) - len(args.defaults) :]
    optional += [a.arg for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
    for arg in args.posonlyargs:
        yield f"{function.name}: {arg.arg} is positional-only and the call names it: write it behind a *"
    unknown = [n for n in named if n not in tensors and n not in optional]
    missing = [n for n in tensors if n not in named] if args.kwarg is None else []
    for name in [] if prepared else unknown:
        near = difflib.get_close_matches(name, missing, 1)
        missing = [n for n in missing if n not in near]
        hint = f": did you mean {near[0]}?" if near else f" (it has: {', '.join(tensors)})"
        yield f"{function.name}: the contract has no {name!r}{hint}"
    for name in missing:
        yield f"{function.name} does not take {name!r}, which the contract gives: {wanted(function.name, tensors)}"
