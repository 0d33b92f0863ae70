"""84 rounds in one process against fake git facts and a fake lab: fast, legal, and at the right end."""

import time
from pathlib import Path

from rlcr import journal as journals
from rlcr.model import Done
from rlcr.step import LEGAL
from tests.rlcr import sim


def play(tmp_path: Path, *, done_at: int, reds: int = 1) -> sim.Tape:
    tape = sim.Tape(tmp_path)
    tape.put(sim.setup(), sim.head(0))
    tape.put(Done(id="setup"))
    n = 0
    while tape.state.active:
        before = tape.state
        n += 1
        for r in range(reds if before.phase == "BUILD" and before.round % 2 else 0):
            tape.put(sim.stop(tape.state, 1000 * n + r, checks=(sim.red(),)), sim.head(n))
            tape.put(Done(id=tape.state.pending))
            assert (tape.state.phase, tape.state.round) == (before.phase, before.round), "a red gate takes no round"
        met = before.round >= done_at
        tape.put(sim.stop(tape.state, n, checks=(sim.check(met=met),)), sim.head(n))
        assert tape.state.phase == before.phase or tape.state.phase in LEGAL[before.phase]
        tape.put(Done(id=tape.state.pending))
        assert n < 200
    return tape


def test_84_rounds_end_at_maxiter_in_time(tmp_path: Path) -> None:
    # Breaks when a phase escapes the cap (the reference reached round 6 under --max 1) or a replay is quadratic.
    start = time.perf_counter()
    tape = play(tmp_path, done_at=10**6)
    took = time.perf_counter() - start
    assert (tape.state.phase, tape.state.round) == ("MAXITER", 84)
    assert tape.state.blocks == 84 + 42, "84 blocks that began a round, and one red gate in each odd one"
    assert took < 2.0
    again = journals.read(tape.path)
    assert again.faults == () and again.state == tape.state


def test_it_completes_in_the_round_in_which_the_evidence_says_done(tmp_path: Path) -> None:
    tape = play(tmp_path, done_at=40)
    assert (tape.state.phase, tape.state.round) == ("COMPLETE", 40)
    phases = [e.record["phase"] for e in journals.read(tape.path).entries]
    assert phases[-4:] == ["FINALIZE", "FINALIZE", "COMPLETE", "COMPLETE"]
    assert "CODE_REVIEW" not in phases, "the evidence alone reviews no code"
