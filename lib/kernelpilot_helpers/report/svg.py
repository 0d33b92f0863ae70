"""Tags of an inline SVG drawing: every attribute and text is escaped here."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

WIDTH = 760


def tag(name: str, body: object = "", **attributes: object) -> Markup:
    """One element. ``class_`` is ``class``, and an underscore is a hyphen."""
    words = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, words, body)


def join(parts: Sequence[Markup]) -> Markup:
    """Elements one below the other."""
    return Markup("\n").join(parts)


def svg(*, ident: str, title: str, desc: str, height: float, body: Sequence[Markup]) -> Markup:
    """A whole drawing, ``WIDTH`` wide, with its title and its description for those who do not see it."""
    head = [tag("title", title, id=f"{ident}-title"), tag("desc", desc, id=f"{ident}-desc")]
    return tag(
        "svg",
        join([*head, *body]),
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        class_="chart",
    )
