"""What the zoo taught the runtime: processor time, sealed files, orphans, and library calls nobody announced."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers.attempt.raw import Raw, Samples
from kernelpilot_helpers.benchmark import suspicions
from kernelpilot_helpers.runtime.arena import Arena
from kernelpilot_helpers.runtime.charges import Charges, processor_ns
from kernelpilot_helpers.runtime.content import Contents
from kernelpilot_helpers.runtime.frames import NumpyFrame
from kernelpilot_helpers.runtime.seal import Seal
from kernelpilot_helpers.runtime.spec import parse_case
from tests.jobs import norm_case

US = 1000


def samples(arm: str, pair: int, *, ns: int, cpu: int | None) -> Samples:
    return Samples(
        pair=pair, first_arm="A", case_id="c", arm=arm, calls=4, ns=(ns, ns + 1, ns + 2),
        wall_ns=(ns + 50 * US,) * 3, cpu_ns=() if cpu is None else (ns + cpu, ns + 1 + cpu, ns + 2 + cpu),
    )  # fmt: skip


def codes(*items: Samples) -> list[tuple[str, str]]:
    raw = Raw(job_id="j", job_sha256="0" * 64, framework="numpy", env={}, samples=items)
    return [(f.code, f.arm) for f in suspicions([raw])]


@pytest.mark.parametrize(
    ("ns", "beyond", "found"),
    [
        (300 * US, 10 * US, []),
        (300 * US, 16 * US, [("cheat.clock", "B")]),
        (1000 * US, 29 * US, []),
        (1000 * US, 31 * US, [("cheat.clock", "B")]),
        (300 * US, -200 * US, []),
    ],
)
def test_work_that_the_ticks_leave_out_is_a_lying_clock(ns: int, beyond: int, found: list[tuple[str, str]]) -> None:
    """15 us or 3 % of a block, whichever is more; being charged less (preempted while timed) is no fault."""
    pairs = [
        samples(arm, p, ns=ns, cpu=45 * US + (beyond if arm == "B" else 0)) for p in range(4) for arm in ("A", "B")
    ]
    assert codes(*pairs) == found


def test_one_disturbed_pair_is_not_a_lie() -> None:
    """Breaks when a single pair's charge convicts an honest arm."""
    extra = (200 * US, 0, 0, 0)
    assert codes(*[s for p in range(4) for s in (
        samples("A", p, ns=300 * US, cpu=45 * US), samples("B", p, ns=300 * US, cpu=45 * US + extra[p]),
    )]) == []  # fmt: skip


def test_a_record_without_processor_time_is_read_as_before() -> None:
    assert codes(samples("A", 0, ns=300 * US, cpu=None), samples("B", 0, ns=300 * US, cpu=None)) == []
    short = Samples(
        pair=0, first_arm="A", case_id="c", arm="B", calls=4, ns=(300, 301), wall_ns=(400, 400), cpu_ns=(350,)
    )
    assert codes(samples("A", 0, ns=300 * US, cpu=None), short) == [("cheat.clock", "B")]


def test_a_block_is_charged_until_the_next_one_begins() -> None:
    """Breaks when work after the reply is not counted."""
    if processor_ns(os.getpid()) is None:
        pytest.skip("this system does not tell another process's processor time")
    charges = Charges(os.getpid())
    charges.open("warm")
    charges.open("c")
    end = time.process_time_ns() + 3_000_000
    while time.process_time_ns() < end:
        pass
    charges.open("c")
    charges.close()
    taken: list[dict[str, Any]] = [
        {"arm": "B", "pair": 1, "case_id": "c", "ns": (1, 2)},
        {"arm": "A", "pair": 1, "case_id": "c", "ns": (1,)},
    ]
    charges.give(taken, "B", 1)
    first, second = taken[0]["cpu_ns"]
    assert first >= 3_000_000 > second
    assert "cpu_ns" not in taken[1]


def test_a_process_that_is_gone_has_no_clock() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert processor_ns(pid) is None


def test_the_seal_names_changed_added_and_removed_files(tmp_path: Path) -> None:
    arms, code = tmp_path / "arms", tmp_path / "runtime"
    for path in (arms / "A", code / "__pycache__"):
        path.mkdir(parents=True)
    (arms / "A" / "candidate.py").write_text("x = 1\n")
    (arms / "A" / "gone.c").write_text("")
    (code / "wire.py").write_text("")
    seal = Seal([arms], code)
    (code / "__pycache__" / "wire.pyc").write_text("the interpreter's own")
    assert seal.broken() == []
    (arms / "A" / "candidate.py").write_text("x = 2\n")
    (arms / "A" / "gone.c").unlink()
    (arms / "A" / "__pycache__").mkdir()
    (arms / "A" / "__pycache__" / "candidate.pyc").write_text("planted beside the source")
    (code / "wire.py").write_text("# mine")
    assert seal.broken() == [
        "arms/A/__pycache__/candidate.pyc", "arms/A/candidate.py", "arms/A/gone.c", "runtime/wire.py",
    ]  # fmt: skip


def test_a_call_that_writes_nothing_among_calls_that_do(tmp_path: Path) -> None:
    """Breaks when one call of a block may be left out; a block that writes nothing at all is the judge's to name."""
    pytest.importorskip("numpy")
    frame, case = NumpyFrame(), parse_case(msgspec.to_builtins(norm_case(2, 8)))
    contents, arena = Contents(frame, case), Arena(frame, case, 3)
    arena.fill_static(contents)
    for slot in range(3):
        arena.fill(slot, contents, slot)
    ran = {0: 0, 1: 1, 2: 2}
    assert arena.faults(ran, {}, contents) == []
    written = {r.tensor.name: r for r in arena.layout.slots[1]}["out"]
    arena._bytes[written.data : written.data + 4] = b"\0\0\0\0"
    assert arena.faults(ran, {}, contents) == [("cheat.skipped", "2 of 3 calls of a block did not write out")]
    assert arena.faults({1: 1}, {}, contents) == []
