"""The vocabulary made ready for reading: every name of everything, found in a text in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.model import Vocabulary

KINDS = "mftda"
"""Mechanism, family, topic, data type, architecture; a symptom is ``s`` and named by its number."""
BETWEEN = 3
"""Of so many words of a symptom's name, one more may stand between them."""
LIGHT = frozenset(
    re.findall(
        "[a-z]+", "a an and are as at be by for from has have in into is it its of on or our that the their to with"
    )
)
"""Words that may be left out of a symptom's name."""
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
        """Kind and name of all that the text names as whole words -> the longest alias that it uses."""
        return _longest(self._spoken(said, kinds))

    def symptoms(self, said: str) -> dict[str, tuple[str, int]]:
        """Number of each symptom that the text names -> the longest alias, and how many words all its aliases cover.

        The words of an alias may stand in another order and with little between them; the surest symptom comes first.
        """
        words: dict[str, set[str]] = {}
        spoken = list(self._spoken(said, "s"))
        for phrase, _, name, _ in spoken:
            words.setdefault(name, set()).update(_telling(phrase.split()))
        longest = _longest(spoken)
        order = sorted(words, key=lambda name: -len(words[name]))
        return {name: (longest["s", name], len(words[name])) for name in order}

    def _spoken(self, said: str, kinds: str) -> Iterator[Entry]:
        whole = text.phrase(said)
        stems = whole.split()
        telling = _telling(stems) if "s" in kinds else []
        for stem in dict.fromkeys(stems):
            for entry in self.by_first.get(stem, ()):
                if entry[1] in kinds and (entry[0] in whole or (telling and _together(entry[0].split(), telling))):
                    yield entry

    def in_bag(self, pieces: frozenset[str], kinds: str) -> dict[tuple[str, str], str]:
        """The same for words without their order: every piece of a name must be there."""
        return _longest(
            entry
            for piece in pieces
            for entry in self.by_longest.get(piece, ())
            if entry[1] in kinds and pieces.issuperset(entry[0].split())
        )


def _telling(stems: Iterable[str]) -> list[str]:
    return [stem for stem in stems if stem not in LIGHT]


def _together(name: list[str], stems: list[str]) -> bool:
    """Whether the telling pieces of a name stand near each other in any order; a name of one such piece never does."""
    wanted = set(_telling(name))
    if len(wanted) < 2 or not wanted.issubset(stems):
        return False
    width = len(wanted) + len(wanted) // BETWEEN
    return any(wanted.issubset(stems[at : at + width]) for at in range(len(stems) - len(wanted) + 1))


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
            first = next(iter(_telling(stems)), stems[0]) if kind == "s" else stems[0]
            by_first.setdefault(first, []).append(entry)
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
