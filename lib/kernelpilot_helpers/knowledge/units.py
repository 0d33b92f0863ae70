"""A question's parts, each of which counts once for a record, however many ways of saying it the record holds."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kernelpilot_helpers.knowledge.postings import CURES, Postings
from kernelpilot_helpers.knowledge.question import Question


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts of a question count for, beside a plain word."""

    concept: float = 1.0
    """A mechanism that is named."""
    topic: float = 1.5
    about: float = 0.5
    """A family, data type or architecture."""
    apart: float = 1.0
    """A topic whose words stand in the question, though not side by side."""
    absorbed: float = 0.55
    """A word inside a name of several words, whose concept counts as well."""
    complaint: float = 0.4
    """A word of a symptom's name."""
    related: float = 0.35
    """Another word that means nearly the same, in place of the word."""
    pieces: float = 0.35
    """All pieces of an identifier, beside the identifier."""
    joined: float = 0.6
    cure: float = 1.2
    """The best of what a symptom leads to."""
    cure_topic: float = 1.4
    """More for a topic among them."""
    later: float = 0.95
    """Each further one counts this much of the one before."""
    others: float = 0.25
    """Of the cures that a record holds beside its best."""


WEIGHTS = Weights()


def pooled(postings: Postings, question: Question, weights: Weights = WEIGHTS) -> dict[int, float]:
    """Record -> score by the words and concepts of a question."""
    out: dict[int, float] = {}
    for typed, tokens in question.words.items():
        _add(out, _word(postings, question, typed, tokens, weights))
    for token in question.concepts:
        weight = {"t": weights.topic, "m": weights.concept}.get(token[1], weights.about)
        _add(out, postings.worths(token, weight))
    for token in question.apart:
        _add(out, postings.worths(token, weights.apart))
    for token in question.joined:
        _add(out, postings.worths(token, weights.joined))
    _add(out, _cures(postings, question, weights).items())
    return out


def _add(out: dict[int, float], worths: Iterable[tuple[int, float]]) -> None:
    for number, worth in worths:
        out[number] = out.get(number, 0.0) + worth


def _most(out: dict[int, float], worths: Iterable[tuple[int, float]]) -> None:
    for number, worth in worths:
        if worth > out.get(number, 0.0):
            out[number] = worth


def _word(
    postings: Postings, question: Question, typed: str, tokens: list[str], weights: Weights
) -> Iterable[tuple[int, float]]:
    """A word with its pieces, or a relative in its place."""
    weight = 1.0
    if typed in question.absorbed:
        weight = weights.absorbed
    elif typed in question.complaint:
        weight = weights.complaint
    pieces = postings.known(tokens[2:])
    related = postings.known(question.related.get(typed, ()))
    if not pieces and not related and len(tokens) == 1:
        return postings.worths(tokens[0], weight)
    best = dict(postings.worths(tokens[0], weight))
    _most(best, postings.worths(tokens[1], weight) if len(tokens) > 1 else ())
    summed: dict[int, float] = {}
    for piece in pieces:
        _add(summed, postings.worths(piece, weight * weights.pieces / len(tokens[2:]) ** 0.5))
    _add(best, summed.items())
    for token in related:
        _most(best, postings.worths(token, weight * weights.related))
    return best.items()


def _cures(postings: Postings, question: Question, weights: Weights) -> dict[int, float]:
    """What symptoms lead to: a record's best cure counts, the others a little."""
    best: dict[int, float] = {}
    total: dict[int, float] = {}
    for place, token in enumerate(question.led):
        weight = weights.cure * weights.later**place * (weights.cure_topic if token[1] == "t" else 1.0)
        worths = list(postings.worths(token, weight, CURES))
        _most(best, worths)
        _add(total, worths)
    return {number: worth + weights.others * (total[number] - worth) for number, worth in best.items()}
