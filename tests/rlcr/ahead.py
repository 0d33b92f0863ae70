"""A loop whose round is judged ahead of its Stop, and the plan that it may be amended to."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.rlcr.real import PLAN, PLAN_TEXT, RLCR, Real

EVIDENCE = ".humanize/evidence.json"
NEW_PLAN = PLAN_TEXT.replace("- AC-21: criterion number 21\n", "- AC-22: half the memory\n- AC-23.1: and a table\n")


def edit(real: Real, text: str = NEW_PLAN) -> None:
    (real.repo / PLAN).write_text(text)


def commands(real: Real, *more: dict[str, Any], cache: bool = True) -> None:
    """The evidence file of ``real`` with ``cache`` on its command, and more commands."""
    gate = {"name": "gate", "argv": [sys.executable, str(real.script)], "timeout_s": 60, "cache": cache}
    data = {"format": "humanize.evidence", "version": 1, "commands": [gate, *more]}
    (real.repo / EVIDENCE).write_text(json.dumps(data))


def cached(real: Real) -> Real:
    """A worked round in a loop whose command may be run ahead."""
    commands(real)
    assert real.setup().returncode == 0
    real.work(0)
    return real


def rehearse(real: Real, *words: str) -> tuple[int, dict[str, Any]]:
    done = real.run(RLCR, "evidence", "--json", *words)
    assert not done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def runs(real: Real) -> int:
    return len(real.log.read_text().splitlines()) if real.log.exists() else 0


def parked(worked: Real) -> None:
    worked.answer(passed=False)
    for n in range(3):
        worked.stop(f"m{n}")
    assert worked.at == ("PARKED", 0)
