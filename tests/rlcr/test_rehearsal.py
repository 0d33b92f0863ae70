"""``rlcr evidence``: a round judged ahead of its Stop, by the same measure, and not twice where that can be helped."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rlcr.ahead import cached, commands, edit, parked, rehearse, runs
from tests.rlcr.real import CANCEL, RLCR, Real


def no_papers(real: Real) -> None:
    (real.loop / "round-0-summary.md").write_text("# Round 0 summary\n")
    (real.loop / "round-0-contract.md").unlink()


FAULTS: dict[str, Callable[[Real], object]] = {
    "none": lambda real: None,
    "red": lambda real: real.answer(passed=False),
    "papers": no_papers,
    "dirty": lambda real: (real.repo / "left.txt").write_text("x"),
    "plan": edit,
    "script": lambda real: real.script.write_text(real.script.read_text() + "# more\n"),
    "branch": lambda real: real.git("switch", "-q", "-c", "other"),
    "idle": lambda real: real.git("reset", "-q", "--hard", "HEAD~1"),
    "late": lambda real: real.answer(exit=3),
    "broken": lambda real: real.answer(raw="{"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_finds_what_a_stop_finds(worked: Real, fault: str) -> None:
    # Breaks when a Stop is judged by something that the command does not look at.
    FAULTS[fault](worked)
    heartbeat = {k: v for k, v in json.loads(worked.entry.read_text()).items() if k not in ("seq", "sha")}
    before = (worked.loop / "journal.jsonl").read_bytes()
    code, said = rehearse(worked)
    assert (worked.loop / "journal.jsonl").read_bytes() == before
    assert heartbeat == {k: v for k, v in json.loads(worked.entry.read_text()).items() if k not in ("seq", "sha")}
    text = worked.run(RLCR, "evidence")
    assert text.returncode == code
    worked.stop()
    cause = next(e for e in worked.lines() if e["event"] == "intent")["data"]["cause"]

    def bare(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**check, "seconds": 0} for check in checks]

    assert said["problems"] == cause["problems"] and bare(said["checks"]) == bare(cause["checks"])
    assert (said["round"], said["phase"], said["head"]) == (0, "BUILD", cause["head"])
    kinds = [(f or {}).get("kind") for f in (said["failure"], cause["failure"])]
    assert kinds[0] == kinds[1]
    assert code == (0 if fault == "none" else 20 if fault in ("late", "broken") else 10)
    assert said["pass"] is (code == 0)
    for problem in said["problems"]:
        assert problem["what"] in text.stdout and f"-> {problem['fix']}" in text.stdout
    if fault == "red":
        assert "- gate 12 v1: no row -> make it\n" in text.stdout


def test_what_was_run_ahead_is_not_run_again_at_the_same_commit(real: Real) -> None:
    cached(real)
    code, said = rehearse(real)
    assert (code, said["gathered"], runs(real)) == (0, ["gate"], 1)
    line = real.lines()[-1]
    assert (line["event"], [c["name"] for c in line["data"]["checks"]]) == ("gathered", ["gate"])
    entry = json.loads(real.entry.read_text())
    assert (entry["fired"], entry["last_fired"], entry["sure"], entry["seq"]) == (0, "", True, line["seq"])
    assert rehearse(real)[0] == 0 and runs(real) == 1
    assert [e["event"] for e in real.lines()].count("gathered") == 1
    (real.loop / "round-0-summary.md").write_text("# Round 0 summary\n\nwritten after it\n")
    assert real.stop()["decision"] == "block" and real.at == ("BUILD", 1)
    assert runs(real) == 1, "the Stop used the answer"
    real.work(1)
    real.stop("next")
    assert runs(real) == 2, "and at another commit it does not"


@pytest.mark.parametrize("why", ["not declared", "red", "dirty", "phase", "files moved"])
def test_what_is_run_again_all_the_same(real: Real, why: str) -> None:
    commands(real, cache=why != "not declared")
    assert real.setup().returncode == 0
    real.work(0)
    if why == "red":
        real.answer(passed=False)
    elif why == "dirty":
        (real.repo / "left.txt").write_text("x")
    elif why == "phase":
        real.answer(met=True)
    elif why == "files moved":
        before_its_sleep(real, f"Path({str(real.repo / 'left.txt')!r}).write_text('x')")
        assert real.run(RLCR, "evidence", "--amend", "--why", "it writes a file now").returncode == 0
    code, said = rehearse(real)
    kept = ["gate"] if why == "phase" else []
    assert (code, said["gathered"]) == (0 if why in ("not declared", "phase") else 10, kept)
    before = runs(real)
    assert before == 1
    if why == "phase":
        real.stop()
        assert (real.at, runs(real)) == (("FINALIZE", 0), 1)
        (real.loop / "finalize-summary.md").write_text("# Finalize summary\n\nall made\n")
    else:
        assert "gathered" not in [e["event"] for e in real.lines()]
    real.stop("next")
    assert runs(real) == before + 1


def test_only_passes_of_declared_commands_are_kept(real: Real) -> None:
    other = real.base / "other.py"
    shutil.copy(real.script, other)
    other.write_text(other.read_text().replace(str(real.says), str(real.base / "other.json")))
    red = json.loads(real.says.read_text()) | {"pass": False}
    (real.base / "other.json").write_text(json.dumps(red))
    commands(real, {"name": "second", "argv": [sys.executable, str(other)], "timeout_s": 60, "cache": True})
    assert real.setup().returncode == 0
    real.work(0)
    code, said = rehearse(real)
    assert (code, said["gathered"], runs(real)) == (10, ["gate"], 2)
    assert rehearse(real)[0] == 10 and runs(real) == 3, "the red one alone is asked again"


def test_a_parked_loop_is_judged_as_it_will_go_on(real: Real) -> None:
    cached(real)
    parked(real)
    assert runs(real) == 3
    real.answer()
    code, said = rehearse(real)
    assert (code, said["phase"], said["gathered"]) == (0, "BUILD", ["gate"]) and real.at == ("PARKED", 0)
    assert real.run(RLCR, "resume").returncode == 0
    real.stop("again")
    assert (real.at, runs(real)) == (("BUILD", 1), 4)


def before_its_sleep(real: Real, line: str) -> None:
    """Have the evidence command do something more once it has read what to say."""
    real.script.write_text(real.script.read_text().replace("time.sleep(", f"{line}; time.sleep("))


def started(real: Real) -> tuple[subprocess.Popen[str], str]:
    """The command and the process id of its evidence, which sleeps by now."""
    argv, pid = [str(RLCR), "evidence"], real.base / "pid"
    process = subprocess.Popen(argv, cwd=real.repo, env=real.env, stdin=-1, stdout=-1, stderr=-1, text=True)
    while not pid.exists() or not pid.read_text():
        assert process.poll() is None
        time.sleep(0.02)
    return process, pid.read_text()


def test_a_long_command_holds_up_neither_a_stop_nor_a_cancel(real: Real) -> None:
    before_its_sleep(real, f"Path({str(real.base / 'pid')!r}).write_text(str(os.getpid()))")
    cached(real)
    real.answer(sleep=6)
    process, _ = started(real)
    real.answer()
    begun = time.monotonic()
    assert real.stop()["decision"] == "block" and real.at == ("BUILD", 1)
    assert real.run(CANCEL).returncode == 0
    assert time.monotonic() - begun < 5 and process.poll() is None
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "") and "nothing is held against it" in out and "kept" not in out
    assert real.at == ("CANCEL", 1) and "gathered" not in [e["event"] for e in real.lines()]


@pytest.mark.parametrize(("told", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_told_to_end_it_leaves_no_command_behind(real: Real, told: signal.Signals, code: int) -> None:
    before_its_sleep(real, f"Path({str(real.base / 'pid')!r}).write_text(str(os.getpid()))")
    cached(real)
    real.answer(sleep=600)
    process, pid = started(real)
    process.send_signal(told)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code and "Traceback" not in err
    assert not Path("/proc", pid).exists()
