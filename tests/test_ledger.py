"""Lineage rows, the questions asked of them, and the views: each test names what would be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import ledger, tables
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.ledger import BenchFacts, Idea, Interval, Motivation, Provenance, Row

TREE = "a" * 40
COMMIT = "c" * 40


def row(version: str, verdict: Any = "AMBIGUOUS", **more: Any) -> Row:
    improved = verdict == "IMPROVED"
    fields: dict[str, Any] = {
        "version": version,
        "kind": "attempt",
        "parent": "v000_baseline",
        "variant": version.partition("_")[2],
        "tree": TREE,
        "commit": COMMIT,
        "epoch": 1,
        "at": "2025-01-02T03:04:05Z",
        "motivation": Motivation(kind="benchmark", text=f"idea of {version}"),
        "language": "c",
        "runs": (f"{version}.1", f"{version}.2") if improved else (f"{version}.1",),
        "verdict": verdict,
        "gain": Interval(speedup=1.2, ci_low=1.1, ci_high=1.3) if improved else None,
        "incumbent": "v000_baseline",
        "confirmed_by": f"{version}.2" if improved else None,
        "status": "selected" if improved else "rejected",
        "at_head": COMMIT,
    }
    return Row(**{**fields, **more})


def base(epoch: int = 1) -> Row:
    return row(
        "v000_baseline", None, kind="baseline", parent="", incumbent="", epoch=epoch, runs=(f"v000.{epoch}",),
        status="selected", motivation=Motivation(kind="baseline", text="the baseline"),
    )  # fmt: skip


FACTS = BenchFacts(
    worst_case="m1", worst_speedup=0.98, candidate_us=50.0, incumbent_us=60.0, confidence=0.978
)  # fmt: skip


def cells(text: str) -> list[dict[str, str]]:
    return tables.parse(text, at="view")


def test_append_chains_rows_and_load_gives_them_back(tmp_path: Path) -> None:
    """Breaks if the first row is not chained to the header, or prev is taken from the caller."""
    ledger.append(tmp_path, base())
    ledger.append(tmp_path, row("v001_a", prev="forged"))
    data = (tmp_path / "artifacts" / "lineage.jsonl").read_bytes()
    rows, faults = ledger.load(data)
    assert faults == ()
    assert [r.version for r in rows] == ["v000_baseline", "v001_a"]
    assert all(len(r.prev) == 64 for r in rows)


def test_edited_removed_and_reordered_rows_break_the_chain(tmp_path: Path) -> None:
    """Breaks if history can be rewritten without a fault."""
    for r in (base(), row("v001_a"), row("v002_b"), row("v003_c")):
        ledger.append(tmp_path, r)
    lines = (tmp_path / "artifacts" / "lineage.jsonl").read_bytes().splitlines(keepends=True)
    edited = b"".join(lines).replace(b"idea of v001_a", b"idea of v00la!")
    assert [f.where for f in ledger.load(edited)[1]] == ["artifacts/lineage.jsonl:4"]
    assert [f.where for f in ledger.load(b"".join(lines[:2] + lines[3:]))[1]] == ["artifacts/lineage.jsonl:3"]
    assert len(ledger.load(b"".join([*lines[:2], lines[3], lines[2], lines[4]]))[1]) == 3


def test_best_is_the_last_selected_of_this_epoch() -> None:
    """Breaks if an older epoch's win, a rejected row or a recheck becomes the incumbent."""
    rows = [base(), row("v001_a", "IMPROVED"), row("v002_b", "IMPROVED"), row("v003_c", "WRONG")]
    rows.append(row("v004_d", "IMPROVED", kind="recheck"))
    assert ledger.best(rows, 1).version == "v002_b"
    assert ledger.best([*rows, base(2)], 2).kind == "baseline"
    with pytest.raises(Refused, match="kernelpilot lock"):
        ledger.best(rows, 3)


def test_a_select_decision_moves_the_incumbent_and_a_stop_decision_does_not() -> None:
    """Breaks if `select` is forgotten, or any decision row counts as a selection."""
    rows = [base(), row("v001_a", "IMPROVED"), row("v002_b", "IMPROVED")]
    back = row("v001_a", None, kind="decision", runs=(), status="selected", reason="select: v002 is too big")
    stop = row("v000_baseline", None, kind="decision", runs=(), status="selected", reason="stop: target met")
    assert ledger.best([*rows, back], 1) == rows[1]
    assert ledger.best([*rows, stop], 1) == rows[2]


