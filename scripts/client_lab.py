"""A private HOME with both clients in it: runs of the clients over a script, and what our files say of them."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripted_model import Model, Shell, Turn

CLONE = Path(__file__).resolve().parents[1]
SCRIPTS = CLONE / "vendor" / "humanize" / "scripts"
PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "PIP_CONSTRAINT", "PIP_DEFAULT_TIMEOUT")
PLAN = ".humanize/kernel-agent/refined-plan.md"
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
PATIENCE_S = int(os.environ.get("CLIENT_LAB_PATIENCE_S", "200"))
"""Seconds that one run of a client may take."""
QUIET = ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER",
         "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX")  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """One run of a client: what it asked the model, what a reviewer below it asked, what it printed."""

    asked: list[dict[str, Any]]
    reviewed: list[dict[str, Any]]
    code: int
    out: str
    err: str

    def last_said(self, number: int) -> str:
        """Text of everything that request ``number`` (from 1) has and the one before has not."""
        if number > len(self.asked):
            return ""
        old, new = (items(self.asked[n - 1]) if n else [] for n in (number - 1, number))
        return "\n".join(texts([item for item in new if item not in old]))


def items(body: Mapping[str, Any]) -> list[Any]:
    """The conversation in a request."""
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
    """A Python with numpy, for the tasks."""
    bins: Mapping[str, str]
    """The clients' programs by their names; one that is not named is not there."""
    checks: list[dict[str, Any]] = field(default_factory=list)
    client: str = ""
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home, self.work, tools = self.top / "home", self.top / "desk", self.top / "tools"
        for folder in (self.home, self.work, tools):
            folder.mkdir(parents=True)
        for name, program in self.bins.items():
            (tools / name).symlink_to(program)
        self.repo = self.locked = self.work / "locked"
        self.codex, self.claude = self.home / ".codex", self.home / ".claude"
        self.codex.mkdir()
        (self.codex / "config.toml").write_text(CONFIG)
        # Codex runs commands in a login shell, and a login shell may set PATH anew.
        (self.home / ".profile").write_text(f'PATH="$HOME/.local/bin:{tools}:$PATH"\n')
        self.sessions = self.home / ".local" / "state" / "humanize" / "sessions"
        who = {f"GIT_{role}_{what}": f"{what.lower()}@example.invalid" for role in ("AUTHOR", "COMMITTER")
               for what in ("NAME", "EMAIL")}  # fmt: skip
        self.env = {
            "HOME": str(self.home), "PATH": f"{self.home}/.local/bin:{tools}:{os.environ['PATH']}", "LANG": "C.UTF-8",
            "KERNELPILOT_PYTHON": self.python, "TMPDIR": str(self.top), "SCRIPTED_KEY": "none",
            "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_MAX_RETRIES": "0", **dict.fromkeys(QUIET, "1"), **who,
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
            raise RuntimeError(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def fresh(self, name: str) -> Path:
        """A copy of the locked repo, from now on the one that the agent works in."""
        self.repo = self.work / name
        shutil.copytree(self.locked, self.repo, symlinks=True)
        return self.repo

    def here(self, command: str, repo: Path | None = None) -> str:
        """A command in the repo: Claude Code's shell stays where a command went, so each says where it belongs."""
        return f"cd {shlex.quote(str(repo or self.repo))} && {command}"

    def sh(self, command: str) -> Shell:
        """The agent runs a command in the repo."""
        return Shell(self.here(command))

    def begin(self, plan: str = PLAN, reviewer: str = "evidence-only") -> Shell:
        """The agent sets a loop up; the session's id comes from the client's own environment."""
        return self.sh(f"'{SCRIPTS}/setup-rlcr-loop.sh' {plan} --yolo --reviewer {reviewer}")

    def cancel(self, repo: Path | None = None) -> str:
        """The command that cancels the loop."""
        return self.here(f"'{SCRIPTS}/cancel-rlcr-loop.sh'", repo)

    def check(self, name: str, passed: object, seen: object = "") -> None:
        """Count one check; what was seen is printed and kept when it failed."""
        saw = {} if passed else {"saw": str(seen)[-1500:]}
        self.checks.append({"client": self.client, "check": name, "passed": bool(passed), **saw})
        print(f"{'ok  ' if passed else 'FAIL'} {self.client}: {name}", flush=True)
        if saw:
            print(f"     saw: {saw['saw']}")

    def failed(self) -> list[dict[str, Any]]:
        """The checks that failed so far."""
        return [c for c in self.checks if not c["passed"]]

    def entries(self) -> list[dict[str, Any]]:
        """The registry: one record for each session that drives a loop."""
        return [json.loads(p.read_text()) for p in sorted(self.sessions.glob("*.json"))]

    def fired(self) -> int:
        """How often the hook judged a Stop of the one loop."""
        return int(self.entries()[0].get("fired", 0)) if self.entries() else -1

    def loop(self) -> Path:
        """The newest loop."""
        return max((self.repo / ".humanize" / "rlcr").iterdir(), key=lambda p: p.name)

    def lines(self) -> list[dict[str, Any]]:
        """The newest loop's journal."""
        return [json.loads(line) for line in (self.loop() / "journal.jsonl").read_text().splitlines()]

    def stops(self) -> list[dict[str, Any]]:
        """The decisions of the newest loop, from its journal."""
        return [line["data"] for line in self.lines() if line.get("event") == "intent"]

    def over(self) -> None:
        """End whatever loop a failed check may have left."""
        self.run(["sh", "-c", self.cancel() + " --force"])

    def doctor(self, name: str, cwd: Path | None = None) -> str:
        """What ``kernelpilot doctor`` says in one check."""
        done = self.run(["kernelpilot", "doctor", "--json"], cwd)
        try:
            found = json.loads(done.stdout)["checks"]
        except (ValueError, KeyError):
            return done.stdout + done.stderr
        return "; ".join(f"{c['status']}: {c['what']}" for c in found if c["name"].startswith(name))

    def point(self, port: int) -> dict[str, str]:
        """Point both clients at the model on ``port``; the variables that do it for Claude Code."""
        path = self.codex / "config.toml"
        path.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", path.read_text()))
        return {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}"}

    def play(self, prompt: str, turns: Sequence[Turn], *words: str, reviews: Sequence[Turn] = (),
             cwd: Path | None = None) -> Ran:  # fmt: skip
        """One headless run of the client over a script; a reviewer that its hook starts has a script of its own."""
        with Model(turns, reviews) as model:
            extra = self.point(model.port)
            argv = [self.bins[self.client], *HEADLESS[self.client], *words, prompt]
            try:
                done = self.run(argv, cwd, extra, seconds=PATIENCE_S)
            except subprocess.TimeoutExpired as late:
                err = f"{(late.stderr or b'').decode()}\nnot over after {PATIENCE_S} s"
                return Ran(model.asked, model.reviewed, -1, (late.stdout or b"").decode(), err)
            return Ran(model.asked, model.reviewed, done.returncode, done.stdout, done.stderr)


HEADLESS = {
    "codex": ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    "claude": ("-p", "--dangerously-skip-permissions", "--verbose", "--output-format", "stream-json"),
}
WRAPPED = {
    "codex": r"<hook_prompt hook_run_id=[^>]*>(.*?)</hook_prompt>",
    "claude": r"Stop hook feedback:\s*(.*?)\s*(?:</system-reminder>|\Z)",
}
READ = re.compile(r"Read (\S+) and do what it says")


def reason(lab: Lab, ran: Ran, number: int) -> str:
    """The hook's reason as the model got it in request ``number``, empty when it is not there."""
    found = re.search(WRAPPED[lab.client], ran.last_said(number), re.DOTALL)
    return html.unescape(found.group(1)) if found else ""


def rpc(lab: Lab, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Results of calls to ``codex app-server``."""
    child = subprocess.Popen([lab.bins["codex"], "app-server"], cwd=lab.work, env=lab.env, text=True,
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


def hooks_seen(lab: Lab) -> list[dict[str, Any]]:
    """The hooks that Codex sees, with their trust."""
    listed = rpc(lab, ("hooks/list", {"cwds": [str(lab.work)]}))[0] or {"data": []}
    return [hook for folder in listed["data"] for hook in folder["hooks"]]


def trust(lab: Lab) -> None:
    """What the user's review of the hook leaves behind: Codex's own record of it, made by Codex."""
    edits = [{"keyPath": "hooks.state", "mergeStrategy": "upsert",
              "value": {h["key"]: {"trusted_hash": h["currentHash"]}}} for h in hooks_seen(lab)]  # fmt: skip
    rpc(lab, ("config/batchWrite", {"edits": edits, "reloadUserConfig": True}))


def lend_venv(lab: Lab) -> None:
    """Give the installer this interpreter's packages as the finished venv that it would else spend pip on.

    Where it does not find the venv to be what it wants, it builds its own.
    """
    sys.path[:0] = [str(CLONE / "lib")]
    from kernelpilot_install.places import places  # noqa: PLC0415 (the script runs without it up to here)
    from kernelpilot_install.plan import tool_recipe  # noqa: PLC0415
    from kernelpilot_install.venvs import STAMP  # noqa: PLC0415

    recipe = tool_recipe(places(lab.env, CLONE), dev=False)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(recipe.path)], check=True)
    (site,) = recipe.path.glob("lib/python*/site-packages")
    lent = [str(CLONE / "lib"), *(p for p in sys.path if p.endswith("-packages"))]
    (site / "lent.pth").write_text("\n".join(lent) + "\n")
    program = recipe.path / "bin" / "kernelpilot"
    program.write_text(f"#!{recipe.python}\nfrom kernelpilot_helpers.__main__ import main\n\nmain()\n")
    program.chmod(0o755)
    (recipe.path / STAMP).write_text(json.dumps(recipe.stamp()))
