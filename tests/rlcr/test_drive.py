"""``rlcr drive``: fake clients first on PATH, the real core, the real repository, a private HOME."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlcr.drive_agents import AGENTS
from rlcr.drive_words import parse
from rlcr.model import sha256
from rlcr.options import Refused
from tests.rlcr.driven import Driven, dead, dead_soon, until
from tests.rlcr.real import CANCEL, PLAN, RLCR, Real

POINTS = ("drive.turn", "drive.ended", "drive.judged")
"""Where a driver may die; named here so that a new one gets a case."""


@pytest.fixture
def driven(real: Real) -> Iterator[Driven]:
    made = Driven(real)
    yield made
    made.close()


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_an_honest_worker_is_driven_to_complete_in_one_session(driven: Driven, agent: str) -> None:
    # Breaks when a turn is judged by anything but the core, a reason does not become the next prompt, or a session
    # is begun anew where it should be resumed.
    driven.plays("work", "idle", "last", "final")
    done = driven.begin("--", "--some-flag", "x", agent=agent, RLCR_REVIEWER="1", CODEX_THREAD_ID="outer")
    assert done.returncode == 0, done.stderr
    real = driven.real
    assert real.at == ("COMPLETE", 1) and not real.registered and not driven.records()
    outcomes = [e["data"]["outcome"] for e in real.lines() if e["event"] == "intent"]
    assert outcomes == ["block", "block", "block", "COMPLETE"]
    assert driven.resumed() == ["", "thread-0", "thread-0", "thread-0"]
    prompts = [c["prompt"] for c in driven.calls]
    assert prompts[0] == f"Read {real.loop}/round-0-prompt.md and do what it says."
    assert prompts[1].startswith("Round 0 is over; round 1 begins")
    assert prompts[2].endswith(f"Read {real.loop}/round-1-gate.md and do what it says.")
    assert prompts[3].endswith(f"Read {real.loop}/finalize-prompt.md and do what it says.")
    for call in driven.calls:
        assert call["env"] == {}, "the worker is no reviewer, and no part of the session around the driver"
        assert ["--some-flag", "x"] in [call["argv"][i : i + 2] for i in range(len(call["argv"]))]
        off = "features.hooks=false" if agent == "codex" else '{"disableAllHooks":true}'
        assert off in call["argv"]
    lines = [line for line in done.stderr.splitlines() if " s, round " in line]
    assert len(lines) == 4 and "COMPLETE" in lines[-1], done.stderr
    logs = next(line for line in done.stderr.splitlines() if "turn-N.out" in line)
    folder = Path(logs.split(" is in ")[1].partition("/turn-N")[0])
    assert folder.is_relative_to(real.home / ".cache") and "said 0" in (folder / "turn-1.out").read_text()


def test_an_idle_worker_is_parked_and_goes_on_when_resumed(driven: Driven) -> None:
    driven.plays("work", "idle", "idle", "idle", "work")
    done = driven.begin()
    assert done.returncode == 5, done.stderr
    assert driven.real.at[0] == "PARKED"
    assert f"{RLCR} resume && {RLCR} drive --agent codex" in done.stderr
    calls = len(driven.calls)
    again = driven.drive("--agent", "codex")
    assert again.returncode == 5 and len(driven.calls) == calls, "a parked loop costs no turn"
    driven.real.run(RLCR, "resume")
    assert driven.drive("--agent", "codex", "--turns", "1").returncode == 6
    assert driven.real.at == ("BUILD", 2) and set(driven.resumed()[1:]) == {"thread-0"}


@pytest.mark.parametrize(("agent", "bad"), [("codex", "fail"), ("claude", "error")])
def test_a_turn_that_fails_is_no_stop(driven: Driven, agent: str, bad: str) -> None:
    # Breaks when an API error is judged as a Stop: it would use up the loop's patience with the worker.
    driven.plays(bad, bad, "work")
    done = driven.begin("--turns", "3", agent=agent)
    assert done.returncode == 6 and driven.real.at == ("BUILD", 1), done.stderr
    assert driven.resumed() == ["", "thread-0", "thread-0"]
    assert len({c["prompt"] for c in driven.calls}) == 1
    assert [e["event"] for e in driven.real.lines()].count("intent") == 1
    assert "again in 1 s" in done.stderr and "again in 2 s" in done.stderr
    assert ("429 Too Many Requests" if bad == "fail" else "overloaded") in done.stderr


def test_five_failures_in_a_row_are_enough(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    driven.plays("fail")
    assert driven.begin("--turns", "1").returncode == 6
    code, slept = driven.drive_here(monkeypatch, "--agent", "codex")
    assert code == 4
    assert slept == [1, 2, 4, 8]
    assert driven.real.at == ("BUILD", 0) and driven.real.registered
    driven.plays("work")
    assert driven.drive("--agent", "codex", "--turns", "1").returncode == 6
    assert driven.real.at == ("BUILD", 1)


def test_a_hanging_turn_is_ended_with_everything_it_began(driven: Driven) -> None:
    # Breaks when only the client's own group is ended: a shell that leads another group would go on writing.
    driven.plays("stubborn", "work")
    done = driven.begin("--turn-timeout", "2", "--turns", "2")
    assert done.returncode == 6, done.stderr
    assert "still at work after 2 s" in done.stderr and driven.real.at == ("BUILD", 1)
    dead_soon(*map(int, (driven.real.base / "hung").read_text().split()))
    assert driven.resumed() == ["", "thread-0"], "what was heard before the time-out is kept"


@pytest.mark.parametrize("gone", ["codex", "claude"])
def test_a_session_that_is_gone_is_replaced_by_a_fresh_one(driven: Driven, gone: str) -> None:
    driven.plays("work", "gone", "work")
    done = driven.begin("--turns", "3", agent=gone)
    assert done.returncode == 6 and "a new one begins" in done.stderr
    assert driven.resumed() == ["", "thread-0", ""]
    assert driven.calls[2]["prompt"].endswith(f"Read {driven.real.loop}/round-1-prompt.md and do what it says.")
    assert driven.real.at == ("BUILD", 2)


def test_a_session_that_cannot_be_entered_in_any_words_is_given_up_last(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Breaks when a loop stands still for ever because a client changed the words in which a session is gone.
    driven.plays("work", *["broken"] * 4, "fail", "work")
    assert driven.begin("--turns", "1").returncode == 6
    assert driven.drive_here(monkeypatch, "--agent", "codex") == (4, [1, 2, 4, 8])
    assert driven.drive("--agent", "codex", "--turns", "1").returncode == 6
    assert driven.resumed() == ["", *["thread-0"] * 4, "", "thread-5"]
    assert driven.real.at == ("BUILD", 2)


@pytest.mark.parametrize("point", POINTS)
def test_a_driver_that_was_killed_goes_on_in_the_same_session(driven: Driven, point: str) -> None:
    # Breaks when a kill loses the session, judges one end of a turn twice, or leaves two clients in one session.
    driven.plays("hang" if point == "drive.turn" else "work", "work")
    assert driven.begin("--turns", "1", "--", "--kept", crash=point).returncode == -9
    left = driven.calls[0]["pid"]
    assert dead(left) == (point != "drive.turn")
    again = driven.drive("--agent", "codex", "--turns", "1")
    assert again.returncode == 6, again.stderr
    dead_soon(left)
    assert driven.resumed() == ["", "thread-0"] and "--kept" in driven.calls[1]["argv"]
    rounds = 1 if point == "drive.turn" else 2
    assert driven.real.at == ("BUILD", rounds)
    assert [e["event"] for e in driven.real.lines()].count("intent") == rounds
    if point != "drive.turn":
        assert driven.calls[1]["prompt"].startswith("Round 0 is over; round 1 begins")


@pytest.mark.parametrize("point", ["append.setup.before", "append.setup.after", "publish.state", "setup.registry"])
def test_a_set_up_that_died_is_begun_again_or_taken_over(driven: Driven, point: str) -> None:
    driven.plays("work")
    assert driven.begin(crash=point).returncode == -9
    again = driven.drive("--agent", "codex", "--turns", "1")
    if point == "append.setup.before":
        assert again.returncode == 1 and "no loop is active" in again.stderr
        again = driven.begin("--turns", "1")
    assert again.returncode == 6, again.stderr
    assert driven.real.at == ("BUILD", 1)


def test_two_drivers_at_once(driven: Driven) -> None:
    driven.plays("hang")
    first = driven.start("--agent", "codex", PLAN, "--reviewer", "evidence-only")
    try:
        until((driven.real.base / "hung").exists)
        for words in (("--agent", "codex"), ("--agent", "claude", "--adopt")):
            second = driven.drive(*words)
            assert second.returncode == 1 and "another rlcr drive is at work" in second.stderr
        assert len(driven.calls) == 1
    finally:
        first.send_signal(signal.SIGINT)
        said = first.communicate(timeout=30)[1]
    assert first.returncode == 130 and f"To go on: {RLCR} drive --agent codex" in said
    dead_soon(*map(int, (driven.real.base / "hung").read_text().split()))
    assert driven.real.at == ("BUILD", 0) and driven.real.registered


def test_a_cancel_in_mid_turn_ends_the_turn_and_the_driver(driven: Driven) -> None:
    driven.plays("hang")
    child = driven.start("--agent", "codex", PLAN, "--reviewer", "evidence-only")
    until((driven.real.base / "hung").exists)
    assert driven.real.run(CANCEL).returncode == 0
    said = child.communicate(timeout=30)[1]
    assert child.returncode == 2 and "CANCEL" in said, said
    dead_soon(*map(int, (driven.real.base / "hung").read_text().split()))
    assert not driven.records()


def test_a_cancel_while_the_end_of_a_turn_is_judged(driven: Driven) -> None:
    # Breaks when the signal by which a cancel gets at the lock is taken for the user's Ctrl-C.
    driven.plays("work")
    driven.real.answer(sleep=30)
    child = driven.start("--agent", "codex", PLAN, "--reviewer", "evidence-only")
    until(driven.real.log.exists)
    assert driven.real.run(CANCEL).returncode == 0
    said = child.communicate(timeout=30)[1]
    assert child.returncode == 2 and driven.real.at[0] == "CANCEL", said


def test_ctrl_c_while_the_end_of_a_turn_is_judged_leaves_it_to_be_judged(driven: Driven) -> None:
    driven.plays("work")
    driven.real.answer(sleep=30)
    child = driven.start("--agent", "codex", PLAN, "--reviewer", "evidence-only")
    until(driven.real.log.exists)
    child.send_signal(signal.SIGTERM)
    said = child.communicate(timeout=30)[1]
    assert child.returncode == 130, said
    driven.real.answer()
    assert driven.drive("--agent", "codex", "--turns", "1").returncode == 6
    assert driven.real.at == ("BUILD", 2) and len(driven.calls) == 2, "no turn was spent on what was due"


def test_a_loop_of_a_client_is_taken_over_only_when_told_to(looped: Real) -> None:
    driven = Driven(looped)
    driven.plays("work")
    refused = driven.drive("--agent", "claude")
    assert refused.returncode == 1 and "--adopt" in refused.stderr and not driven.calls
    done = driven.drive("--agent", "claude", "--adopt", "--turns", "1")
    assert done.returncode == 6 and looped.at == ("BUILD", 1), done.stderr
    assert [e["event"] for e in looped.lines()].count("adopt") == 1
    assert "another session" in looped.stop()["systemMessage"], "the session that had it is free"
    entry = json.loads(looped.entry.read_text())
    assert (entry["fired"], entry["asked"], entry["asked_by"]) == (0, 1, "drive"), "no hook fired"
    assert driven.drive("--agent", "claude", "--turns", "1").returncode == 6
    assert driven.resumed() == ["", "thread-0"]


def test_another_client_goes_on_in_a_session_of_its_own(driven: Driven) -> None:
    driven.plays("work", "idle", "work")
    driven.begin("--turns", "2", "--", "--for-codex")
    assert driven.drive("--agent", "claude", "--turns", "1").returncode == 6
    assert [c["name"] for c in driven.calls] == ["codex", "codex", "claude"]
    last = driven.calls[2]
    assert driven.resumed() == ["", "thread-0", ""] and "--for-codex" not in last["argv"]
    for page in ("round-1-prompt.md", "round-1-gate.md"):
        assert f"Read {driven.real.loop}/{page} and do what it says." in last["prompt"], "it knows of neither"


def test_a_loop_given_to_another_session_in_mid_turn_ends_the_driver(driven: Driven) -> None:
    driven.plays("hang")
    child = driven.start("--agent", "codex", PLAN, "--reviewer", "evidence-only")
    until((driven.real.base / "hung").exists)
    assert driven.real.run(RLCR, "adopt", "--session-id", "other").returncode == 0
    said = child.communicate(timeout=30)[1]
    assert child.returncode == 2 and "given to another session" in said, said


@pytest.mark.parametrize("gone", ["while it is judged", "while the client fails"])
def test_a_loop_that_is_gone_does_not_stay_as_it_is(driven: Driven, gone: str) -> None:
    # Breaks when a driver whose loop was removed promises that it stands, and offers to go on with it.
    fails = gone == "while the client fails"
    driven.plays("hang" if fails else "work")
    child = driven.start(
        "--agent", "codex", PLAN, "--reviewer", "evidence-only", "--turn-timeout", "2" if fails else "9"
    )
    if fails:
        until((driven.real.base / "hung").exists)
    else:
        driven.real.answer(sleep=1)
        until(driven.real.log.exists)
    folder = driven.real.loop
    shutil.rmtree(folder)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 2 and f"the loop {folder} is gone" in said and str(CANCEL) in said, said
    assert "stays as it is" not in said
    assert driven.real.run(CANCEL).returncode == 0 and not driven.real.registered


def test_without_a_loop_without_a_client_and_with_a_plan_that_is_none(driven: Driven) -> None:
    driven.plays("work")
    none = driven.drive("--agent", "codex")
    assert none.returncode == 1 and "no loop is active" in none.stderr
    plan = driven.drive("--agent", "codex", "no-such-plan.md", "--reviewer", "evidence-only")
    assert plan.returncode == 1 and "no-such-plan.md" in plan.stderr
    (driven.real.base / "bin" / "claude").unlink()
    path = os.pathsep.join(p for p in driven.real.env["PATH"].split(os.pathsep) if not (Path(p) / "claude").exists())
    gone = driven.drive("--agent", "claude", PLAN, PATH=path)
    assert gone.returncode == 1 and "no claude on PATH" in gone.stderr
    assert not driven.records() and not driven.real.registered and not driven.calls


@pytest.mark.parametrize(
    "words",
    [
        ("--agent", "emacs"), (), ("--agent",), ("--agent", "codex", "--turns", "0"),
        ("--agent", "codex", "--turn-timeout", "1h"), ("--agent", "codex", "p.md", "--adopt"),
        ("--agent", "codex", "p.md", "--session-id", "mine"), ("--agent", "codex", "p.md", "--nonsense"),
        ("--agent", "codex", "--", "--json"), ("--agent", "claude", "--", "--settings={}"),
        ("--agent", "claude", "--", "--resume", "x"),
    ],
)  # fmt: skip
def test_words_that_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(Refused):
        parse(words)


def test_set_up_words_pass_through_and_the_reviewer_is_the_client() -> None:
    given = parse(["--turns", "3", "p.md", "--agent", "claude", "--max", "7", "--", "--max", "9"])
    assert given is not None and given.setup == ("p.md", "--max", "7", "--reviewer", "claude")
    assert given.extra == ("--max", "9") and given.turns == 3
    assert parse(["--agent", "codex", "--help"]) is None


@pytest.mark.parametrize("damage", ["{", '{"agent": 1}', "[]", ""])
def test_a_damaged_record_is_no_record(looped: Real, damage: str) -> None:
    # Breaks when a record that another hand wrote makes the driver take over, or fall over.
    driven = Driven(looped)
    driven.plays("work")
    path = looped.home / ".local/state/humanize/drives" / f"{sha256('session-1')}.json"
    path.parent.mkdir(parents=True)
    path.write_text(damage)
    done = driven.drive("--agent", "codex")
    assert done.returncode == 1 and "--adopt" in done.stderr and "Traceback" not in done.stderr


def test_a_journal_that_was_cut_is_not_driven(driven: Driven) -> None:
    driven.plays("work")
    driven.begin("--turns", "2")
    journal = driven.real.loop / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-2]))
    done = driven.drive("--agent", "codex")
    assert done.returncode == 1 and "lines were cut" in done.stderr and len(driven.calls) == 2


@pytest.mark.parametrize(
    ("agent", "line"),
    [
        ("codex", {"type": "turn.failed", "error": {"message": "overloaded"}}),
        ("codex", {"type": "turn.failed", "error": "overloaded"}),
        ("claude", {"type": "result", "subtype": "error_during_execution", "errors": ["overloaded"]}),
        ("claude", {"type": "result", "subtype": "success", "is_error": True, "result": "overloaded"}),
    ],
)
def test_a_failure_that_a_client_only_prints(agent: str, line: dict[str, Any]) -> None:
    heard = AGENTS[agent].hear([json.dumps(line).encode()])
    assert "overloaded" in heard.failed and heard.session == ""


def test_output_cut_in_the_middle_of_a_line_is_heard() -> None:
    said = [b'{"type":"thread.started","thread_id":"t"}\n', b"[1]\n", b"\xff\n", b'{"type":"item.comp']
    assert AGENTS["codex"].hear(said).session == "t"
