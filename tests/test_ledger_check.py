"""``ledger check``: every way a history can contradict itself, and every hand edit of a view."""

from __future__ import annotations

from typing import Any

import pytest

from kernelpilot_helpers import ledger
from kernelpilot_helpers.ledger import BenchFacts, Interval, Motivation, Row
from kernelpilot_helpers.records import Fault

TREE, COMMIT = "a" * 40, "c" * 40
FACTS = BenchFacts(worst_case="m1", worst_speedup=1.1, candidate_us=50.0, incumbent_us=60.0, confidence=0.978)
FASTER = Interval(speedup=1.2, ci_low=1.1, ci_high=1.3)
EVEN = Interval(speedup=1.0, ci_low=0.99, ci_high=1.01)


def row(version: str, verdict: Any = "SAME", **more: Any) -> Row:
    improved = verdict == "IMPROVED"
    gain = {"IMPROVED": FASTER, "SAME": EVEN, "AMBIGUOUS": EVEN}.get(verdict)
    fields: dict[str, Any] = {
        "version": version, "kind": "attempt", "parent": "v000_baseline", "variant": "x", "tree": TREE,
        "commit": COMMIT, "epoch": 1, "at": "2025-01-02T03:04:05Z",
        "motivation": Motivation(kind="benchmark", text=f"idea of {version}"), "language": "c",
        "runs": (f"{version}.1", f"{version}.2") if improved else (f"{version}.1",),
        "verdict": verdict, "gain": gain, "incumbent": "v000_baseline",
        "confirmed_by": f"{version}.2" if improved else None,
        "status": "selected" if improved else "rejected", "at_head": COMMIT,
    }  # fmt: skip
    return Row(**{**fields, **more})


BASE: dict[str, Any] = {
    "kind": "baseline", "parent": "", "incumbent": "", "gain": None, "runs": ("v000.1",), "status": "selected",
}  # fmt: skip


def base(**more: Any) -> Row:
    return row("v000_baseline", None, **{**BASE, **more})


def check(*rows: Row, benches: dict[str, BenchFacts] | None = None, faults: tuple[Fault, ...] = ()) -> list[str]:
    """What is wrong with rows whose views are in order."""
    known = benches if benches is not None else {run: FACTS for r in rows for run in r.runs}
    files: dict[str, str | None] = dict(ledger.views(rows, known, []))
    return [f.what for f in ledger.check(rows, faults, files, known, [])]


def test_a_sound_history_has_no_fault() -> None:
    """Breaks if honest rows of any kind are accused."""
    identical = row("v004_d", "SAME", gain=None, reason="identical.binary: same program")
    regressed = row("v005_e", "REGRESSED", gain=Interval(speedup=0.8, ci_low=0.7, ci_high=0.9), incumbent="v003_c")
    screen = row("v006_f", "REGRESSED", gain=None, tier="screen")
    again = row("v007_g", "IMPROVED", kind="recheck", status="rejected")
    stop = row("v003_c", None, kind="decision", runs=(), gain=None, reason="stop: done")
    rows = (
        base(), row("v001_a"), row("v002_b", "WRONG", gain=None), row("v003_c", "IMPROVED", parent="v001_a"),
        identical, regressed, screen, again, stop, base(epoch=2, runs=("v000.2",)),
    )  # fmt: skip
    assert check(*rows) == []


