"""Whether a cell of the goal tracker says something: what a criterion stands on, or why it was put off. Pure.

No rule can tell whether words are true. This one tells that there are some: a reference to something (a path, a
version or run, a commit), or words beyond those that only fill a cell.
"""

from __future__ import annotations

import html
import re
import unicodedata

RULE = (
    "a path, version, run, command or commit, or says in words what shows it; "
    "none, no, TBD, missing, ok, done or a sign alone says nothing"
)
"""The rule for people, after "evidence names"."""

CAP = 1000
"""Characters of a cell that are looked at."""

_HOLLOW_WORDS = """
a an the this that it its is was are be been to of for in on at by and or as with all any will yet so here there
none no not nothing never nil null na tbd tba todo do wip missing pending unknown later soon added awaiting placeholder
ok okay yes y n x true false good fine great lgtm done complete completed finished met works working worked passed
pass passes passing green verified unverified checked tested confirmed proved evidence proof reason justification
fill filled see above below same ditto ac acs criterion criteria deferred
"""
_NO_WORDS = "none no not nothing never nil null na tbd tba todo wip missing pending unknown awaiting"
_HOLLOW, _NOTHING = frozenset(_HOLLOW_WORDS.split()), frozenset(_NO_WORDS.split())
_LATER = frozenset(("tbd", "tba", "todo", "wip", "pending"))
_BLANK = re.compile("[\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]")
_ID = re.compile(r"(?<![a-z0-9])ACs?[-_. ]?[0-9]+(?:\.[0-9]+)*[a-z]?(?![a-z0-9])", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_HASH = re.compile(r"[0-9a-f]{7,64}")


def evidence(cell: str) -> bool:
    """Whether a cell names what shows that a criterion is met."""
    text, words = _words(cell)
    if any(_refers(token) for token in text.split()):
        return True
    no = not words or words[0] in _NOTHING or words[:2] == ["n", "a"]
    return not no and _content(words)


def reason(cell: str) -> bool:
    """Whether a cell says why a criterion was put off: "no such device" is a reason, "TBD" is none."""
    _, words = _words(cell)
    return bool(words) and words[0] not in _LATER and _content(words)


def _words(cell: str) -> tuple[str, list[str]]:
    """What a reader sees, folded, without ids of criteria; and its words."""
    seen = re.sub(r"<(?![^<>]{0,200}://)[^<>]{0,2000}>", " ", html.unescape(cell))
    seen = "".join(c for c in _BLANK.sub("", seen[:CAP]) if c.isascii() or unicodedata.category(c) != "Cf")
    seen = _ID.sub(" ", seen).casefold()
    return seen, _WORD.findall(seen)


def _content(words: list[str]) -> bool:
    """A word that means something, and a second one beside it unless it is long enough for a name."""
    telling = [word for word in words if word not in _HOLLOW and sum(map(str.isalpha, word)) >= 3]
    return bool(telling) and (len(words) > 1 or len(telling[0]) > 3)


def _refers(token: str) -> bool:
    """``artifacts/lineage.jsonl``, ``v001_fused.2``, ``run-4``, ``abc1234``; neither ``n/a`` nor ``done.``"""
    bare = token.strip("`*\"'()[]{}<>,;:!?.\u201c\u201d\u2018\u2019")
    if _HASH.fullmatch(bare) and any(c.isdigit() for c in bare):
        return True
    parts = _WORD.findall(bare)
    if len(bare) < 4 or all(part in _HOLLOW or len(part) < 2 or part.isdigit() for part in parts):
        return False
    return "/" in bare or "." in bare or any(c.isdigit() for c in bare)
