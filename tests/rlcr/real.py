"""A real repository with a loop, driven by the real scripts and the real hook launcher, in a private HOME."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2] / "vendor" / "humanize"
HOOK = ROOT / "hooks" / "stop-hook"
SETUP = ROOT / "scripts" / "setup-rlcr-loop.sh"
CANCEL = ROOT / "scripts" / "cancel-rlcr-loop.sh"
GATE = ROOT / "scripts" / "rlcr-stop-gate.sh"
RLCR = ROOT / "scripts" / "rlcr"
SESSION = "session-1"
PLAN = ".humanize/plan.md"
PLAN_TEXT = """# Plan

## Goal Description

Make it fast.

## Acceptance Criteria

""" + "".join(f"- AC-{n}: criterion number {n}\n" for n in range(1, 22))

ACS = tuple(f"AC-{n}" for n in range(1, 22))
TABLES = {
    "#### Active Tasks": "| task {ac} | {ac} | done | coding | w | - |",
    "### Completed and Verified": "| {ac} | task {ac} | 0 | 0 | gate |",
}
"""Rows that the worker writes into the goal tracker, one for each criterion."""

COMMAND = """\
import json, os, sys, time
from pathlib import Path
Path("{log}").open("a").write(os.environ["RLCR_PHASE"] + " " + os.environ["RLCR_ROUND"] + "\\n")
said = json.loads(Path("{says}").read_text())
time.sleep(said.get("sleep", 0))
print(said["raw"] if "raw" in said else json.dumps(said))
sys.exit(said.get("exit", 0 if said.get("pass") else 1))
"""

CODEX = """\
#!{python}
import json, sys
from pathlib import Path
argv = sys.argv[1:]
if argv[:2] == ["features", "list"]:
    print("hooks  stable  true")
    sys.exit(0)
