"""Untrusted text made fit to print: names, sources and messages out of a report."""

from __future__ import annotations

import re
import unicodedata

NAME = 96
_MARK = re.compile(r"([\\`*_\[\]<>#|~!$])")


def clean(name: str, limit: int = NAME) -> str:
    """A name without control, format and bidirectional characters, on one line, cut to a length.

    >>> clean("a\\x1b[31m\\nb")
    'a[31m b'
    """
    flat = " ".join(name[: 8 * limit].split())
    flat = "".join(c for c in flat if unicodedata.category(c)[0] != "C")
    return (flat[: limit - 3] + "...") if len(flat) > limit else flat or "(no name)"


def code(name: str, limit: int = 200) -> str:
    """A name as a Markdown code span that nothing in it can leave.

    >>> code("f`<b>")
    "`f'<b>`"
    """
    return "`" + clean(name, limit).replace("`", "'") + "`"


def escaped(text: str, limit: int = 400) -> str:
    r"""Prose for a Markdown page in which no mark means anything and no address is a link.

    >>> escaped("[x](http://a) <b>")
    '\\[x\\](http: //a) \\<b\\>'
    """
    return _MARK.sub(r"\\\1", clean(text, limit).replace("://", ": //"))
