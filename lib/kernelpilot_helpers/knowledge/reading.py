"""Whether what is said to have been read can be what the record changed. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.knowledge.model import Record

FEWEST = 40
"""Characters but blanks that a file given by hand has at the least: less is a note, not a file."""
BY_HAND = "content given by hand, no clone"


def path_among(record: Record, path: str, changed: Iterable[str]) -> None:
    """Raise Refused for a path that is no file of the record; ``changed`` are all that a clone shows."""
    named = (*record.kernel_files, *record.test_files, *record.bench_files)
    every = dict.fromkeys((*named, *changed))
    if path in every:
        return
    near = [known for known in every if known.rsplit("/", 1)[-1] == path.rsplit("/", 1)[-1]]
    known = ", ".join((near or list(every))[:6])
    short = not list(changed) and len(named) > len(near)
    more = "; with a clone (--clone DIR) every file that it changes may be named" if short else ""
    raise Refused(f"{record.id} changes no file {path[:120]!r}", where="--file", fix=f"one of: {known}{more}")


def fit(record: Record, path: str, data: bytes, symbol: str, *, by_hand: bool) -> None:
    """Raise Refused unless the bytes are a text, not empty, and hold the symbol where one is given."""
    text = _text(record, path, data)
    if by_hand and len("".join(text.split())) < FEWEST:
        what = f"holds {len(data)} bytes: that is not {path} as {record.id} left it"
        raise _refused(record, path, what)
    missing = [name for name in re.findall(r"\w+", symbol) if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    if symbol and (missing or not re.search(r"\w", symbol)):
        fix = f"name a function of that file as it is written there: grep -n {shlex.quote(symbol[:40])} FILE"
        raise Refused(f"{path} of {record.id} holds no {symbol[:120]!r}", where="--symbol", fix=fix)


def _text(record: Record, path: str, data: bytes) -> str:
    if not data.strip():
        raise _refused(record, path, "is empty")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    odd = sum(ord(c) < 32 and c not in "\t\n\r\f\v" for c in text)
    if "\0" in text or odd * 50 > len(text):
        raise _refused(record, path, "is no text")
    return text


def _refused(record: Record, path: str, what: str) -> Refused:
    fix = f"kernelpilot knowledge open {shlex.quote(record.id)} --file {shlex.quote(path)}"
    return Refused(f"what was given for {path} {what}", where=record.id, fix=f"{fix}  # save it, --content FILE")


def same(record: Record, path: str, given: bytes, held: bytes) -> None:
    """Raise Refused when the content given by hand is not what the clone holds."""
    if given.replace(b"\r\n", b"\n").rstrip() != held.replace(b"\r\n", b"\n").rstrip():
        what = f"--content is not {path} at {record.sha}, which the clone holds"
        fix = "leave --content out: the clone shows what was read"
        raise Refused(what, where=record.id, fix=fix)
