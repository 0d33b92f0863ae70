"""The cheats that play with time, and the honest that a busy machine could make look like them: one at a time."""

from __future__ import annotations

import pytest

from tests.hostile.pen import ZOO, Pen
from tests.hostile.table import ALONE, CHEATS, HONEST, TORCH, Cheat, caught
from tests.taskpy import needs_numpy, needs_torch


@needs_numpy
@pytest.mark.parametrize("cheat", [c for c in CHEATS if c.row in ALONE], ids=lambda c: c.name)
def test_the_cheat_with_time_is_caught(pen: Pen, cheat: Cheat) -> None:
    caught(cheat, pen.outcome(ZOO / cheat.name, kind=cheat.kind))


@needs_numpy
@pytest.mark.parametrize("name", sorted(HONEST))
def test_the_honest_pass(pen: Pen, name: str) -> None:
    """Breaks when rounding in another order, a scratch buffer or a joined thread is taken for a cheat."""
    outcome = pen.outcome(ZOO / name, kind=HONEST[name])
    assert outcome.verdict not in ("WRONG", "BROKEN"), f"{name}: {outcome.reason}"
    assert not outcome.reason.startswith(("cheat.", "suspect.")), outcome.reason


@needs_torch
@pytest.mark.parametrize("name", TORCH)
def test_the_honest_pass_under_torch(torch_pen: Pen, name: str) -> None:
    outcome = torch_pen.outcome(ZOO / name, kind=HONEST[name])
    assert outcome.verdict not in ("WRONG", "BROKEN"), f"{name}: {outcome.reason}"
