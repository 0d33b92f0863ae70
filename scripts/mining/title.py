"""What may be kept of a commit message: a number, a bag of words, figures with their unit."""

from __future__ import annotations

import re

import msgspec

from mining import tokens

SQUASH = re.compile(r"\(#(\d+)\)\s*$")
MERGE = re.compile(r"^Merge (?:pull request|PR) #(\d+)\b")
TRIVIAL = re.compile(r"^Merge (?:remote-tracking )?(?:branch|tag|commit|pull request)\b|^Merge [0-9a-f]{7,40}\b", re.I)
CHUNK = re.compile(r"[a-z0-9](?:[a-z0-9_.+*-]*[a-z0-9+])?")
PRIVATE = re.compile(r"\S*@\S*|https?://\S+|\b(?:from|by)\s+[\w-]+/[\w./-]+|\S+\.\S+/\S+", re.I)
MIXED = re.compile(r"\b\w*(?:[a-z][A-Z]|[A-Z0-9][A-Z][a-z]{2})\w*")
STOP = frozenset(
    re.findall(
        "[a-z]+",
        "a an and any are as at be by can do does for from has have how i if in into is it its me my no not of on or "
        "our per so than that the their them then there this to too up via was we what when where which while why "
        "will with you your only both some more other",
    )
)
SPEED = (
    r"faster|speed-?ups?|speeds?|sped|perf|performance|throughput|latency|improv\w*|"
    r"gains?|slower|reduc\w*|optimi\w*|boost\w*"
)
FIGURE = re.compile(
    r"(?<![\w.])~?(\d{1,4}(?:\.\d{1,3})?)\s?(x(?![\w])|\u00d7|%|tflops/?s?\b|tflop/s|gb/s|gbps|tb/s)", re.I
)
UNITS = {"x": "x", "\u00d7": "x", "%": "%", "gbps": "GB/s", "gb/s": "GB/s", "tb/s": "TB/s"}
NEAR = re.compile(rf"\b(?:{SPEED})\b", re.I)
MOST_CLAIMS = 8


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A commit message reduced. ``title`` and ``body`` are for judging only and never stored."""

    how: str
    """squash, merge, or direct."""
    pr: int | None
    title: str
    body: str


def read(text: str) -> Message:
    """Subject and body. The title of a merge commit is its first body line."""
    lines = text.strip("\n").split("\n")
    subject, rest = lines[0].strip(), lines[1:]
    merge = MERGE.match(subject)
    if merge:
        body = [line for line in rest if line.strip()]
        title = body[0].strip() if body else ""
        return Message(how="merge", pr=int(merge[1]), title=title, body="\n".join(body[1:]))
    squash = SQUASH.search(subject)
    title = "" if TRIVIAL.match(subject) else SQUASH.sub("", subject).strip()
    if squash:
        return Message(how="squash", pr=int(squash[1]), title=title, body="\n".join(rest))
    return Message(how="direct", pr=None, title=title, body="\n".join(rest))


def bag(title: str) -> tuple[str, ...]:
    """Lower-case words of a title, sorted, without repeats, stop words, addresses and owners of branches.

    Where the case parts an identifier it is kept as underscores: ``SwapAB`` is ``swap_ab``.
    """
    bare = MIXED.sub(lambda found: tokens.CAMEL.sub("_", found[0]), PRIVATE.sub(" ", title)).lower()
    return tuple(sorted({word for word in CHUNK.findall(bare) if word not in STOP and not word.isdigit()}))


def claims(title: str, body: str) -> tuple[str, ...]:
    """Figures of speed in the order in which they are stated, at most eight.

    A factor or a percentage counts only on a line that speaks of speed; a rate counts by its unit.
    """
    out: dict[str, None] = {}
    for line in (title, *body.split("\n")):
        near = bool(NEAR.search(line))
        for number, unit in FIGURE.findall(line):
            plain = UNITS.get(unit.lower(), "TFLOPS")
            if plain in ("x", "%") and not near:
                continue
            out[f"{number}{plain}"] = None
    return tuple(list(out)[:MOST_CLAIMS])