@pytest.mark.parametrize(
    ("bad", "want"),
    [
        (row("v1", "SAME"), "version: want a label like v003_tiled, got 'v1'"),
        (row("v001_a", None, gain=None), "verdict: null on a row of kind attempt"),
        (row("v000_baseline", "SAME", kind="waiver"), "verdict: SAME on a row of kind waiver"),
        (row("v001_a", "SAME", status="selected"), "status: selected with verdict SAME"),
        (row("v001_a", "IMPROVED", partial=True), "partial: true with verdict IMPROVED"),
        (row("v001_a", motivation=Motivation(kind="profile", text="t")), "motivation: kind profile without a digest"),
        (row("v001_a", "IMPROVED", confirmed_by=None), "verdict: IMPROVED without a confirmation run"),
        (row("v001_a", "IMPROVED", confirmed_by="other.1"), "confirmed_by: other.1 is not among the row's runs"),
        (row("v001_a", "WRONG", gain=None, runs=()), "runs: empty; no evidence stands behind the verdict"),
        (row("v001_a", "WRONG", gain=FASTER), "gain: a figure beside verdict WRONG"),
        (row("v001_a", "IMPROVED", gain=None), "gain: null with verdict IMPROVED"),
        (row("v001_a", "REGRESSED", gain=None), "gain: null with verdict REGRESSED"),
        (row("v001_a", "SAME", gain=None), "gain: null with verdict SAME that is not an identical binary"),
        (row("v001_a", "IMPROVED", gain=EVEN), "verdict: IMPROVED, but the interval reaches 1 (1 [0.99, 1.01])"),
        (row("v001_a", "REGRESSED", gain=EVEN), "verdict: REGRESSED, but the interval reaches 1 (1 [0.99, 1.01])"),
        (
            row("v001_a", gain=Interval(speedup=1.5, ci_low=0.9, ci_high=1.1)),
            "gain: the interval does not hold its point (1.5 [0.9, 1.1])",
        ),
        (row("v001_a", incumbent=""), "incumbent: empty beside a gain"),
        (row("v001_a", incumbent="v009_z"), "incumbent: v009_z has no earlier row"),
        (row("v001_a", parent=""), "parent: empty"),
        (row("v001_a", parent="v009_z"), "parent: v009_z has no earlier row"),
        (row("v001_a", parent="v001_a"), "parents run in a circle: v001_a -> v001_a"),
        (row("v000_baseline"), "version: a second row carries this label"),
        (base(), "version: a second row carries this label"),
        (row("v001_base", None, **BASE), "version: the baseline row is v000_baseline, got v001_base"),
        (row("v009_z", None, kind="decision", runs=(), gain=None), "version: a row of kind decision names a version"),
    ],
)
def test_each_contradiction_is_named(bad: Row, want: str) -> None:
    """Breaks if one rule of the history is dropped."""
    assert [what for what in check(base(), bad) if what.startswith(want)] != []


def test_circles_of_parents_are_found_whole() -> None:
    """Breaks if two rows may be each other's parent."""
    found = check(base(), row("v001_a", parent="v002_b"), row("v002_b", parent="v001_a"))
    assert "parents run in a circle: v001_a -> v002_b -> v001_a" in found


def test_a_run_belongs_to_one_row() -> None:
    """Breaks if the same measurement may carry two verdicts."""
    found = check(base(), row("v001_a", runs=("r.1",)), row("v002_b", runs=("r.1",)))
    assert found == ["run r.1 is cited 2 times (v001_a, v002_b); each run belongs to one row"]


def test_a_gain_needs_a_readable_run() -> None:
    """Breaks if a figure is believed whose timing file is gone."""
    found = check(base(), row("v001_a", "IMPROVED"), benches={"v001_a.1": FACTS})
    assert found == ["a gain is recorded but no readable timing run of this row stands behind it"]


def test_faults_of_reading_come_first() -> None:
    """Breaks if a chain fault is swallowed."""
    broken = Fault(where="lineage:3", what="prev does not match", fix="x")
    assert check(base(), row("v1"), faults=(broken,))[0] == "prev does not match"


def views_of(*rows: Row) -> dict[str, str | None]:
    return dict(ledger.views(rows, {run: FACTS for r in rows for run in r.runs}, []))


def edits(files: dict[str, str | None], *rows: Row) -> list[tuple[str, str]]:
    return [(f.where, f.what) for f in ledger.check(rows, [], files, {r: FACTS for x in rows for r in x.runs}, [])]


ROWS = (base(), row("v001_a"), row("v002_b", "IMPROVED"))


