"""The Stop hook through its real launcher, and three rounds of a loop through real processes."""

import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.rlcr.real import GATE, HOOK, Real


def test_three_rounds_through_real_processes(real: Real) -> None:
    done = real.setup("--max", "5")
    assert done.returncode == 0, done.stderr
    assert "=== start-rlcr-loop activated ===" in done.stdout and "round-0-prompt.md" in done.stdout
    real.work(0)
    said = real.stop()
    assert set(said) == {"decision", "reason", "systemMessage"} and said["decision"] == "block"
    assert real.at == ("BUILD", 1) and f"{real.loop}/round-1-prompt.md" in said["reason"]
    assert "the target" in (real.loop / "round-1-prompt.md").read_text()

    real.work(1)
    real.answer(passed=False)
    said = real.stop()
    assert real.at == ("BUILD", 1), "a red gate takes no round"
    assert "no row" in said["reason"] and "make it" in (real.loop / "round-1-gate.md").read_text()
    real.answer()
    real.commit("a.txt", "mended")
    real.stop()
    assert real.at == ("BUILD", 2)

    real.work(2)
    real.answer(met=True)
    said = real.stop()
    assert real.at == ("FINALIZE", 2) and "finalize-prompt.md" in said["reason"]
    by_hand = f"RLCR_PHASE=FINALIZE RLCR_ROUND=2 {sys.executable} {real.script}"
    assert f"\n{by_hand}\n" in (real.loop / "finalize-prompt.md").read_text()
    assert real.run("sh", "-c", by_hand).returncode == 0, "as printed, it asks what the last Stop will ask"
    assert (real.loop / "finalize-state.md").exists() and not (real.loop / "state.md").exists()
    assert "still the empty form" in real.stop("again")["reason"]
    (real.loop / "finalize-summary.md").write_text("# Finalize summary\n\nall made\n")
    said = real.stop("finalized")
    assert set(said) == {"systemMessage"} and "COMPLETE" in said["systemMessage"]
    assert real.at == ("COMPLETE", 2) and not real.registered
    assert {p.name for p in real.loop.glob("*state.md")} == {"complete-state.md"}
    assert [e["event"] for e in real.lines()].count("tamper") == 0
    assert real.log.read_text().split("\n")[-2] == "FINALIZE 2", "the last word is the final gate's"
    assert "done" not in json.dumps([e for e in real.lines() if "last_assistant_message" in str(e)])
    assert real.stop() == {}, "no loop, no word"


def test_a_loop_under_a_reviewer_to_its_end(real: Real) -> None:
    bought = real.reviewer()
    assert real.setup("--reviewer", "codex").returncode == 0
    real.work(0)
    real.answer(met=True)
    real.reviews("continue", "Off by one.")
    assert "[P1]" in real.stop("a")["reason"] and real.at == ("BUILD", 1)
    real.work(1)
    real.reviews("complete", "A word is misspelt.", priority="P3")
    assert "the code is reviewed next" in real.stop("b")["reason"] and real.at == ("CODE_REVIEW", 2)
    real.reviews("complete")
    assert "finalize" in real.stop("c")["reason"] and real.at == ("FINALIZE", 2)
    real.commit("a.txt", "tidied")
    (real.loop / "finalize-summary.md").write_text("# Finalize summary\n\ntidied\n")
    real.reviews("continue", "Broken by tidying.")
    real.stop("d")
    assert real.at == ("CODE_REVIEW", 3), "edits in FINALIZE are looked at"
    real.work(3)
    real.reviews("complete")
    real.stop("e")
    assert real.at == ("FINALIZE", 3)
    assert (real.loop / "finalize-summary-1.md").read_text() == "# Finalize summary\n\ntidied\n"
    assert "finalize-summary-1.md" in (real.loop / "finalize-prompt.md").read_text()
    assert "still the empty form" in real.stop("e2")["reason"], "the first visit's summary does not speak for this one"
    (real.loop / "finalize-summary.md").write_text("# Finalize summary\n\nmended\n")
    assert "COMPLETE" in real.stop("f")["systemMessage"] and real.at == ("COMPLETE", 3)
    assert bought.read_text() == "bought\n" * 5, "the last Stop had the HEAD that was reviewed"


