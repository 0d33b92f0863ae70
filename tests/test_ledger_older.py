"""Import of older layouts: kept as history, never as evidence, and never guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kernelpilot_helpers import ledger


def lines(*docs: Any) -> bytes:
    return "".join(json.dumps(doc) + "\n" for doc in docs).encode()


def test_an_old_claim_becomes_an_attempt_without_a_figure() -> None:
    """Breaks if an old number or the word IMPROVED survives as if this referee had measured it."""
    old = {
        "version": "v17",
        "parent": None,
        "commit": "b" * 40,
        "motivation": "fuse",
        "verdict": "IMPROVED",
        "gain": 1.1,
    }
    rows, ideas, faults = ledger.import_old({"ledgers/lineage.jsonl": lines(old)})
    assert (len(rows), ideas, faults) == (1, (), ())
    row = rows[0]
    assert (row.version, row.verdict, row.gain, row.status, row.epoch) == ("v017_imported", "AMBIGUOUS", None, "wip", 0)
    assert row.reason == (
        "imported: not measured by this referee; was v17; the old ledger said: verdict IMPROVED, gain 1.1"
    )
    assert (row.motivation.kind, row.motivation.text, row.commit) == ("benchmark", "fuse", "b" * 40)


def test_what_cannot_be_mapped_is_a_fault_each() -> None:
    """Breaks if a parent, commit, kind or label is made up, or a bad line stops the import."""
    data = lines(
        {"version": "first", "motivation": "x"},
        {"version": "v001-Tiled", "parent": "v9", "commit": "abc", "motivation": {"kind": "hunch", "text": "y"}},
        {"version": "v002_b", "parent": "v001-Tiled", "motivation": {"kind": "profile", "digest": "d1", "text": "z"}},
        {"version": "v002_b", "motivation": "again"},
        ["not", "an", "object"],
        {"version": "v003_c"},
    )
    rows, _, faults = ledger.import_old({"artifacts/lineage.jsonl": data + b"{broken\n"})
    assert [(r.version, r.parent, r.commit) for r in rows] == [
        ("v001_tiled", "", ""), ("v002_b", "v001_tiled", ""), ("v003_c", "", ""),
    ]  # fmt: skip
    assert rows[1].motivation.kind == "profile"
    at = "artifacts/lineage.jsonl"
    assert [(f.where, f.what.split(":")[0]) for f in faults] == [
        (f"{at}:1", "version"), (f"{at}:2", "parent"), (f"{at}:2", "commit"), (f"{at}:2", "motivation.kind"),
        (f"{at}:4", "version"), (f"{at}:5", "want a JSON object, got list"), (f"{at}:6", "motivation"),
        (f"{at}:7", "not valid JSON"),
    ]  # fmt: skip


def test_markdown_adds_what_lineage_lacks_and_ideas_need_a_place() -> None:
    """Breaks if a version is imported twice, or an idea without commit gets an invented key."""
    attempts = (
        "| Version | Parent | Idea | Verdict |\n|---|---|---|---|\n| v1 | - | a | slow |\n| v2 | v1 | b | fast |\n"
    )
    sources = (
        "| Repo | Commit | Path | Symbol | Hypothesis | Result |\n|---|---|---|---|---|---|\n"
        "| o/r | abc1 | k.cu | f | wider loads | 3 % |\n| o/r | - | k.cu | g | h | - |\n"
    )
    rows, ideas, faults = ledger.import_old(
        {
            "ledgers/lineage.jsonl": lines({"version": "v1", "motivation": "from lineage"}),
            "ledgers/attempt-ledger.md": attempts.encode(),
            "ledgers/source-idea-ledger.md": sources.encode(),
            "ledgers/tuning-decisions.md": b"words",
        }
    )
    assert [(r.version, r.parent, r.motivation.text) for r in rows] == [
        ("v001_imported", "", "from lineage"), ("v002_imported", "v001_imported", "b"),
    ]  # fmt: skip
    assert [(i.repo, i.symbol, i.hypothesis, i.result) for i in ideas] == [("o/r", "f", "wider loads", "imported: 3 %")]
    assert [f.where for f in faults] == ["ledgers/source-idea-ledger.md: row 2", "ledgers/tuning-decisions.md"]


def test_a_lineage_of_this_tool_is_not_imported_again(tmp_path: Path) -> None:
    """Breaks if importing one's own repo doubles or unchains its history."""
    own = b'{"format":"kernelpilot.lineage","version":1}\n{"version":"v001_a"}\n'
    rows, _, faults = ledger.import_old({"artifacts/lineage.jsonl": own})
    assert rows == ()
    assert [f.what for f in faults] == ["already in this tool's format; nothing to import"]


def test_imported_rows_pass_the_check_and_can_be_appended(tmp_path: Path) -> None:
    """Breaks if an import leaves a repo that `ledger check` refuses for ever."""
    rows, ideas, _ = ledger.import_old({"ledgers/lineage.jsonl": lines({"version": "v1", "motivation": "m"})})
    for row in rows:
        ledger.append(tmp_path, row)
    kept, faults = ledger.load((tmp_path / ledger.LINEAGE_PATH).read_bytes())
    files: dict[str, str | None] = dict(ledger.views(kept, {}, ideas))
    assert ledger.check(kept, faults, files, {}, ideas) == []
    assert ledger.next_version(kept, "new") == "v002_new"