def test_a_hand_edit_is_told_by_row_and_cell() -> None:
    """Breaks if an edited ledger is only called different, or silently kept."""
    files = views_of(*ROWS)
    text = files[ledger.ATTEMPTS_PATH]
    assert text is not None
    files[ledger.ATTEMPTS_PATH] = text.replace("+20.0 % [", "+90.0 % [")
    assert edits(files, *ROWS) == [
        (
            ledger.ATTEMPTS_PATH,
            (
                "row v002_b, Geomean vs best [CI]: says '+90.0 % [+10.0 %, +30.0 %] at 97.8 %', "
                "the record says '+20.0 % [+10.0 %, +30.0 %] at 97.8 %'"
            ),
        )
    ]


def test_removed_added_and_moved_rows_are_told() -> None:
    """Breaks if a failed attempt can be deleted from the ledger, or one invented."""
    files = views_of(*ROWS)
    lines = str(files[ledger.ATTEMPTS_PATH]).splitlines(keepends=True)
    files[ledger.ATTEMPTS_PATH] = "".join(line for line in lines if "v001_a" not in line)
    assert edits(files, *ROWS) == [(ledger.ATTEMPTS_PATH, "row v001_a: missing")]
    files[ledger.ATTEMPTS_PATH] = "".join(lines) + lines[-1].replace("v002_b", "v003_c")
    assert edits(files, *ROWS) == [(ledger.ATTEMPTS_PATH, "row v003_c: added by hand; no record says so")]
    files[ledger.ATTEMPTS_PATH] = "".join([*lines[:-2], lines[-1], lines[-2]])
    assert edits(files, *ROWS) == [(ledger.ATTEMPTS_PATH, "rows stand in another order than they were recorded")]
    files[ledger.ATTEMPTS_PATH] = "".join(lines) + lines[-1]
    assert edits(files, *ROWS) == [(ledger.ATTEMPTS_PATH, "row v002_b #2: added by hand; no record says so")]


def test_missing_broken_and_annotated_views_are_told() -> None:
    """Breaks if an absent file, a file without its table or a note under it passes."""
    files = views_of(*ROWS)
    files[ledger.ATTEMPTS_PATH] = None
    files[ledger.SOURCE_IDEAS_PATH] = "gone\n"
    files[ledger.OPTIMIZATIONS_PATH] = str(files[ledger.OPTIMIZATIONS_PATH]) + "\nmy note\n"
    assert edits(files, *ROWS) == [
        (ledger.ATTEMPTS_PATH, "missing"),
        (ledger.OPTIMIZATIONS_PATH, "text outside the table, or its layout, was edited by hand"),
        (ledger.SOURCE_IDEAS_PATH, "no table found"),
    ]


def test_a_view_of_many_megabytes_is_told_without_being_parsed() -> None:
    """Breaks if a garbage ledger makes the audit run for minutes: Markdown is parsed at some 25 KB a second."""
    rows = (base(),)
    files: dict[str, str | None] = dict(ledger.views(rows, {"v000.1": FACTS}, []))
    files[ledger.ATTEMPTS_PATH] = "| a | b |\n" * 500_000
    found = ledger.check(rows, (), files, {"v000.1": FACTS}, [])
    assert [(f.where, "holds 5000000 characters" in f.what) for f in found] == [(ledger.ATTEMPTS_PATH, True)]


def test_only_a_tuning_is_a_decision_with_runs() -> None:
    """Breaks when a map stands on no run, or runs are hidden behind a decision."""
    tuned = {"kind": "decision", "gain": None, "reason": "tune: 1 versions x 8 cases"}
    assert check(base(), row("v001_a"), row("v001_a", None, runs=("v001_a.2",), **tuned)) == []
    wanted = "runs: a decision has runs exactly when it is a tuning"
    assert check(base(), row("v001_a"), row("v001_a", None, runs=(), **tuned)) == [wanted]
    hidden = row("v001_a", None, kind="decision", gain=None, runs=("v001_a.2",), reason="select: because")
    assert check(base(), row("v001_a"), hidden) == [wanted]
