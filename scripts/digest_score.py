"""What the digests of the micro-kernels are worth; part of scripts/digest_benchmark.py. Pure: no file is read here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tests.gpu.microkernels.table import Micro, hot_lines

FASTER = 1.10
"""Time of a case over that of its fix from which the advised edit counts as worth it."""
TOP = 3
FORMS = ("rep", "base", "auto", "details")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the digest said of one file."""

    kernel: str
    what: str
    """Capture set: full, basic, stalls or metrics."""
    form: str
    """Format of the file: rep, base, auto or details."""
    again: int = 0
    name: str
    """Class id."""
    confidence: str
    kind: str
    """Kind of the next step."""
    family: str
    lines: tuple[int, ...] | None
    """Source lines of the hotspots, hottest first; None where the digest names none."""


def answer(data: Mapping[str, Any], *, kernel: str, what: str, form: str, again: int = 0, source: str = "") -> Answer:
    """Read the fields of ``ncu digest --json`` that are scored. Hot lines of files other than ``source`` become 0."""
    step = data.get("next_step") or {}
    groups = data.get("groups") or [{}]
    spots = groups[0].get("hotspots")
    lines = None if spots is None else tuple(_line(spot, source) for spot in spots)
    return Answer(
        kernel=kernel, what=what, form=form, again=again, name=str(data.get("class", "error")),
        confidence=str(data.get("confidence", "none")), kind=str(step.get("kind", "none")),
        family=str(step.get("family", "")), lines=lines,
    )  # fmt: skip


def _line(spot: Mapping[str, Any], source: str) -> int:
    """Its place among the hottest counts even where it is not in the kernel's own file."""
    file = PurePath(str(spot.get("file") or source)).name
    return int(spot.get("line") or 0) if file == source or not source else 0


def outcome(given: Answer, micro: Micro) -> str:
    """``right``, ``asked`` (no definite class: it wants another capture) or ``wrong``."""
    if given.name in micro.classes:
        return "right"
    return "asked" if given.kind == "capture" else "wrong"


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _said(given: Answer, micro: Micro) -> dict[str, Any]:
    return {
        "kernel": given.kernel, "expected": list(micro.classes), "got": given.name, "confidence": given.confidence,
        "step": given.kind,
    }  # fmt: skip


def accuracy(answers: Sequence[Answer], table: Mapping[str, Micro]) -> dict[str, Any]:
    """Top-1 class, step and family by capture set and format, with every miss."""
    out: dict[str, Any] = {}
    for what, form in dict.fromkeys((a.what, a.form) for a in answers):
        here = [a for a in answers if (a.what, a.form) == (what, form) and table[a.kernel].classes and not a.again]
        results = [outcome(a, table[a.kernel]) for a in here]
        right = [a for a, r in zip(here, results, strict=True) if r == "right"]
        edits = [a for a in right if a.kind == "edit" and table[a.kernel].families]
        out.setdefault(what, {})[form] = {
            "n": len(here),
            "right": len(right),
            "share": share(len(right), len(here)),
            "first_choice": sum(a.name == table[a.kernel].classes[0] for a in here),
            "asked": results.count("asked"),
            "wrong": results.count("wrong"),
            "right_step_of_right_class": share(sum(a.kind in table[a.kernel].steps for a in right), len(right)),
            "right_family_of_right_edit": share(sum(a.family in table[a.kernel].families for a in edits), len(edits)),
            "misses": [_said(a, table[a.kernel]) for a, r in zip(here, results, strict=True) if r != "right"],
        }
    return out


def refusal(answers: Iterable[Answer], table: Mapping[str, Micro]) -> dict[str, Any]:
    """Captures that hold too little: how many asked for more, and every definite class that is wrong."""
    out: dict[str, Any] = {}
    for given in answers:
        micro = table[given.kernel]
        if given.what == "full" or not micro.classes:
            continue
        here = out.setdefault(given.what, {"n": 0, "asked_for_capture": 0, "definite": 0, "wrong_definite": []})
        here["n"] += 1
        here["asked_for_capture" if given.kind == "capture" else "definite"] += 1
        if given.kind != "capture" and given.name not in micro.classes:
            here["wrong_definite"].append({**_said(given, micro), "form": given.form})
    return out