def test_every_stop_line_says_what_readers_of_the_journal_need(looped: Real) -> None:
    looped.work(0)
    looped.stop("my secret words")
    intent = next(e for e in looped.lines() if e["event"] == "intent")
    assert intent["data"]["cause"]["kind"] == "stop" and intent["data"]["cause"]["round"] == 0
    assert intent["data"]["gate"] | {"seconds": 0, "stdout_sha256": ""} == {
        "pass": True, "done": False, "findings": [], "exit": 0, "seconds": 0, "stdout_sha256": "",
    }  # fmt: skip
    assert intent["data"]["to"] == {"phase": "BUILD", "round": 1} and intent["head"] == looped.git("rev-parse", "HEAD")
    assert intent["data"]["outcome"] == "block"
    for path in looped.loop.iterdir():
        assert "my secret words" not in path.read_text(), "the worker's last message is kept nowhere"


def test_all_failures_are_told_at_once(looped: Real) -> None:
    # The reference names one a Stop, and each costs a turn.
    looped.answer(passed=False)
    (looped.repo / "left.txt").write_text("x")
    (looped.repo / ".humanize/plan.md").write_text("another plan\n")
    reason = looped.stop()["reason"]
    for word in ("clean left.txt", "the plan was changed", "round-0-summary.md: still the empty form", "not filled in",
                 "no commit in this round", "gate 12 v1: no row -> make it"):  # fmt: skip
        assert word in reason
    assert len(reason.encode()) <= 2048


def test_e4_the_untouched_form_and_any_contract_do_not_pass(looped: Real) -> None:
    looped.commit("a.txt", "1")
    (looped.loop / "round-0-contract.md").write_text("anything")
    reason = looped.stop()["reason"]
    assert "round-0-summary.md: still the empty form" in reason and "not filled in: Mainline objective" in reason


def test_e5_a_summary_of_a_megabyte_is_named_and_the_reason_stays_small(looped: Real) -> None:
    looped.work(0)
    (looped.loop / "round-0-summary.md").write_text("x" * (1 << 20))
    said = looped.stop()
    assert "larger than 65536 bytes" in said["reason"] and len(said["reason"].encode()) <= 2048


def test_many_long_findings_still_make_a_small_reason(looped: Real) -> None:
    found = [
        {"rule": "9", "severity": "block", "where": f"v{n}", "what": "ä" * 900, "fix": "f" * 500} for n in range(200)
    ]
    looped.answer(passed=False, findings=found)
    said = looped.stop()
    assert len(said["reason"].encode()) <= 2048 and "more" in said["reason"] and "round-0-gate.md" in said["reason"]


def test_e13_a_round_without_a_commit_needs_a_reason_and_two_are_the_limit(looped: Real) -> None:
    for n in range(2):
        looped.papers(n)
        assert "no commit in this round" in looped.stop(f"a{n}")["reason"]
        looped.papers(n, "\nNo-op: waiting for the machine\n")
        looped.stop(f"b{n}")
        assert looped.at == ("BUILD", n + 1)
    looped.papers(2, "\nNo-op: waiting again\n")
    assert "2 rounds without a commit" in looped.stop("c")["reason"]
    assert looped.at == ("BUILD", 2)


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        ({"raw": "all fine", "exit": 0}, "evidence-answer"),
        ({"pass": True, "exit": 2}, "evidence-exit"),
        ({"sleep": 30}, "evidence-timeout"),
    ],
)
def test_an_evidence_command_that_fails_is_never_a_pass_and_parks_at_three(real: Real, says: dict, kind: str) -> None:
    real.evidence(timeout_s=0.5 if "sleep" in says else 60)
    assert real.setup().returncode == 0
    real.work(0)
    real.answer(met=True, **says)
    said = real.stop("m0")
    assert said["decision"] == "block" and kind in said["reason"] and real.at == ("BUILD", 0)
    if "raw" not in says:
        return
    assert real.stop("m1")["decision"] == "block"
    said = real.stop("m2")
    assert set(said) == {"systemMessage"} and "resume" in said["systemMessage"] and real.at == ("PARKED", 0)


def test_pass_with_exit_code_1_is_not_a_pass(looped: Real) -> None:
    looped.work(0)
    looped.answer(met=True, exit=1)
    assert "did not pass" in looped.stop()["reason"] and looped.at == ("BUILD", 0)


def test_the_same_red_gate_parks_and_resume_goes_on(looped: Real) -> None:
    looped.work(0)
    looped.answer(passed=False)
    for n in range(3):
        said = looped.stop(f"m{n}")
    assert set(said) == {"systemMessage"} and "rlcr resume" in said["systemMessage"] and looped.at == ("PARKED", 0)
    assert "PARKED" in looped.stop("m3")["systemMessage"] and (looped.loop / "state.md").exists()
    done = looped.run(str(HOOK.parent.parent / "scripts" / "rlcr"), "resume")
    assert done.returncode == 0 and looped.at == ("BUILD", 0), done.stderr
    looped.answer()
    looped.stop("m4")
    assert looped.at == ("BUILD", 1)


