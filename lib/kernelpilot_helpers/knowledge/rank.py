"""The order of hits: full-text scores, then what the text of a query cannot say."""

from __future__ import annotations

import heapq
import math
import sqlite3
from collections.abc import Mapping

import msgspec
from msgspec import field

from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.filters import Condition
from kernelpilot_helpers.knowledge.postings import Postings
from kernelpilot_helpers.knowledge.question import Question
from kernelpilot_helpers.knowledge.units import WEIGHTS, Weights, pooled

PRIOR = {"A": 1.4, "B": 1.3, "C": 1.2, "D": 1.0, "E": 1.1, "P": 0.66, "": 0.66}
"""How sure it is that a record of this tier is about speed at all."""


FAULT_PRIOR = {**PRIOR, "P": 1.5, "": 1.0}
"""The same where something is wrong: tier P are the fixes."""


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """Every number of the ranking that is not a column's weight."""

    parts: Weights = WEIGHTS
    prior: Mapping[str, float] = field(default_factory=lambda: PRIOR)
    """By tier."""
    fault: Mapping[str, float] = field(default_factory=lambda: FAULT_PRIOR)
    """By tier, where something is wrong and not slow."""
    read: float = 1.2
    """At least this prior for a record with a lesson: somebody saw that its diff is an optimization."""
    unmerged: float = 0.8
    """An open pull request."""
    coverage: float = 0.4
    """Of the question's words, weighted by rarity, in the title, symbols and named concepts."""
    mechanism: float = 0.05
    """For each wanted mechanism that the diff adds."""
    leading: int = 5
    """A diff's mechanisms with most lines: what it is about."""
    trailing: float = 0.3
    """What one of the others counts for."""
    about: float = 0.1
    """For each wanted family, data type or architecture that the record has."""
    mechanisms_most: int = 6
    filtered: float = 0.6
    """A record that is silent about a filtered fact."""
    related_arch: float = 0.9
    many_files: int = 60
    many_penalty: float = 0.92
    recency: float = 0.02
    """From the oldest to the newest record."""
    repo_again: float = 0.01
    """For each better hit of the same repository: hits of others come forward."""
    family_again: float = 0.05
    """For each better hit that is a re-landing or cherry-pick of the same change."""
    candidates: int = 160


TUNING = Tuning()
FEW = 300
"""Records up to which the plain name of a mechanism is looked for whole, like an identifier."""
MOST_HELD = 4000
OLDEST, NEWEST = 2024.4, 2026.7


class Candidate(msgspec.Struct, kw_only=True):
    """One record on the way to its rank."""

    number: int
    score: float
    repo: str
    family: str


def ranked(
    tables: sqlite3.Connection, question: Question, allowed: Condition, limit: int, tuning: Tuning = TUNING
) -> list[tuple[float, int]]:
    """Score and row of the best ``limit`` records, best first."""
    postings = Postings(tables)
    scores = pooled(postings, question, tuning.parts)
    allowed = allowed.settled(tables)
    scores = _only(tables, scores, allowed)
    whole = _holders(tables, question)
    most = max(tuning.candidates, limit * 3)
    best = heapq.nsmallest(most, scores, key=lambda number: (number not in whole, -scores[number], number))
    if not best:
        return []
    candidates = _candidates(
        tables, {number: scores[number] for number in best}, question, _rarities(postings, question), allowed, tuning
    )
    rest = _spread([c for c in candidates if c.number not in whole], limit, tuning)
    first = _spread([c for c in candidates if c.number in whole], limit, tuning) if whole else []
    lift = rest[0][0] if rest else 0.0
    return [*((score + lift, number) for score, number in first), *rest][:limit]


def _only(tables: sqlite3.Connection, scores: dict[int, float], allowed: Condition) -> dict[int, float]:
    """The scores of records that the filters let through."""
    if not allowed.parts:
        return scores
    rows = tables.execute(f"SELECT id FROM doc WHERE 1{allowed.sql('id')}", tuple(allowed.values))  # noqa: S608
    return {row[0]: scores[row[0]] for row in rows if row[0] in scores}


def _holders(tables: sqlite3.Connection, question: Question) -> set[int]:
    """Records that hold the identifier that was asked for, whole or in a longer name; none for other questions.

    A name's pieces stand in the columns one after the other, so that ``run_int8_scaled_mm_sm90`` holds the phrase;
    other spellings (``Int8ScaledMM``) count where nobody spells it so.
    """
    if len(question.words) != 1:
        return set()
    ((typed, tokens),) = question.words.items()
    plain = not {"_", "."} & set(typed.strip("._"))
    name = typed.lower()
    if plain and question.concepts.get(text.concept("m", name), ("", ""))[0] != name:
        return set()
    held = {row[0] for row in tables.execute("SELECT doc FROM term WHERE token = ?", (name,))}
    match = f'{{words symbols context paths}} : "{tokens[0]}"'
    pieces = text.parts(typed)
    if len(pieces) > 1:
        match += f""" OR {{symbols context paths}} : "{" ".join(pieces)}\""""
    held |= {row[0] for row in tables.execute("SELECT rowid FROM fts WHERE fts MATCH ?", (match,))}
    if plain and len(held) > FEW:
        return set()
    some = sorted(held)[:MOST_HELD]
    marks = ", ".join("?" * len(some))
    spelled = tables.execute(f"SELECT id FROM doc WHERE id IN ({marks}) AND instr(lower(record), ?)", (*some, name))  # noqa: S608
    return {row[0] for row in spelled} or held


