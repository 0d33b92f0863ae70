"""From a pool of measured pairs to error rates, power and a drawing: the pure half of scripts/operating_curve.py."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from kernelpilot_helpers import benchmark, policy
from kernelpilot_helpers.benchmark.resample import Pair
from kernelpilot_helpers.report.svg import WIDTH, join, tag

TIERS = ("screen", "accept", "claim")
VERDICTS = ("IMPROVED", "SAME", "REGRESSED", "AMBIGUOUS")
INK = {"accept": "#1f5fa8", "claim": "#b3541e"}
PANEL = {"left": 62.0, "right": WIDTH - 190.0, "top": 46.0, "bottom": 306.0}


def load(pool: Mapping[str, Any], effect: str, *, flipped: bool = False) -> benchmark.Pool:
    """One effect's pairs; ``flipped``: the two arms have changed places, so that a gain is a loss."""
    sign = -1 if flipped else 1
    pairs = []
    for pair in pool["effects"][effect]["pairs"]:
        cells = {
            case: benchmark.Cell(log_ratio=sign * log, a_ns=b if flipped else a, b_ns=a if flipped else b)
            for case, (log, a, b) in pair["cells"].items()
        }
        pairs.append(Pair(order=sign * pair["order"], cells=cells))
    return benchmark.Pool(effect=effect, pairs=tuple(pairs))


def costs(pool: Mapping[str, Any]) -> tuple[float, float]:
    """(seconds of one pair, seconds of a job besides its pairs), medians over the measured jobs."""
    pair = statistics.median(c["time_s"] / c["pairs"] for c in pool["chunks"])
    return pair, statistics.median(c["seconds"] - c["time_s"] for c in pool["chunks"])


def resample(pool: Mapping[str, Any], *, gates: int, seed: int) -> dict[str, Any]:
    """Rates of every effect and tier. The same pool, gates and seed give the same result."""
    pair_s, job_s = costs(pool)
    required = frozenset(pool["cases"])
    effects = {}
    for name, entry in pool["effects"].items():
        means = [statistics.fmean(v[0] for v in p["cells"].values()) for p in entry["pairs"]]
        effects[name] = {
            "nominal": entry["nominal"],
            "pairs": len(means),
            "mean": statistics.fmean(means),
            "sd": statistics.stdev(means),
            "tiers": {
                tier: _tier(pool, name, policy.GPU_TIERS[tier], gates, random.Random(f"{seed} {name} {tier}"), required)  # noqa: S311
                for tier in TIERS
            },
        }
        for made in effects[name]["tiers"].values():
            made["seconds"] = round(made["pairs_mean"] * pair_s + made["jobs_mean"] * job_s, 1)
    return {
        "what": f"{gates} gates per effect and tier, resampled with replacement from measured cross-over pairs",
        "gates": gates, "seed": seed, "pair_seconds": round(pair_s, 3), "job_seconds": round(job_s, 3),
        "env": pool["chunks"][0]["env"], "effects": effects,
    }  # fmt: skip


def _tier(
    pool: Mapping[str, Any], effect: str, tier: policy.Tier, gates: int, rng: random.Random, required: frozenset[str]
) -> dict[str, Any]:
    drawn = load(pool, effect)
    made = [benchmark.gate(drawn, tier=tier, device=policy.GPU, required=required, rng=rng) for _ in range(gates)]
    back = load(pool, effect, flipped=True)
    lost = [benchmark.gate(back, tier=tier, device=policy.GPU, required=required, rng=rng) for _ in range(gates)]
    widths = [g.half_width for g in made if g.half_width is not None]
    confirmed = sum(g.first == "IMPROVED" and tier.confirm for g in made)
    return {
        "rates": {v: sum(g.verdict == v for g in made) / gates for v in VERDICTS},
        "improved_before_confirmation": sum(g.first == "IMPROVED" for g in made) / gates,
        "regressed_with_arms_exchanged": sum(g.verdict == "REGRESSED" for g in lost) / gates,
        "half_width_median": statistics.median(widths) if widths else None,
        "pairs_mean": statistics.fmean(g.pairs for g in made),
        "jobs_mean": statistics.fmean(g.looks for g in made) + confirmed / gates,
    }


