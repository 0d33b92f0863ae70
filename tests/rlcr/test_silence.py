"""Ends that are none: a loop is never let go in silence because something of it is broken, gone or another's."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rlcr import journal as journals
from rlcr import process, views
from rlcr.model import Adopt, Done, Opinion, Resume, Stop, Tamper
from rlcr.step import step
from tests.rlcr import sim
from tests.rlcr.real import CANCEL, GATE, HOOK, PLAN, PLAN_TEXT, RLCR, ROOT, SESSION, Real

Hand = Callable[[Real], None]


def journal(real: Real) -> Path:
    return real.loop / "journal.jsonl"


def complete_written(real: Real) -> None:
    (real.loop / "complete-state.md").write_text("x")


def linked(real: Real) -> None:
    loop = real.loop
    loop.rename(real.base / "moved")
    loop.symlink_to(real.base / "moved")


def set_up_edited(real: Real) -> None:
    journal(real).write_bytes(journal(real).read_bytes().replace(b'"max":84', b'"max":85'))


def emptied(real: Real) -> None:
    journal(real).write_bytes(b"\n")


def cut_to_set_up(real: Real) -> None:
    journal(real).write_bytes(b"".join(journal(real).read_bytes().splitlines(keepends=True)[:2]))


def laid_down_by_hand(real: Real) -> None:
    journal(real).rename(real.loop / "journal.jsonl.broken")
    (real.loop / "unexpected-state.md").write_text("x")


def given_to_nobody(real: Real) -> None:
    read = journals.read(journal(real))
    read = journals.append(journal(real), read, Adopt(session_sha256="9" * 64), at="2026-01-01T00:00:00Z", head="")
    journals.append(journal(real), read, Done(id="adopt"), at="2026-01-01T00:00:00Z", head="")


HANDS = (complete_written, linked, set_up_edited, emptied, cut_to_set_up, laid_down_by_hand, given_to_nobody)


@pytest.mark.parametrize("hand", HANDS, ids=lambda f: f.__name__)
def test_a_removed_registry_entry_and_one_more_file_are_not_silence(worked: Real, hand: Hand) -> None:
    # Breaks when a Stop ends a loop unseen because a file's name, a broken line or a link reads as its end.
    worked.stop("a")
    entry = worked.entry
    hand(worked)
    entry.unlink()
    for n in range(2):
        said = worked.stop(f"b{n}")
        assert said["decision"] == "block" and "the registry does not know this session" in said["reason"], said
    assert "PARKED" in worked.stop("b2")["systemMessage"]
    # and there is a way out: the loop is found, named, and laid down or gone on with
    if hand is not laid_down_by_hand:
        assert worked.run(RLCR, "status").returncode == 0
    done = worked.run(CANCEL)
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, "CANCELLED"), done.stdout + done.stderr
    assert not worked.registered
    worked.stop("the word that was left")
    assert worked.stop("c") == {}


def test_an_interrupted_set_up_is_silent_only_before_its_files(real: Real) -> None:
    # Breaks when a journal cut to its first line passes for a set-up that never came to anything.
    assert real.setup(crash="append.setup.after").returncode == -9
    assert real.stop() == {}
    (real.loop / "state.md").write_text("x")
    assert real.stop()["decision"] == "block"


def test_a_loop_whose_folder_became_a_link_is_named_and_laid_down(worked: Real) -> None:
    # Breaks when the hook judges through a link that status and cancel do not see.
    loop = worked.loop
    linked(worked)
    assert "is a link" in worked.stop()["reason"]
    shown = worked.run("bash", ROOT / "scripts" / "humanize.sh", "monitor", "rlcr", "--once").stdout
    assert "FAULT         link: " in shown
    done = worked.run(RLCR, "status")
    assert done.returncode == 0 and "is a link" in json.loads(done.stdout)["faults"][0]
    done = worked.run(CANCEL)
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, "CANCELLED"), done.stderr
    assert "UNEXPECTED" in done.stdout and not worked.registered
    assert (loop / "unexpected-state.md").is_file() and not loop.is_symlink()
    assert (loop.parent / f".{loop.name}.link").is_symlink(), "what it pointed to is not touched"
    assert (worked.base / "moved" / "journal.jsonl").is_file()
    assert worked.setup().returncode == 0


# --- words for the former owner ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("cancel",), "was cancelled"),
        (("stop", "--why", "enough"), "was stopped: enough"),
        (("adopt", "--session-id", "nobody"), "was given to another session"),
    ],
)
def test_the_next_stop_of_the_former_owner_is_told_once(worked: Real, words: tuple[str, ...], told: str) -> None:
    # Breaks when a worker ends its own loop by a command, and the user sees a turn that ends like any other.
    assert worked.run(RLCR, *words).returncode == 0
    note = worked.home / ".local/state/humanize/notes"
    assert len(list(note.iterdir())) == 1
    assert worked.run(HOOK, stdin=worked.payload(session="other")).stdout == "", "it is nobody else's"
    said = worked.stop()
    assert (
        set(said) == {"systemMessage"} and told in said["systemMessage"] and str(worked.loop) in said["systemMessage"]
    )
    assert worked.stop("m") == {} and not list(note.iterdir())


def test_a_word_does_not_outlive_the_sessions_next_loop(worked: Real) -> None:
    assert worked.run(CANCEL).returncode == 0
    shutil.rmtree(worked.loop)
    assert worked.setup().returncode == 0
    worked.papers(0)
    assert "cancelled" not in json.dumps(worked.stop())
    assert not list((worked.home / ".local/state/humanize/notes").iterdir())


def test_a_word_for_another_session_costs_no_runtime(real: Real) -> None:
    # Breaks when one waiting word makes every Stop of every session load the runtime.
    notes = real.home / ".local/state/humanize/notes"
    notes.mkdir(parents=True)
    (notes / f"{'0' * 64}.json").write_text("{}")
    (real.home / ".local/state/humanize/python").unlink(missing_ok=True)
    bundle = real.base / "bundle" / "hooks"
    shutil.copytree(HOOK.parent, bundle)  # without the runtime: to ask for it is to say so
    took = []
    for _ in range(5):
        began = time.perf_counter()
        done = real.run(bundle / "stop-hook", stdin=real.payload())
        took.append(time.perf_counter() - began)
        assert (done.stdout, done.stderr) == ("", "")
    assert min(took) < 0.25


def test_an_adoption_that_died_half_way_is_made_good_and_no_forgery(worked: Real) -> None:
    # Breaks when the giver's entry stays and blocks a session that is free, or the line that it vouches for is doubted.
    assert worked.run(RLCR, "adopt", "--session-id", "next", crash="append.adopt.after").returncode == -9
    assert worked.run(RLCR, "adopt", "--session-id", "next").returncode == 0
    assert not [e for e in worked.lines() if e["event"] == "tamper"] and worked.entry
    assert "given to another session" in worked.stop()["systemMessage"] and worked.stop("m") == {}


# --- the stop gate -------------------------------------------------------------------------------------------------


def test_the_stop_gate_allows_nothing_over_a_journal_that_names_nobody(worked: Real) -> None:
    lines = journal(worked).read_bytes().split(b"\n")
    journal(worked).write_bytes(b"\n".join([b"{}", *lines[1:]]))
    done = worked.run(GATE)
    assert (done.returncode, done.stdout) == (20, "") and "not a journal of version 1" in done.stderr


def test_the_stop_gate_does_not_speak_for_another_session(worked: Real) -> None:
    done = worked.run(GATE, CLAUDE_CODE_SESSION_ID="other")
    assert (done.returncode, done.stdout) == (20, "")
    assert "belongs to another session" in done.stderr and "never judged yet" in done.stderr
    assert f"{RLCR} adopt" in done.stderr


def test_the_stop_gate_knows_a_copy_of_a_worktree(worked: Real, elsewhere: Path) -> None:
    # Breaks when a Stop in the copy is judged by what stands in the original.
    original, folder = worked.repo, worked.loop
    shutil.copytree(original, elsewhere / "copy", symlinks=True)
    worked.repo = elsewhere / "copy"
    for words in ((), ("--session-id", SESSION)):
        done = worked.run(GATE, *words)
        assert (done.returncode, done.stdout) == (20, ""), done.stdout
        assert str(folder) in done.stderr and f"{worked.loop} is a copy" in done.stderr


def test_the_stop_gate_without_a_loop_names_those_elsewhere(worked: Real, elsewhere: Path) -> None:
    for words in ((), ("--session-id", "nobody")):
        done = worked.run(GATE, "--project-root", str(elsewhere), *words)
        assert done.returncode == 0 and done.stdout.startswith("ALLOW: no loop"), done.stderr
        assert f"loops elsewhere:\n  {worked.repo}" in done.stdout


# --- a registry that does not vouch --------------------------------------------------------------------------------


def forge_to_finalize(real: Real) -> None:
    """What a worker would like: reviews that accept BUILD and CODE_REVIEW at its HEAD."""
    head = real.git("rev-parse", "HEAD")
    read = journals.read(journal(real))
    for phase in ("BUILD", "CODE_REVIEW"):
        yes = Opinion(verdict="complete", mainline="advanced", text="fine")
        made = Stop(round=read.state.round, phase=phase, head=head, tree="t", summary_sha256="s", verdict=yes)
        read = journals.append(journal(real), read, made, at="2026-11-30T12:00:00Z", head=head)
        files = views.publish(real.loop, read.state, views.pages_of(read.state, "intent", PLAN_TEXT))
        read = journals.append(
            journal(real), read, Done(id=read.state.pending, files=files), at="2026-11-30T12:00:00Z", head=head
        )
    assert read.state.phase == "FINALIZE" and read.state.reviewed_head == head


@pytest.mark.parametrize("words", [("resume",), ("adopt", "--session-id", SESSION)], ids=lambda w: w[0])
def test_what_a_forged_review_accepted_does_not_count(real: Real, words: tuple[str, ...]) -> None:
    # Breaks when resume, or adopt after the entry was removed, vouches for lines that the runtime never wrote.
    bought = real.reviewer()
    real.reviews("continue", "wrong result")
    real.answer(met=True)
    assert real.setup("--reviewer", "codex").returncode == 0
    real.work(0)
    real.stop("a")
    forge_to_finalize(real)
    if words[0] == "adopt":
        real.entry.unlink()
    done = real.run(RLCR, *words)
    assert done.returncode == 0, done.stderr
    assert real.at[0] == "BUILD" and (real.loop / "state.md").is_file()
    (tamper,) = [e["data"] for e in real.lines() if e["event"] == "tamper"]
    assert tamper["path"] == "registry" and "did not vouch" in tamper["what"]
    before = bought.read_text()
    (real.loop / "finalize-summary.md").write_text("# Finalize summary\n\nall\n")
    real.stop("b")
    real.work(real.at[1])
    real.stop("c")
    assert real.registered and real.at[0] == "BUILD", "the real reviewer still says no"
    assert len(bought.read_text()) > len(before)


def test_doubt_drops_what_was_accepted_and_nothing_else() -> None:
    state = sim.begun(reviewer="codex")
    for _ in range(2):
        made = sim.stop(state, 1, verdict=sim.opinion("complete"), checks=(sim.check(met=True),))
        state, _ = sim.drive(state, made)
    assert (state.phase, state.reviewed_head) == ("FINALIZE", sim.head(1))
    now, _ = step(state, Tamper(what="x", path="registry"))
    assert (now.phase, now.round, now.reviewed_head, now.review_head, now.review) == ("BUILD", 1, "", "", None)
    assert (now.tampers, now.pending, now.blocks, now.work_expected) == (1, "doubt-1", state.blocks, True)
    parked = replace(state, phase="PARKED", parked_from="FINALIZE")
    held, _ = step(parked, Tamper(what="x", path="registry"))
    assert held.phase == "PARKED" and step(held, Resume())[0].phase == "BUILD"
    skipped = sim.begun(reviewer="codex", skip_impl=True)
    assert step(skipped, Tamper(what="x", path="registry"))[0].phase == "CODE_REVIEW"
    file, _ = step(state, Tamper(what="x", path="plan.md"))
    assert (file.phase, file.reviewed_head) == ("FINALIZE", sim.head(1))


@pytest.mark.parametrize("words", [("plan", "amend", "--why", "another goal"), ("evidence",)], ids=lambda w: w[0])
def test_nothing_is_added_to_a_journal_for_which_nobody_vouches(worked: Real, words: tuple[str, ...]) -> None:
    worked.entry.unlink()
    (worked.repo / PLAN).write_text(PLAN_TEXT + "\nmore\n")
    before = journal(worked).read_bytes()
    done = worked.run(RLCR, *words)
    assert done.returncode in (3, 20) and "rlcr resume" in done.stderr, done.stdout + done.stderr
    assert journal(worked).read_bytes() == before


# --- who asked -----------------------------------------------------------------------------------------------------


def test_a_hand_run_gate_is_not_a_heartbeat_of_the_hook(worked: Real) -> None:
    # Breaks when doctor takes a Stop that was judged by hand for proof that the hook fires.
    for _ in range(2):
        assert worked.run(GATE).returncode == 10
    entry = json.loads(worked.entry.read_text())
    assert (entry["fired"], entry["last_fired"], entry["asked"], entry["asked_by"]) == (0, "", 2, "hand")
    forged = json.loads(worked.payload("m")) | {"rlcr_by": "drive"}
    worked.run(HOOK, stdin=json.dumps(forged))
    facts = json.loads(worked.run(RLCR, "status").stdout)
    assert (facts["fired"], facts["asked"], facts["asked_by"]) == (1, 2, "hand"), "the hook's payload does not decide"
    assert facts["last_fired"].endswith("Z") and facts["last_asked"].endswith("Z")


def test_resume_of_a_running_loop_says_so(worked: Real) -> None:
    done = worked.run(RLCR, "resume")
    assert (done.returncode, done.stdout) == (0, f"already running: BUILD, round 0; {worked.loop}\n"), done.stderr
    worked.stop()
    assert worked.at == ("BUILD", 1) and not any(e["event"] in ("tamper", "resume") for e in worked.lines())


# --- ends by force -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["lock", "torn", "dangling"])
def test_cancel_gets_past_a_folder_in_place_of_its_own_files(worked: Real, what: str) -> None:
    loop, lock = worked.loop, worked.loop.parent / ".lock"
    if what == "torn":
        (worked.loop / "journal.jsonl.torn").mkdir()
        with journal(worked).open("a") as file:
            file.write("{")
    else:
        lock.unlink(missing_ok=True)
        lock.mkdir() if what == "lock" else lock.symlink_to("/nowhere/x")
    done = worked.run(CANCEL)
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, "CANCELLED"), done.stderr
    assert (loop / "cancel-state.md").is_file() and not worked.registered


def test_a_lease_of_another_hand_ends_no_foreign_process(worked: Real) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        lock = worked.loop.parent / ".lock"
        for lease in ({"pid": other.pid}, {"pid": other.pid, "mark": "1"}):
            (worked.loop / "lease.json").write_text(json.dumps(lease))
            with lock.open("w") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                cancel = subprocess.Popen([str(CANCEL)], cwd=worked.repo, env=worked.env, stdout=-1, text=True)
                time.sleep(1.2)
                cancel.kill()
                cancel.communicate()
            assert other.poll() is None
        assert process.same(other.pid, process.mark(other.pid)) and not process.same(other.pid, "")
        assert not process.same(1, process.mark(1)) and not process.same(True, "x")
    finally:
        other.kill()
        other.wait()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(("words", "code"), [(f"{RLCR} status", 3), (f"{GATE}", 20), (f"{RLCR} nonsense", 2)])
def test_an_answer_that_nobody_takes_is_quiet(looped: Real, words: str, code: int) -> None:
    done = looped.run("sh", "-c", f"{words} >/dev/full")
    assert done.returncode == code and "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert code == 2 or done.stderr == ""
    ours, theirs = os.pipe()
    os.close(ours)
    closed = subprocess.run(["sh", "-c", words], cwd=looped.repo, env=looped.env, stdout=theirs, stderr=-1, check=False)
    os.close(theirs)
    assert closed.returncode == code and b"Traceback" not in closed.stderr and b"Broken" not in closed.stderr