def test_two_stops_at_once_have_one_outcome(looped: Real) -> None:
    # E6: the reference judged twice, and the two raced over the files.
    looped.work(0)
    looped.answer(sleep=0.4)
    pair = [
        subprocess.Popen([str(HOOK)], cwd=looped.repo, env=looped.env, stdin=-1, stdout=-1, stderr=-1, text=True)
        for _ in range(2)
    ]
    outs = [p.communicate(looped.payload(), timeout=60) for p in pair]
    assert outs[0] == outs[1] and outs[0][1] == ""
    assert json.loads(outs[0][0])["decision"] == "block"
    assert looped.log.read_text() == "BUILD 0\n", "the evidence ran once"
    assert [e["event"] for e in looped.lines()].count("intent") == 1 and looped.at == ("BUILD", 1)


def test_the_second_of_two_hooks_may_come_when_the_first_has_answered(worked: Real) -> None:
    # Two layers of settings may both hold the hook. The same words, nothing touched, moments later: the same Stop.
    first = worked.stop()
    assert worked.stop() == first and worked.at == ("BUILD", 1)
    assert "still the empty form" in worked.stop("other words")["reason"], "a new Stop of an idle worker is judged"
    entry = json.loads(worked.entry.read_text())
    worked.entry.write_text(json.dumps({**entry, "delivered_at": entry["delivered_at"] - 60}))
    worked.stop("other words")
    assert [e["event"] for e in worked.lines()].count("intent") == 3, "a minute later it is another Stop, and counted"


def test_a_mute_agent_that_stops_at_once_each_time_is_counted_and_parked(looped: Real) -> None:
    # Claude Code overrides the ninth block in a row; an agent faster than the window for twins was never counted.
    looped.papers(0)
    said = [looped.stop("DONE") for _ in range(8)]
    assert "decision" not in said[-1] and "PARKED" in said[-1]["systemMessage"]
    assert [s.get("decision") for s in said].count("block") <= 6
    assert looped.at[0] == "PARKED"


def test_e7_a_foreign_session_is_let_go_in_silence(looped: Real) -> None:
    for session in ("session-2", "session", "", " ", "SESSION-1"):
        done = looped.run(HOOK, stdin=looped.payload(session=session))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not looped.log.exists() and looped.at == ("BUILD", 0)


SUBAGENT = '{"hook_event_name":"SubagentStop","session_id":"session-1"}'
BAD = ("", "{", "null", "[]", '"x"', '{"session_id": 3}', '{"session_id": null}', "\0\xff", "[" * 100000, SUBAGENT)


def test_bad_stdin_is_let_go_in_silence(looped: Real) -> None:
    for text in (*BAD, looped.payload("x" * (9 << 20))):
        done = looped.run(HOOK, stdin=text)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), text[:60]


def test_a_reviewers_own_stop_is_let_go(looped: Real) -> None:
    looped.work(0)
    assert looped.stop(RLCR_REVIEWER="1") == {} and looped.at == ("BUILD", 0)


def test_found_by_session_from_any_folder_and_by_a_linked_launcher(looped: Real) -> None:
    looped.work(0)
    link = looped.base / "skills"
    link.symlink_to(HOOK.parent.parent)
    file_link = looped.base / "hook"
    file_link.symlink_to(HOOK)
    for launcher in (link / "hooks" / "stop-hook", file_link):
        done = subprocess.run([str(launcher)], cwd="/", env=looped.env, input=looped.payload(str(launcher)), text=True,
                              capture_output=True, timeout=60, check=True)  # fmt: skip
        assert json.loads(done.stdout)["decision"] == "block"
    assert looped.at == ("BUILD", 1)


def test_a_broken_interpreter_line_falls_back(looped: Real) -> None:
    (looped.home / ".local/state/humanize/python").write_text("/nowhere/python\n")
    looped.work(0)
    assert looped.stop()["decision"] == "block"


def test_heartbeat(looped: Real) -> None:
    looped.work(0)
    looped.stop()
    entry = json.loads(looped.entry.read_text())
    assert entry["fired"] == 1 and entry["last_fired"].endswith("Z") and entry["last_outcome"] == "block"
    assert entry["worktree"] == str(looped.repo) and entry["loop_dir"] == str(looped.loop)


def _end_when_it_runs(hook: subprocess.Popen[str], log: Path) -> None:
    until = time.monotonic() + 30
    while not log.exists() and time.monotonic() < until:
        time.sleep(0.05)
    hook.terminate()


