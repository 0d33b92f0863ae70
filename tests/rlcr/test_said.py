"""Words that only fill a cell of the goal tracker, and honest ones."""

from __future__ import annotations

import pytest

from rlcr import said, tracker

DONE = "### Completed and Verified\n\n| AC | Task | Evidence |\n|---|---|---|\n"


@pytest.mark.parametrize(
    "cell",
    [
        "&nbsp;", "<br>", "\u3164", "\\_", "(none)", "<evidence>", "n.a.", "n / a", "\u201cnone\u201d", "'none'",
        "none yet",
        "TBD later", "no evidence", "no evidence available", "missing", "not verified", "not yet measured",
        "x", "0", "ok",
        "yes", "done", "Done.", "\u2713", "[]()", "`-`", "see above", "see AC-2", "AC-1", "ok/done",
        "100 %", "3/3", "\u2800",
        "to be done", "all passed", "will be added", "\u200b", "pending review", "a.b", "v1",
    ],
)  # fmt: skip
def test_words_that_fill_a_cell_are_no_evidence(cell: str) -> None:
    assert not said.evidence(cell)
    assert tracker.unproved(f"{DONE}| AC-1 | t | {cell} |\n", ("AC-1",)) == ((), ("AC-1",))


@pytest.mark.parametrize(
    "cell",
    [
        "v001_fused.2", "artifacts/lineage.jsonl", "kernelpilot gate green at abc1234", "gate", "run 4", "`run-0004`",
        "README.md", "4f2c9e1", "[lineage](artifacts/lineage.jsonl)", "pytest -q", "all 27 tests pass",
        "commit 4f2c9e1",
        "not slower than v001_fused.2", "12.4us on B200", "<https://ci.example/1>", "no regression, see report.html",
        "le banc d\u2019essai", "\u89c1\u6d4b\u8bd5\u62a5\u544a",
    ],
)  # fmt: skip
def test_an_honest_line_is_evidence(cell: str) -> None:
    assert said.evidence(cell)


def test_a_reason_may_begin_with_no() -> None:
    for cell in ("no such device here", "not needed: documents only", "none of our GPUs has FP4", "the user said so"):
        assert said.reason(cell), cell
    for cell in (
        "",
        "none",
        "TBD",
        "TBD when a device is there",
        "later",
        "n/a",
        "no reason",
        "todo: write",
        "-",
        "no",
    ):
        assert not said.reason(cell), cell