def _rarities(postings: Postings, question: Question) -> dict[str, float]:
    """As typed -> how rare the word is."""
    return {
        typed: math.log(1 + postings.total / (postings.of(tokens[0]) or postings.total / 2))
        for typed, tokens in question.words.items()
    }


def _about(token: str) -> bool:
    return token[1] in "fda"


def _candidates(
    tables: sqlite3.Connection,
    scores: dict[int, float],
    question: Question,
    weights: dict[str, float],
    allowed: Condition,
    tuning: Tuning,
) -> list[Candidate]:
    marks = ", ".join("?" * len(scores))
    columns = "id, repo, tier, day, files, state, head, terms, family, archs, dtypes, read"
    rows = tables.execute(f"SELECT {columns} FROM doc WHERE id IN ({marks})", tuple(scores))  # noqa: S608
    both = (*question.concepts.items(), *question.led.items())
    wanted = [f'"{name}":' for token, (name, _) in both if token[1] == "m"]
    needles = [_needle(question, typed, weight) for typed, weight in weights.items()]
    about = [f" {token} " for token in question.concepts if _about(token)]
    total = sum(weights.values()) or 1.0
    prior_of = tuning.fault if question.fault else tuning.prior
    out = []
    for number, repo, tier, day, files, state, head, terms, family, archs, dtypes, read in rows:
        prior = max(prior_of.get(tier, 1.0), tuning.read if read else 0.0)
        score = scores[number] * prior * (tuning.unmerged if state == "open" else 1.0)
        covered = sum([_covered(needle, head) for needle in needles]) / total
        present = min(_present(wanted, terms, tuning), tuning.mechanisms_most)
        score *= 1 + tuning.coverage * covered + tuning.mechanism * present
        score *= 1 + tuning.about * len([token for token in about if token in head])
        for kind, silent in (("arch", archs), ("dtype", dtypes)):
            score *= _filter_factor(allowed.wanted.get(kind, ()), silent.split(), tuning)
        if files > tuning.many_files:
            score *= tuning.many_penalty
        score *= 1 + tuning.recency * (int(day[:4]) + int(day[5:7]) / 12 - OLDEST) / (NEWEST - OLDEST)
        out.append(Candidate(number=number, score=score, repo=repo, family=family))
    return out


def _present(wanted: list[str], terms: str, tuning: Tuning) -> float:
    """How many of the wanted mechanisms a diff adds; ``terms`` holds them by falling lines."""
    places = [terms.count(",", 0, at) for at in map(terms.find, wanted) if at >= 0]
    return sum(1.0 if place < tuning.leading else tuning.trailing for place in places)


def _needle(question: Question, typed: str, weight: float) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """Of a typed word: what covers it whole, its pieces, and its weight; each search word between blanks."""
    tokens = question.words[typed]
    whole = (tokens[0], *question.absorbed.get(typed, ()))
    return tuple(f" {t} " for t in whole), tuple(f" {t} " for t in tokens[2:] or tokens[1:]), weight


def _covered(needle: tuple[tuple[str, ...], tuple[str, ...], float], head: str) -> float:
    """The word's weight when it, or what it helps to name, stands there; less for some of its pieces."""
    whole, pieces, weight = needle
    for token in whole:
        if token in head:
            return weight
    return 0.8 * weight * len([p for p in pieces if p in head]) / len(pieces) if pieces else 0.0


def _filter_factor(wanted: tuple[str, ...], have: list[str], tuning: Tuning) -> float:
    if not wanted or wanted[0] in have:
        return 1.0
    return tuning.related_arch if any(value in have for value in wanted) else tuning.filtered


def _spread(candidates: list[Candidate], limit: int, tuning: Tuning) -> list[tuple[float, int]]:
    """Best first, where each further hit of a repository or of one change counts a little less."""
    left = sorted(candidates, key=lambda c: (-c.score, c.number))[: limit * 4]
    repos: dict[str, int] = {}
    families: dict[str, int] = {}
    out: list[tuple[float, int]] = []
    while left and len(out) < limit:
        best, index = -1.0, 0
        for at, candidate in enumerate(left):
            again = tuning.repo_again * repos.get(candidate.repo, 0)
            again += tuning.family_again * families.get(candidate.family, 0)
            worth = candidate.score * max(0.5, 1 - again)
            if worth > best:
                best, index = worth, at
        taken = left.pop(index)
        repos[taken.repo] = repos.get(taken.repo, 0) + 1
        families[taken.family] = families.get(taken.family, 0) + 1
        out.append((best, taken.number))
    return out
