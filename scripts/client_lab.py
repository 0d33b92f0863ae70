"""A private HOME with both clients in it, for client_check.py: runs of the clients, and what our files say of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripted_model import Model, Turn

CLONE = Path(__file__).resolve().parents[1]
SCRIPTS = CLONE / "vendor" / "humanize" / "scripts"
PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "PIP_CONSTRAINT", "PIP_DEFAULT_TIMEOUT")
GO = 'cd "${HOME%/home}/desk/repo" && '
"""Claude Code's shell stays where a command went, so every command says where it belongs."""
CANCEL = f"{GO}'{SCRIPTS}/cancel-rlcr-loop.sh'"
CONFIG = """model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
unbounded_connection_retries = false
enable_request_compression = false
apps = false
plugins = false
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


@dataclass(frozen=True)
class Ran:
    """One run of a client: what it asked the model, what it printed."""

    asked: list[dict[str, Any]]
    code: int
    out: str
    err: str

    def last_said(self, number: int) -> str:
        """Text of everything that request ``number`` (from 1) has and the one before has not."""
        if number > len(self.asked):
            return ""
        old, new = (self._items(n) for n in (number - 1, number))
        return "\n".join(texts([item for item in new if item not in old]))

    def _items(self, number: int) -> list[Any]:
        body = self.asked[number - 1] if number else {}
        return list(body.get("input") or body.get("messages") or [])


def texts(value: object) -> list[str]:
    """Every text in a request."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in texts(item)]


@dataclass
class Lab:
    """A private HOME with KernelPilot installed, a locked repo below the sessions' folder, and the tally."""

    top: Path
    python: str
    checks: list[dict[str, Any]] = field(default_factory=list)
    client: str = ""
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home, self.work = self.top / "home", self.top / "desk"
        for folder in (self.home, self.work):
            folder.mkdir()
        self.repo = self.work / "repo"
        self.codex, self.claude = self.home / ".codex", self.home / ".claude"
        self.sessions = self.home / ".local" / "state" / "humanize" / "sessions"
        who = {f"GIT_{role}_{what}": f"{what.lower()}@example.invalid" for role in ("AUTHOR", "COMMITTER")
               for what in ("NAME", "EMAIL")}  # fmt: skip
        self.env = {
            "HOME": str(self.home), "PATH": f"{self.home}/.local/bin:{os.environ['PATH']}", "LANG": "C.UTF-8",
            "KERNELPILOT_PYTHON": self.python, "TMPDIR": str(self.top), **who,
            **{name: os.environ[name] for name in PIP if name in os.environ},
        }  # fmt: skip

    def run(self, argv: Sequence[str], cwd: Path | None = None, extra: Mapping[str, str] | None = None,
            seconds: int = 600) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a command in the private environment."""
        return subprocess.run(list(argv), cwd=cwd or self.work, env={**self.env, **(extra or {})}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)  # fmt: skip

    def must(self, *argv: str, cwd: Path | None = None) -> str:
        """Run a command that has to succeed, and give what it printed."""
        done = self.run(argv, cwd)
        if done.returncode:
            sys.exit(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def check(self, name: str, passed: object, seen: object = "") -> None:
        """Count one check; what was seen is printed when it failed."""
        self.checks.append({"client": self.client, "check": name, "passed": bool(passed)})
        print(f"{'ok  ' if passed else 'FAIL'} {self.client}: {name}", flush=True)
        if not passed:
            print(f"     saw: {str(seen)[-1500:]}")

    def entries(self) -> list[dict[str, Any]]:
        """The registry: one record for each session that drives a loop."""
        return [json.loads(p.read_text()) for p in sorted(self.sessions.glob("*.json"))]

    def fired(self) -> int:
        """How often the hook judged a Stop of the one loop."""
        return int(self.entries()[0].get("fired", 0)) if self.entries() else -1

    def loop(self) -> Path:
        """The newest loop."""
        return max((self.repo / ".humanize" / "rlcr").iterdir(), key=lambda p: p.name)

    def stops(self) -> list[dict[str, Any]]:
        """The decisions of the newest loop, from its journal."""
        lines = [json.loads(line) for line in (self.loop() / "journal.jsonl").read_text().splitlines()]
        return [line["data"] for line in lines if line.get("event") == "intent"]

    def over(self) -> None:
        """End whatever loop a failed check may have left."""
        self.run(["sh", "-c", CANCEL + " --force"])

    def doctor(self, name: str, cwd: Path | None = None) -> str:
        """What ``kernelpilot doctor`` says in one check."""
        done = self.run(["kernelpilot", "doctor", "--json"], cwd)
        try:
            found = json.loads(done.stdout)["checks"]
        except (ValueError, KeyError):
            return done.stdout + done.stderr
        return "; ".join(f"{c['status']}: {c['what']}" for c in found if c["name"].startswith(name))


def play_codex(lab: Lab, prompt: str, turns: Sequence[Turn], *words: str) -> Ran:
    """One ``codex exec`` over a script."""
    with Model(turns) as model:
        path = lab.codex / "config.toml"
        text = path.read_text() if path.exists() else CONFIG
        path.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{model.port}", text))
        argv = [os.environ["CODEX_BIN"], "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        done = lab.run([*argv, *words, prompt], extra={"SCRIPTED_KEY": "none"}, seconds=240)
        return Ran(model.asked, done.returncode, done.stdout, done.stderr)


def play_claude(lab: Lab, prompt: str, turns: Sequence[Turn], *words: str) -> Ran:
    """One ``claude -p`` over a script."""
    with Model(turns) as model:
        off = ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX")  # fmt: skip
        extra = dict.fromkeys(off, "1")
        extra |= {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}", "ANTHROPIC_API_KEY": "none"}
        argv = [os.environ["CLAUDE_BIN"], "-p", "--dangerously-skip-permissions", "--verbose"]
        done = lab.run([*argv, "--output-format", "stream-json", *words, prompt], extra=extra, seconds=240)
        return Ran(model.asked, done.returncode, done.stdout, done.stderr)


PLAY = {"codex": play_codex, "claude": play_claude}
WRAPPED = {
    "codex": r"<hook_prompt hook_run_id=[^>]*>(.*?)</hook_prompt>",
    "claude": r"Stop hook feedback:\s*(.*?)\s*(?:</system-reminder>|\Z)",
}


def reason(lab: Lab, ran: Ran, number: int) -> str:
    """The hook's reason as the model got it in request ``number``, empty when it is not there."""
    found = re.search(WRAPPED[lab.client], ran.last_said(number), re.DOTALL)
    return found.group(1) if found else ""


def rpc(lab: Lab, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Results of calls to ``codex app-server``."""
    child = subprocess.Popen([os.environ["CODEX_BIN"], "app-server"], cwd=lab.work, env=lab.env, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip
    hello = {
        "clientInfo": {"name": "check", "title": "check", "version": "0"},
        "capabilities": {"experimentalApi": True},
    }
    results = []
    with child:
        assert child.stdin and child.stdout
        for number, (method, params) in enumerate([("initialize", hello), *calls], start=1):
            child.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
            child.stdin.flush()
            for line in child.stdout:
                said = json.loads(line)
                if said.get("id") == number and said.keys() & {"result", "error"}:
                    results.append(said.get("result"))
                    break
            if number == 1:
                child.stdin.write(json.dumps({"method": "initialized"}) + "\n")
        child.stdin.close()
    return results[1:]
