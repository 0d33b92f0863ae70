"""Another plan, other evidence commands: only when it is said aloud, and with a reason."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys

from tests.rlcr.ahead import EVIDENCE, NEW_PLAN, commands, edit, rehearse, runs
from tests.rlcr.real import PLAN, PLAN_TEXT, RLCR, Real

AMEND = (RLCR, "plan", "amend", "--why", "the target moved")


def test_a_plan_is_amended_only_when_it_is_said(worked: Real) -> None:
    edit(worked)
    assert "the plan was changed" in worked.stop()["reason"] and worked.at == ("BUILD", 0)
    done = worked.run(*AMEND)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"AMENDED: plan, version 2; {worked.loop}", "Phase: BUILD, as before", "Round: 0",
        "Criteria: 22 (AC-1 to AC-20, AC-22, AC-23.1)", "Criteria added: AC-22, AC-23.1", "Criteria removed: AC-21",
        "Lines: 2 added, 1 removed",
    ]  # fmt: skip
    (line,) = [e for e in worked.lines() if e["event"] == "amend"]
    assert (line["data"]["what"], line["data"]["why"], line["data"]["text"]) == ("plan", "the target moved", NEW_PLAN)
    assert worked.run(RLCR, "plan", "show").stdout == NEW_PLAN
    said = rehearse(worked)[1]
    assert "plan" not in [p["rule"] for p in said["problems"]]
    assert (worked.loop / "plan.md").read_text() == PLAN_TEXT and (worked.loop / "plan-2.md").read_text() == NEW_PLAN
    reason = worked.stop("next")["reason"]
    assert "AC-22" in reason and "the plan was changed" not in reason, "the new criteria are asked for from here on"
    assert "tamper" not in [e["event"] for e in worked.lines()]


def test_an_amended_plan_goes_back_to_build_and_a_parked_loop_stays_parked(worked: Real) -> None:
    worked.answer(met=True)
    worked.stop()
    assert worked.at == ("FINALIZE", 0)
    edit(worked)
    done = worked.run(*AMEND)
    assert done.returncode == 0 and "Phase: FINALIZE -> BUILD\n" in done.stdout
    assert worked.at == ("BUILD", 0) and {p.name for p in worked.loop.glob("*state.md")} == {"state.md"}
    worked.answer(passed=False)
    for n in range(3):
        worked.stop(f"m{n}")
    assert worked.at == ("PARKED", 0)
    edit(worked, PLAN_TEXT)
    done = worked.run(*AMEND)
    assert done.returncode == 0 and "rlcr resume goes on in BUILD" in done.stdout and worked.at == ("PARKED", 0)
    assert "plan, version 3" in done.stdout


def test_criteria_are_counted_aloud_at_set_up_and_at_an_amendment(real: Real) -> None:
    # Breaks when a plan loses a criterion to its form and nobody is told.
    (real.repo / PLAN).write_text(PLAN_TEXT + "\nAs fast as AC-7, and AC-40 holds.\n")
    out = real.setup().stdout
    assert "Criteria: 21 (AC-1 to AC-21)\nNote: AC-40 is named and is no criterion line\n" in out
    (real.repo / PLAN).write_text(PLAN_TEXT.replace("- AC-", "+ AC-") + "+ AC-22: new\n")
    out = real.run(*AMEND).stdout
    assert "Criteria: 22 (AC-1 to AC-22)\nCriteria added: AC-22\nCriteria removed: none\n" in out and "Note:" not in out
    (real.repo / PLAN).write_text(PLAN_TEXT.replace("- AC-", "- criterion AC-"))
    out = real.run(*AMEND).stdout
    assert "Criteria: none are numbered" in out and "Note: AC-1 to AC-20 and 1 more are named" in out


def test_an_amendment_that_is_none_is_refused(looped: Real) -> None:
    plan = looped.repo / PLAN

    def refused(words: str, *argv: str) -> None:
        before = (looped.loop / "journal.jsonl").read_bytes()
        done = looped.run(RLCR, "plan", *argv)
        assert (done.returncode, done.stdout) == (3, "") and words in done.stderr, done.stderr
        assert (looped.loop / "journal.jsonl").read_bytes() == before

    why = ("amend", "--why", "the target moved")
    refused("say rlcr plan show")
    refused("say rlcr plan show", "change")
    refused("unknown option", "amend", "--yes")
    refused("edit it first", *why)
    edit(looped)
    for empty in ("", "  ", "...", "<why>", "[reason]", "TODO", "n/a"):
        refused("say why in words", "amend", "--why", empty)
    refused("say why in words", "amend")
    plan.write_bytes(b"\xff\n" * 9)
    refused("not UTF-8", *why)
    plan.write_text("# a\n\nb\n")
    refused("too simple", *why)
    plan.write_text(NEW_PLAN + "x" * (256 * 1024 - len(NEW_PLAN) + 1))
    refused("too big: plan.md is larger than 262144 bytes", *why)
    plan.unlink()
    refused("not found", *why)
    plan.symlink_to(looped.says)
    refused("symbolic link", *why)
    plan.unlink()
    plan.write_text(NEW_PLAN + "x" * (256 * 1024 - len(NEW_PLAN)))
    assert looped.run(*AMEND).returncode == 0, "the largest plan there is"


def test_no_amendment_without_a_plan_or_a_loop(real: Real) -> None:
    assert real.run(*AMEND).stdout.startswith("NO_ACTIVE_LOOP\n")
    assert real.run(RLCR, "evidence").returncode == real.run(RLCR, "plan", "show").returncode == 1
    real.reviewer()
    real.git("switch", "-q", "-c", "side")
    real.commit("b.txt", "new")
    assert real.setup("--skip-impl", "--reviewer", "codex", plan="").returncode == 0
    done = real.run(*AMEND)
    assert done.returncode == 3 and "the loop has no plan" in done.stderr
    assert real.run(RLCR, "plan", "show").stdout == "the loop has no plan\n"


def test_a_journal_or_registry_in_doubt_is_not_written_on(worked: Real) -> None:
    edit(worked)
    entry = worked.entry.read_text()
    worked.entry.write_text(entry.replace('"seq": 2', '"seq": 7'))
    for argv in (AMEND, (RLCR, "evidence"), (RLCR, "evidence", "--amend", "--why", "the target moved")):
        done = worked.run(*argv)
        assert done.returncode == 3 and ("rlcr status" in done.stderr or "edit first" in done.stderr), done.stderr
    assert len(worked.lines()) == 2 and runs(worked) == 0


def test_a_stop_that_is_being_decided_is_not_ended_by_an_amendment(worked: Real) -> None:
    # Ended, it would print nothing, and the client's turn would be over without a word.
    edit(worked)
    lease = worked.loop / "lease.json"
    lease.write_text(json.dumps({"pid": os.getpid()}))
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        with (worked.loop.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = worked.run(*AMEND)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert done.returncode == 3 and "a Stop of this loop is being decided" in done.stderr and told == []
    lease.unlink()
    assert worked.run(*AMEND).returncode == 0


def test_evidence_is_amended_only_when_it_is_said(worked: Real) -> None:
    worked.script.write_text(worked.script.read_text() + "# more\n")
    reason = worked.stop()["reason"]
    assert "rlcr evidence --amend --why TEXT" in reason and runs(worked) == 0
    commands(worked, {"name": "more", "argv": [sys.executable, str(worked.script)], "timeout_s": 60})
    done = worked.run(RLCR, "evidence", "--amend", "--why", "a second look")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"AMENDED: evidence; {worked.loop}", "Phase: BUILD, round 0", "Commands added: more", "Commands removed: none",
        "Commands changed: gate",
    ]  # fmt: skip
    (line,) = [e for e in worked.lines() if e["event"] == "amend"]
    assert (line["data"]["what"], line["data"]["why"]) == ("evidence", "a second look")
    assert [c["name"] for c in line["data"]["evidence"]["commands"]] == ["gate", "more"]
    worked.stop("next")
    assert (worked.at, runs(worked)) == (("BUILD", 1), 2)


def test_amended_evidence_is_looked_at_as_at_set_up(worked: Real) -> None:
    def refused(words: str, *argv: str) -> None:
        done = worked.run(RLCR, "evidence", *argv)
        assert (done.returncode, done.stdout) == (3, "") and words in done.stderr, done.stderr
        assert len(worked.lines()) == 2

    path = worked.repo / EVIDENCE
    good = path.read_text()
    refused("edit first", "--amend", "--why", "a second look")
    refused("say why in words", "--amend")
    refused("--why goes with --amend", "--why", "a second look")
    path.write_text("{")
    refused("cannot be read", "--amend", "--why", "a second look")
    path.write_text(good.replace('"timeout_s": 60', '"timeout_s": 3541'))
    refused("lower timeout_s in .humanize/evidence.json until their sum is at most 3540", "--amend", "--why", "later")
    path.unlink()
    refused("needs evidence commands", "--amend", "--why", "a second look")
    gate = {"name": "gate", "argv": [sys.executable, str(worked.script)]}
    commands(worked, gate)
    refused("two commands have the same name", "--amend", "--why", "a second look")