def test_next_version_counts_every_label_and_refuses_bad_slugs() -> None:
    """Breaks if a number is used twice after a gap, or a path gets into a label."""
    assert ledger.next_version([base()], "tiled") == "v001_tiled"
    assert ledger.next_version([base(), row("v007_x"), row("v002_y")], "tiled-2") == "v008_tiled-2"
    assert ledger.next_version([row("v999_x")], "y") == "v1000_y"
    for slug in ("", "../x", "A", "a b", "a" * 65, "-a"):
        with pytest.raises(BadRecord):
            ledger.next_version([], slug)


def test_find_by_label_or_number_and_says_what_exists() -> None:
    """Breaks if v001 also finds v0010, or an unknown label gives the last row."""
    rows = [base(), row("v001_a"), row("v010_b"), base(2)]
    assert ledger.find(rows, "v001").version == "v001_a"
    assert ledger.find(rows, "v010_b").version == "v010_b"
    assert ledger.find(rows, "v000").epoch == 2
    with pytest.raises(Refused, match="v010_b"):
        ledger.find(rows, "v01")


def test_by_tree_needs_the_same_contract() -> None:
    """Breaks if a verdict of an amended contract is handed out again, or an empty tree id matches imports."""
    rows = [base(), row("v001_a"), row("v002_b", kind="recheck"), row("v003_c", epoch=2), row("v004_d", tree="")]
    assert [r.version for r in ledger.by_tree(rows[1:], TREE, 1)] == ["v001_a", "v002_b"]
    assert ledger.by_tree(rows, "", 1) == ()


def test_attempt_ledger_holds_failures_and_the_real_confidence() -> None:
    """Breaks if a wrong version is left out, 95 % is printed, or a pipe in an idea shifts the columns."""
    rows = [
        base(),
        row("v001_a", "WRONG", reason="wrong.bias: x", motivation=Motivation(kind="review", text="a | b")),
        row("v002_b", "IMPROVED", round=4),
    ]
    text = ledger.views(rows, {"v002_b.2": FACTS}, [])[ledger.ATTEMPTS_PATH]
    assert "kernelpilot ledger render" in text.splitlines()[0]
    first, wrong, good = cells(text)
    assert (first["Version"], first["Verdict"], first["Correct"]) == ("v000_baseline", "baseline", "yes")
    assert (wrong["Idea"], wrong["Correct"], wrong["Verdict"]) == ("a | b", "no", "WRONG wrong.bias: x")
    assert good["Geomean vs best [CI]"] == "+20.0 % [+10.0 %, +30.0 %] at 97.8 %"
    assert (good["Worst case"], good["Round"], good["Commit"]) == ("m1 -2.0 %", "4", "cccccccccccc")


def test_optimization_ledger_holds_only_improved_with_the_confirmations_figures() -> None:
    """Breaks if a SAME row enters, or the first look's times are printed for the confirmation's."""
    first = BenchFacts(worst_case="m9", worst_speedup=1.0, candidate_us=1.0, incumbent_us=2.0)
    direct = BenchFacts(worst_case="m1", worst_speedup=1.4, candidate_us=51.0, incumbent_us=90.0)
    over = Interval(speedup=1.76, ci_low=1.7, ci_high=1.8)
    rows = [
        base(),
        row("v001_a", "IMPROVED"),
        row("v002_b", "SAME"),
        row("v003_c", "IMPROVED", incumbent="v001_a", runs=("c.1", "c.2", "c.3"), confirmed_by="c.2", vs_baseline=over),
    ]
    benches = {"v001_a.1": first, "v001_a.2": FACTS, "c.1": first, "c.2": FACTS, "c.3": direct}
    one, two = cells(ledger.views(rows, benches, [])[ledger.OPTIMIZATIONS_PATH])
    assert (one["Version"], one["Candidate p50"], one["Baseline p50"]) == ("v001_a", "50.0 us", "60.0 us")
    assert one["Outcome"] == "Selected"
    # Against v001_a, so the baseline's time comes from the direct run that followed the confirmation.
    assert (two["Candidate p50"], two["Baseline p50"]) == ("50.0 us", "90.0 us")
    assert two["vs baseline [CI]"] == "+76.0 % [+70.0 %, +80.0 %] at 97.8 %"
    assert two["Outcome"] == "Selected, current best"


