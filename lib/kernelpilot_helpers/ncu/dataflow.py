"""Registers that an instruction writes and reads, and which earlier instruction a stalled one waits for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpilot_helpers.ncu.already import opcode

REACH = 400
"""Instructions that are looked back."""
_NOTHING = re.compile(
    r"(ST|STG|STS|STL|STSM|STTM|RED|REDG|REDAS|BAR|BRA|BRX|BRXU|JMP|EXIT|RET|CALL|NOP|MEMBAR|ERRBAR|CCTL\w*|DEPBAR|"
    r"LDGDEPBAR|LDGSTS|BSSY|BSYNC|BREAK|WARPSYNC|WARPGROUP|NANOSLEEP|UTMA\w*|UBLK\w*|UTC\w*|UCGABAR\w*|FENCE|ARRIVES|"
    r"YIELD|KILL|BPT|ACQBULK|PREEXIT|USETMAXREG|SUST|ENDCOLLECTIVE)"
)
"""Opcodes without a result in registers."""
_WAITED = {
    "long_scoreboard": re.compile(r"LDG|LD|LDL|LDGSTS|ATOMG?|TEX|TLD4?|TMML|TXQ|SULD|SUATOM|SYNCS|LDTM|UTMA\w+|UBLKCP"),
    "short_scoreboard": re.compile(
        r"LDS|LDSM|ATOMS|MUFU|S2R|S2UR|SHFL|LDC|R2UR|REDUX|CREDUX|I2F|F2I|F2F|I2I|FRND|POPC|FLO|BREV|VOTE\w*|SYNCS|"
        r"D(FMA|ADD|MUL|SETP)|CS2R|STS|MATCH|QSPC|LD|DMMA|B2R"
    ),
    "warpgroup_arrive": re.compile(r"[HIQB]GMMA|WARPGROUP"),
    "gmma": re.compile(r"[HIQB]GMMA|WARPGROUP"),
    "wait": re.compile(r"\w+"),
}
"""Which opcodes a reason waits for; the other reasons wait for a pipe, a barrier or the code itself."""
_REGISTER = re.compile(r"(?<![\w.])(UR|R|UP|P)(\d{1,3})(?:\.reuse)?(\.64)?(?!\w)")
_BRANCH = re.compile(r"BRA(?:\.\w+)*\s(?:.*\s)?(0x[0-9a-f]+)$")
_PREDICATE = re.compile(r"!?U?P(\d|T)$")
_PAIR = re.compile(r"D(ADD|MUL|FMA|MNMX)|CS2R")


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """Register names (``R12``, ``UR4``, ``P0``) that one instruction writes and reads."""

    writes: frozenset[str]
    reads: frozenset[str]


def effect(text: str) -> Effect:
    """Writes and reads of an instruction; 64- and 128-bit operands count all of their registers.

    >>> sorted(effect("@P0 LDG.E.64 R4, desc[UR6][R2.64]").writes)
    ['R4', 'R5']
    """
    guard = re.match(r"@!?(U?P\d)\s+", text)
    rest = text[guard.end() :] if guard else re.sub(r"^@!?U?PT\s+", "", text)
    name = opcode(rest)
    operands = _split(rest[len(name) :])
    count = _results(name, operands)
    writes = frozenset(r for at in range(count) for r in _named(operands[at], _result_width(name)))
    reads = {r for at, one in enumerate(operands[count:]) for r in _named(one, _source_width(name, one, at))}
    if guard:
        reads.add(guard[1])
    return Effect(writes=writes, reads=frozenset(reads))


def producer(texts: Sequence[tuple[int, str]], at: int, reason: str) -> int | None:
    """Index of the instruction that the one at ``at`` waits for; None where the code does not show it.

    ``texts`` are (offset, instruction) in the order of the code. The nearest earlier writer of each source register
    counts; inside a loop, also what its previous turn wrote. None for a reason that waits for no result.
    """
    fits = _WAITED.get(reason)
    if fits is None:
        return None
    wanted = set(effect(texts[at][1]).reads)
    head = opcode(texts[at][1]).split(".", 1)[0]
    if head in ("DEPBAR", "LDGDEPBAR", "WARPGROUP"):
        asked = _WAITED["warpgroup_arrive"] if head == "WARPGROUP" else re.compile(r"LDGSTS")
        return next((n for n in _before(texts, at) if asked.fullmatch(_head(texts[n][1]))), None)
    for n in _before(texts, at):
        if not wanted:
            return None
        written = effect(texts[n][1]).writes & wanted
        if written and fits.fullmatch(_head(texts[n][1])):
            return n
        wanted -= written
    return None


def _before(texts: Sequence[tuple[int, str]], at: int) -> list[int]:
    """Earlier instructions, nearest first: back to the loop's head, then its tail, then what is above the loop."""
    straight = list(range(at - 1, max(-1, at - 1 - REACH), -1))
    for end in range(at, min(len(texts), at + REACH)):
        target = _BRANCH.search(texts[end][1])
        if target and int(target[1], 16) <= texts[at][0]:
            begin = int(target[1], 16)
            inside = [n for n in straight if texts[n][0] >= begin]
            return inside + list(range(end, at, -1)) + straight[len(inside) :]
    return straight


