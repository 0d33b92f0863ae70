"""Where kernels and functions begin and end in a file; names qualified by their class."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator

import msgspec

KERNEL_MARKS = re.compile(
    r"@(?:triton\.(?:jit|autotune|heuristics)|jit\b|gluon\.jit|cute\.(?:kernel|jit)|dsl_user_op|"
    r"(?:T|tl|tilelang)\.(?:prim_func|jit|macro|autotune)|tilelang\b|ct\.(?:kernel|function))"
)
ENTRY_MARKS = re.compile(r"@(?:cute\.(?:kernel|jit)|ct\.kernel|gluon\.jit)")
TRACED = re.compile(
    r"\bcute\.(?:arch|Tensor|nvgpu|make_\w+|size|Coord|Shape|Layout|Tiled\w+|Thr\w+|Copy\w+|copy|gemm|Atom|math)\b|"
    r"\bcutlass\.(?:range|Int32|Float32|Boolean|const_expr|pipeline|utils)\b|\bconst_expr\("
)
"""Undecorated Python that the CuTe DSL traces into its caller's kernel."""
HEAD = re.compile(r"(?:async\s+)?(def|class)\s+(\w+)")
QUOTES = re.compile(r'"""|\'\'\'')
DEVICE_FUNCTION = re.compile(
    r"\b(__global__|CUTLASS_GLOBAL|__device__|CUTE_DEVICE|CUTE_HOST_DEVICE|CUTLASS_DEVICE|CUTLASS_HOST_DEVICE|"
    r"_CCCL_DEVICE|_CCCL_HOST_DEVICE|_CCCL_DEVICE_API|CUB_DETAIL_KERNEL_ATTRIBUTES|_CCCL_KERNEL_ATTRIBUTES)\b"
)
GLOBAL = frozenset({"__global__", "CUTLASS_GLOBAL", "CUB_DETAIL_KERNEL_ATTRIBUTES", "_CCCL_KERNEL_ATTRIBUTES"})
NAME = re.compile(r"(operator\s*\(\s*\)|~?\w+)\s*\(")
NOT_NAMES = re.compile(
    r"^(__\w+__|decltype|alignas|requires|noexcept|enable_if\w*|sizeof|\w*LAUNCH_BOUNDS\w*|defined|if)$"
)
OUTER = re.compile(r"^([ \t]*)(?:template\s*<[^\n]*>\s*)?(?:struct|class)\s+(?:\w+\s*\([^)]*\)\s*)?(\w+)[^;()]*$", re.M)
FARTHEST = 4000
"""Characters between a function's first word and its body."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Lines ``first..last`` (from 1, both included) of one function."""

    name: str
    first: int
    last: int
    kernel: bool
    """A kernel or a device function, or in a class that holds one; other functions are context only."""
    entry: bool
    """A kernel: what a profile would name."""


class _Open(msgspec.Struct, kw_only=True):
    """A ``def`` or ``class`` whose end has not been met."""

    word: str
    name: str
    indent: int
    first: int
    marks: list[str]
    last: int = 0
    holds_kernel: bool = False
    traced: bool = False


def python_spans(text: str) -> tuple[Span, ...]:
    """Functions of a Python file in the order in which they begin. Works on fragments: nothing need parse."""
    spans: list[tuple[Span, list[_Open]]] = []
    stack: list[_Open] = []
    marks: list[tuple[str, int]] = []
    for number, indent, line in _code_lines(text):
        while stack and indent <= stack[-1].indent:
            _close(stack, spans)
        traced = bool(TRACED.search(line))
        for block in stack:
            block.last = number
            block.traced = block.traced or traced
        found = HEAD.match(line)
        if line.startswith("@"):
            marks.append((line, number))
        elif found:
            first = marks[0][1] if marks else number
            block = _Open(
                word=found[1], name=found[2], indent=indent, first=first, marks=[m for m, _ in marks], last=number,
                traced=traced,
            )  # fmt: skip
            marks = []
            if block.word == "def" and any(ENTRY_MARKS.match(mark) for mark in block.marks):
                for outer in stack:
                    outer.holds_kernel = outer.word == "class"
            stack.append(block)
        elif not ((marks and indent > 0) or line[:1] in ")]}"):
            marks = []
    while stack:
        _close(stack, spans)
    done = [_settled(span, outers) for span, outers in spans]
    return tuple(sorted(done, key=lambda span: (span.first, -span.last)))


