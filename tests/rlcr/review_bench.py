"""A PATH with one fake reviewer on it, and the request that calls it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlcr.review import KINDS, Infra, Request, Verdict

SUMMARY = "artifacts/runs/v001/summary.json"
PLAN = "docs/plan.md"
GOOD: dict[str, Any] = {
    "verdict": "continue",
    "mainline": "advanced",
    "acs": [{"id": "AC-1", "status": "met", "evidence": SUMMARY}],
    "findings": [
        {"id": "new", "priority": "P1", "file": "src/a.py", "line": 7, "claim": "Off by one.", "locus": "in-round"}
    ],
    "text": "Mend the loop bound.",
}
PREAMBLE = """#!{python}
import json, os, signal, subprocess, sys, time
from pathlib import Path
argv = sys.argv[1:]
if argv[:2] == ["features", "list"]:
    print("apps  stable  true\\nhooks  stable  true\\nplugin_hooks  removed  false")
    sys.exit(0)
here = Path({here!r})
prompt = sys.stdin.read()
seen = {{"argv": argv, "prompt": prompt, "env": dict(os.environ), "cwd": os.getcwd()}}
(here / "seen.json").write_text(json.dumps(seen))
out = Path(argv[argv.index("--output-last-message") + 1]) if "--output-last-message" in argv else None
"""


class Bench:
    """One project, one loop, one evidence file, and a PATH of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.worktree = root / "project"
        self.loop = self.worktree / ".humanize" / "rlcr" / "2026-11-30_08-00-00"
        self.loop.mkdir(parents=True)
        self.evidence = self.loop / "round-2-evidence.json"
        self.head = self.committed(SUMMARY, "src/a.py", "src/deep/b c.py", PLAN)
        self.ran(gate=True, slow=False)
        self.cache = root / "cache"
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.cache))
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")

    def git(self, *args: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.bin), "GIT_CONFIG_NOSYSTEM": "1"}
        who = ("-c", "user.name=w", "-c", "user.email=w@example.org")
        done = subprocess.run(
            ["git", *who, *args], cwd=self.worktree, env=env, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.strip()

    def committed(self, *names: str) -> str:
        """Commit files with these names; the new HEAD."""
        if not (self.worktree / ".git").exists():
            self.git("init", "-q")
            (self.worktree / ".gitignore").write_text(".humanize*\n")
        for name in names:
            (self.worktree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.worktree / name).write_text(name)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "work")
        return self.git("rev-parse", "HEAD")

    def ran(self, head: str = "", **passed: bool) -> None:
        """The evidence file: commands by name, and whether they passed."""
        checks = [{"name": name, "passed": good} for name, good in passed.items()]
        self.evidence.write_text(json.dumps({"head": head or self.head, "checks": checks}))

    def fake(self, body: str, *, name: str = "codex") -> None:
        path = self.bin / name
        path.write_text(PREAMBLE.format(python=sys.executable, here=str(self.bin)) + body)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def says(self, message: str, *, name: str = "codex") -> None:
        """A codex whose final message is ``message``."""
        self.fake(f"out.write_text({message!r})\n", name=name)

    def request(self, **changed: Any) -> Request:
        plain = Request(
            reviewer="codex",
            loop_dir=self.loop,
            worktree=self.worktree,
            round=2,
            phase="BUILD",
            base_commit="a" * 40,
            head=self.head,
            plan_path=self.worktree / PLAN,
            summary_path=self.loop / "round-2-summary.md",
            evidence_path=self.evidence,
            prior_open=(),
            deadline_s=60.0,
            model="some-model",
            effort="high",
            full=True,
        )
        return replace(plain, **changed)

    def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.bin / "seen.json").read_text())
        return found


def kind(answer: Verdict | Infra) -> str:
    assert isinstance(answer, Infra), answer
    assert answer.kind in KINDS
    return answer.kind


def passed(answer: Verdict | Infra) -> Verdict:
    assert isinstance(answer, Verdict), answer
    return answer
