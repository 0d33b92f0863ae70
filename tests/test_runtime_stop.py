"""When verification alone ends a job: only what no judge could call right."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kernelpilot_helpers.runtime.main import plainly_wrong

GOOD = {"nonfinite_equal": True, "unwritten": 0, "max": 3.0, "base_max": 1.0}


def session(stats: dict[str, Any] | None = None, arm: str = "B", events: tuple[tuple[str, str], ...] = ()) -> Any:
    """What the question looks at; the limit is 2 x 1.0 + 2 = 4 ulp."""
    return SimpleNamespace(
        job={"where_limit": (2.0, 2.0)},
        checks=[{"arm": arm, "stats": {**GOOD, **(stats or {})}}, {"arm": arm}],
        events=[{"arm": a, "kind": kind} for a, kind in events],
    )


@pytest.mark.parametrize(
    ("stats", "wrong"),
    [
        ({}, False),
        ({"max": 32.0}, False),
        ({"max": 32.1}, True),
        ({"unwritten": 1}, True),
        ({"nonfinite_equal": False}, True),
    ],
)
def test_only_what_is_far_off_stops_a_job(stats: dict[str, Any], wrong: bool) -> None:
    """Breaks when a near miss, which the judge may forgive, leaves a job without its times."""
    assert plainly_wrong(session(stats)) is wrong


def test_the_incumbents_faults_do_not_stop_it() -> None:
    assert not plainly_wrong(session({"max": 1e6}, arm="A", events=(("A", "cheat.thread"), ("B", "note.capture"))))


def test_an_offence_stops_it() -> None:
    assert plainly_wrong(session(events=(("B", "memory.redzone"),)))
