"""``verify.json``: what is stored of a judgement comes back as that judgement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import correctness
from kernelpilot_helpers.attempt.raw import Check, Died, Raw
from kernelpilot_helpers.correctness import Outcome, Wrong, judge
from kernelpilot_helpers.errors import BadRecord, NewerFormat
from tests.correct_sim import EXPECT, broken, checks, raw, stats


def judge_(one: Raw) -> Outcome:
    return judge(one, expectation=EXPECT)


def where(test: Callable[[Check], bool], **changed: Any) -> Raw:
    return raw([broken(c, **changed) if test(c) else c for c in checks()])


@pytest.mark.parametrize(
    "one",
    [
        raw(),
        where(lambda c: c.probe == "timed"),
        raw(died=Died(arm="A", stage="call", signal="SIGKILL", log="x")),
    ],
)
def test_a_judgement_survives_the_file(one: Raw) -> None:
    got = judge_(one)
    kept = correctness.record(one, got, mutation_score="")
    back = correctness.parse(correctness.dump(kept))
    assert back == kept
    assert correctness.to_outcome(back) == got


def test_a_file_that_contradicts_itself_is_refused() -> None:
    kept = correctness.record(raw(), judge_(raw()), mutation_score="12/12")
    assert (kept.verdict, kept.checks, kept.regimes) == ("Correct", 26, ("gen", "large", "small"))
    with pytest.raises(BadRecord, match="no check"):
        correctness.to_outcome(msgspec.structs.replace(kept, checks=0))
    with pytest.raises(BadRecord, match="without a reason"):
        correctness.to_outcome(msgspec.structs.replace(kept, verdict="Wrong"))
    with pytest.raises(BadRecord, match="whose fault"):
        correctness.to_outcome(msgspec.structs.replace(kept, verdict="Broken", reason="x: y"))
    with pytest.raises(BadRecord, match="checks"):
        correctness.parse(correctness.dump(kept).replace(b'"checks": 26', b'"checks": true'), at="verify.json")
    with pytest.raises(NewerFormat):
        correctness.parse(correctness.dump(kept).replace(b'"version": 1', b'"version": 9', 1))


def test_figures_that_are_no_numbers_are_left_out_of_the_file() -> None:
    one = where(lambda c: True, stats=stats(rms=1e308, max=float("nan")), where=None)
    kept = correctness.record(one, judge_(one))
    assert (kept.worst[0].rms_ratio, kept.worst[0].max_ulp) == (None, None)
    assert correctness.parse(correctness.dump(kept)) == kept


def test_the_documented_example_is_a_verification() -> None:
    """Breaks if a field is renamed, added or dropped and the page is not."""
    page = (Path(__file__).parents[1] / "docs/formats/verify.md").read_text(encoding="utf-8")
    block = page.split("```json\n")[1].split("```")[0]
    kept = correctness.parse(block.encode())
    assert isinstance(correctness.to_outcome(kept), Wrong)
