"""Each claim against the clones: passed, failed with a reason, or unchecked with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kernelpilot_helpers.knowledge import page_parts
from source_check import borrowed, comments
from source_check.claims import Claims, Said, Told, Unread, Written
from source_check.clones import Clone, Commit

PASSED, FAILED, UNCHECKED = "passed", "failed", "unchecked"
_FACTS = re.compile(
    rf"{page_parts.LIKE_REF.pattern}|{page_parts.RECORD_ID.pattern}|https?://\S+|(?<!\S)`?[\w.~-]*/[\w./+-]+`?(?!\w)"
)
"""References, ids, addresses and paths are facts, whoever wrote them first."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one claim."""

    kind: str
    """``ref``, ``lesson``, ``read``, ``words``."""
    where: str
    what: str
    outcome: str
    why: str = ""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What the clones of one repository answered."""

    clones: int
    commits: dict[str, Commit]
    files: dict[tuple[str, str], str | None]
    changed: dict[str, frozenset[str]]


def look(clones: list[Clone], shas: set[str], places: set[tuple[str, str]], read_at: set[str]) -> Looked:
    """Ask clone after clone; what an earlier one answered is not asked again."""
    commits: dict[str, Commit] = {}
    files: dict[tuple[str, str], str | None] = {}
    changed: dict[str, frozenset[str]] = {}
    for clone in clones:
        here = clone.commits(shas - commits.keys())
        commits |= here
        wanted = {place for place in places if files.get(place) is None}
        for place, text in clone.files(wanted).items():
            if text is not None or place not in files:
                files[place] = text
        changed |= clone.changed({here[sha].sha for sha in read_at if sha in here})
    return Looked(clones=len(clones), commits=commits, files=files, changed=changed)


def of_ref(said: Said, looked: Looked) -> Verdict:
    """Commit, path, and each word of the symbol."""
    ref = said.ref

    def verdict(outcome: str, why: str = "") -> Verdict:
        return Verdict(kind="ref", where=said.where, what=str(ref), outcome=outcome, why=why)

    if not looked.clones:
        return verdict(UNCHECKED, f"no clone of {ref.repo}")
    if ref.sha12 not in looked.commits:
        return verdict(FAILED, "no such commit")
    if (ref.sha12, ref.path) not in looked.files:
        return verdict(FAILED, "no such path at that commit")
    if not ref.words:
        return verdict(PASSED)
    text = looked.files[ref.sha12, ref.path]
    if text is None:
        return verdict(UNCHECKED, "the path is there, its content is not in the clone")
    absent = [word for word in ref.words if not _holds(text, word)]
    if absent:
        return verdict(FAILED, f"{absent[0]!r} is no whole word of that file")
    code = comments.without(text, ref.path)
    told = [word for word in ref.words if not _holds(code, word)]
    return verdict(FAILED, f"{told[0]!r} stands only in comments of that file") if told else verdict(PASSED)


def _holds(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def of_lesson(told: Told, looked: Looked, open_files: Mapping[str, frozenset[str]]) -> Iterator[Verdict]:
    """Its commit, and each path that it says was read; then its words."""
    lesson = told.lesson
    commit = looked.commits.get(lesson.sha)
    outcome, why = PASSED, ""
    if not looked.clones:
        outcome, why = UNCHECKED, f"no clone of {told.repo}"
    elif commit is None:
        outcome, why = FAILED, "no such commit"
    yield Verdict(kind="lesson", where=told.where, what=lesson.sha[:12], outcome=outcome, why=why)
    touched = looked.changed.get(lesson.sha, frozenset()) | open_files.get(lesson.id, frozenset())
    for path in lesson.read:
        if commit is not None and path not in touched:
            outcome, why = FAILED, "that commit does not change this path"
        elif commit is not None:
            outcome, why = PASSED, ""
        yield Verdict(kind="read", where=told.where, what=path, outcome=outcome, why=why)
    if commit is not None:
        theirs = [borrowed.runs(commit.message)]
        run = borrowed.shared(lesson.label, theirs) or borrowed.shared(lesson.lesson, theirs)
        yield _words(told.where, run, lesson.sha[:12])


def of_page(page: Written, messages: Iterable[str], unread: int) -> Iterator[Verdict]:
    """Its lines against the messages of the commits that it cites."""
    theirs = [borrowed.runs(message) for message in messages]
    for number, block in page_parts.blocks(page.text):
        run = borrowed.shared(_FACTS.sub(" ", block), theirs)
        if run:
            yield _words(f"{page.where}:{number}", run, "a commit that the page cites")
    if unread:
        why = f"{unread} cited commits are in no clone"
        yield Verdict(kind="words", where=page.where, what="messages", outcome=UNCHECKED, why=why)
    if theirs:
        yield Verdict(kind="words", where=page.where, what=f"{len(theirs)} messages", outcome=PASSED)


def _unread(one: Unread) -> Verdict:
    return Verdict(kind=one.kind, where=one.where, what=one.what, outcome=FAILED, why=one.why)


def _words(where: str, run: str, whose: str) -> Verdict:
    if run:
        why = f"{borrowed.RUN} words in a row stand in the message of {whose}"
        return Verdict(kind="words", where=where, what=run, outcome=FAILED, why=why)
    return Verdict(kind="words", where=where, what=whose, outcome=PASSED)


def judge(claims: Claims, clones: Mapping[str, list[Clone]]) -> list[Verdict]:
    """Every claim, in the order of the tree; ``clones`` by repository."""
    seen = {repo: _ask(claims, repo, found) for repo, found in clones.items()}
    nothing = Looked(clones=0, commits={}, files={}, changed={})
    out = [_unread(one) for one in claims.unread]
    out += [of_ref(said, seen.get(said.ref.repo, nothing)) for said in claims.refs]
    for told in claims.lessons:
        out += of_lesson(told, seen.get(told.repo, nothing), claims.open_files)
    for page in claims.pages:
        cited = [seen.get(repo, nothing).commits.get(sha) for repo, sha in page.shas]
        out += of_page(page, [c.message for c in cited if c], sum(c is None for c in cited))
    return out


def _ask(claims: Claims, repo: str, clones: list[Clone]) -> Looked:
    refs = [said.ref for said in claims.refs if said.ref.repo == repo]
    read_at = {told.lesson.sha for told in claims.lessons if told.repo == repo}
    cited = {sha for page in claims.pages for name, sha in page.shas if name == repo}
    places = {(ref.sha12, ref.path) for ref in refs}
    return look(clones, {*(ref.sha12 for ref in refs), *read_at, *cited}, places, read_at)


def repos_of(claims: Claims) -> tuple[str, ...]:
    """Every repository that is spoken of."""
    names = {said.ref.repo for said in claims.refs} | {told.repo for told in claims.lessons}
    return tuple(sorted(names | {repo for page in claims.pages for repo, _ in page.shas}))
