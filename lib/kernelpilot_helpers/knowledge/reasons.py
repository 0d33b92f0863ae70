"""Why a record is a hit: which fields hold which of the words, and what a symptom led to."""

from __future__ import annotations

from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.fields import FIELDS, fields
from kernelpilot_helpers.knowledge.lexicon import Lexicon
from kernelpilot_helpers.knowledge.model import Record
from kernelpilot_helpers.knowledge.question import Question

HIDDEN = ("named", "concepts")
"""Columns of words of ours, told as concepts."""


def why(record: Record, question: Question, lexicon: Lexicon) -> str:
    """Fields that matched, with the words that did; a mechanism with the lines that add it."""
    found = fields(record, lexicon)
    out = []
    for name in FIELDS:
        have = set(found[name])
        said = [_heard(typed, tokens, have) for typed, tokens in question.words.items()] if name not in HIDDEN else []
        if any(said):
            out.append(f"{name}: {', '.join(dict.fromkeys(filter(None, said)))}")
    have = {*found["concepts"], *found["named"]}
    led: dict[str, list[str]] = {}
    for token, (name, heard) in (*question.concepts.items(), *question.apart.items(), *question.led.items()):
        if token in have:
            lines = record.diff_terms.get(name, 0)
            told = f"{name} {lines}" if lines else name
            led.setdefault("" if heard == name else f" (for {heard!r})", []).append(told)
    if led:
        out.append(f"concepts: {'; '.join(', '.join(names) + said for said, names in led.items())}")
    return "; ".join(out)


def _heard(typed: str, tokens: list[str], have: set[str]) -> str:
    """The word as typed when it stands there whole, else the longer parts of it that do."""
    if tokens[0] in have or (typed[:1] in "sScC" and text.normal_arch(typed) in have):
        return typed
    looked_for = have.intersection(tokens)
    if not looked_for:
        return ""
    return " ".join(piece for piece in text.surfaces(typed) if len(piece) > 1 and text.stem(piece) in looked_for)