def _head(text: str) -> str:
    return opcode(text).split(".", 1)[0]


def _split(operands: str) -> list[str]:
    """Operands at the commas outside of brackets."""
    found, depth, one = [], 0, ""
    for sign in operands:
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            found.append(one.strip())
            one = ""
        else:
            one += sign
    return [*found, one.strip()] if one.strip() else found


def _results(name: str, operands: Sequence[str]) -> int:
    """How many of the first operands are results."""
    head = name.split(".", 1)[0]
    if not operands or _NOTHING.fullmatch(head) or not re.match(r"!?(UR|R|UP|P|B)(\d|Z|T|R)", operands[0]):
        return 0
    if len(operands) < 3:
        return 1
    if _PREDICATE.match(operands[0]):  # a second result follows a predicate: ISETP P0, PT, ...; SHFL PT, R5, ...
        return 2 if re.match(r"(UR|R|UP|P)(\d+|Z|T)$", operands[1]) else 1
    carry = head in ("IADD3", "UIADD3", "LEA", "ULEA", "VOTE", "VOTEU", "IMAD", "MATCH") and ".X" not in name
    count = 1
    while carry and count < len(operands) - 1 and re.match(r"U?P(\d|T)$", operands[count]):
        count += 1
    return count


def _result_width(name: str) -> int:
    head, *mods = name.split(".")
    if head.endswith("GMMA"):
        shape = re.search(r"\.64x(\d+)x", name)
        return max(1, int(shape[1]) // (2 if "F32" in mods or head == "IGMMA" else 4)) if shape else 1
    if head in ("HMMA", "IMMA", "QMMA", "OMMA"):
        return 2 if "F16" in mods and "F32" not in mods else 4
    if head in ("DMMA", "LDSM"):
        return 4 if head == "DMMA" or "4" in mods else 2 if "2" in mods else 1
    if "128" in mods:
        return 4
    wide = "64" in mods or "WIDE" in mods or "F64" in mods[:1]
    return 2 if wide or (_PAIR.fullmatch(head) and "32" not in mods) else 1


def _source_width(name: str, operand: str, at: int) -> int:
    head, *mods = name.split(".")
    if head in ("HMMA", "IMMA", "QMMA", "DMMA"):
        return (4, 2, 4)[at] if at < 3 else 1
    if head.startswith("ST") and "[" not in operand:
        return 4 if "128" in mods else 2 if "64" in mods else 1
    if head.endswith("GMMA") and not operand.startswith("gdesc"):
        return _result_width(name) if at > 0 else 4
    if "WIDE" in mods and at == 2:
        return 2
    return 2 if _PAIR.fullmatch(head) else 1


def _named(operand: str, width: int) -> list[str]:
    found = []
    for kind, number, pair in _REGISTER.findall(operand):
        count = 1 if kind in ("P", "UP") else max(width, 2 if pair else 1)
        found += [f"{kind}{int(number) + n}" for n in range(count)]
    return found
