"""A title and a description reduced to what is kept: words, figures, facets, and what kind of change they claim."""

from __future__ import annotations

import re

import msgspec

from mining import archs, facets, title, tokens

SPEED = re.compile(
    r"\b(optimi[sz]\w*|perf|performance|faster|fast(?:er)?[ -]?path|speed(?:s|ed|ing)?[ -]?ups?|"
    r"speeds?|sped|accelerat\w*|"
    r"improv\w*|latency|throughput|vectori[sz]\w*|fus(?:e|ed|es|ing|ion)|overlap\w*|reduc(?:e|es|"
    r"ing) (?!scatter)|eliminat\w*|"
    r"avoid|autotun\w*|tun(?:e|ed|ing|ings)(?! (?:api|apis|policy|policies)\b)|opt|efficient\w*|pipelin\w*|"
    r"warpspeed|skip(?:s|ping)? (?:useless|redundant|unne\w+)|"
    r"remov(?:e|es|ed|ing)(?: \w+)? (?:useless|unne\w+|duplicate)|"
    r"redundant|bandwidth|occupancy|low[ -]latency|hide|heuristics?|paralleli[sz]\w*|prefetch\w*|"
    r"instead|unroll\w*|swap[ -]?ab)\b",
    re.I,
)
SOFT = re.compile(r"\b(?:improv\w*|instead|avoid|efficient\w*)\b", re.I)
"""Words of ``SPEED`` that people also use of logs, formats and bindings."""
MECHANISM_WORDS = re.compile(
    r"\b(clusters?|lpt|redux|tile[ -]?sched\w*|scheduler|split[ -]?k|split[ -]?kv|stream[ -]?k|"
    r"warp[ -]?speciali[sz]\w*|persistent|ping[ -]?pong)\b",
    re.I,
)
REVERT = re.compile(r"\brevert(?:s|ed|ing)?\b(?! by)|\bback ?out\b", re.I)
OFF = re.compile(r"(?:^|[\]:])\s*(?:temporar\w+ )?(?:disabl(?:e|es|ed|ing)|turn(?:s|ed)? off)\b", re.I)
CHORES = re.compile(
    r"^\W*(?:cutlass\s+)?v?\d+\.\d+(?:\.\d+)*\b|^\W*release\b|"
    r"\btypos?\b|\bpre-?commit\b|^\W*(?:chore|ci|docs?|build|misc|lint|style)\b\s*[\](:/]|\bbump\b|"
    r"\blint(?:er|ing)?\b|\blogg(?:ing|ers?)\b|\bgithub\b(?!\.com)|"
    r"\b(?:perf(?:ormance)? )?regression (?:test|check)\w*|"
    r"\bclang-format\b|\bformatting\b|\bdocumentation\b|\bdocstrings?\b|\breadme\b|\bcopyright\b|\blicen[sc]e\b|"
    r"\brelease v?\d|\bversion bump\b|\bcodeowners\b|\bupgrade\b|\bupdate (?:llvm|triton|cutlass|flashinfer)\b",
    re.I,
)
OTHER_HARDWARE = re.compile(
    r"\b(amd|rocm|hip|gfx\d+\w*|cdna\d?|rdna\d?|mi3\d\d\w?|mi250|aiter|mfma|wmma|xpu|intel|npu|"
    r"ascend|metal|mps|cpu|tpu|hpu|"
    r"musa|mlu|neuron|aarch64|s390x|ppc64le|riscv|mlx|webgpu|cann|tdm|ck)\b",
    re.I,
)
FIX = re.compile(
    r"\b(fix(?:es|ing)?|fixed(?![ -](?:size|length|point|layout|split|stride|shape))|bug ?fix|"
    r"bugs?|hot ?fix|race|races|hang|deadlock|illegal|ima|oob|"
    r"out[ -]of[ -]bounds?|nan|nans|overflow|"
    r"incorrect|wrong|correct(?:ness|ly)?|crash\w*|corrupt\w*|leak|mismatch|accuracy|precision loss|"
    r"misaligned|prevent|"
    r"workaround|issue|error|uninitiali[sz]ed)\b",
    re.I,
)
REFACTOR = re.compile(
    r"\b(refactor\w*|clean[ -]?ups?|renam\w*|deprecat\w*|move[sd]?|reorgani[sz]\w*|simplif\w*|"
    r"remov(?:e|es|ed|al)(?!(?: \w+)? (?:redundant|unn\w+|useless|duplicate|extra)\b)|dead code|"
    r"unify|consolidat\w*|migrat\w*|tuning apis?)\b",
    re.I,
)
EXAMPLE = re.compile(r"\b(?:examples?|tutorials?)\b", re.I)
BUG = re.compile(
    r"\b(race|races|hang|deadlock|illegal|ima|oob|out[ -]of[ -]bounds?|nans?|overflow|incorrect|wrong|mismatch|"
    r"corrupt\w*|leak|misaligned|uninitiali[sz]ed)\b",
    re.I,
)
NEW = re.compile(
    r"\b(add(?:s|ed|ing)?|support(?:s|ed|ing)?|implement\w*|introduc\w*|integrat\w*|new|enabl\w*|"
    r"initial|port\w*|feat\w*|kernels?)\b",
    re.I,
)
SLOW = re.compile(r"\b(perf|performance|slow\w*|regression|speed\w*|optimi[sz]\w*|latency)\b", re.I)
"""A fix of a slow kernel is an optimization."""
NOT_IN_TITLES = frozenset(
    {
        "fp8",
        "fp4",
        "int8",
        "int4",
        "mxfp8",
        "sort",
        "scan",
        "paged",
        "grouped",
        "blockscale",
        "shuffle",
        "smem",
        "ptx-asm",
        "radix",
        "nvrtc-jit",
        "cuda-graph",
        "allreduce",
        "atomics",
        "dequant-lut",
        "unroll",
        "num_warps",
        "num_stages",
        "autotune",
    }
)
"""Mechanisms that a title names as a subject (a sort kernel), not as a means."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """All that the miner knows of a title; the title itself goes no further."""

    words: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    algorithms: bool = False
    """Names what is a family in a library of algorithms."""
    means: bool = False
    """Names a mechanism as the means."""
    speed: bool = False
    soft: bool = False
    """Speaks of speed only in words that are used of other things as well."""
    fix: bool = False
    example: bool = False
    """Is about an example, and names no bug."""
    slow: bool = False
    """The fix is of speed."""
    refactor: bool = False
    chore: bool = False
    revert: bool = False
    off: bool = False
    """Switches something off."""
    other: bool = False
    """Names other hardware."""
    new: bool = False


def read(name: str, body: str) -> Said:
    """Reduce a title and a description."""
    loud = SOFT.sub("", name)
    return Said(
        words=title.bag(name),
        claims=title.claims(name, body),
        archs=tuple(sorted(archs.named(name))),
        dtypes=tuple(sorted(facets.dtypes_named(name))),
        families=tuple(sorted(facets.families_named(name, title=True))),
        algorithms=bool(facets.ALGORITHM_PHRASES.find(tokens.parts(name))),
        means=bool(tokens.mechanisms(name) - NOT_IN_TITLES or MECHANISM_WORDS.search(name)),
        speed=bool(SPEED.search(name)),
        soft=not SPEED.search(loud),
        fix=bool(FIX.search(name)),
        example=bool(EXAMPLE.search(name) and not BUG.search(name)),
        slow=bool(SLOW.search(name)),
        refactor=bool(REFACTOR.search(name)),
        chore=bool(CHORES.search(name) and not SPEED.search(CHORES.sub("", loud))),
        revert=bool(REVERT.search(name)),
        off=bool(OFF.search(name)),
        other=bool(OTHER_HARDWARE.search(name)),
        new=bool(NEW.search(name)),
    )
