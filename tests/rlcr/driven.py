"""A repository, fake clients first on PATH that do what a test wrote down, and the driver over both."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlcr import drive
from rlcr.drive_agents import AGENTS
from tests.rlcr.real import PLAN, ROOT, Real

DRIVE = (sys.executable, "-B", "-c", "import sys; from rlcr import drive; sys.exit(drive.main(sys.argv[1:]))")
TOP = str(Path(__file__).resolve().parents[2])
CLIENT = """\
#!{python}
import json, os, signal, subprocess, sys, time
from pathlib import Path
base, repo = Path({base!r}), Path({repo!r})
name, argv, prompt = Path(sys.argv[0]).name, sys.argv[1:], sys.stdin.read()
log = base / "calls.jsonl"
number = len(log.read_text().splitlines()) if log.exists() else 0
env = {{k: os.environ[k] for k in ("RLCR_REVIEWER", "CODEX_THREAD_ID", "CLAUDE_CODE_SESSION_ID") if k in os.environ}}
with log.open("a") as file:
    file.write(json.dumps({{"name": name, "argv": argv, "prompt": prompt, "env": env, "pid": os.getpid()}}) + "\\n")
play = json.loads((base / "plays.json").read_text())
act = play[min(number, len(play) - 1)]
word = "resume" if name == "codex" else "--resume"
old = argv[argv.index(word) + 1] if word in argv else ""
if act == "gone":
    print(f"Error: thread/resume failed: no rollout found for thread id {{old}}" if name == "codex"
          else f"No conversation found with session ID: {{old}}", file=sys.stderr)
    sys.exit(1)
if act == "broken":
    sys.exit(1)
session = old or f"thread-{{number}}"
begin = {{"type": "thread.started", "thread_id": session}}
if name == "claude":
    begin = {{"type": "system", "subtype": "init", "session_id": session}}
print(json.dumps(begin), flush=True)
loop = max(p for p in (repo / ".humanize" / "rlcr").iterdir() if p.is_dir())
at = json.loads((loop / "journal.jsonl").read_text().splitlines()[-1])
n = at["round"]
if act == "fail":
    print("429 Too Many Requests", file=sys.stderr)
    sys.exit(1)
if act == "error":  # the client says so, and exits with 0 all the same
    print(json.dumps({{"type": "turn.failed", "error": {{"message": "overloaded"}}}} if name == "codex"
                     else {{"type": "result", "subtype": "success", "is_error": True, "result": "overloaded"}}))
    sys.exit(0)
if act in ("hang", "stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN if act == "stubborn" else signal.SIG_DFL)
    inner = subprocess.Popen(["sleep", "600"], start_new_session=True)  # a client's shell leads a group of its own
    (base / "hung").write_text(f"{{os.getpid()}} {{inner.pid}}")
    time.sleep(600)
if act in ("work", "last"):
    sys.path.insert(0, {top!r})
    from tests.rlcr.real import Real
    worker = Real.__new__(Real)
    worker.repo, worker.env = repo, dict(os.environ)
    worker.papers(n)
    worker.commit("a.txt", f"work {{number}}")
if act == "last":
    says = json.loads((base / "says.json").read_text())
    (base / "says.json").write_text(json.dumps({{**says, "done": {{"met": True, "why": "b", "missing": []}}}}))
if act == "final":
    (loop / "finalize-summary.md").write_text("# Finalize summary\\n\\nall made\\n")
text = f"said {{number}}"
print(json.dumps({{"type": "item.completed", "item": {{"type": "agent_message", "text": text}}}} if name == "codex"
                 else {{"type": "result", "subtype": "success", "is_error": False, "result": text}}))
"""


class Driven:
    """A repository, both fake clients and what they are to do, call after call; the last is done ever after."""

    def __init__(self, real: Real) -> None:
        self.real, self.calls_at = real, real.base / "calls.jsonl"
        self.started: list[subprocess.Popen[str]] = []
        tools = real.base / "bin"
        tools.mkdir()
        for name in AGENTS:
            text = CLIENT.format(python=sys.executable, base=str(real.base), repo=str(real.repo), top=TOP)
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        real.env |= {"PATH": f"{tools}:{real.env['PATH']}", "PYTHONPATH": str(ROOT)}

    def plays(self, *acts: str) -> None:
        (self.real.base / "plays.json").write_text(json.dumps(acts))

    def drive(self, *words: str, crash: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return self.real.run(*DRIVE, *words, crash=crash, **env)

    def begin(self, *words: str, agent: str = "codex", **more: str) -> subprocess.CompletedProcess[str]:
        return self.drive("--agent", agent, PLAN, "--reviewer", "evidence-only", *words, **more)

    def drive_here(self, patch: pytest.MonkeyPatch, *words: str) -> tuple[int, list[float]]:
        """In this process: exit code, and the pauses that were not waited for."""
        for name, value in self.real.env.items():
            patch.setenv(name, value)
        patch.chdir(self.real.repo)
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = [signal.getsignal(number) for number in numbers]
        slept: list[float] = []
        try:
            return drive.main(words, slept.append), slept
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def start(self, *words: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [*DRIVE, *words], cwd=self.real.repo, env=self.real.env, text=True, stderr=subprocess.PIPE
        )
        self.started.append(child)
        return child

    def close(self) -> None:
        """Whatever a failed test left at work."""
        for child in self.started:
            child.kill()
            child.communicate()
        hung = self.real.base / "hung"
        for pid in map(int, hung.read_text().split() if hung.exists() else ()):
            if not dead(pid):
                os.kill(pid, signal.SIGKILL)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.calls_at.read_text().splitlines()] if self.calls_at.exists() else []

    def resumed(self) -> list[str]:
        """The session that each call resumes, empty for a new one."""
        words = ("resume", "--resume")
        return [next((c["argv"][i + 1] for i, w in enumerate(c["argv"]) if w in words), "") for c in self.calls]

    def records(self) -> list[Path]:
        return list((self.real.home / ".local/state/humanize/drives").glob("*.json"))


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def dead_soon(*pids: int) -> None:
    until(lambda: all(dead(pid) for pid in pids), 5)
