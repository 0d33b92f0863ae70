"""Set-up: what it refuses and in which words, what it pins, what it writes; and the commands beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rlcr import forms
from tests.rlcr.real import CANCEL, GATE, HOOK, PLAN, PLAN_TEXT, RLCR, ROOT, SESSION, SETUP, Real


def refused(real: Real, words: str, *more: str, plan: str = PLAN) -> None:
    done = real.setup(*more, plan=plan)
    assert (done.returncode, done.stdout) == (1, ""), done.stdout
    assert words in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not list((real.repo / ".humanize").glob("rlcr/*-*")) and not real.registered


@pytest.mark.parametrize(
    ("words", "args", "plan"),
    [
        ("No plan file provided", (), ""),
        ("Cannot specify both", ("--plan-file", PLAN), PLAN),
        ("must be at least 2", ("--full-review-round", "1"), PLAN),
        ("must be at least 1", ("--max", "0"), PLAN),
        ("must be a whole number", ("--max", "many"), PLAN),
        ("needs a value", ("--max",), PLAN),
        ("unknown option", ("--what",), PLAN),
        ("--agent-teams is not supported", ("--agent-teams",), PLAN),
        ("--privacy is not supported", ("--privacy",), PLAN),
        ("--push-every-round is not supported", ("--push-every-round",), PLAN),
        ("BitLessons", ("--require-bitlesson-entry-for-none",), PLAN),
        ("is no model name", ("--codex-model", "a b:high"), PLAN),
        ("effort 'huge'", ("--codex-model", "m:huge"), PLAN),
        ("--reviewer must be one of", ("--reviewer", "gpt"), PLAN),
        ("YAML-unsafe", ("--base-branch", "a: b"), PLAN),
        ("no local branch", ("--base-branch", "other"), PLAN),
        ("relative path", (), "/etc/hosts"),
        ("outside the repository", (), "../plan.md"),
        ("shell character", (), "a;b.md"),
        ("not found", (), "absent.md"),
        ("tracked by git: it must be gitignored", (), "a.txt"),
        ("nothing below .humanize is ever committed", ("--track-plan-file",), PLAN),  # E14: no loop that cannot end
    ],
)
def test_refusals_of_the_command_line(real: Real, words: str, args: tuple[str, ...], plan: str) -> None:
    refused(real, words, *args, plan=plan)


def test_refusals_of_plan_and_repository(real: Real) -> None:
    plan = real.repo / PLAN
    plan.write_text("# a\n\nb\n")
    refused(real, "too simple")
    plan.write_text("# a\n\n## b\n<!-- one\ntwo\nthree -->\nfour\n")
    refused(real, "insufficient content")
    plan.write_bytes(b"\xff\n" * 9)
    refused(real, "not UTF-8")
    plan.unlink()
    plan.symlink_to(real.says)
    refused(real, "symbolic link")
    plan.unlink()
    plan.write_text(PLAN_TEXT)
    (real.repo / "left.txt").write_text("x")
    refused(real, "Git working tree is not clean")
    (real.repo / "left.txt").unlink()
    (real.repo / "open.md").write_text(PLAN_TEXT)
    refused(real, "gitignored", plan="open.md")
    (real.repo / "open.md").unlink()
    (real.repo / ".git/index.lock").write_text("")
    refused(real, "git commit is not possible")
    (real.repo / ".git/index.lock").unlink()
    real.git("switch", "-q", "--detach")
    refused(real, "HEAD is detached")
    real.git("switch", "-q", "main")
    real.git("add", "-f", PLAN)
    real.git("commit", "-q", "-m", "plan")
    (real.repo / ".humanize/other.md").write_text(PLAN_TEXT)
    refused(real, "Tracked Humanize State Blocked", plan=".humanize/other.md")


def test_refusals_of_the_evidence(real: Real) -> None:
    path = real.repo / ".humanize/evidence.json"
    good = path.read_text()
    path.write_text(good.replace(sys.executable, "/nowhere/tool"))
    refused(real, "/nowhere/tool was not found")
    path.write_text(good.replace("humanize.evidence", "other"))
    refused(real, "is not humanize.evidence version 1")
    path.write_text("{")
    refused(real, "cannot be read")
    path.write_text(good.replace('"timeout_s": 60', '"timeout_s": 0'))
    refused(real, "timeout_s of 1 to 3600")
    path.unlink()
    refused(real, "needs evidence commands")


def test_the_session_is_given_or_the_clients_and_never_guessed(real: Real) -> None:
    def go(*more: str, **env: str) -> tuple[int, str]:
        done = real.run(SETUP, PLAN, *more, **env)
        return done.returncode, done.stderr

    assert "no session id" in go("--reviewer", "evidence-only")[1]
    # Both at once, and the command that works: pasted as printed, it does.
    code, said = go("--max", "7")
    assert code == 1 and "no session id" in said and "the reviewer must be given" in said
    command = said.splitlines()[-1]
    assert command == f"{SETUP} {PLAN} --max 7 --session-id NAME --reviewer evidence-only"
    assert real.run("sh", "-c", command).returncode == 0
    assert real.lines()[0]["data"]["max"] == 7 and real.run(CANCEL).returncode == 0
    shutil.rmtree(real.loop)
    done = real.run(SETUP, "--plan-file", "a b.md", "--reviewer", "codex")
    assert done.stderr.splitlines()[-1] == f"{SETUP} --plan-file 'a b.md' --reviewer codex --session-id NAME"
    assert f"{SETUP} PLAN --session-id NAME --reviewer" in real.run(SETUP).stderr
    assert "is empty" in go("--reviewer", "evidence-only", "--session-id", " ")[1]
    both = {"CODEX_THREAD_ID": "a", "CLAUDE_CODE_SESSION_ID": "b"}
    assert "both CLAUDE_CODE_SESSION_ID and CODEX_THREAD_ID" in go("--reviewer", "evidence-only", **both)[1]
    assert "reviewer must be given" in go("--session-id", "x")[1]
    # The client that runs this reviews, and must be there: PATH holds neither here.
    bare = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    assert "Missing required dependencies: codex" in go(CODEX_THREAD_ID="a", **bare)[1]
    assert "Missing required dependencies: claude" in go(CLAUDE_CODE_SESSION_ID="a", **bare)[1]
    assert go("--reviewer", "evidence-only", CODEX_THREAD_ID="a") == (0, "")
    assert real.lines()[0]["data"]["session_sha256"].startswith("ca978112ca1bbdca")  # sha256 of "a"


def test_what_set_up_pins_and_writes(real: Real) -> None:
    done = real.setup("--max", "7", "--claude-answer-codex")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("=== start-rlcr-loop activated ===\n")
    assert "--yolo has no meaning here" in done.stdout and "AC-21: criterion number 21" in done.stdout
    (setup, end) = real.lines()
    data = setup["data"]
    assert (data["max"], data["reviewer"], data["branch"], data["base_branch"]) == (7, "evidence-only", "main", "main")
    assert data["loop"] == real.loop.name and data["base_commit"] == setup["head"] == real.git("rev-parse", "HEAD")
    (command,) = data["evidence"]["commands"]
    assert command["name"] == "gate" and command["resolved"] == os.path.realpath(sys.executable)
    assert len(command["resolved_sha256"]) == 64 and command["version"].startswith("Python 3.")
    assert list(command["scripts"]) == [str(real.script)]
    assert end["event"] == "done" and not real.log.exists(), "set-up runs no evidence"
    assert {p.name for p in real.loop.iterdir()} == {
        "journal.jsonl", "state.md", "plan.md", "goal-tracker.md", "round-0-prompt.md", "round-0-summary.md",
        "round-0-contract.md",
    }  # fmt: skip
    assert (real.loop / "plan.md").read_text() == PLAN_TEXT
    keys = " ".join(line.split(":")[0] for line in (real.loop / "state.md").read_text().splitlines()[1:-1])
    assert keys == (
        "current_round max_iterations codex_model codex_effort codex_timeout push_every_round full_review_round "
        "plan_file plan_tracked start_branch base_branch base_commit review_started ask_codex_question session_id "
        "agent_teams privacy_mode bitlesson_required bitlesson_file bitlesson_allow_empty_none "
        "mainline_stall_count last_mainline_verdict drift_status started_at phase reviewer blocks exit_reason "
        "skip_impl amendments"
    )
    python = (real.home / ".local/state/humanize/python").read_text()
    assert python == os.path.realpath(python.strip()) + "\n" and SESSION not in "".join(
        p.read_text() for p in real.loop.iterdir()
    )


def test_all_criteria_reach_the_tracker(looped: Real) -> None:
    # The reference cuts a long list to its first few lines.
    text = (looped.loop / "goal-tracker.md").read_text()
    assert all(f"- AC-{n}: criterion number {n}\n" in text for n in range(1, 22))
    assert text.index("Make it fast.") < text.index("- AC-1:") < text.index("## MUTABLE SECTION")


def test_sections_with_fences_and_subheadings() -> None:
    plan = "# P\n\n## Objective: speed\n\ngo\n\n### Part\n\n```\n## Not a heading\n```\n\nend\n\n## Other\n\nno\n"
    assert forms.section(plan, forms.GOAL) == "go\n\n### Part\n\n```\n## Not a heading\n```\n\nend"


def test_a_tracked_plan(real: Real) -> None:
    (real.repo / "plan.md").write_text(PLAN_TEXT)
    done = real.setup("--track-plan-file", plan="plan.md")
    assert done.returncode == 1 and "not tracked" in done.stderr
    real.git("add", "plan.md")
    real.git("commit", "-q", "-m", "plan")
    assert real.setup("--track-plan-file", plan="plan.md").returncode == 0
    real.work(0)
    real.stop()
    assert real.at == ("BUILD", 1)


def test_one_loop_a_worktree_and_one_a_session(looped: Real, elsewhere: Path) -> None:
    done = looped.setup("--max", "3")
    assert done.returncode == 1 and "already active" in done.stderr
    other = Real(elsewhere / "b")
    other.env["HOME"] = str(looped.home)
    done = other.setup()
    assert done.returncode == 1 and "already active" in done.stderr and str(looped.repo) in done.stderr


def test_two_loops_in_one_second_get_two_folders(real: Real) -> None:
    for _ in range(2):
        assert real.setup().returncode == 0
        assert real.run(CANCEL).returncode == 0
    assert len(list((real.repo / ".humanize/rlcr").glob("*-*"))) == 2


def test_a_linked_worktree_and_a_subfolder_have_their_own_root(real: Real, elsewhere: Path) -> None:
    real.git("worktree", "add", "-q", "-b", "side", str(elsewhere / "side"))
    side = elsewhere / "side"
    (side / ".humanize").mkdir()
    for name in ("plan.md", "evidence.json"):
        (side / ".humanize" / name).write_bytes((real.repo / ".humanize" / name).read_bytes())
    (side / "below").mkdir()
    real.repo = side / "below"
    done = real.setup()
    assert done.returncode == 0, done.stderr
    assert f"Worktree: {side}\n" in done.stdout and "Branch: side\n" in done.stdout


def test_the_review_time_is_cut_to_what_the_hook_allows(real: Real) -> None:
    tools = real.base / "bin"
    tools.mkdir()
    (tools / "codex").write_text("#!/bin/sh\n")
    (tools / "codex").chmod(0o755)
    done = real.run(SETUP, PLAN, CODEX_THREAD_ID="a", PATH=f"{tools}:{real.env['PATH']}")
    assert done.returncode == 0 and "--codex-timeout 5400 is cut to 3480" in done.stdout
    assert real.lines()[0]["data"]["timeout_s"] == 3480 and real.lines()[0]["data"]["reviewer"] == "codex"


def test_evidence_that_may_outlast_the_hook_is_refused(real: Real) -> None:
    # The hook has 3600 s, 60 of them kept; a reviewer needs 60 more.
    real.evidence(3541)
    refused(real, "may take 3541 s, and the Stop hook leaves it 3540 s: lower timeout_s in .humanize/evidence.json")
    real.reviewer()
    real.evidence(3481)
    refused(real, "until their sum is at most 3480", "--reviewer", "codex")
    real.evidence(3540)
    assert real.setup().returncode == 0


@pytest.mark.parametrize(
    ("argv", "first"),
    [
        ((GATE, "--help"), "USAGE: rlcr-stop-gate.sh"),
        ((CANCEL, "-h"), "USAGE: cancel-rlcr-loop.sh"),
        ((RLCR, "--help"), "USAGE: rlcr COMMAND"),
        ((RLCR, "resume", "--help"), "USAGE: rlcr resume"),
        ((RLCR, "adopt", "--help"), "USAGE: rlcr adopt --session-id ID"),
        ((RLCR, "status", "--json", "--help"), "USAGE: rlcr status"),
        ((RLCR, "setup", "--help"), "USAGE: setup-rlcr-loop.sh PLAN"),
    ],
)
def test_help_of_every_command_does_nothing_else(looped: Real, argv: tuple[str, ...], first: str) -> None:
    before = (looped.loop / "journal.jsonl").read_bytes()
    done = looped.run(*argv)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(first), done.stdout
    assert (looped.loop / "journal.jsonl").read_bytes() == before


def test_no_bytecode_is_left_in_the_clone(real: Real) -> None:
    clone = real.base / "clone"
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns("__pycache__"))
    words = (PLAN, "--session-id", SESSION, "--reviewer", "evidence-only")
    assert real.run(clone / "scripts" / "setup-rlcr-loop.sh", *words).returncode == 0
    assert '"block"' in real.run(clone / "hooks" / "stop-hook", stdin=real.payload()).stdout
    assert not list(clone.rglob("__pycache__"))
    assert list((real.home / ".local/state/humanize/pycache").rglob("stop_hook*.pyc")), "and it is not made anew"


def test_help() -> None:
    done = subprocess.run([str(SETUP), "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("USAGE: setup-rlcr-loop.sh PLAN")


def test_cancel_from_another_terminal(looped: Real, elsewhere: Path) -> None:
    away = looped.repo
    looped.repo = elsewhere
    done = looped.run(CANCEL)
    looped.repo = away
    assert done.returncode == 1 and done.stdout.startswith("NO_ACTIVE_LOOP\n") and str(away) in done.stdout
    done = looped.run(CANCEL)
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, "CANCELLED")
    assert looped.at == ("CANCEL", 0) and not looped.registered and (looped.loop / "cancel-state.md").exists()
    assert "was cancelled" in looped.stop()["systemMessage"] and looped.stop("m") == {}
    assert looped.run(CANCEL).returncode == 1 and looped.run(CANCEL, "--what").returncode == 3


def test_cancel_in_finalize_wants_to_be_meant(worked: Real) -> None:
    worked.answer(met=True)
    worked.stop()
    done = worked.run(CANCEL)
    assert (done.returncode, done.stdout.split("\n")[0]) == (2, "FINALIZE_NEEDS_CONFIRM")
    done = worked.run(CANCEL, "--force")
    assert (done.returncode, done.stdout.split("\n")[0], worked.at) == (0, "CANCELLED_FINALIZE", ("CANCEL", 0))


def test_cancel_ends_a_stop_that_is_being_decided(worked: Real) -> None:
    worked.answer(sleep=600)
    hook = subprocess.Popen([str(HOOK)], cwd=worked.repo, env=worked.env, stdin=-1, stdout=-1, stderr=-1, text=True)
    out: list[str] = []
    feeder = threading.Thread(target=lambda: out.extend(hook.communicate(worked.payload(), timeout=60)))
    feeder.start()
    while not worked.log.exists():
        assert feeder.is_alive()
    done = worked.run(CANCEL)
    feeder.join()
    assert (done.returncode, worked.at, out) == (0, ("CANCEL", 0), ["", ""]), done.stderr


def test_adopt_and_status(looped: Real) -> None:
    assert looped.run(RLCR, "adopt").returncode == 3
    assert looped.run(RLCR, "adopt", "--session-id", "session-2").returncode == 0
    looped.work(0)
    assert "another session" in looped.stop()["systemMessage"] and looped.stop("m") == {}, "the old session is free"
    done = looped.run(RLCR, "status")
    facts = json.loads(done.stdout)
    assert facts | {"loop": "", "last_fired": ""} == {
        "loop": "", "phase": "BUILD", "round": 0, "max": 84, "blocks": 0, "tampers": 0, "reason": "", "last_fired": "",
        "registered": True, "fired": 0, "faults": [], "asked": 0, "last_asked": "", "asked_by": "",
    }  # fmt: skip
    assert looped.run(RLCR).returncode == 2 and looped.run(RLCR, "resume").returncode == 0


def test_a_branch_whose_name_yaml_would_misread(real: Real) -> None:
    real.git("switch", "-q", "-c", "a#b")
    refused(real, "YAML-unsafe")


def test_a_reader_that_leaves_early_is_no_error_of_set_up(real: Real) -> None:
    # 12 of 12 ended with 120 and a traceback: the output was flushed once more at the interpreter's end.
    words = [str(SETUP), PLAN, "--yolo", "--session-id", "s", "--reviewer", "evidence-only"]
    with subprocess.Popen(
        words, cwd=real.repo, env=real.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert (child.stderr.read(), child.wait(timeout=60)) == ("", 0)
    assert real.registered
