"""kill -9 at every step of set-up and of a Stop: the next call goes on from the journal to the same outcome."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rlcr.loop import Loop
from rlcr.views import FINAL_FORM
from tests.rlcr.real import CANCEL, PLAN, PLAN_TEXT, RLCR, ROOT, SESSION, Real

APPEND = ("before", "torn", "after")
SETUP_POINTS = (
    "setup.folder", *(f"append.setup.{p}" for p in APPEND), "publish.files", "publish.state", "setup.python",
    "setup.registry", *(f"append.done.{p}" for p in APPEND), "settle.end", "setup.print",
)  # fmt: skip
MOVE_POINTS = (
    *(f"append.intent.{p}" for p in APPEND), "publish.files", "publish.state", *(f"append.done.{p}" for p in APPEND),
    "settle.end", "stop.print",
)  # fmt: skip
STOP_POINTS = ("stop.locked", "stop.gate", "stop.evidence", *MOVE_POINTS, "stop.delivered")
TAMPER_POINTS = tuple(f"append.tamper.{p}" for p in APPEND)
REVIEW_POINTS = (*(f"append.review.{p}" for p in APPEND), "stop.review")
ASIDE_POINTS = ("publish.aside", "publish.files", "publish.state", "append.done.before", "append.done.torn")
COMMANDS = ("cancel", "halt", "resume", "adopt", "amend", "gathered")
COMMAND_POINTS = tuple(f"append.{kind}.{p}" for kind in COMMANDS for p in APPEND)
DRIVE_POINTS = ("drive.turn", "drive.ended", "drive.judged")  # their cases are in test_drive
BURY_POINTS = ("bury.state", "bury.registry")  # their cases are in test_entry


def test_every_crash_point_has_a_case() -> None:
    # Breaks when a step is added to set-up or Stop and nobody asks what a crash there leaves behind.
    named = set()
    for path in (ROOT / "rlcr").rglob("*.py"):
        for point in re.findall(r"""crash\(f?["']([^"']+)["']\)""", path.read_text()):
            kinds = ("setup", "intent", "done", "tamper", "review", *COMMANDS)
            named |= {point.replace("{kind}", kind) for kind in kinds} if "{kind}" in point else {point}
    assert named == {
        *SETUP_POINTS,
        *STOP_POINTS,
        *TAMPER_POINTS,
        *REVIEW_POINTS,
        *ASIDE_POINTS,
        *COMMAND_POINTS,
        *BURY_POINTS,
        *DRIVE_POINTS,
    }


def clean(real: Real) -> None:
    """Nothing is left half done, and nobody is accused of what the crash did."""
    events = [e["event"] for e in real.lines()]
    torn = [e for e in real.lines() if e["event"] == "tamper" and "half a line" in e["data"]["what"]]
    assert events.count("tamper") == len(torn) <= 1
    assert not list(real.loop.glob("*.by-hand*")) and not list(real.loop.glob(".*.tmp"))
    assert len(list(real.loop.glob("*state.md"))) == 1


@pytest.mark.parametrize("point", SETUP_POINTS)
def test_setup(real: Real, point: str) -> None:
    assert real.setup(crash=point).returncode == -9
    again = real.setup()
    if again.returncode != 0:
        assert "already active" in again.stderr and point in ("append.done.after", "settle.end", "setup.print")
    assert real.at == ("BUILD", 0) and real.registered
    assert [e["event"] for e in real.lines()] == ["setup", "done"]
    assert real.setup().returncode == 1, "one loop a worktree"
    real.work(0)
    real.stop()
    assert real.at == ("BUILD", 1)
    clean(real)


@pytest.mark.parametrize("point", STOP_POINTS)
def test_stop(worked: Real, point: str) -> None:
    assert worked.stop(crash=point) == {} or point == "stop.delivered"
    said = worked.stop()
    assert said["decision"] == "block" and "Round 0 is over; round 1 begins" in said["reason"]
    assert f"{worked.loop}/round-1-prompt.md" in said["reason"]
    assert worked.at == ("BUILD", 1)
    assert [e["event"] for e in worked.lines()].count("intent") == 1, "the crash took no round"
    for name in ("round-1-prompt.md", "round-1-summary.md", "round-1-contract.md", "round-0-gate.md"):
        assert (worked.loop / name).is_file()
    clean(worked)
    worked.work(1)
    worked.stop("next")
    assert worked.at == ("BUILD", 2)
    clean(worked)


@pytest.mark.parametrize("point", ["append.intent.after", "publish.state", "append.done.before", "settle.end"])
def test_work_done_after_a_crash_is_not_lost_and_not_answered_by_the_old_block(worked: Real, point: str) -> None:
    # The turn ended with the crash; the user says go on, and the worker does the next round from the new prompt.
    worked.stop(crash=point)
    worked.work(1)
    worked.stop("next")
    if point == "append.intent.after":  # the summary stood there before its form: it is kept
        assert "work 1" in (worked.loop / "round-1-summary.md").read_text()
    assert worked.at == ("BUILD", 2)


@pytest.mark.parametrize("point", MOVE_POINTS)
def test_the_last_stop(worked: Real, point: str) -> None:
    worked.answer(met=True)
    worked.stop()
    assert worked.at == ("FINALIZE", 0)
    (worked.loop / "finalize-summary.md").write_text("# Finalize summary\n\nall made\n")
    worked.stop("final", crash=point)
    said = worked.stop("final")
    assert worked.at == ("COMPLETE", 0) and not worked.registered
    # Once the registry has let the session go there is nobody left to tell; the journal and the state file say it.
    assert "COMPLETE" in said.get("systemMessage", "") or (said == {} and point in ("settle.end", "stop.print"))
    assert {p.name for p in worked.loop.glob("*state.md")} == {"complete-state.md"}
    clean(worked)


@pytest.mark.parametrize("point", ASIDE_POINTS)
def test_a_second_visit_to_finalize(worked: Real, point: str) -> None:
    final = worked.loop / "finalize-summary.md"
    worked.answer(met=True)
    worked.stop()
    final.write_text("# Finalize summary\n\nfirst\n")
    worked.answer(met=False)
    worked.stop("lost")
    assert worked.at == ("BUILD", 1)
    worked.work(1)
    worked.answer(met=True)
    worked.stop("met", crash=point)
    worked.stop("met")
    assert worked.at == ("FINALIZE", 1)
    assert (worked.loop / "finalize-summary-1.md").read_text() == "# Finalize summary\n\nfirst\n"
    assert final.read_text() == FINAL_FORM, "set aside once, and the form not after it"
    final.write_text("# Finalize summary\n\nsecond\n")
    assert "COMPLETE" in worked.stop("final")["systemMessage"]
    clean(worked)


@pytest.mark.parametrize("point", TAMPER_POINTS)
def test_while_tampering_is_recorded(worked: Real, point: str) -> None:
    (worked.loop / "state.md").write_text("current_round: 84\n")
    worked.stop(crash=point)
    said = worked.stop()
    assert worked.at == ("BUILD", 1) and said["decision"] == "block"
    # What is put back before the line is written is on record at least by that line, or by none if both were lost.
    assert "current_round: 1" in (worked.loop / "state.md").read_text()


@pytest.mark.parametrize("point", REVIEW_POINTS)
def test_a_review_is_not_bought_twice(real: Real, point: str) -> None:
    bought = real.reviewer()
    real.reviews("continue", "Off by one.")
    assert real.setup("--reviewer", "codex").returncode == 0
    real.work(0)
    real.stop(crash=point)
    said = real.stop()
    assert "Off by one." in said["reason"] and real.at == ("BUILD", 1)
    assert json.loads((real.loop / "round-0-verdict.json").read_text())["findings"][0]["claim"] == "Off by one."
    written = point in ("append.review.after", "stop.review")
    assert bought.read_text() == "bought\n" * (1 if written else 2), "an answer on record is used again"
    clean(real)


@pytest.mark.parametrize(
    ("point", "what"),
    [*((point, "plan") for point in COMMAND_POINTS), *((f"append.amend.{p}", "evidence") for p in APPEND)],
)
def test_commands(worked: Real, point: str, what: str) -> None:
    command = point.split(".")[1]
    why = ("--why", "the target moved")
    amend = (RLCR, "plan", "amend", *why) if what == "plan" else (RLCR, "evidence", "--amend", *why)
    argv: dict[str, tuple[str | Path, ...]] = {
        "cancel": (CANCEL,), "halt": (RLCR, "stop", *why), "resume": (RLCR, "resume"), "amend": amend,
        "adopt": (RLCR, "adopt", "--session-id", "session-2"), "gathered": (RLCR, "evidence"),
    }  # fmt: skip
    if command == "resume":
        worked.answer(passed=False)
        for n in range(3):
            worked.stop(f"m{n}")
        assert worked.at == ("PARKED", 0)
    if command == "amend" and what == "plan":
        (worked.repo / PLAN).write_text(PLAN_TEXT + "\nOne more line.\n")
    if command == "gathered" or what == "evidence":
        pins = worked.repo / ".humanize" / "evidence.json"
        pins.write_text(pins.read_text().replace('"timeout_s"', '"cache": true, "timeout_s"'))
    if command == "gathered":
        assert worked.run(RLCR, "evidence", "--amend", *why).returncode == 0
    assert worked.run(*argv[command], crash=point).returncode == -9
    again = worked.run(*argv[command])
    if command in ("cancel", "halt"):
        end = command.replace("halt", "stop")
        assert worked.at == (end.upper(), 0) and again.returncode in (0, 1)
        assert {p.name for p in worked.loop.glob("*state.md")} == {f"{end}-state.md"} and not worked.registered
    else:
        assert again.returncode == 0 and worked.at == ("BUILD", 0), again.stderr
        assert not Loop(worked.loop).state.pending, "nothing is left half done"
        assert command == "adopt" or [e["event"] for e in worked.lines()].count(command) == 1, "and nothing done twice"
        worked.answer()
        session = "session-2" if command == "adopt" else SESSION
        done = worked.run(ROOT / "hooks" / "stop-hook", stdin=worked.payload(session=session))
        assert json.loads(done.stdout)["decision"] == "block" and worked.at == ("BUILD", 1)
    clean(worked)
