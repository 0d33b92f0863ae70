"""Add one group to ``hooks.Stop`` of a client's settings, and take it out again; all other bytes stay.

Pure: bytes in, bytes out. Shape of the files: ``{"hooks": {"Stop": [{"hooks": [{"type": "command", ...}]}]}}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from kernelpilot_install.problems import InstallError
from kernelpilot_install.spans import NotJson, Value, scan

Group = Mapping[str, object]
CODEX_TOP = frozenset({"hooks", "description"})
"""Codex drops a whole hooks.json for one unknown top-level key, so such a file is refused."""


@dataclass(frozen=True, kw_only=True)
class Spliced:
    """``after`` is ``before`` with ``inserted`` put in at one place."""

    before: bytes
    after: bytes
    inserted: str


def splice(before: bytes, group: Group, *, where: str, top: frozenset[str] | None = None) -> Spliced:
    """Append ``group`` as the last of ``hooks.Stop``.

    ``top``: the only top-level keys allowed, None for any. An empty file counts as ``{}``.
    Raises InstallError, with file, line and column, for anything that is not JSON of the expected shape.
    """
    text = _decode(before, where)
    if not text.strip(" \t\r\n"):
        inserted = json.dumps({"hooks": {"Stop": [group]}}, indent=2) + "\n"
        return Spliced(before=before, after=before + inserted.encode(), inserted=inserted)
    root = _scan(text, where)
    _want(root, "object", "the top level", text, where)
    for m in root.members:
        if top is not None and m.key not in top:
            raise _refused(f"Codex drops a hooks.json with the key {m.key!r}", text, m.start, where)
    at, inserted = _place(root, json.dumps(group), text, where)
    after = text[:at] + inserted + text[at:]
    return Spliced(before=before, after=after.encode(), inserted=inserted)


def _place(root: Value, group: str, text: str, where: str) -> tuple[int, str]:
    """(offset, text to insert there)."""
    hooks = root.member("hooks")
    if hooks is None:
        return _append(root, f'"hooks": {{"Stop": [{group}]}}', text)
    _want(hooks, "object", "'hooks'", text, where)
    stop = hooks.member("Stop")
    if stop is None:
        return _append(hooks, f'"Stop": [{group}]', text)
    _want(stop, "array", "'hooks.Stop'", text, where)
    return _append(stop, group, text)


def _append(parent: Value, piece: str, text: str) -> tuple[int, str]:
    """Put ``piece`` after the last child, with the white space that stands before that child."""
    ends = [(m.start, m.value.end) for m in parent.members] + [(i.start, i.end) for i in parent.items]
    if not ends:
        return parent.start + 1, piece
    start, end = ends[-1]
    head = text[:start]
    lead = head[len(head.rstrip(" \t\r\n")) :]
    return end, f",{lead}{piece}"


def groups(data: bytes, *, where: str) -> list[object]:
    """The groups of ``hooks.Stop``; empty where there are none. Raises InstallError like ``splice``."""
    text = _decode(data, where)
    if not text.strip(" \t\r\n"):
        return []
    found = _stop(_scan(text, where))
    return [] if found is None else [json.loads(text[i.start : i.end]) for i in found.items]


def unsplice(now: bytes, inserted: str, group: Group, *, where: str) -> bytes | None:
    """``now`` without what ``splice`` put in; None where it cannot be told apart from the user's own edits.

    First the exact inserted text, then the one group that equals ours with its comma. Either way the result
    must say the same as before but for our group.
    """
    try:
        text = _decode(now, where)
        stop = _stop(_scan(text, where))
    except InstallError:
        return None
    ours = [] if stop is None else [i for i in stop.items if json.loads(text[i.start : i.end]) == group]
    if stop is None or len(ours) != 1:
        return None
    want = _without(json.loads(text), group)
    tries = [text.replace(inserted, "", 1)] if text.count(inserted) == 1 else []
    tries.append(_cut_item(text, stop, ours[0]))
    for candidate in tries:
        if _same(candidate, want):
            return candidate.encode()
    return None


def swap(now: bytes, inserted: str, old: Group, new: Group, *, where: str) -> Spliced | None:
    """``old`` replaced by ``new`` where it stands: groups after it keep their place, by which Codex knows them.

    ``before`` of the result is the file without ours. None where ``unsplice`` would give up.
    """
    bare = unsplice(now, inserted, old, where=where)
    if bare is None:
        return None
    text = now.decode("utf-8")
    stop = _stop(_scan(text, where))
    assert stop is not None
    item = next(i for i in stop.items if json.loads(text[i.start : i.end]) == old)
    there = text[item.start : item.end]
    here = _recast(there, old, new)
    after = (text[: item.start] + here + text[item.end :]).encode()
    put = inserted.replace(there, here) if there in inserted else here
    return Spliced(before=bare, after=after, inserted=put)


def _recast(there: str, old: Group, new: Group) -> str:
    """``new`` in the layout of ``there``, which says ``old``, where only strings differ; else on one line."""
    text = there
    for was, now in zip(_strings(old), _strings(new), strict=False):
        text = text.replace(json.dumps(was), json.dumps(now))
    try:
        fits = json.loads(text) == new
    except ValueError:
        fits = False
    return text if fits else json.dumps(new)


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _strings(item)]


def _without(value: object, group: Group) -> list[object]:
    """What may remain once our group is gone: with the emptied Stop or hooks kept, or dropped as inserted."""
    assert isinstance(value, dict)
    stop = [g for g in value["hooks"]["Stop"] if g != group]
    hooks = {**value["hooks"], "Stop": stop}
    kept: list[object] = [{**value, "hooks": hooks}]
    if not stop:
        bare = {k: v for k, v in hooks.items() if k != "Stop"}
        kept.append({**value, "hooks": bare})
        if not bare:
            kept.append({k: v for k, v in value.items() if k != "hooks"})
    return kept


def _same(candidate: str, want: list[object]) -> bool:
    if not candidate.strip(" \t\r\n"):
        return {} in want
    try:
        return json.loads(candidate) in want
    except ValueError:
        return False


def _cut_item(text: str, stop: Value, item: Value) -> str:
    """Remove one array item and the comma that joined it."""
    i = stop.items.index(item)
    if i > 0:
        return text[: stop.items[i - 1].end] + text[item.end :]
    if len(stop.items) > 1:
        return text[: item.start] + text[stop.items[1].start :]
    return text[: item.start] + text[item.end :]


def _stop(root: Value) -> Value | None:
    hooks = root.member("hooks")
    stop = None if hooks is None else hooks.member("Stop")
    return stop if stop is not None and stop.kind == "array" else None


def _decode(data: bytes, where: str) -> str:
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise InstallError(
            "the file starts with a byte order mark, which the clients do not read",
            where=f"{where}, line 1, column 1",
            fix="save it as UTF-8 without a byte order mark; nothing was changed",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        column = e.start - data.rfind(b"\n", 0, e.start)
        raise InstallError(
            "not UTF-8 text",
            where=f"{where}, line {line}, column {column}",
            fix="save the file as UTF-8; nothing was changed",
        ) from None


def _scan(text: str, where: str) -> Value:
    try:
        return scan(text)
    except NotJson as e:
        raise InstallError(
            e.what,
            where=f"{where}, line {e.line}, column {e.column}",
            fix="correct the file by hand, then run this again; nothing was changed",
        ) from None


def _want(value: Value, kind: str, name: str, text: str, where: str) -> None:
    if value.kind != kind:
        raise _refused(f"want an {kind} as {name}, got {value.kind}", text, value.start, where)


def _refused(what: str, text: str, at: int, where: str) -> InstallError:
    e = NotJson(what, text, at)
    return InstallError(
        what,
        where=f"{where}, line {e.line}, column {e.column}",
        fix="change the file by hand, then run this again; nothing was changed",
    )