def test_facts_of_names_the_worst_case_and_means_geometrically() -> None:
    """Breaks if the mean is arithmetic (17.5 us), or the worst case is the slowest instead of the least gained."""
    facts = ledger.facts_of([("big", 2.0, 60.0, 30.0), ("small", 0.8, 4.0, 5.0)], confidence=0.978)
    assert (facts.worst_case, facts.worst_speedup) == ("small", 0.8)
    assert facts.candidate_us == pytest.approx(12.247449)
    assert facts.incumbent_us == pytest.approx(15.491933)
    assert ledger.facts_of([], confidence=0.9).candidate_us is None


def idea(**more: Any) -> Idea:
    fields: dict[str, Any] = {
        "repo": "o/r", "commit": COMMIT, "path": "a.cu", "symbol": "f", "hypothesis": "fewer loads", "at": "",
    }  # fmt: skip
    return Idea(**{**fields, **more})


def test_a_source_is_read_once_unless_a_reason_is_given(tmp_path: Path) -> None:
    """Breaks if the key ignores a part, parts run together, or a reread passes without a reason."""
    first = ledger.append_idea(tmp_path, idea())
    assert len(first.key) == 16
    assert ledger.append_idea(tmp_path, idea(symbol="g")).key != first.key
    assert ledger.idea_key(repo="a", commit="b", path="cd", symbol="") != ledger.idea_key(
        repo="a", commit="bc", path="d", symbol=""
    )
    with pytest.raises(Refused, match="fewer loads"):
        ledger.append_idea(tmp_path, idea(hypothesis="other"))
    ledger.append_idea(tmp_path, idea(reread_reason="the file moved on"))
    assert len(ledger.load_ideas(tmp_path)) == 3
    with pytest.raises(BadRecord, match="hypothesis"):
        ledger.add([], idea(hypothesis=" "))


def test_an_idea_tells_what_became_of_it() -> None:
    """Breaks if an idea's result has to be written by hand although rows cite its key."""
    known = ledger.add([], idea())
    used = row("v001_a", "WRONG", motivation=Motivation(kind="research", text="t", source_keys=(known.key,)))
    text = ledger.views([base(), used], {}, [known])[ledger.SOURCE_IDEAS_PATH]
    assert cells(text)[0]["Result"] == "v001_a WRONG"
    assert cells(ledger.views([base()], {}, [known])[ledger.SOURCE_IDEAS_PATH])[0]["Result"] == "not tried"


def test_a_forged_idea_key_is_a_fault(tmp_path: Path) -> None:
    """Breaks if a key can be changed so that the same source is read again."""
    ledger.append_idea(tmp_path, idea())
    path = tmp_path / ledger.IDEAS_PATH
    forged = path.read_bytes().replace(ledger.load_ideas(tmp_path)[0].key.encode(), b"0" * 16)
    assert [f.where for f in ledger.parse_ideas(forged)[1]] == [ledger.IDEAS_PATH]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"url": "not an address"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"commit": "main"}, "commit"),
        ({"commit": "A" * 40}, "commit"),
        ({"licence": "GPL-3.0"}, "licence"),
        ({"files": ()}, "files"),
        ({"files": ("gone.cu",)}, "files"),
        ({"delta": ""}, "delta"),
    ],
)
def test_provenance_is_complete_or_named(change: dict[str, Any], word: str) -> None:
    """Breaks if one part of a provenance entry goes unchecked."""
    entry = Provenance(url="https://example.org/o/r", commit=COMMIT, licence="MIT", files=("k.cu",), delta="inlined")
    assert ledger.provenance_faults(entry, {"k.cu"}, ("MIT",), at="x") == []
    faults = ledger.provenance_faults(msgspec.structs.replace(entry, **change), {"k.cu"}, ("MIT",), at="x")
    assert [f.what.split(":")[0] for f in faults] == [word]
