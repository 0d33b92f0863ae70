"""The hook where its surroundings are broken: no answer is lost, doubled or cut, and nobody is held for ever."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rlcr.real import CANCEL, GATE, HOOK, RLCR, ROOT, SESSION, SETUP, Real


def test_a_deleted_registry_entry_is_told_where_the_loop_can_be_seen(worked: Real) -> None:
    # The end of the loop without a word: the cheapest way out for a worker who has had enough.
    worked.entry.unlink()
    (worked.repo / "deep" / "er").mkdir(parents=True)
    for n, where in enumerate((worked.repo, worked.repo / "deep" / "er")):
        done = subprocess.run(
            [HOOK],
            cwd=where,
            env=worked.env,
            input=worked.payload(f"m{n}"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert json.loads(done.stdout)["decision"] == "block" and "registry" in done.stdout, done.stdout
    assert "PARKED" in worked.stop("m3")["systemMessage"]
    assert worked.run(HOOK, stdin=worked.payload(session="other")).stdout == "", "a foreign session is left alone"
    assert worked.run(RLCR, "resume").returncode == 0
    worked.stop("m4")
    assert worked.at == ("BUILD", 1)


def test_the_stop_gate_allows_nothing_over_a_deleted_registry_entry(worked: Real) -> None:
    worked.entry.unlink()
    done = worked.run(GATE, "--session-id", SESSION)
    assert done.returncode == 10 and "registry" in done.stdout


def test_ended_and_foreign_loops_stay_silent_without_a_registry(worked: Real) -> None:
    assert worked.run(CANCEL).returncode == 0 and not worked.registered
    assert "was cancelled" in worked.stop()["systemMessage"] and worked.stop("m") == {}
    assert worked.run(HOOK, stdin=worked.payload(session="other")).stdout == ""


def test_a_dangling_link_in_the_registry_does_not_switch_the_hook_off(worked: Real) -> None:
    (worked.entry.parent / "0.json").symlink_to("nowhere")
    assert worked.stop()["decision"] == "block" and worked.at == ("BUILD", 1)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000], ids=["lists", "objects"])
@pytest.mark.parametrize("which", ["entry", "journal"])
def test_deep_rubbish_is_named_and_let_go_at_three(worked: Real, which: str, text: str) -> None:
    path = worked.entry if which == "entry" else worked.loop / "journal.jsonl"
    with path.open("w" if which == "entry" else "a") as file:
        file.write(text + "\n")
    said = [worked.stop(f"m{n}") for n in range(3)]
    assert [s.get("decision") for s in said] == ["block", "block", None] and "PARKED" in said[2]["systemMessage"]
    assert worked.run(CANCEL).returncode == 0


def test_a_clock_that_went_back_does_not_repeat_one_answer_for_ever(worked: Real) -> None:
    worked.answer(passed=False)
    worked.stop()
    for _ in range(2):
        entry = json.loads(worked.entry.read_text())
        worked.entry.write_text(json.dumps({**entry, "delivered_at": int(time.time()) + 10_000}))
        said = worked.stop()
    assert "PARKED" in said["systemMessage"], "each was judged and counted"


@pytest.mark.parametrize("size", [0, 10, 200, 900, 1500, 3000])
def test_a_full_disk_leaves_one_whole_answer_and_a_loop_that_goes_on(worked: Real, size: int) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    for n in range(2):
        done = subprocess.run(
            [HOOK], cwd=worked.repo, env=worked.env, input=worked.payload(f"m{n}"), capture_output=True, text=True,
            check=False, preexec_fn=full,
        )  # fmt: skip
        assert done.returncode == 0 and done.stderr == "" and json.loads(done.stdout), done
    if "parked" in json.loads(worked.entry.read_text()) and json.loads(worked.entry.read_text())["parked"]:
        assert worked.run(RLCR, "resume").returncode == 0
    worked.stop("m3")
    assert worked.at[0] == "BUILD" and not [f for f in worked.loop.iterdir() if "by-hand" in f.name]


LATE = """\
import json, sys
sys.path.insert(0, sys.argv[1])
from rlcr import stop_hook
def refuse(session):
    raise OSError("no room")
