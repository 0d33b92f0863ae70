"""Architectures of a change: who names them, and what may be concluded where nobody does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mining import tokens

ARCH = re.compile(
    r"(?<![a-z0-9])(?:sm|compute|arch::sm|cuda_arch_?|smx?)_?(70|75|80|86|89|90|100|101|103|110|120|121)[af]?(?![0-9])"
)
EXACT = re.compile(r"__cuda_arch__?\s*==\s*(70|75|80|86|89|90|100|101|103|110|120|121)0\b")
GUARD = re.compile(
    r"__cuda_arch__?\s*(?:>=?|<=?|!=)\s*\d+|nv_provides_sm_?\d+\w*|sm_?\d+[af]?_?(?:or_(?:later|newer)|plus|min)\b|"
    r"(?:[<>]=|!=|\s[<>]\s)\s*(?:\w+::)*sm_?\d+"
)
"""A bound: what runs there runs on everything behind it, too."""
NEW_GUARD = re.compile(r"(?:__cuda_arch__?\s*>=\s*|nv_provides_sm_?)(100|101|103|110|120|121)")
ATOM = re.compile(r"\bSM(70|75|80|86|89|90|100|101|103|120)_[A-Z0-9]\w*")
ARCH_NAMES = {
    "sm70": "volta",
    "sm75": "turing",
    "sm80": "ampere a100",
    "sm89": "ada l40 l40s 4090",
    "sm90": "hopper h100 h200 h20 h800 fa3",
    "sm100": "blackwell b200 gb200",
    "sm103": "b300 gb300",
    "sm110": "thor",
    "sm120": "5090",
    "sm121": "gb10 spark",
}
ARCH_WORDS = {name: arch for arch, names in ARCH_NAMES.items() for name in names.split()}
MEANS = {"wgmma": "sm90", "setmaxnreg": "sm90", "tcgen05": "sm100", "tmem": "sm100", "clc": "sm100"}
"""Instructions of one generation: they say the architecture where nobody names one."""
TEXT = {
    "sm90": re.compile(
        r"(?<![a-z])(?:wgmma|gmma|warpgroup_?(?:mma|arrive|wait|fence_operand)|setmaxnreg)(?![a-z])", re.I
    ),
    "sm100": re.compile(r"(?<![a-z])(?:tcgen0?5|umma|utcmma|tmem|clusterlaunchcontrol)(?![a-z])", re.I),
}
LINES = 2
"""One line may be a comparison with another architecture; two are code."""


def number(arch: str) -> int:
    """90 of ``sm90``: later generations are larger."""
    return int(arch[2:])


def in_text(text: str) -> set[str]:
    """Architectures that a path, a title or a name spells by number."""
    return {f"sm{found}" for found in ARCH.findall(text.lower())}


def named(text: str) -> set[str]:
    """The same in ``GemmSm90`` too, plus the names people give them: for titles, paths and functions, not for code."""
    return in_text(tokens.CAMEL.sub("_", text)) | {
        ARCH_WORDS[part] for part in tokens.parts(text) if part in ARCH_WORDS
    }


def in_line(line: str) -> tuple[set[str], set[str]]:
    """(architectures that a line of code is written for, those whose instructions it names).

    A bound of an architecture before 10.0 is neither: half of all kernels hold one for a fallback or a launch option.
    """
    atoms = {f"sm{found}" for found in ATOM.findall(line)}
    low = ATOM.sub(" ", line).lower()
    if "arch" not in low and "sm" not in low and "compute" not in low:
        return set(), atoms
    found = {f"sm{name}" for name in (*EXACT.findall(low), *NEW_GUARD.findall(low))}
    return found | in_text(GUARD.sub(" ", low)), atoms


class Said:
    """What names an architecture in one change, by how much it weighs."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, int]] = {}
        self.atoms: dict[str, int] = {}

    def add(self, found: Iterable[str], where: str) -> None:
        """Count each architecture once for one path, symbol, title or line."""
        for arch in found:
            counts = self.seen.setdefault(arch, {})
            counts[where] = counts.get(where, 0) + 1

    def line(self, text: str) -> None:
        """Count one added line."""
        plain, atoms = in_line(text)
        self.add(plain, "lines")
        for arch in atoms:
            self.atoms[arch] = self.atoms.get(arch, 0) + 1

    def conclude(self, terms: Mapping[str, int], texts: Iterable[str]) -> dict[str, dict[str, int]]:
        """Architecture -> its evidence, oldest first.

        Title, paths and kernels stand, and lines add to them, but nothing older; functions around speak only where
        these are silent. Where nobody names any, instructions that one generation alone has say it: first of the
        added lines, then of the changed kernels' files.
        """
        if self.atoms:
            newest = max(self.atoms, key=number)
            self.add([newest] * self.atoms[newest], "lines")
        strong = [arch for arch, counts in self.seen.items() if counts.keys() & {"paths", "symbols", "title"}]
        oldest = min(map(number, strong), default=0)
        out = {arch: self.seen[arch] for arch in sorted(self.seen, key=number) if arch in strong}
        for arch, counts in self.seen.items():
            if number(arch) > oldest and (counts.get("lines", 0) >= LINES or ("around" in counts and not strong)):
                out[arch] = counts
        return dict(sorted((out or _by_means(terms) or _by_text(texts)).items(), key=lambda item: number(item[0])))


def _by_means(terms: Mapping[str, int]) -> dict[str, dict[str, int]]:
    lines: dict[str, int] = {}
    for name, arch in MEANS.items():
        lines[arch] = max(lines.get(arch, 0), terms.get(name, 0))
    return {arch: {"mechanisms": most} for arch, most in lines.items() if most >= LINES}


def _by_text(texts: Iterable[str]) -> dict[str, dict[str, int]]:
    files: dict[str, int] = {}
    for text in texts:
        for arch, shape in TEXT.items():
            if len(shape.findall(text)) >= LINES:
                files[arch] = files.get(arch, 0) + 1
    return {arch: {"texts": count} for arch, count in files.items()} if len(files) == 1 else {}
