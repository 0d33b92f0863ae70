"""The two drawings of the page, as inline SVG: attempts over time, and the best version's cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from kernelpilot_helpers.benchmark import CaseBench
from kernelpilot_helpers.ledger import Interval, Row
from kernelpilot_helpers.report.axes import Axis, drawable, span, ticks
from kernelpilot_helpers.report.svg import WIDTH, join, svg, tag
from kernelpilot_helpers.units import percent, times

LEFT, RIGHT = 62, 18
PANEL = 170
GAP = 44
TOP = 28
LABELS_MAX = 14


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
    x: float
    row: Row
    value: Interval | None


def attempts(rows: Sequence[Row]) -> Markup:
    """Speed-up against baseline and incumbent over the attempts, with intervals; wrong and broken ones as marks."""
    tried = [row for row in rows if row.kind in ("attempt", "recheck")]
    step = (WIDTH - LEFT - RIGHT) / max(len(tried), 1)
    xs = [round(LEFT + step * (ix + 0.5), 1) for ix in range(len(tried))]
    lower = TOP + PANEL + GAP
    over = [_Point(x=x, row=row, value=row.vs_baseline) for x, row in zip(xs, tried, strict=True)]
    against = [_Point(x=x, row=row, value=row.gain) for x, row in zip(xs, tried, strict=True)]
    body = [
        *_panel("Against the baseline (direct runs only)", TOP, over, best_line=True),
        *_panel("Against the incumbent of its time", lower, against, best_line=False),
        *_names(xs, tried, lower + PANEL + 18),
    ]
    good = sum(row.verdict == "IMPROVED" for row in tried)
    bad = sum(row.verdict in ("WRONG", "BROKEN") for row in tried)
    desc = f"{len(tried)} attempts: {good} improved, {bad} wrong or broken. The table of attempts holds every figure."
    height = lower + PANEL + 30
    return svg(ident="attempts", title="Speed-up of each attempt", desc=desc, height=height, body=body)


def _panel(title: str, top: float, points: Sequence[_Point], *, best_line: bool) -> list[Markup]:
    shown = [p for p in points if p.value and drawable(p.value.speedup, p.value.ci_low, p.value.ci_high)]
    values = [p.value for p in shown if p.value]
    bounds = [b for v in values for b in (v.ci_low, v.ci_high)]
    axis = span([v.speedup for v in values], bounds, start=top + PANEL, end=top)
    out = [tag("text", title, x=LEFT, y=top - 10, class_="panel-title"), *_grid(axis)]
    if not shown:
        out.append(tag("text", "no timing yet", x=WIDTH / 2, y=top + PANEL / 2, class_="empty"))
    if best_line:
        out += _best_line(shown, axis)
    for point in shown:
        out += _mark(point, axis)
    out += [_bad(p, top + PANEL) for p in points if p.row.verdict in ("WRONG", "BROKEN")]
    untimed = [p for p in points if p.row.gain is None and p.row.verdict not in (None, "WRONG", "BROKEN")]
    return out + [_untimed(p, top + PANEL) for p in untimed]


def _grid(axis: Axis) -> list[Markup]:
    out: list[Markup] = []
    for tick in ticks(axis.low, axis.high):
        y = axis.at(tick)
        kind = "unit" if tick == 1.0 else "grid"
        out.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_=kind))
        out.append(tag("text", f"{tick:g}x", x=LEFT - 8, y=y + 4, class_="tick"))
    out.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=axis.start, y2=axis.start, class_="axis"))
    return out


def _best_line(points: Sequence[_Point], axis: Axis) -> list[Markup]:
    path = f"M{LEFT} {axis.at(1.0)}"
    for point in points:
        if point.value and point.row.kind == "attempt" and point.row.status == "selected":
            path += f" H{point.x} V{axis.at(point.value.speedup)}"
    return [tag("path", d=f"{path} H{WIDTH - RIGHT}", class_="best")]


def _mark(point: _Point, axis: Axis) -> list[Markup]:
    value = point.value
    if value is None:
        return []
    x, y = point.x, axis.at(value.speedup)
    words = f"{point.row.version} {point.row.verdict}: {percent(value.speedup)}"
    of = "the baseline" if value is point.row.vs_baseline else point.row.incumbent
    hint = tag("title", f"{words} [{percent(value.ci_low)}, {percent(value.ci_high)}] against {of}")
    kind = {"IMPROVED": "good", "REGRESSED": "worse"}.get(point.row.verdict or "", "flat")
    out = [tag("line", x1=x, x2=x, y1=axis.at(value.ci_low), y2=axis.at(value.ci_high), class_=f"ci {kind}")]
    for bound, sign in ((value.ci_low, 1), (value.ci_high, -1)):
        if not axis.inside(bound):
            # The interval goes on beyond the panel: an arrow head says so.
            end = axis.at(bound)
            out.append(tag("path", d=f"M{x - 4} {end - 6 * sign} L{x} {end} L{x + 4} {end - 6 * sign}", class_="ci"))
    if kind == "good" and point.row.status == "selected":
        return [*out, tag("circle", hint, cx=x, cy=y, r=5, class_="dot selected")]
    if kind == "flat":
        return [*out, tag("rect", hint, x=round(x - 4, 1), y=round(y - 4, 1), width=8, height=8, class_="dot flat")]
    return [*out, tag("circle", hint, cx=x, cy=y, r=4.5, class_=f"dot {kind}")]


def _bad(point: _Point, y: float) -> Markup:
    hint = tag("title", f"{point.row.version} {point.row.verdict}: {point.row.reason}")
    x = point.x
    cross = f"M{x - 4} {y - 4} L{x + 4} {y + 4} M{x - 4} {y + 4} L{x + 4} {y - 4}"
    upright = f"M{x} {y - 6} L{x} {y + 6} M{x - 6} {y} L{x + 6} {y}"
    wrong = point.row.verdict == "WRONG"
    return tag("path", hint, d=cross if wrong else upright, class_="wrong" if wrong else "broken")


def _untimed(point: _Point, y: float) -> Markup:
    hint = tag("title", f"{point.row.version} {point.row.verdict}: {point.row.reason}")
    return tag("rect", hint, x=round(point.x - 4, 1), y=y - 4, width=8, height=8, class_="untimed")


def _names(xs: Sequence[float], rows: Sequence[Row], y: float) -> list[Markup]:
    every = math.ceil(len(rows) / LABELS_MAX) if rows else 1
    picked = list(zip(xs, rows, strict=True))[::every]
    return [tag("text", row.version.partition("_")[0][:8], x=x, y=y, class_="name") for x, row in picked]


def cases(version: str, found: Sequence[CaseBench]) -> Markup:
    """One bar a case: how much faster than the run's other arm, with its interval; the figures stand beside it."""
    shown = [c for c in found if drawable(c.speedup)]
    bounds = [b for c in shown for b in (c.ci_low, c.ci_high) if b is not None and drawable(b)]
    axis = span([c.speedup for c in shown], bounds, start=210, end=WIDTH - 150)
    body: list[Markup] = []
    height = 30 + 26 * len(shown) + 8
    for tick in ticks(axis.low, axis.high, most=5):
        x = axis.at(tick)
        body.append(tag("line", x1=x, x2=x, y1=24, y2=height - 6, class_="unit" if tick == 1.0 else "grid"))
        body.append(tag("text", f"{tick:g}x", x=x, y=16, class_="name"))
    for ix, case in enumerate(shown):
        body += _bar(case, axis, 30 + 26 * ix)
    desc = f"{len(shown)} cases of {version}; a bar to the right of 1x is faster."
    return svg(ident="cases", title=f"Speed-up per case of {version}", desc=desc, height=height, body=body)