def test_e8_a_killed_hook_leaves_no_child_and_no_half_state(looped: Real) -> None:
    looped.work(0)
    looped.answer(sleep=600)
    hook = subprocess.Popen([str(HOOK)], cwd=looped.repo, env=looped.env, stdin=-1, stdout=-1, stderr=-1, text=True)
    killer = threading.Thread(target=_end_when_it_runs, args=(hook, looped.log))
    killer.start()
    out, err = hook.communicate(looped.payload(), timeout=60)
    killer.join()
    assert (hook.returncode, out, err) == (0, "", "")
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(looped.script) not in left
    assert looped.at == ("BUILD", 0)
    looped.answer()
    looped.stop()
    assert looped.at == ("BUILD", 1)


def test_an_error_of_ours_is_a_block_that_names_it_and_lets_go_at_three(looped: Real) -> None:
    # E15: the reference ended with 127, and the loop was over without a word.
    looped.work(0)
    (looped.repo / ".git" / "HEAD").write_text("rubbish\n")
    for n in range(2):
        said = looped.stop(f"m{n}")
        assert said["decision"] == "block" and "GitError" in said["reason"]
    said = looped.stop("m2")
    assert set(said) == {"systemMessage"} and "PARKED" in said["systemMessage"]
    (looped.repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert looped.run(HOOK.parent.parent / "scripts" / "rlcr", "resume").returncode == 0
    looped.stop("m3")
    assert looped.at == ("BUILD", 1)


def test_a_runtime_that_cannot_be_loaded_blocks_twice_then_lets_go(looped: Real, tmp_path: Path) -> None:
    # A half-made upgrade of the clone must not end the loop in silence, nor hold the session for ever.
    bundle = tmp_path / "bundle"
    shutil.copytree(HOOK.parent, bundle / "hooks")
    (bundle / "rlcr").mkdir()
    (bundle / "rlcr" / "__init__.py").write_text("raise SystemError('half an upgrade')\n")
    looped.work(0)
    answers = [json.loads(looped.run(bundle / "hooks" / "stop-hook", stdin=looped.payload()).stdout) for _ in range(3)]
    assert [a.get("decision") for a in answers] == ["block", "block", None]
    assert all("half an upgrade" in a["systemMessage"] for a in answers)
    assert set(answers[0]) == {"decision", "reason", "systemMessage"} and len(answers[0]["reason"]) < 2048
    assert looped.stop()["decision"] == "block" and looped.at == ("BUILD", 1)
    again = json.loads(looped.run(bundle / "hooks" / "stop-hook", stdin=looped.payload()).stdout)
    assert again["decision"] == "block", "counted anew once the runtime has answered"


def test_the_evidence_must_be_what_set_up_pinned(looped: Real) -> None:
    looped.work(0)
    looped.answer(met=True)
    original = looped.script.read_text()
    looped.script.write_text("print('{}')")
    said = looped.stop("m0")
    assert "amend" in said["reason"] and not looped.log.exists(), "what changed is not run"
    looped.script.write_text(original)
    looped.evidence(timeout_s=61)
    assert "changed since set-up" in looped.stop("m1")["reason"] and not looped.log.exists()


def test_the_stop_gate_answers_by_its_exit_code(looped: Real) -> None:
    looped.work(0)
    done = looped.run(GATE, "--session-id", "session-1")
    assert done.returncode == 10 and done.stdout.startswith("BLOCK: Round 0 is over"), done.stderr
    assert looped.run(GATE, "--session-id", "nobody").returncode == 20, "this loop is another's"
    assert looped.run(GATE, "--what").returncode == 20
    assert looped.run(GATE).returncode == 10, "without an id it is this worktree's loop"
    away = looped.run(GATE, "--project-root", str(looped.base))
    assert away.returncode == 0 and away.stdout.startswith(
        "ALLOW: no loop is active in this worktree; loops elsewhere:"
    )
    done = looped.run(GATE, "--json", "--project-root", str(looped.repo), CODEX_THREAD_ID="session-1")
    assert done.returncode == 10 and json.loads(done.stdout)["decision"] == "block"


def _median(real: Real, stdin: str) -> float:
    took = []
    for _ in range(15):
        start = time.perf_counter()
        done = real.run(HOOK, stdin=stdin)
        took.append(time.perf_counter() - start)
        assert (done.returncode, done.stdout) == (0, "")
    return statistics.median(took) * 1000


def test_the_launcher_costs_little_where_there_is_no_loop(real: Real) -> None:
    none = _median(real, real.payload())
    assert real.setup().returncode == 0
    foreign = _median(real, real.payload(session="other"))
    print(f"hook: no loop at all {none:.1f} ms, another session's loop {foreign:.1f} ms (medians of 15)")
    assert none < 250 and foreign < 250
