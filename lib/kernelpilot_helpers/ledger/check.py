"""``kernelpilot ledger check``: rows that contradict themselves or each other, and views that were edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kernelpilot_helpers import tables
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ledger.ideas import Idea
from kernelpilot_helpers.ledger.model import Interval, Row
from kernelpilot_helpers.ledger.older import IMPORTED
from kernelpilot_helpers.ledger.rows import BASELINE, LABEL, LINEAGE, LINEAGE_PATH, TUNE
from kernelpilot_helpers.ledger.views import (
    ATTEMPTS_PATH,
    OPTIMIZATIONS_PATH,
    SOURCE_IDEAS_PATH,
    BenchFacts,
    row_facts,
    views,
)
from kernelpilot_helpers.records import Fault

KEYS = {ATTEMPTS_PATH: "Version", OPTIMIZATIONS_PATH: "Version", SOURCE_IDEAS_PATH: "Key"}
RENDER = "kernelpilot ledger render"
PARSED_MAX = 16_384
"""Characters of an edited view, beyond twice what the rows give, that are still compared row by row (it is slow)."""


def check(
    rows: Sequence[Row],
    faults: Sequence[Fault],
    files: Mapping[str, str | None],
    benches: Mapping[str, BenchFacts],
    ideas: Sequence[Idea],
) -> list[Fault]:
    """Everything wrong with the history, all at once.

    ``faults`` are those of ``load`` and come back first; ``files`` are the stored views by repo-relative path
    (None or absent: no such file); ``benches`` are the timing facts by run id.
    """
    out = list(faults)
    for row in rows:
        out += [_fault(row, what) for what in _row_problems(row)]
        if row.gain is not None and row_facts(row, benches) is None:
            out.append(_fault(row, "a gain is recorded but no readable timing run of this row stands behind it"))
    out += _history(rows)
    for path, want in views(rows, benches, ideas).items():
        out += _view_faults(path, want, files.get(path))
    return out


def _fault(row: Row, what: str) -> Fault:
    return Fault(where=f"{LINEAGE_PATH}: {row.version or '(no version)'}", what=what, fix=LINEAGE.fix)


def _row_problems(row: Row) -> Iterator[str]:
    if not LABEL.match(row.version) and not (row.kind in ("decision", "waiver") and not row.version):
        yield f"version: want a label like v003_tiled, got {row.version!r}"
    judged = row.kind in ("attempt", "recheck")
    if judged and row.verdict is None:
        yield f"verdict: null on a row of kind {row.kind}"
    if not judged and row.verdict is not None:
        yield f"verdict: {row.verdict} on a row of kind {row.kind}, which has none"
    if row.kind == "attempt" and row.status == "selected" and row.verdict != "IMPROVED":
        yield f"status: selected with verdict {row.verdict}"
    if row.partial and row.verdict != "AMBIGUOUS":
        yield f"partial: true with verdict {row.verdict}"
    if row.motivation.kind == "profile" and not row.motivation.digest:
        yield "motivation: kind profile without a digest"
    if row.confirmed_by is not None and row.confirmed_by not in row.runs:
        yield f"confirmed_by: {row.confirmed_by} is not among the row's runs"
    if row.verdict == "IMPROVED" and row.confirmed_by is None:
        yield "verdict: IMPROVED without a confirmation run"
    yield from _run_problems(row)
    yield from _gain_problems(row)


def _run_problems(row: Row) -> Iterator[str]:
    judged = row.kind in ("attempt", "recheck")
    if judged and not row.runs and not row.reason.startswith(IMPORTED):
        yield "runs: empty; no evidence stands behind the verdict"
    if row.kind in ("decision", "waiver") and bool(row.runs) != row.reason.startswith(TUNE):
        yield "runs: a decision has runs exactly when it is a tuning"


def _gain_problems(row: Row) -> Iterator[str]:
    for name, value in (("gain", row.gain), ("vs_baseline", row.vs_baseline)):
        if value is not None and not 0 < value.ci_low <= value.speedup <= value.ci_high:
            yield f"{name}: the interval does not hold its point ({_plain(value)})"
        if value is not None and row.verdict in ("WRONG", "BROKEN"):
            yield f"{name}: a figure beside verdict {row.verdict}"
    if row.gain is None:
        yield from _no_gain_problems(row)
        return
    if row.kind not in ("attempt", "recheck"):
        yield f"gain: a figure on a row of kind {row.kind}"
    if not row.incumbent:
        yield "incumbent: empty beside a gain"
    slow, fast = row.gain.ci_low <= 1, row.gain.ci_high >= 1
    if (row.verdict == "IMPROVED" and slow) or (row.verdict == "REGRESSED" and fast):
        yield f"verdict: {row.verdict}, but the interval reaches 1 ({_plain(row.gain)})"


def _no_gain_problems(row: Row) -> Iterator[str]:
    # A screen has too few pairs for an interval, so its REGRESSED may stand on the margin alone.
    if row.verdict == "IMPROVED" or (row.verdict == "REGRESSED" and row.tier != "screen"):
        yield f"gain: null with verdict {row.verdict}"
    if row.verdict == "SAME" and not row.reason.startswith("identical"):
        yield "gain: null with verdict SAME that is not an identical binary"


def _plain(value: Interval) -> str:
    return f"{value.speedup:g} [{value.ci_low:g}, {value.ci_high:g}]"


def _history(rows: Sequence[Row]) -> list[Fault]:
    out: list[Fault] = []
    seen: dict[str, int] = {}
    for row in rows:
        if row.kind in ("baseline", "attempt", "recheck"):
            if row.version in seen and (row.kind != "baseline" or seen[row.version] == row.epoch):
                out.append(_fault(row, "version: a second row carries this label"))
            out += _parent_faults(row, seen)
            seen[row.version] = row.epoch
        elif row.version and row.version not in seen:
            out.append(_fault(row, f"version: a row of kind {row.kind} names a version that has no earlier row"))
        if row.incumbent and row.incumbent not in seen:
            out.append(_fault(row, f"incumbent: {row.incumbent} has no earlier row"))
    out += _cycles(rows)
    cited = Counter(run for row in rows for run in row.runs)
    for run, times in cited.items():
        if times > 1:
            holders = ", ".join(dict.fromkeys(row.version for row in rows if run in row.runs))
            what = f"run {run} is cited {times} times ({holders}); each run belongs to one row"
            out.append(Fault(where=LINEAGE_PATH, what=what, fix=LINEAGE.fix))
    return out


def _parent_faults(row: Row, seen: Mapping[str, int]) -> list[Fault]:
    if row.kind == "baseline":
        wrong = [] if row.version == BASELINE else [f"version: the baseline row is {BASELINE}, got {row.version}"]
        return [_fault(row, what) for what in wrong + (["parent: a baseline has none"] if row.parent else [])]
    if row.parent == row.version or row.parent in seen:
        return []
    if not row.parent:
        return [] if row.reason.startswith(IMPORTED) else [_fault(row, "parent: empty")]
    return [_fault(row, f"parent: {row.parent} has no earlier row")]


def _cycles(rows: Sequence[Row]) -> list[Fault]:
    parent = {row.version: row.parent for row in rows if row.kind in ("attempt", "recheck")}
    out: list[Fault] = []
    done: set[str] = set()
    for start in parent:
        path: list[str] = []
        at = start
        while at in parent and at not in done and at not in path:
            path.append(at)
            at = parent[at]
        if at in path:
            ring = " -> ".join([*path[path.index(at) :], at])
            what = f"parents run in a circle: {ring}"
            out.append(Fault(where=f"{LINEAGE_PATH}: {at}", what=what, fix=LINEAGE.fix))
        done.update(path)
    return out


def _view_faults(path: str, want: str, got: str | None) -> list[Fault]:
    if got is None:
        return [Fault(where=path, what="missing", fix=RENDER)]
    if got == want:
        return []
    if len(got) > 2 * len(want) + PARSED_MAX:
        return [Fault(where=path, what=f"holds {len(got)} characters, the rows give {len(want)}", fix=RENDER)]
    try:
        stored = tables.parse(got, at=path)
    except BadRecord as error:
        return [Fault(where=path, what=error.what, fix=RENDER)]
    wanted = tables.parse(want, at=path)
    out = _row_diff(path, KEYS[path], wanted, stored)
    return out or [Fault(where=path, what="text outside the table, or its layout, was edited by hand", fix=RENDER)]


def _keyed(rows: Sequence[dict[str, str]], key: str) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for row in rows:
        name = row.get(key, "")
        twin = 2
        while name in out:
            name, twin = f"{row.get(key, '')} #{twin}", twin + 1
        out[name] = row
    return out


def _row_diff(path: str, key: str, want: Sequence[dict[str, str]], got: Sequence[dict[str, str]]) -> list[Fault]:
    wanted, stored = _keyed(want, key), _keyed(got, key)
    out = [f"row {name}: missing" for name in wanted if name not in stored]
    out += [f"row {name}: added by hand; no record says so" for name in stored if name not in wanted]
    for name in (n for n in wanted if n in stored):
        for column, value in wanted[name].items():
            if stored[name].get(column) != value:
                out.append(f"row {name}, {column}: says {stored[name].get(column)!r}, the record says {value!r}")
    if not out and list(wanted) != list(stored):
        out.append("rows stand in another order than they were recorded")
    return [Fault(where=path, what=what, fix=RENDER) for what in out]
