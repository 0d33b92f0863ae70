"""What was asked, in the words of the index: typed words, the concepts they name, and where symptoms lead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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


PER = re.compile(r"_per_(?:warp|cycle)_(?:active|elapsed)")
"""What a counter is divided by: no part of what it counts."""
AMOUNT = re.compile(r"[0-9.]+[a-z]{0,2}", re.IGNORECASE)
"""96, 12.5, 2us: what was measured, not what the code is called."""

_MATMUL = frozenset({"gemm", "grouped-gemm", "moe", "conv", "embedding-lora"})
_ATTENTION = frozenset({"attention", "mla", "kv-cache"})
FAULTS = frozenset(
    text.concept("t", name)
    for name in ("index-overflow", "out-of-bounds", "misaligned", "race", "uninitialized", "nan-inf", "wrong-result")
)
"""Topics of what is wrong."""
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
    related: dict[str, tuple[str, ...]]
    """As typed -> search words that mean nearly the same."""
    apart: dict[str, tuple[str, str]] = {}
    """As ``concepts``: topics whose words all stand in the question, though not side by side."""
    fault: bool = False
    """Whether something is wrong, not slow: then a fix is what is looked for."""


def ask(said: str, lexicon: Lexicon) -> Question:
    """A text as search words, with the mechanisms and topics that its symptoms lead to."""
    typed = text.query_words(said)
    spoken = PER.sub(" ", " ".join(said.split()[:512]))
    heard = lexicon.heard(spoken)
    named = {text.concept(kind, name): (name, alias) for (kind, name), alias in heard.items()}
    for arch in filter(None, map(text.normal_arch, typed)):
        named[text.concept("a", arch)] = arch, arch
    families = {name for kind, name in heard if kind == "f"}
    symptoms = lexicon.symptoms(spoken)
    led = _led(symptoms, lexicon, families)
    fault = not FAULTS.isdisjoint(named) or not FAULTS.isdisjoint(led)
    joined = tuple(dict.fromkeys(_joins(said)))
    pieces = frozenset((*joined, *(piece for word in typed for piece in text.parts(word))))
    apart = {text.concept(kind, name): (name, alias) for (kind, name), alias in lexicon.in_bag(pieces, "t").items()}
    return Question(
        words=typed,
        absorbed=_absorbed(typed, named),
        complaint=_complaint(
            typed,
            [alias for alias, _ in symptoms.values()],
            [alias for token, (_, alias) in named.items() if token[1] in "mt"],
        ),
        joined=joined,
        concepts=named,
        led={token: reason for token, reason in led.items() if token not in named},
        related={word: tuple(lexicon.related.get(text.stem(word.lower()), ())) for word in typed},
        apart={
            token: reason
            for token, reason in apart.items()
            if token not in named and token not in led and len(text.phrase(reason[1]).split()) > 1
        },
        fault=fault,
    )


def _led(symptoms: dict[str, tuple[str, int]], lexicon: Lexicon, families: set[str]) -> dict[str, tuple[str, str]]:
    """Cures by their place in what each symptom leads to, the surest symptom first."""
    placed: list[tuple[int, str, str, str]] = []
    for number, (alias, _) in symptoms.items():
        for kind, targets in zip("mt", lexicon.leads[int(number)], strict=True):
            fitting = (t for t in targets if not families or families & HOME.get(t, families))
            placed += [(place, kind, target, alias) for place, target in enumerate(fitting)]
    led: dict[str, tuple[str, str]] = {}
    for _, kind, target, alias in sorted(placed, key=lambda item: item[0]):
        led.setdefault(text.concept(kind, target), (target, alias))
    return led


def _complaint(typed: dict[str, list[str]], aliases: list[str], named: Iterable[str]) -> frozenset[str]:
    """``named``: a word that names a mechanism or topic by itself tells what the code is called."""
    stems = {stem for alias in aliases for stem in text.phrase(alias).split()} | WEAK
    whole = {text.phrase(alias) for alias in named}
    return frozenset(
        word
        for word in typed
        if (stems.issuperset(text.parts(word)) and text.phrase(word) not in whole) or AMOUNT.fullmatch(word)
    )


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