stop_hook._delivered = refuse
stop_hook.main(json.load(sys.stdin))
"""


def test_an_answer_is_printed_once_when_what_comes_after_it_fails(worked: Real) -> None:
    done = worked.run(sys.executable, "-c", LATE, ROOT, stdin=worked.payload())
    assert (done.returncode, done.stderr) == (0, "") and "round 1 begins" in json.loads(done.stdout)["reason"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-", "2>&-"])
def test_closed_streams_are_no_traceback(worked: Real, closed: str) -> None:
    done = worked.run("sh", "-c", f'"$0" {closed}', HOOK, stdin=worked.payload())
    assert done.returncode == 0 and done.stderr == ""
    assert worked.loop.joinpath("journal.jsonl").read_bytes().startswith(b'{"format":"humanize.journal"')
    worked.stop()
    assert worked.at == ("BUILD", 1)


def test_a_stdin_that_is_never_closed_does_not_hold_the_hook(worked: Real) -> None:
    with subprocess.Popen([HOOK], cwd=worked.repo, env=worked.env, stdin=-1, stdout=-1, bufsize=0) as hook:
        assert hook.stdin is not None and hook.stdout is not None
        hook.stdin.write(worked.payload().encode())
        assert hook.wait(timeout=30) == 0
        assert json.loads(hook.stdout.read())["decision"] == "block" and worked.at == ("BUILD", 1)


def test_an_interpreter_line_that_names_no_python_is_not_run(worked: Real) -> None:
    for program in ("/bin/true", "/bin/false", "/bin/sh"):
        (worked.home / ".local/state/humanize/python").write_text(program + "\n")
        assert worked.stop(program)["decision"] == "block"


def test_a_lock_that_is_never_given_back_is_let_go_at_three(worked: Real, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("HOME", worked.env["HOME"])
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    from rlcr import stop_hook
    from rlcr.model import sha256

    monkeypatch.setattr(stop_hook, "HOOK_S", 90)
    with (worked.loop.parent / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        said: list[Any] = []
        for _ in range(3):
            stop_hook.judge(sha256(SESSION), json.loads(worked.payload()), said.append)
    assert [s.get("decision") for s in said] == ["block", "block", None]


def test_eight_stops_at_once_advance_one_round(worked: Real) -> None:
    # Those that begin before the answer get it too; one that a busy machine starts late is a new Stop of an idle
    # worker, whose round is not over. None of them may open a second round or get half an answer.
    said: list[Any] = []
    threads = [threading.Thread(target=lambda: said.append(worked.stop())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 8 and all(s["decision"] == "block" for s in said) and worked.at == ("BUILD", 1)
    moved = [e for e in worked.lines() if e["event"] == "intent" and e["data"]["cause"]["round"] != e["round"]]
    assert len(moved) == 1


def test_a_relative_state_home_is_ignored_by_all_alike(real: Real) -> None:
    real.env["XDG_STATE_HOME"] = "state"
    assert real.setup().returncode == 0 and real.registered and not (real.repo / "state").exists()
    real.work(0)
    assert real.stop()["decision"] == "block" and real.at == ("BUILD", 1)
    del real.env["XDG_STATE_HOME"]
    assert "no-loop" not in real.run(RLCR, "status").stdout and real.run(RLCR, "status").returncode == 0


def test_setup_refuses_where_the_hook_could_not_find_the_loop(real: Real) -> None:
    home = real.env.pop("HOME")
    done = real.setup()
    assert done.returncode == 1 and "HOME" in done.stderr, done.stderr
    real.env["HOME"] = home
    assert not list((real.repo / ".humanize").glob("rlcr/*-*"))


@pytest.mark.parametrize("name", [b"r\xff", "r\u00e9 'q\"\n$x".encode()], ids=["not-utf-8", "odd"])
def test_odd_paths(real: Real, name: bytes) -> None:
    moved = os.fsencode(real.base) + b"/" + name
    real.repo = real.repo.rename(os.fsdecode(moved))
    try:
        done = real.setup()
        if name == b"r\xff":
            assert done.returncode == 1 and "UTF-8" in done.stderr
        else:
            assert done.returncode == 0, done.stderr
            real.work(0)
            said = real.stop()
            assert str(real.loop / "round-1-prompt.md") in said["reason"] and real.at == ("BUILD", 1)
    finally:
        shutil.rmtree(moved)


def test_a_very_deep_repository_still_gets_a_small_reason(real: Real) -> None:
    deep = real.base
    for _ in range(12):
        deep = deep / ("d" * 180)
    deep.mkdir(parents=True)
    real.repo = real.repo.rename(deep / "r")
    assert real.setup().returncode == 0
    real.work(0)
    said = real.stop()
    assert len(said["reason"].encode()) <= 2048 and "round-1-prompt.md" in said["reason"]
    shutil.rmtree(real.base / ("d" * 180))


def test_pipes_in_place_of_files_hang_nobody(worked: Real) -> None:
    for name in ("journal.jsonl", "goal-tracker.md"):
        (worked.loop / name).unlink()
        os.mkfifo(worked.loop / name)
    for argv in ((RLCR, "status"), (GATE,), ("bash", ROOT / "scripts" / "humanize.sh", "monitor", "rlcr", "--once")):
        subprocess.run(
            [str(a) for a in argv], cwd=worked.repo, env=worked.env, timeout=30, capture_output=True, check=False
        )
    assert worked.stop()["decision"] == "block"


def test_cancel_gets_out_of_a_deleted_loop(worked: Real) -> None:
    shutil.rmtree(worked.loop)
    assert worked.stop()["decision"] == "block"
    done = worked.run(CANCEL)
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, "CANCELLED") and not worked.registered
    assert worked.stop("m") == {}
    assert worked.run(CANCEL).returncode == 1


@pytest.mark.parametrize("lease", ["[]", "{", '{"pid": 99999999999999999999}', '{"pid": "x"}'])
def test_cancel_is_not_stopped_by_a_lease_of_another_hand(worked: Real, lease: str) -> None:
    (worked.loop / "lease.json").write_text(lease)
    with (worked.loop.parent / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        threading.Timer(2, lambda: fcntl.flock(held, fcntl.LOCK_UN)).start()
        done = worked.run(CANCEL)
    assert (done.returncode, done.stderr) == (0, "") and worked.at == ("CANCEL", 0)


def test_adopt_does_not_orphan_the_loop_that_the_new_owner_has(worked: Real, elsewhere: Path) -> None:
    worked.git("worktree", "add", "-q", "-b", "two", str(elsewhere / "two"))
    other = elsewhere / "two"
    shutil.copytree(worked.repo / ".humanize", other / ".humanize", ignore=shutil.ignore_patterns("rlcr"))
    done = subprocess.run(
        [SETUP, ".humanize/plan.md", "--session-id", "two", "--reviewer", "evidence-only"],
        cwd=other, env=worked.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = worked.run(RLCR, "adopt", "--session-id", "two")
    assert done.returncode == 3 and "already active" in done.stderr
    worked.stop()
    assert worked.at == ("BUILD", 1)


def test_an_interrupted_stop_gate_says_so(worked: Real) -> None:
    worked.answer(sleep=60)
    gate = subprocess.Popen([GATE], cwd=worked.repo, env=worked.env, stdout=-1, stderr=-1, text=True)
    until = time.monotonic() + 30
    while not worked.log.exists() and time.monotonic() < until:
        time.sleep(0.05)
    gate.terminate()
    out, err = gate.communicate(timeout=30)
    assert gate.returncode == 20 and "ALLOW" not in out and "not judged" in err


def test_a_missing_template_is_named_and_nothing_is_lost(worked: Real, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(ROOT, bundle)
    (bundle / "prompt-template" / "round-n.md").unlink()
    said = json.loads(worked.run(bundle / "hooks" / "stop-hook", stdin=worked.payload()).stdout)
    assert said["decision"] == "block" and "round-n.md" in said["reason"]
    assert "round 1 begins" in worked.stop()["reason"] and worked.at == ("BUILD", 1)


def test_a_journal_behind_a_link_is_named_and_can_be_cancelled(worked: Real) -> None:
    path = worked.loop / "journal.jsonl"
    path.rename(worked.base / "mine")
    path.symlink_to(worked.base / "mine")
    assert "no regular file" in worked.stop()["reason"]
    assert worked.run(CANCEL).returncode == 0 and not worked.registered


def test_failures_that_take_turns_are_let_go_too(worked: Real, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("HOME", worked.env["HOME"])
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    from rlcr import stop_hook
    from rlcr.model import sha256

    said = [stop_hook.stuck(sha256(SESSION), kind, f"it was {kind}") for kind in ("git", "disk", "git")]
    assert [s.get("decision") for s in said] == ["block", "block", None]
