"""Which mechanisms a kernel's code already uses: advice to use one of them would be noise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kernelpilot_helpers.ncu.report import Launch
from kernelpilot_helpers.ncu.sass import Listing

MECHANISMS: Mapping[str, str] = {
    # word: opcodes, as far as the first dot
    "tma": r"UTMA(LDG|STG|REDG|PF|CMDFLUSH)|UBLK(CP|RED|PF)",
    "cp.async": r"LDGSTS",
    "wgmma": r"[HIQB]GMMA",
    "tcgen05": r"UTC\w*MMA",
    "tmem": r"LDTM|STTM",
    "mma": r"[HIDBQO]MMA",
    "ldmatrix": r"LDSM",
    "stmatrix": r"STSM",
    "setmaxnreg": r"U?SETMAXREG",
    "mbarrier": r"SYNCS",
    "barrier": r"BAR|B2R",
    "warp-sync": r"WARPSYNC",
    "shuffle": r"SHFL",
    "redux": r"C?REDUX",
    "local": r"LDL|STL",
    "atomics": r"ATOMG?|REDG?",
    "atomics.shared": r"ATOMS",
    "sfu": r"MUFU",
    "fp64": r"D(FMA|ADD|MUL|SETP)",
    "cluster": r"UCGABAR\w*|MAPA|UMAPA",
    "pdl": r"ACQBULK|PREEXIT",
    "sleep": r"NANOSLEEP",
}
_COMPILED = {word: re.compile(pattern) for word, pattern in MECHANISMS.items()}
_SERIES = ("sass__inst_executed_per_opcode_with_modifier_all", "sass__inst_executed_per_opcode")
_SPILLS = ("derived__local_spilling_requests", "sass__inst_executed_register_spilling")
_WIDE = re.compile(r"(LDG|LD|STG|ST)\.(\w+\.)*128")


def already(launch: Launch, listing: Listing | None = None) -> frozenset[str]:
    """Words of ``MECHANISMS`` that the code uses, with ``vector128``, ``spill`` and ``cluster`` from the metrics.

    From the text of the instructions where there is one, and from the counts by opcode, which need no disassembler.
    An empty set means that neither says anything.
    """
    found = set(_words(_opcodes(launch, listing)))
    values = (launch.metrics.get(name) for name in _SPILLS)
    if any(v is not None and v.number is not None and v.number > 0 for v in values):
        found.add("spill")
    cluster = launch.metrics.get("launch__cluster_size")
    if cluster is not None and cluster.number is not None and cluster.number > 1:
        found.add("cluster")
    return frozenset(found)


def opcode(text: str) -> str:
    """The opcode with its modifiers, without the guard; empty where the text shows none.

    >>> opcode("@!P0 LDG.E.128 R4, [R2.64]"), opcode("")
    ('LDG.E.128', '')
    """
    words = re.sub(r"^@!?U?P\w+\s+", "", text).split()
    return words[0].rstrip(",;") if words else ""


def _opcodes(launch: Launch, listing: Listing | None) -> Iterable[str]:
    for name in _SERIES:
        series = launch.series.get(name)
        if series is not None:
            for key, value in zip(series.keys, series.values, strict=False):
                if isinstance(key, str) and isinstance(value, (int, float)) and value > 0:
                    yield key
    for held in listing.functions.values() if listing is not None else ():
        for text in held.values():
            yield opcode(text)


def _words(opcodes: Iterable[str]) -> Iterable[str]:
    for name in set(opcodes):
        head = name.split(".", 1)[0]
        for word, pattern in _COMPILED.items():
            if pattern.fullmatch(head):
                yield word
        if _WIDE.match(name):
            yield "vector128"
