"""Names of people and machines out of what is printed or written: reports carry them in paths and command lines.

A home folder becomes ``~``, so that a command that names a file in it still works.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_HOMES = (
    re.compile(r"(?:/mnt/[a-z])?/(?:home|Users)/(?P<user>[^/\s\\\"']+)"),
    re.compile(r"[A-Za-z]:[\\/]{1,2}Users[\\/]{1,2}(?P<user>[^\\/\s\"']+)"),
    re.compile(r"/(?:private/)?var/folders/[^/\s]{1,8}/[^/\s]{1,64}"),
    re.compile(r"(?<![\w/.~-])/root(?=[/\s\"':]|$)"),
)
_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_V4 = re.compile(rf"(?<![\w.]){_BYTE}(?:\.{_BYTE}){{3}}(?![\w.]|\.\d)")
_HEX = "[0-9A-Fa-f]{1,4}"
# A scope of C++ has no single colon, a time of day has two: neither is an address.
_V6 = re.compile(
    rf"(?<![\w:])(?:(?:{_HEX}:){{3,7}}:?{_HEX}|{_HEX}(?::{_HEX})+::(?:{_HEX}(?::{_HEX})*)?|(?:fe80|f[cd]{_HEX})::[0-9A-Fa-f:]+)"
    r"(?![\w:])"
)
_DOMAIN = r"(?:(?:\.[a-z][a-z0-9-]*){2,}|\.(?:local|lan|internal|corp|com|org|net|edu))?"
_AT = re.compile(r"(?<![\w.-])[A-Za-z_][\w.-]{0,63}@[a-z0-9][a-z0-9.-]{0,252}")
_SHORT = 3
"""A host or user name of fewer characters is a word of other things too."""
_HIDDEN = re.compile(r"~|\[(?:host|user|ip)\]")
"""What a name was turned into before, in facts.json."""
_COMMON = frozenset(("root", "user", "ubuntu", "admin", "runner", "home", "nvidia", "localhost", "python", "cuda"))


class Redactor:
    """Hides home folders, user and host names, and addresses; ``keep`` lets everything through."""

    def __init__(
        self,
        *,
        keep: bool = False,
        hosts: Iterable[str] = (),
        texts: Iterable[str] = (),
        roots: Mapping[str, str] | None = None,
    ) -> None:
        """``hosts``: names to hide wherever they stand. ``texts``: where the user names are learned from.

        ``roots``: beginnings of paths and what stands for them, the longest first: a scratch folder is gone later.
        """
        self.keep = keep
        self._roots = sorted((roots or {}).items(), key=lambda item: -len(item[0]))
        users = {hit["user"] for text in texts for home in _HOMES[:2] for hit in home.finditer(text)}
        self._words = [
            (re.compile(rf"(?<![\w.-]){re.escape(word)}{tail}(?![\w-])"), to)
            for words, to, tail in ((hosts, "[host]", _DOMAIN), (users, "[user]", ""))
            for word in sorted(set(words), key=lambda w: (-len(w), w))
            if len(word) >= _SHORT and word.lower() not in _COMMON and not _HIDDEN.fullmatch(word)
        ]

    def text(self, text: str) -> str:
        """One text without names.

        >>> Redactor(hosts=["gpu-box-7"]).text("/home/ada/k.cu on gpu-box-7 at 10.1.2.3")
        '~/k.cu on [host] at [ip]'
        """
        if self.keep or not text:
            return text
        for root, to in self._roots:
            text = text.replace(root, to)
        for home in _HOMES:
            text = home.sub("~", text)
        text = _AT.sub("[user]@[host]", text) if "@" in text else text
        text = _V4.sub("[ip]", text)
        text = _V6.sub("[ip]", text) if ":" in text else text
        for word, to in self._words:
            text = word.sub(to, text)
        return text

    def all(self, plain: Any) -> Any:
        """The same of every text in lists and mappings; keys are names of ours and stay."""
        if self.keep:
            return plain
        if isinstance(plain, str):
            return self.text(plain)
        if isinstance(plain, dict):
            return {k: self.all(v) for k, v in plain.items()}
        if isinstance(plain, (list, tuple)):
            return [self.all(item) for item in plain]
        return plain
