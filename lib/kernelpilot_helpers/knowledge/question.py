"""What was asked, in the words of the index: typed words, the concepts they name, and where symptoms lead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.lexicon import Lexicon

JOINED = 3
"""Neighbouring words of at most this many pieces are looked for as one (``split k`` as ``splitk``)."""

WEAK = frozenset(
    text.phrase(
        "kernel performance speed throughput limit dominate say show need take spend wait time much most many only too "
        "very nsight ncu profile gpu cuda slow fast bound stall percent peak step layer "
        "fetch multiply begin previous next some other give back share same few hit still even every each whole keep "
        "cost use used high low often already after before between during while busy idle"
    ).split()
)
"""Stems of words that complaints are made of and that name no code."""


AMOUNT = re.compile(r"[0-9.]+[a-z]{0,2}", re.IGNORECASE)
"""96, 12.5, 2us: what was measured, not what the code is called."""

_MATMUL = frozenset({"gemm", "grouped-gemm", "moe", "conv", "embedding-lora"})
_ATTENTION = frozenset({"attention", "mla", "kv-cache"})
HOME = {"split-kv": _ATTENTION, "split-k": _MATMUL, "stream-k": _MATMUL, "swap-ab": _MATMUL}
"""Where a symptom leads to by family; a question about another family is not led there."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A text as search words."""

    words: dict[str, list[str]]
    """As typed -> search words."""
    absorbed: dict[str, tuple[str, ...]]
    """Of these, the ones inside a name of several words -> search words of the concepts that it names."""
    joined: tuple[str, ...]
    """Neighbours written as one word."""
    concepts: dict[str, tuple[str, str]]
    """Search word of a mechanism, family, topic, type or architecture that is named -> its name, and what was said."""
    led: dict[str, tuple[str, str]]
    """The same for what a symptom leads to."""
    complaint: frozenset[str]
    """Typed words that belong to a symptom's name: they tell what is seen, not what the code is called."""
    related: tuple[str, ...]
    """Words that mean nearly the same."""


def ask(said: str, lexicon: Lexicon) -> Question:
    """A text as search words, with the mechanisms and topics that its symptoms lead to."""
    typed = text.query_words(said)
    heard = lexicon.heard(" ".join(said.split()[:512]))
    named = {text.concept(kind, name): (name, alias) for (kind, name), alias in heard.items() if kind != "s"}
    for arch in filter(None, map(text.normal_arch, typed)):
        named[text.concept("a", arch)] = arch, arch
    families = {name for kind, name in heard if kind == "f"}
    led: dict[str, tuple[str, str]] = {}
    for (kind, name), alias in heard.items():
        if kind == "s":
            for to, targets in zip("mt", lexicon.leads[int(name)], strict=True):
                for target in (t for t in targets if not families or families & HOME.get(t, families)):
                    led.setdefault(text.concept(to, target), (target, alias))
    typed_tokens = {token for tokens in typed.values() for token in tokens}
    near = (token for word in typed for token in lexicon.related.get(text.stem(word.lower()), ()))
    return Question(
        words=typed,
        absorbed=_absorbed(typed, named),
        complaint=_complaint(typed, [alias for (kind, _), alias in heard.items() if kind == "s"]),
        joined=tuple(dict.fromkeys(_joins(said))),
        concepts=named,
        led={token: reason for token, reason in led.items() if token not in named},
        related=tuple(dict.fromkeys(token for token in near if token not in typed_tokens)),
    )


def _complaint(typed: dict[str, list[str]], aliases: list[str]) -> frozenset[str]:
    stems = {stem for alias in aliases for stem in text.phrase(alias).split()} | WEAK
    return frozenset(word for word in typed if stems.issuperset(text.parts(word)) or AMOUNT.fullmatch(word))


def _joins(said: str) -> Iterator[str]:
    pieces = [text.parts(chunk) for chunk in text.CHUNK.findall(text.fold(said))[:256]]
    for left, right in pairwise(pieces):
        if left and right and len(left) + len(right) <= JOINED:
            yield "".join((*left, *right))


def _absorbed(typed: dict[str, list[str]], named: dict[str, tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    spoken = [(concept, text.phrase(alias).split()) for concept, (_, alias) in named.items() if concept[1] in "tm"]
    out: dict[str, tuple[str, ...]] = {}
    for word in typed:
        pieces = text.parts(word)
        inside = tuple(
            c for c, stems in spoken if len(stems) > 1 and len(stems) > len(pieces) and set(pieces) <= set(stems)
        )
        if inside and pieces:
            out[word] = inside
    return out
