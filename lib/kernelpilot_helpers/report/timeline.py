"""The loop as a line of marks: one for its set-up and one for each Stop, by what the gate said there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from kernelpilot_helpers.evidence.model import LoopFacts, StopFacts
from kernelpilot_helpers.report.svg import WIDTH, join, svg, tag

LEFT, RIGHT = 28, 28
LINE, HEIGHT = 34, 72
LABELS_MAX = 20
GREEN = "the gate passed"
RED = "the gate was red"
UNKNOWN = "set-up, or the gate could not run"


def rounds(loop: LoopFacts) -> Markup:
    """Every Stop from left to right; a red gate is a cross, so that colour alone says nothing."""
    stops = loop.stops
    step = (WIDTH - LEFT - RIGHT) / max(len(stops), 1)
    every = math.ceil(len(stops) / LABELS_MAX) if stops else 1
    body = [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=LINE, y2=LINE, class_="axis")]
    for ix, stop in enumerate(stops):
        x = round(LEFT + step * (ix + 0.5), 1)
        body.append(_mark(stop, x))
        if ix % every == 0:
            body.append(tag("text", str(stop.round), x=x, y=LINE + 24, class_="name"))
    red = sum(stop.passed is False for stop in stops)
    green = sum(stop.passed is True for stop in stops)
    desc = f"{len(stops)} marks: {green} with a passing gate, {red} with a red one. The loop is in phase {loop.phase}."
    return svg(ident="rounds", title="Rounds of the loop", desc=desc, height=HEIGHT, body=body)


def words(stop: StopFacts) -> str:
    """What the gate said at a Stop, in a word."""
    return {True: "pass", False: "red", None: "-"}[stop.passed]


def _mark(stop: StopFacts, x: float) -> Markup:
    found = f"; {', '.join(stop.findings)}" if stop.findings else ""
    hint = tag("title", f"round {stop.round}: gate {words(stop)}, {stop.outcome}{found}")
    return _shape(stop.passed, x, LINE, hint)


def _shape(passed: bool | None, x: float, y: float, hint: object = "") -> Markup:
    if passed:
        return tag("circle", hint, cx=x, cy=y, r=5, class_="dot selected gate")
    if passed is None:
        return tag("rect", hint, x=round(x - 4, 1), y=y - 4, width=8, height=8, class_="dot flat")
    cross = f"M{x - 4} {y - 4} L{x + 4} {y + 4} M{x - 4} {y + 4} L{x + 4} {y - 4}"
    return tag("path", hint, d=cross, class_="wrong")


def legend() -> Markup:
    """What the marks of ``rounds`` mean."""
    marks: Sequence[tuple[bool | None, str]] = ((True, GREEN), (False, RED), (None, UNKNOWN))
    parts = [
        tag("span", tag("svg", _shape(how, 8, 8), viewBox="0 0 16 16", aria_hidden="true") + escape(text), class_="key")
        for how, text in marks
    ]
    return join(parts)