def words(result: Mapping[str, Any]) -> str:
    """The table for a terminal."""
    columns: tuple[tuple[str, int], ...] = (("effect", -15), ("mean", 9), ("tier", 9), ("IMPROVED", 10))
    columns += (("unconf.", 9), ("REGR.*", 8), ("half-w.", 9), ("pairs", 7), ("s", 7))
    lines = [result["what"], "".join(n.ljust(-w) if w < 0 else n.rjust(w) for n, w in columns)]
    for name, entry in result["effects"].items():
        for tier, made in entry["tiers"].items():
            width, lost = made["half_width_median"], made["regressed_with_arms_exchanged"]
            cells = (
                name, f"{entry['mean'] * 100:+.2f}%", tier, f"{made['rates']['IMPROVED'] * 100:.2f}%",
                f"{made['improved_before_confirmation'] * 100:.2f}%", f"{lost * 100:.1f}%",
                "-" if width is None else f"{width * 100:.2f}%", f"{made['pairs_mean']:.1f}", f"{made['seconds']:.1f}",
            )  # fmt: skip
            row = zip(cells, columns, strict=True)
            lines.append("".join(n.ljust(-w) if w < 0 else n.rjust(w) for n, (_, w) in row))
    lines.append(
        "* REGRESSED when the arms change places: the candidate is the slower one. s: GPU seconds, builds apart."
    )
    return "\n".join(lines)


def plot(result: Mapping[str, Any]) -> str:
    """A standalone SVG: how often a gate says IMPROVED, against the true gain."""
    curves = {n: e for n, e in result["effects"].items() if e["nominal"] > 0 or n == "A/A"}
    order = sorted(curves.values(), key=lambda e: e["nominal"])
    xs = [e["nominal"] for e in order]
    body = [*_frame(xs)]
    for ix, tier in enumerate(("accept", "claim")):
        lines = {
            f"{tier}, confirmed": ([e["tiers"][tier]["rates"]["IMPROVED"] for e in order], ""),
            f"{tier}, before": ([e["tiers"][tier]["improved_before_confirmation"] for e in order], "5 4"),
        }
        for row, (label, (ys, dash)) in enumerate(lines.items()):
            body += _curve(xs, ys, INK[tier], dash)
            body += _key(label, INK[tier], dash, 70 + 22 * (2 * ix + row))
    false = result["effects"].get("A/A", {}).get("tiers", {}).get("accept", {})
    note = [f"{result['gates']} gates a point"]
    if false:
        note += ["A/A, accept tier:", f"{false['rates']['IMPROVED'] * 100:.2f} % false IMPROVED"]
        note += [f"half-width {false['half_width_median'] * 100:.2f} %", f"{false['seconds']:.0f} s of GPU time"]
    body += [
        tag("text", text, x=PANEL["right"] + 14, y=190 + 18 * i, fill="#333", font_size=12)
        for i, text in enumerate(note)
    ]
    drawing = tag(
        "svg",
        join(body),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} 350",
        font_family="sans-serif",
        role="img",
    )
    return str(drawing) + "\n"


def _x(value: float, top: float) -> float:
    return round(PANEL["left"] + (PANEL["right"] - PANEL["left"]) * math.sqrt(value / top), 1)


def _y(value: float) -> float:
    return round(PANEL["bottom"] - (PANEL["bottom"] - PANEL["top"]) * value, 1)


def _frame(xs: Sequence[float]) -> list[Markup]:
    out = [
        tag("rect", x=0, y=0, width=WIDTH, height=350, fill="#fff"),
        tag("text", "How often a gate says IMPROVED", x=PANEL["left"], y=26, font_size=15, fill="#111"),
        tag("text", "true gain of the candidate (root scale)", x=PANEL["left"], y=342, font_size=12, fill="#333"),
    ]
    for share in (0.0, 0.05, 0.25, 0.5, 0.8, 0.95, 1.0):
        y = _y(share)
        out.append(tag("line", x1=PANEL["left"], x2=PANEL["right"], y1=y, y2=y, stroke="#ddd"))
        if share != 1.0:
            out.append(
                tag("text", f"{share * 100:.0f} %", x=PANEL["left"] - 8, y=y + 4, font_size=11, text_anchor="end")
            )
    for value in xs:
        x = _x(value, xs[-1] or 1.0)
        out.append(tag("text", f"{value * 100:g} %", x=x, y=PANEL["bottom"] + 16, font_size=11, text_anchor="middle"))
    return out


def _curve(xs: Sequence[float], ys: Sequence[float], ink: str, dash: str) -> list[Markup]:
    points = [(_x(x, xs[-1] or 1.0), _y(y)) for x, y in zip(xs, ys, strict=True)]
    path = " ".join(f"{x},{y}" for x, y in points)
    line = tag("polyline", points=path, fill="none", stroke=ink, stroke_width=2, stroke_dasharray=dash or "none")
    return [line, *(tag("circle", cx=x, cy=y, r=3, fill=ink) for x, y in points)]


def _key(label: str, ink: str, dash: str, y: float) -> list[Markup]:
    x = PANEL["right"] + 14
    return [
        tag("line", x1=x, x2=x + 26, y1=y, y2=y, stroke=ink, stroke_width=2, stroke_dasharray=dash or "none"),
        tag("text", label, x=x + 34, y=y + 4, font_size=12, fill="#333"),
    ]
