"""What must stand in no file of the tree: addresses, logins, paths of one machine, bytes that are no text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernelpilot_helpers.knowledge.page_parts import uncoded

MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}(?!\w)")
LOGIN = re.compile(r"(?<![\w/.`@-])@[A-Za-z][\w-]+(?![\w/-]|\.\w)|github\.com/[\w.-]+/?(?![\w./-])", re.IGNORECASE)
MACHINE = re.compile(
    r"(?<![\w.:/<~])/(?:home|root|work|tmp|Users|mnt|workspace)/\w|file:/|(?<![\w/~])~/\w|(?<!\w)[A-Za-z]:\\\w|\\\\\w+\\\w"
)
"""``~/.cache`` is everybody's."""
ADDRESS = re.compile(r"\b\w+://\S|\bwww\.\w|\bgithub\.com\b", re.IGNORECASE)
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Also marks that turn the direction of text, or that nobody sees."""


def faults(line: str) -> Iterator[tuple[str, str]]:
    """(what, fix) of each finding in a line of a page."""
    if _mail(line):
        yield "holds an e-mail address", "remove it"
    if ("@" in line or "github" in line.lower()) and (login := LOGIN.search(uncoded(line))):
        yield f"{login[0]}: looks like somebody's login", "remove it; code goes in backticks"
    if machine := _machine(line):
        yield f"{machine}...: a path of one machine", "write a path relative to a repository"


def in_facts(text: str) -> str:
    """What is foreign in a text of facts or lessons, where an address is none of ours either; empty without."""
    if not text.isprintable():
        return "a control character"
    if _mail(text):
        return "an e-mail address"
    if "@" in text and LOGIN.search(text):
        return "somebody's login"
    if ("://" in text or "www" in text.lower() or "github" in text.lower()) and ADDRESS.search(text):
        return "an address"
    return "a path of one machine" if _machine(text) else ""


def _mail(text: str) -> bool:
    return ("@" in text or ":" in text) and bool(MAIL.search(text) if "@" in text else "mailto:" in text.lower())


def _machine(text: str) -> str:
    found = MACHINE.search(text) if "/" in text or "\\" in text else None
    return found[0] if found else ""
