"""What ``open`` prints of a change or a file: as much as an agent can read at once, and how to see the rest. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

import msgspec

from kernelpilot_helpers.knowledge.clones import Change

BUDGET = 16_000
"""Characters of code in one answer."""
LISTED = 40
"""Changed files that a list names beside code; ``--stat`` names all."""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What was not printed, and the command that prints it."""

    path: str
    lines: int
    """Lines that are missing; of a file that is only listed, those that it adds and removes."""
    command: str


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A text within the budget."""

    text: str
    left_out: tuple[LeftOut, ...] = ()


def command(name: str, clone: str, *words: str) -> str:
    """``kernelpilot knowledge open`` with these words, ready to be pasted."""
    at = ("--clone", clone) if clone else ()
    return shlex.join(("kernelpilot", "knowledge", "open", name, *words, *at))


def stat_line(change: Change) -> str:
    """One line of the list."""
    counts = "    binary" if change.added is None else f"{f'+{change.added}':>6} {f'-{change.removed}':<6}"
    return f"{change.kind:<6} {counts} {change.path}"


def listed(changed: Sequence[Change], most: int | None = LISTED) -> str:
    """The list of changed files, kernels first, with lines added and removed."""
    shown = changed if most is None else changed[:most]
    lines = [f"{len(changed)} files changed", *map(stat_line, shown)]
    if len(shown) < len(changed):
        lines.append(f"and {len(changed) - len(shown)} more: --stat")
    return "\n".join(lines)


def kernels(
    changed: Sequence[Change], diff: Callable[[str], str], again: Callable[..., str], budget: int | None
) -> View:
    """Diffs of the kernels, in order, up to a budget (None: all); ``again`` makes the command for what is missing."""
    left: list[LeftOut] = []
    texts: list[str] = []
    room = budget
    for change in changed:
        lines = (change.added or 0) + (change.removed or 0)
        if change.kind != "kernel" or change.added is None or (room is not None and room <= 0):
            left.append(LeftOut(path=change.path, lines=lines, command=again("--diff", change.path)))
            continue
        whole = diff(change.path)
        part = whole if room is None else cut(whole, room)
        texts.append(part)
        if len(part) < len(whole):
            missing = whole.count("\n") - part.count("\n")
            left.append(LeftOut(path=change.path, lines=missing, command=again("--diff", change.path, "--all")))
            room = 0
        elif room is not None:
            room -= len(part)
    return View(text="".join(texts), left_out=tuple(left))


def as_kernel(change: Change) -> Change:
    """The change, to be shown as kernels are; a binary one too, for which git has a line."""
    return msgspec.structs.replace(change, kind="kernel", added=change.added or 0)


def cut(whole: str, room: int) -> str:
    """The whole lines of a text that fit; at least one character of a line that is too long alone."""
    if len(whole) <= room:
        return whole
    end = whole.rfind("\n", 0, room) + 1
    return whole[: end or room]


def piece(path: str, whole: str, first: int, last: int | None, again: Callable[..., str], budget: int | None) -> View:
    """Lines ``first`` to ``last`` (from 1, both shown) of a file, up to a budget."""
    lines = whole.splitlines(keepends=True)
    wanted = "".join(lines[first - 1 : last])
    part = wanted if budget is None else cut(wanted, budget)
    if len(part) == len(wanted):
        return View(text=part)
    end = len(lines) if last is None else min(last, len(lines))
    start = first + part.count("\n")
    rest = LeftOut(path=path, lines=end - start + 1, command=again("--file", path, "--lines", f"{start}-{end}"))
    return View(text=part, left_out=(rest,))


def told(view: View, most: int = 6) -> str:
    """What was left out, as the last lines of an answer; empty where nothing was."""
    left = view.left_out
    lines = [f"  {item.path}: {item.lines} lines: {item.command}" for item in left[:most]]
    if len(left) > most:
        lines.append(f"  and {len(left) - most} more files, each by --diff PATH; all kernels whole: --all")
    return "\n".join(["left out:", *lines]) if left else ""
