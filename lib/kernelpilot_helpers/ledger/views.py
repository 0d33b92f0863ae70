"""The Markdown ledgers, rendered from rows: the same rows always give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kernelpilot_helpers import tables, units
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.ledger.ideas import IDEAS_PATH, Idea
from kernelpilot_helpers.ledger.model import Interval, Row
from kernelpilot_helpers.ledger.rows import BASELINE, LINEAGE_PATH, best
from kernelpilot_helpers.policy import TIERS

ATTEMPTS_PATH = "artifacts/attempt-ledger.md"
OPTIMIZATIONS_PATH = "artifacts/optimization-ledger.md"
SOURCE_IDEAS_PATH = "artifacts/source-idea-ledger.md"

ATTEMPT_COLUMNS = (
    "Version", "Parent", "Round", "Idea", "Correct", "Geomean vs best [CI]", "Worst case", "Verdict", "Digest",
    "Commit",
)  # fmt: skip
OPTIMIZATION_COLUMNS = (
    "Round", "Version", "Core idea", "Candidate p50", "Baseline p50", "vs baseline [CI]", "vs previous best [CI]",
    "Outcome",
)  # fmt: skip
IDEA_COLUMNS = (
    "Key", "Repo", "Commit", "Path", "Symbol", "PR", "Opened tests/benchmarks", "Hypothesis", "Result",
)  # fmt: skip

CORRECT = {"WRONG": "no", "BROKEN": "not shown"}


class BenchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledgers need of one timing run. Times are us a call, geometric means over the timed cases."""

    worst_case: str = ""
    worst_speedup: float | None = None
    candidate_us: float | None = None
    incumbent_us: float | None = None
    """The run's other arm: the incumbent, or the baseline in a direct run against it."""
    confidence: float | None = None
    """Two-sided, of every interval of the run: 0.978 is 97.8 %."""


def facts_of(cases: Iterable[tuple[str, float, float, float]], *, confidence: float | None = None) -> BenchFacts:
    """Facts from (case_id, speedup, incumbent us, candidate us) a case; nothing but the confidence without cases."""
    rows = list(cases)
    if not rows:
        return BenchFacts(confidence=confidence)
    worst = min(rows, key=lambda row: (row[1], row[0]))
    return BenchFacts(
        worst_case=worst[0],
        worst_speedup=worst[1],
        candidate_us=units.geomean([row[3] for row in rows]),
        incumbent_us=units.geomean([row[2] for row in rows]),
        confidence=confidence,
    )


def row_facts(row: Row, benches: Mapping[str, BenchFacts]) -> BenchFacts | None:
    """The confirmation's facts; without one, those of the row's last timed run."""
    if row.confirmed_by is not None:
        return benches.get(row.confirmed_by)
    timed = [benches[run] for run in row.runs if run in benches]
    return timed[-1] if timed else None


def baseline_us(row: Row, benches: Mapping[str, BenchFacts]) -> float | None:
    """The baseline's time beside this row's: of the same run, or of the direct run that follows the confirmation."""
    if row.incumbent == BASELINE:
        facts = row_facts(row, benches)
        return facts.incumbent_us if facts else None
    if row.confirmed_by not in row.runs:
        return None
    after = row.runs[row.runs.index(row.confirmed_by) + 1 :]
    return next((benches[run].incumbent_us for run in after if run in benches), None)


def confidence(tier: str, facts: BenchFacts | None = None) -> str:
    """Two-sided confidence of an interval: the run's own, else what each look of its tier promises.

    >>> confidence("accept"), confidence("claim")
    ('97.8 %', '99 %')
    """
    if facts is not None and facts.confidence is not None:
        return f"{facts.confidence * 100:g} %"
    return f"{(1 - TIERS[tier].alpha) * 100:g} %" if tier in TIERS else "unknown confidence"


def interval(value: Interval | None, confident: str) -> str:
    """A ratio with its interval and that interval's confidence; ``-`` without one."""
    if value is None:
        return "-"
    low, high = units.percent(value.ci_low), units.percent(value.ci_high)
    return f"{units.percent(value.speedup)} [{low}, {high}] at {confident}"


def _round(row: Row) -> str:
    return "-" if row.round is None else str(row.round)


def _label(row: Row) -> str:
    return f"{row.version} (recheck)" if row.kind == "recheck" else row.version