def _close(stack: list[_Open], spans: list[tuple[Span, list[_Open]]]) -> None:
    block = stack.pop()
    if block.word != "def":
        return
    classes = [outer.name for outer in stack if outer.word == "class"]
    kernel = any(KERNEL_MARKS.match(mark) for mark in block.marks)
    name = ".".join([*classes, block.name])
    entry = kernel and not any(mark.startswith("@dsl_user_op") for mark in block.marks)
    spans.append(
        (Span(name=name, first=block.first, last=block.last, kernel=kernel or block.traced, entry=entry), list(stack))
    )


def _settled(span: Span, outers: list[_Open]) -> Span:
    within = any(outer.holds_kernel for outer in outers)
    return msgspec.structs.replace(span, kernel=True) if within else span


def _code_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """(number, indent, stripped line) of lines that can open or end a block: no blanks, comments, string insides."""
    inside = ""
    depth_only = (")", "]", "}")
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        was = inside
        for quote in QUOTES.findall(line):
            if not inside:
                inside = quote
            elif inside == quote:
                inside = ""
        if was or not line or line.startswith("#"):
            continue
        indent = len(raw) - len(raw.lstrip())
        yield number, (10_000 if line.startswith(depth_only) else indent), line


def cpp_spans(text: str) -> tuple[Span, ...]:
    """Kernels and device functions of a C++ file with their bodies; declarations are left out."""
    starts = [0]
    starts.extend(m.end() for m in re.finditer("\n", text))
    outers = [(m.start(), len(m[1]), m[2]) for m in OUTER.finditer(text)]
    spans: dict[int, Span] = {}
    after = 0
    for mark in DEVICE_FUNCTION.finditer(text):
        if mark.start() < after:
            continue
        found = _function(text, mark.end())
        if found is None:
            continue
        name, brace = found
        line_start = text.rfind("\n", 0, mark.start()) + 1
        indent = re.match(r"[ \t]*", text[line_start:])
        width = indent[0] if indent else ""
        end = text.find(f"\n{width}}}", brace)
        end = len(text) if end < 0 else end + 1
        after = brace
        first, last = _line(starts, line_start), _line(starts, end)
        entry = mark[1] in GLOBAL
        spans[brace] = Span(
            name=_qualified(outers, mark.start(), len(width), name), first=first, last=last, kernel=True, entry=entry
        )
    return tuple(spans.values())


def _function(text: str, at: int) -> tuple[str, int] | None:
    """Name and position of the body's brace, or nothing for a declaration or what is no function."""
    window = text[at : at + FARTHEST]
    for found in NAME.finditer(window):
        name = re.sub(r"\s", "", found[1])
        close = _closing(window, found.end() - 1)
        if close < 0:
            return None
        if NOT_NAMES.match(name):
            continue
        body = re.match(r"[^;{}=]*\{", window[close + 1 :])
        return (name, at + close + 1 + body.end() - 1) if body else None
    return None


def _closing(text: str, at: int) -> int:
    depth = 0
    for found in re.finditer(r"[()]", text[at:]):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return at + found.start()
    return -1


def _line(starts: list[int], position: int) -> int:
    return bisect.bisect_right(starts, position)


def _qualified(outers: list[tuple[int, int, str]], at: int, indent: int, name: str) -> str:
    if indent == 0:
        return name
    for start, width, outer in reversed(outers):
        if start < at and width < indent:
            return f"{outer}.{name}"
    return name
