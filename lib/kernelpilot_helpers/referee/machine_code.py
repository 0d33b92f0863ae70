"""What changed between two builds for a GPU: resources a kernel, instructions by family. Facts, no verdict."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kernelpilot_helpers import proc
from kernelpilot_helpers.attempt.raw import Build, KernelUsage
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.runtime import usage

TOOLS = (("nvdisasm", "-c"), ("cuobjdump", "--dump-sass"))
"""Disassemblers in the order they are tried; both take a cubin."""
OPCODE = re.compile(r"^\s*(?:/\*[0-9a-f]+\*/)?\s*(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)(?:\.[\w.]+)?(?=[\s;])")
START = re.compile(r"^\s*\.text\.(\S+):|^\s*Function : (\S+)")
RESOURCES = ("registers", "spill_stores", "spill_loads", "shared", "stack")
Sameness = Literal["same", "different", "new", "gone"]


class KernelChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kernel of the candidate against the one of its name in the incumbent's build."""

    name: str
    machine_code: Sameness
    resources: dict[str, tuple[int, int]] = {}
    """What differs, (incumbent, candidate)."""
    instructions: dict[str, tuple[int, int]] = {}
    """Opcode to how often it stands in the code, (incumbent, candidate): what differs, where a disassembler is."""


def kernels(build: Build) -> tuple[KernelUsage, ...]:
    """Every kernel of a build."""
    return tuple(use for artifact in build.artifacts for use in artifact.usage)


def changes(old: Build, new: Build, built: Path) -> tuple[KernelChange, ...]:
    """Kernel by kernel; ``built`` holds a folder an arm with the files that were built."""
    before, after = ({k.name: k for k in kernels(b)} for b in (old, new))
    one, two = (opcodes(built / b.arm, [a.path for a in b.artifacts]) for b in (old, new))
    found = []
    for name in [*after, *(n for n in before if n not in after)]:
        if name not in before or name not in after:
            found.append(KernelChange(name=name, machine_code="gone" if name in before else "new"))
            continue
        a, b = before[name], after[name]
        same = a.sass_sha256 == b.sass_sha256 != ""
        resources = {f: (getattr(a, f), getattr(b, f)) for f in RESOURCES if getattr(a, f) != getattr(b, f)}
        counted = {} if same else dict(_differing(one.get(name, Counter()), two.get(name, Counter())))
        word: Sameness = "same" if same else "different"
        found.append(KernelChange(name=name, machine_code=word, resources=resources, instructions=counted))
    return tuple(found)


def _differing(one: Counter[str], two: Counter[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Opcodes by how much their number changed, the largest change first."""
    names = [op for op in one | two if one[op] != two[op]]
    for op in sorted(names, key=lambda op: (-abs(one[op] - two[op]), op)):
        yield op, (one[op], two[op])


def opcodes(folder: Path, files: Sequence[str]) -> dict[str, Counter[str]]:
    """Kernel to how often each opcode stands in it; empty without a disassembler on PATH."""
    tool = next((t for t in TOOLS if shutil.which(t[0])), None)
    found: dict[str, Counter[str]] = {}
    if tool is None:
        return found
    for name in files:
        if name.endswith(".cubin") and (folder / name).is_file():
            with tempfile.TemporaryDirectory(prefix="kp-sass-") as empty:
                try:
                    text = proc.run([*tool, str(folder / name)], cwd=Path(empty)).out
                except KernelPilotError:
                    continue
            found.update(count(text))
    return found


def count(listing: str) -> dict[str, Counter[str]]:
    """The same of a disassembler's text. An opcode is taken without its suffixes: ``LDG.E.128`` counts as LDG."""
    found: dict[str, Counter[str]] = {}
    here: Counter[str] = Counter()
    for line in listing.splitlines():
        if start := START.match(line):
            here = found.setdefault(usage.readable(start[1] or start[2]), Counter())
        elif match := OPCODE.match(line):
            here[match[1]] += 1
    return found