def calibration(answers: Iterable[Answer], table: Mapping[str, Micro], *, form: str) -> dict[str, Any]:
    """Share of right classes at each confidence, over all capture sets in one format."""
    out: dict[str, Any] = {}
    for given in answers:
        micro = table[given.kernel]
        if given.form != form or not micro.classes or given.again:
            continue
        here = out.setdefault(given.confidence, {"n": 0, "right": 0})
        here["n"] += 1
        here["right"] += given.name in micro.classes
    for here in out.values():
        here["share"] = share(here["right"], here["n"])
    return out


def arm_us(times: Mapping[str, Any], micro: Micro) -> float | None:
    """Median microseconds of one arm's work; None where it was not timed or its result was wrong."""
    program = times.get(micro.source.removesuffix(".cu"), {})
    arm = program.get("arms", {}).get(micro.arm)
    return float(arm["us"]) if arm and program.get("same") else None


def counterfactual(
    answers: Iterable[Answer], table: Mapping[str, Micro], times: Mapping[str, Any], *, form: str
) -> dict[str, Any]:
    """Where the class is right: is the fix at least 10 % faster, and does its digest name another class?"""
    full = {a.kernel: a for a in answers if a.what == "full" and a.form == form and not a.again}
    each: list[dict[str, Any]] = []
    for name, given in full.items():
        micro = table[name]
        if not micro.fix or micro.twin is None or given.name not in micro.classes:
            continue
        before, after = arm_us(times, micro), arm_us(times, table[micro.twin])
        gain = before / after if before and after else None
        other = full[micro.twin].name if micro.twin in full else None
        each.append({
            "kernel": name, "us": before, "twin_us": after, "speedup": gain and round(gain, 3), "class": given.name,
            "twin_class": other, "holds": bool(gain and gain >= FASTER and other is not None and other != given.name),
        })  # fmt: skip
    holds = sum(e["holds"] for e in each)
    return {"n": len(each), "holds": holds, "share": share(holds, len(each)), "each": each}


def hotspot(answers: Iterable[Answer], table: Mapping[str, Micro], *, form: str) -> dict[str, Any]:
    """Whether a true hot line is among the three hottest that the digest names; naming none is a miss."""
    out: dict[str, Any] = {"n": 0, "found": 0, "not_available": 0, "misses": []}
    for given in answers:
        micro = table[given.kernel]
        if given.what != "full" or given.form != form or given.again or not (true := hot_lines(micro)):
            continue
        if given.lines is None:
            out["not_available"] += 1
            continue
        out["n"] += 1
        if set(given.lines[:TOP]) & set(true):
            out["found"] += 1
        else:
            out["misses"].append({"kernel": given.kernel, "true": list(true), "named": list(given.lines[:TOP])})
    return {**out, "share": share(out["found"], out["n"])}


def stability(answers: Sequence[Answer], *, form: str) -> dict[str, Any]:
    """Kernels that were captured again: was the class the same each time?"""
    seen: dict[str, list[str]] = {}
    repeated = {a.kernel for a in answers if a.again}
    for given in answers:
        if given.what == "full" and given.form == form and given.kernel in repeated:
            seen.setdefault(given.kernel, []).append(given.name)
    same = sum(len(set(classes)) == 1 for classes in seen.values())
    return {"n": len(seen), "same": same, "changed": {k: v for k, v in sorted(seen.items()) if len(set(v)) > 1}}


def score(
    answers: Sequence[Answer], table: Mapping[str, Micro], times: Mapping[str, Any], *, form: str = "rep"
) -> dict[str, Any]:
    """Everything, and whether each threshold is met (None: nothing to judge by). ``form`` judges what needs one."""
    by_set = accuracy(answers, table)
    asked = refusal(answers, table)
    sure = calibration(answers, table, form=form)
    would = counterfactual(answers, table, times, form=form)
    top1 = by_set.get("full", {}).get(form, {}).get("share")
    plain = asked.get("metrics")
    high = sure.get("high", {}).get("share")
    return {
        "format": "kernelpilot.digest-benchmark",
        "version": 1,
        "judged_format": form,
        "met": {
            "top1_full_at_least_0.90": None if top1 is None else top1 >= 0.90,
            "metrics_only_no_wrong_class": plain and not plain["wrong_definite"],
            "metrics_only_all_capture": plain and plain["definite"] == 0,
            "high_right_at_least_0.95": None if high is None else high >= 0.95,
            "counterfactual_at_least_0.80": None if would["share"] is None else would["share"] >= 0.80,
        },
        "accuracy": by_set,
        "refusal": asked,
        "calibration": sure,
        "counterfactual": would,
        "hotspot": hotspot(answers, table, form=form),
        "stability": stability(answers, form=form),
    }