sys.stdin.read()
Path({log!r}).open("a").write("bought\\n")
Path(argv[argv.index("--output-last-message") + 1]).write_text(Path({says!r}).read_text())
"""


class Real:
    """A worker's view of a loop."""

    def __init__(self, base: Path) -> None:
        self.base, self.repo, self.home = base, base / "repo", base / "home"
        self.says, self.log, self.script = base / "says.json", base / "ran.log", base / "gate.py"
        for folder in (self.repo / ".humanize", self.home):
            folder.mkdir(parents=True)
        keep = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR")}
        # The test's own interpreter comes first: a pyenv shim would cost more than the whole hook.
        keep["PATH"] = f"{Path(sys.executable).parent}:{keep['PATH']}"
        self.env = {**keep, "HOME": str(self.home)}
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.email", "w@example.org")
        self.git("config", "user.name", "w")
        (self.repo / ".gitignore").write_text(".humanize*\n")
        self.commit("a.txt", "0")
        (self.repo / PLAN).write_text(PLAN_TEXT)
        self.script.write_text(COMMAND.format(log=self.log, says=self.says))
        self.answer()
        self.evidence()

    def evidence(self, timeout_s: float = 60) -> None:
        command = {"name": "gate", "argv": [sys.executable, str(self.script)], "timeout_s": timeout_s}
        data = {"format": "humanize.evidence", "version": 1, "commands": [command]}
        (self.repo / ".humanize" / "evidence.json").write_text(json.dumps(data))

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.repo, env=self.env, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, name: str, text: str) -> None:
        (self.repo / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"{name} {text}")

    def answer(self, *, passed: bool = True, met: bool = False, **over: Any) -> None:
        """What the evidence command will say."""
        found = (
            [] if passed else [{"rule": "12", "severity": "block", "where": "v1", "what": "no row", "fix": "make it"}]
        )
        done = {"met": met, "why": "because", "missing": [] if met else ["the target"]}
        said = {"pass": passed, "done": done, "findings": found, "not_evaluated": []}
        self.says.write_text(json.dumps({**said, **over}))

    def reviewer(self) -> Path:
        """Put a fake codex first on PATH; the file to which it adds a line a call."""
        tools, log = self.base / "bin", self.base / "bought"
        tools.mkdir()
        program = tools / "codex"
        program.write_text(CODEX.format(python=sys.executable, log=str(log), says=str(self.base / "review.json")))
        program.chmod(0o755)
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"
        return log

    def reviews(self, verdict: str, *claims: str, mainline: str = "advanced", priority: str = "P1") -> None:
        """What the fake reviewer will say."""
        found = [
            {"id": "new", "priority": priority, "file": "a.txt", "line": 1, "claim": c, "locus": "in-round"}
            for c in claims
        ]
        acs = [{"id": ac, "status": "met", "evidence": "gate"} for ac in ACS]
        said = {"verdict": verdict, "mainline": mainline, "acs": acs, "findings": found, "text": "Look again."}
        (self.base / "review.json").write_text(json.dumps(said))

    def run(self, *argv: str | Path, crash: str = "", stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        extra = {"KP_CRASH_AT": crash} if crash else {}
        return subprocess.run(
            [str(a) for a in argv], cwd=self.repo, env={**self.env, **extra, **env}, input=stdin, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip

    def setup(self, *more: str, plan: str = PLAN, crash: str = "") -> subprocess.CompletedProcess[str]:
        words = ("--yolo", "--session-id", SESSION, "--reviewer", "evidence-only", *more)
        return self.run(SETUP, *([plan] if plan else []), *words, crash=crash)

    def payload(self, message: str = "done", session: str = SESSION) -> str:
        return json.dumps(
            {"session_id": session, "turn_id": "t", "transcript_path": None, "cwd": str(self.repo), "model": "m",
             "hook_event_name": "Stop", "permission_mode": "default", "stop_hook_active": False,
             "last_assistant_message": message}
        )  # fmt: skip

    def stop(self, message: str = "done", crash: str = "", **env: str) -> dict[str, str]:
        """One Stop through the launcher; the parsed answer, {} for silence."""
        done = self.run(HOOK, crash=crash, stdin=self.payload(message), **env)
        assert done.returncode == (-9 if crash else 0), (done.returncode, done.stderr)
        assert crash or not done.stderr, done.stderr
        return json.loads(done.stdout) if done.stdout else {}

    @property
    def loop(self) -> Path:
        (found,) = (self.repo / ".humanize" / "rlcr").glob("*-*")
        return found

    @property
    def entry(self) -> Path:
        (found,) = (self.home / ".local/state/humanize/sessions").glob("*.json")
        return found

    @property
    def registered(self) -> bool:
        return bool(list((self.home / ".local/state/humanize/sessions").glob("*.json")))

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.loop / "journal.jsonl").read_text().splitlines()[1:]]

    @property
    def at(self) -> tuple[str, int]:
        last = self.lines()[-1]
        return last["phase"], last["round"]

    def track(self, acs: Sequence[str] = ACS, tables: Mapping[str, str] = TABLES) -> None:
        """Fill the tables of the goal tracker that have no row yet."""
        path = self.loop / "goal-tracker.md"
        text = path.read_text() if path.is_file() else ""
        for heading, row in tables.items():
            before, found, after = text.partition(f"{heading}\n")
            head, line, rest = after.partition("---|\n")
            if found and not rest.startswith("|"):
                text = before + found + head + line + "".join(row.format(ac=ac) + "\n" for ac in acs) + rest
        if text:
            path.write_text(text)

    def papers(self, n: int, more: str = "") -> None:
        """Contract, summary and goal tracker of a round."""
        self.track()
        heads = ("Mainline objective", "Target acceptance criteria", "Blocking in scope", "Queued out of scope",
                 "Success criteria")  # fmt: skip
        (self.loop / f"round-{n}-contract.md").write_text("".join(f"## {h}\n\nAC-1\n\n" for h in heads))
        (self.loop / f"round-{n}-summary.md").write_text(f"# Round {n} summary\n\n## What was done\n\nwork {n}\n{more}")

    def work(self, n: int) -> None:
        """A round of honest work."""
        self.papers(n)
        self.commit("a.txt", f"round {n}")
