"""A small strict JSON scanner that keeps where every value stands, so that text can be spliced, not re-dumped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

MAX_DEPTH = 100
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = ("true", "false", "null")

Kind = Literal["object", "array", "string", "number", "word"]


class NotJson(Exception):
    """The text is not strict JSON; ``line`` and ``column`` count from 1, in characters."""

    def __init__(self, what: str, text: str, at: int) -> None:
        """Turn an offset into a line and a column."""
        self.what = what
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        super().__init__(f"{what} (line {self.line}, column {self.column})")


@dataclass(frozen=True, kw_only=True)
class Value:
    """One JSON value: ``text[start:end]``."""

    kind: Kind
    start: int
    end: int
    members: tuple[Member, ...] = ()
    """Of an object."""
    items: tuple[Value, ...] = ()
    """Of an array."""

    def member(self, key: str) -> Value | None:
        """The value under ``key``, None where an object has none."""
        return next((m.value for m in self.members if m.key == key), None)


@dataclass(frozen=True, kw_only=True)
class Member:
    """One ``"key": value``; ``start`` is the key's opening quote."""

    key: str
    start: int
    value: Value


@dataclass
class _Scanner:
    text: str
    at: int = 0
    depth: int = field(default=0)

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def fail(self, want: str) -> NotJson:
        got = repr(self.peek()) if self.peek() else "the end of the file"
        return NotJson(f"want {want}, got {got}", self.text, self.at)

    def expect(self, char: str) -> None:
        if self.peek() != char:
            raise self.fail(repr(char))
        self.at += 1

    def string(self) -> tuple[int, int]:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise self.fail("a string") if self.peek() != '"' else NotJson("a broken string", self.text, self.at)
        start, self.at = self.at, match.end()
        return start, self.at

    def value(self) -> Value:
        start, c = self.at, self.peek()
        if c == "{":
            return self.nested(self.object)
        if c == "[":
            return self.nested(self.array)
        if c == '"':
            self.string()
            return Value(kind="string", start=start, end=self.at)
        for word in _WORDS:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return Value(kind="word", start=start, end=self.at)
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self.fail("a value")
        self.at = match.end()
        return Value(kind="number", start=start, end=self.at)

    def nested(self, read: Callable[[], Value]) -> Value:
        if self.depth >= MAX_DEPTH:
            raise NotJson(f"nested deeper than {MAX_DEPTH}", self.text, self.at)
        self.depth += 1
        value = read()
        self.depth -= 1
        return value

    def object(self) -> Value:
        start = self.at
        self.at += 1
        members: list[Member] = []
        self.space()
        while self.peek() != "}" or members:
            key_start, key_end = self.string()
            key = str(json.loads(self.text[key_start:key_end]))
            if any(m.key == key for m in members):
                raise NotJson(f"the key {key!r} stands twice in one object", self.text, key_start)
            self.space()
            self.expect(":")
            self.space()
            members.append(Member(key=key, start=key_start, value=self.value()))
            if not self.more("}"):
                break
        self.expect("}")
        return Value(kind="object", start=start, end=self.at, members=tuple(members))

    def array(self) -> Value:
        start = self.at
        self.at += 1
        items: list[Value] = []
        self.space()
        while self.peek() != "]" or items:
            items.append(self.value())
            if not self.more("]"):
                break
        self.expect("]")
        return Value(kind="array", start=start, end=self.at, items=tuple(items))

    def more(self, closing: str) -> bool:
        """Pass a comma and say True; say False before ``closing``."""
        self.space()
        if self.peek() == closing:
            return False
        if self.peek() != ",":
            raise self.fail(f"',' or {closing!r}")
        self.at += 1
        self.space()
        return True


def scan(text: str) -> Value:
    """The root value of ``text``. Raises NotJson for anything but one strict JSON value with unique keys."""
    s = _Scanner(text)
    s.space()
    root = s.value()
    s.space()
    if s.at != len(text):
        raise s.fail("the end of the file")
    return root
