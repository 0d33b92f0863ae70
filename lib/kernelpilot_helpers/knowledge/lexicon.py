"""The vocabulary made ready for reading: every name of everything, found in a text in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.model import Vocabulary

KINDS = "mftdas"
"""Mechanism, family, topic, data type, architecture, symptom (named by its number)."""
Entry = tuple[str, str, str, str]
"""Stemmed phrase between spaces, kind, name, and the alias as it stands in the vocabulary."""


class Lexicon(msgspec.Struct, frozen=True, kw_only=True):
    """Names by their first stem, for running text, and by their longest, for bags of words."""

    by_first: dict[str, list[Entry]]
    by_longest: dict[str, list[Entry]]
    related: dict[str, list[str]]
    """Stem of a word -> search words that mean nearly the same."""
    leads: list[tuple[tuple[str, ...], tuple[str, ...]]]
    """Of each symptom: mechanisms and topics."""

    def heard(self, said: str, kinds: str = KINDS) -> dict[tuple[str, str], str]:
        """Kind and name of all that the text names as whole words -> the longest alias that it uses.

        The words of a symptom may stand in another order, as long as they stand together.
        """
        whole = text.phrase(said)
        stems = whole.split()
        return _longest(
            entry
            for stem in dict.fromkeys(stems)
            for entry in self.by_first.get(stem, ())
            if entry[1] in kinds and (entry[0] in whole or (entry[1] == "s" and _together(entry[0].split(), stems)))
        )

    def in_bag(self, pieces: frozenset[str], kinds: str) -> dict[tuple[str, str], str]:
        """The same for words without their order: every piece of a name must be there."""
        return _longest(
            entry
            for piece in pieces
            for entry in self.by_longest.get(piece, ())
            if entry[1] in kinds and pieces.issuperset(entry[0].split())
        )


def _together(name: list[str], stems: list[str]) -> bool:
    """Whether the pieces of a name stand side by side in any order."""
    wanted = set(name)
    return wanted.issubset(stems) and any(
        wanted == set(stems[at : at + len(name)]) for at in range(len(stems) - len(name) + 1)
    )


def _longest(entries: Iterable[Entry]) -> dict[tuple[str, str], str]:
    out: dict[tuple[str, str], str] = {}
    for _, kind, name, alias in entries:
        if len(alias) > len(out.get((kind, name), "")):
            out[kind, name] = alias
    return out


def compiled(words: Vocabulary) -> Lexicon:
    """The lexicon of a vocabulary."""
    by_first: dict[str, list[Entry]] = {}
    by_longest: dict[str, list[Entry]] = {}
    for kind, name, alias in _names(words):
        stems = text.phrase(alias).split()
        if stems:
            entry = (text.phrase(alias), kind, name, alias)
            by_first.setdefault(stems[0], []).append(entry)
            by_longest.setdefault(max(stems, key=len), []).append(entry)
    related = {
        text.stem(word): [t for other in others for t in text.tokens(other)] for word, others in words.words.items()
    }
    leads = [(symptom.look_for, symptom.topics) for symptom in words.symptoms]
    return Lexicon(by_first=by_first, by_longest=by_longest, related=related, leads=leads)


def _names(words: Vocabulary) -> Iterator[tuple[str, str, str]]:
    groups = (
        ("m", words.mechanisms),
        ("f", words.families),
        ("t", words.topics),
        ("d", words.dtypes),
        ("a", words.archs),
    )
    for kind, group in groups:
        for name, aliases in group.items():
            yield from ((kind, name, alias) for alias in (name, *aliases))
    for number, symptom in enumerate(words.symptoms):
        yield from (("s", str(number), alias) for alias in symptom.says)