def _verdict(row: Row) -> str:
    if row.verdict is None:
        return row.kind
    return f"{row.verdict} {'(partial) ' if row.partial else ''}{row.reason}".strip()


def _correct(row: Row) -> str:
    if row.reason.startswith("imported:"):
        return "not measured"
    return CORRECT.get(row.verdict or "", "yes")


def attempt_cells(row: Row, benches: Mapping[str, BenchFacts]) -> tuple[str, ...]:
    """One line of the attempt ledger, as wide as ``ATTEMPT_COLUMNS``."""
    facts = row_facts(row, benches)
    return (
        _label(row),
        row.parent or "-",
        _round(row),
        row.motivation.text,
        _correct(row),
        interval(row.gain, confidence(row.tier, facts)),
        f"{facts.worst_case} {units.percent(facts.worst_speedup)}" if facts and facts.worst_speedup else "-",
        _verdict(row),
        row.motivation.digest or "-",
        row.commit[:12] or "-",
    )


def _outcome(row: Row, current: str | None) -> str:
    if row.version == current:
        return "Selected, current best"
    return {"selected": "Selected", "rejected": "Rejected", "wip": "Not decided"}[row.status]


def _optimization_cells(row: Row, benches: Mapping[str, BenchFacts], current: str | None) -> tuple[str, ...]:
    facts = row_facts(row, benches)
    sure = confidence(row.tier, facts)
    return (
        _round(row),
        row.version,
        row.motivation.text,
        _micros(facts.candidate_us if facts else None),
        _micros(baseline_us(row, benches)),
        interval(row.vs_baseline, sure),
        interval(row.gain, sure),
        _outcome(row, current),
    )


def _micros(value: float | None) -> str:
    return "-" if value is None else units.micros(value)


def _result(idea: Idea, rows: Sequence[Row]) -> str:
    if idea.result:
        return idea.result
    cited = [row for row in rows if row.verdict is not None and idea.key in row.motivation.source_keys]
    return "; ".join(f"{_label(row)} {row.verdict}" for row in cited) or "not tried"


def _idea_cells(idea: Idea, rows: Sequence[Row]) -> tuple[str, ...]:
    hypothesis = f"{idea.hypothesis} (read again: {idea.reread_reason})" if idea.reread_reason else idea.hypothesis
    return (
        idea.key,
        idea.repo,
        idea.commit[:12],
        idea.path,
        idea.symbol or "-",
        idea.pr or "-",
        ", ".join(idea.opened) or "-",
        hypothesis,
        _result(idea, rows),
    )


def _page(title: str, source: str, words: str, table: str) -> str:
    line = f"<!-- Generated from {source}; a change made here is lost. Render again: kernelpilot ledger render -->"
    return f"{line}\n\n# {title}\n\n{words}\n\n{table}"


def views(rows: Sequence[Row], benches: Mapping[str, BenchFacts], ideas: Sequence[Idea]) -> dict[str, str]:
    """Repo-relative path -> text of the three ledgers. ``benches`` is keyed by run id."""
    tried = [row for row in rows if row.kind in ("baseline", "attempt", "recheck")]
    faster = [row for row in rows if row.kind == "attempt" and row.verdict == "IMPROVED"]
    try:
        current: str | None = best(rows, max((row.epoch for row in rows), default=0)).version
    except Refused:
        current = None
    return {
        ATTEMPTS_PATH: _page(
            "Attempts",
            LINEAGE_PATH,
            "Every version, in the order it was judged. A gain above 0 % is faster than the incumbent of its time.",
            tables.render(ATTEMPT_COLUMNS, [attempt_cells(row, benches) for row in tried]),
        ),
        OPTIMIZATIONS_PATH: _page(
            "Optimizations",
            LINEAGE_PATH,
            "Correct and confirmed faster versions only; each figure is the confirmation run's.",
            tables.render(OPTIMIZATION_COLUMNS, [_optimization_cells(row, benches, current) for row in faster]),
        ),
        SOURCE_IDEAS_PATH: _page(
            "Source ideas",
            IDEAS_PATH,
            "Public code that was read. A key that stands here is not read again without a reason.",
            tables.render(IDEA_COLUMNS, [_idea_cells(idea, rows) for idea in ideas]),
        ),
    }
