"""The journal: one line a write, a chain of hashes, and a replay that believes nothing which does not follow."""

import dataclasses
import json
from pathlib import Path

import pytest

from rlcr import journal as journals
from rlcr.model import Cancel, Done, Resume, Reviewed, Tamper, sha256
from tests.rlcr import sim


@pytest.fixture
def tape(tmp_path: Path) -> sim.Tape:
    tape = sim.Tape(tmp_path)
    tape.put(sim.setup(reviewer="codex"), sim.head(0))
    tape.put(Done(id="setup", files={"state.md": "f" * 64}))
    said = sim.opinion(findings=(sim.finding("P1"),))
    tape.put(Reviewed(key="k", verdict=said))
    tape.put(sim.stop(tape.state, 1, verdict=said, tampered=("x was edited",)), sim.head(1))
    tape.put(Done(id=tape.state.pending))
    tape.put(Tamper(what="state.md was edited by hand", path="state.md"))
    return tape


def lines(tape: sim.Tape) -> list[bytes]:
    return tape.path.read_bytes().split(b"\n")[:-1]


def test_the_bytes_are_as_documented(tape: sim.Tape) -> None:
    raw = lines(tape)
    assert raw[0] == b'{"format":"humanize.journal","version":1}'
    previous = sha256(raw[0])
    for number, line in enumerate(raw[1:], start=1):
        record = json.loads(line)
        assert list(record) == ["at", "data", "event", "head", "phase", "prev", "round", "seq"]
        assert (record["seq"], record["prev"]) == (number, previous)
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        previous = sha256(line)
    intent = json.loads(raw[4])
    assert intent["event"] == "intent" and intent["data"]["id"] == "0-1"
    assert intent["data"]["gate"]["findings"] == [] and intent["data"]["verdict"]["verdict"] == "continue"
    assert json.loads(raw[5])["data"]["id"] == "0-1"


def test_replay_gives_the_state_that_was_written(tape: sim.Tape) -> None:
    state, faults = journals.replay(lines(tape))
    assert faults == () and state == tape.state
    assert state.round == 1 and state.open == (sim.finding("P1"),) and state.tampers == 1


@pytest.mark.parametrize("number", range(7))
def test_one_changed_byte_in_any_line_is_a_fault(tape: sim.Tape, number: int) -> None:
    raw = lines(tape)
    for at in range(0, len(raw[number]), 7):
        line = bytearray(raw[number])
        line[at] ^= 1
        changed = [*raw[:number], bytes(line), *raw[number + 1 :]]
        _, faults = journals.replay(changed)
        assert faults or number == 6, "only the last line has no successor to give it away: the registry's note does"


@pytest.mark.parametrize("number", range(6))
def test_a_cut_or_swapped_line_is_a_fault(tape: sim.Tape, number: int) -> None:
    raw = lines(tape)
    assert journals.replay([*raw[:number], *raw[number + 1 :]])[1]
    assert journals.replay([*raw[:number], raw[number + 1], raw[number], *raw[number + 2 :]])[1]
    assert journals.replay([*raw[: number + 1], *raw[number:]])[1]


def test_a_well_chained_line_whose_outcome_does_not_follow_is_a_fault(tape: sim.Tape) -> None:
    # A worker that can compute hashes still cannot write itself a COMPLETE that its cause does not give.
    raw = lines(tape)
    forged = json.loads(raw[4])
    forged["seq"], forged["prev"] = 7, sha256(raw[6])
    forged["data"]["cause"] |= {"round": 1}
    forged["data"]["outcome"], forged["phase"], forged["round"] = "COMPLETE", "COMPLETE", 1
    state, faults = journals.replay([*raw, journals.encode(forged)])
    assert state.phase == "BUILD" and "does not follow" in faults[0].what


def test_a_torn_tail_is_set_aside_and_never_guessed(tape: sim.Tape) -> None:
    whole = tape.path.read_bytes()
    tape.path.write_bytes(whole + b'{"at":"2026-')
    read = journals.read(tape.path)
    assert read.faults == () and read.state == tape.state and read.torn == b'{"at":"2026-'
    mended = journals.mend_tail(tape.path, read)
    assert tape.path.read_bytes() == whole and mended.torn == b""
    assert tape.path.with_name("journal.jsonl.torn").read_bytes() == b'{"at":"2026-\n'


@pytest.mark.parametrize("blob", [b"", b"\n", b"x\n", b'{"format":"humanize.journal","version":2}\n', b"[]\n[]\n"])
def test_what_is_no_journal_is_a_fault(tmp_path: Path, blob: bytes) -> None:
    (tmp_path / "journal.jsonl").write_bytes(blob)
    assert journals.read(tmp_path / "journal.jsonl").faults
    assert journals.read(tmp_path / "absent").faults


@pytest.mark.parametrize("value", ["null", "3", "[]", '"x"', "{}", '{"event":"intent","data":{},"seq":7}'])
def test_a_last_line_of_another_shape_is_a_fault_and_no_traceback(tape: sim.Tape, value: str) -> None:
    assert journals.replay([*lines(tape), value.encode()])[1]


def test_rules_of_another_version_are_refused_by_name(tmp_path: Path) -> None:
    raw = {"at": sim.AT, "data": {}, "event": "setup", "head": "", "phase": "BUILD", "round": 0, "seq": 1}
    _, data = journals.data_of(dataclasses.replace(sim.setup(), rules=99), sim.begun())
    line = journals.encode({**raw, "data": data, "prev": sha256(journals.HEADER)})
    assert "rules 99" in journals.replay([journals.HEADER, line])[1][0].what


def test_odd_text_survives(tape: sim.Tape) -> None:
    tape.put(Tamper(what="e\u0301 \u2028 \ud800 \x00 end", path='a"b\\c'))
    tape.put(Cancel())
    again = journals.read(tape.path)
    assert again.faults == () and again.state == tape.state and tape.state.phase == "CANCEL"
    with pytest.raises(journals.Illegal):
        tape.put(Resume())
    assert journals.read(tape.path).state == tape.state, "a refused event leaves no line"