def _bar(case: CaseBench, axis: Axis, y: float) -> list[Markup]:
    one, end = axis.at(1.0), axis.at(case.speedup)
    kind = "good" if case.speedup >= 1 else "worse"
    name = case.case_id if len(case.case_id) <= 26 else f"{case.case_id[:25]}…"
    hint = tag(
        "title", f"{case.case_id}: {case.a_us:.2f} us to {case.b_us:.2f} us{'' if case.required else ', optional'}"
    )
    out = [
        tag("text", name, x=202, y=y + 14, class_="case"),
        tag("rect", hint, x=min(one, end), y=y + 3, width=round(max(abs(end - one), 1), 1), height=14, class_=kind),
    ]
    if case.ci_low is not None and case.ci_high is not None and drawable(case.ci_low, case.ci_high):
        low, high = axis.at(case.ci_low), axis.at(case.ci_high)
        out.append(tag("line", x1=low, x2=high, y1=y + 10, y2=y + 10, class_="whisker"))
    words = f"{times(case.speedup)}  {case.b_us:.4g} us"
    return [*out, tag("text", words, x=WIDTH - 140, y=y + 14, class_="figure")]


def legend() -> Markup:
    """What the marks of ``attempts`` mean, as small SVG marks with words."""
    marks = (
        (tag("circle", cx=8, cy=8, r=5, class_="dot selected"), "improved and selected"),
        (tag("rect", x=4, y=4, width=8, height=8, class_="dot flat"), "same or ambiguous"),
        (tag("rect", x=4, y=4, width=8, height=8, class_="untimed"), "same or ambiguous, not timed"),
        (tag("circle", cx=8, cy=8, r=4.5, class_="dot worse"), "regressed"),
        (tag("path", d="M4 4 L12 12 M4 12 L12 4", class_="wrong"), "wrong"),
        (tag("path", d="M8 2 L8 14 M2 8 L14 8", class_="broken"), "broken"),
        (tag("line", x1=8, x2=8, y1=1, y2=15, class_="ci good"), "interval"),
        (tag("path", d="M0 12 H8 V4 H16", class_="best"), "best so far"),
    )
    parts = [
        tag("span", tag("svg", mark, viewBox="0 0 16 16", aria_hidden="true") + escape(words), class_="key")
        for mark, words in marks
    ]
    return join(parts)
