"""What the loop costs: the Stop hook without a loop, beside another session's, and as Gate A of a long loop.

python scripts/loop_study.py [--repo DIR] [--rounds 84] --out docs/measurements/loop.json

Gate A is a Stop that the loop's own rules refuse, in a loop of that many rounds and without evidence commands;
hyperfine times it where it is installed. With --repo the kernel gate over that repo is timed too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "vendor" / "humanize"
HOOK = ROOT / "hooks" / "stop-hook"
REVIEWER = """\
#!{python}
import json, sys
from pathlib import Path
argv = sys.argv[1:]
if argv[:2] != ["features", "list"]:
    sys.stdin.read()
    said = {{"verdict": "continue", "mainline": "advanced", "acs": [], "findings": [], "text": "go on"}}
    Path(argv[argv.index("--output-last-message") + 1]).write_text(json.dumps(said))
"""
HEADINGS = (
    "Mainline objective",
    "Target acceptance criteria",
    "Blocking in scope",
    "Queued out of scope",
    "Success criteria",
)
PLAN = "# Plan\n\n## Goal\n\nBe fast.\n\n## Acceptance Criteria\n\n- it is fast\n- it is right\n- it is written down\n"
PAYLOAD = {"session_id": "nobody", "cwd": "/", "hook_event_name": "Stop", "stop_hook_active": False}


def timed_ms(
    argv: list[str], runs: int, *, env: dict[str, str], data: str = "", cwd: Path | None = None
) -> dict[str, float]:
    """Wall milliseconds of a command: median, best and worst of several runs; every one must print nothing or JSON."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(argv, input=data, capture_output=True, text=True, check=False, env=env, cwd=cwd)
        found.append((time.perf_counter() - start) * 1000)
        if done.stdout:
            json.loads(done.stdout)
    return {"median": statistics.median(found), "min": min(found), "max": max(found), "runs": runs}


def stops_ms(top: Path, runs: int, *, env: dict[str, str], prepare: str = "") -> dict[str, object]:
    """Milliseconds of one Stop, by hyperfine where it is installed; ``prepare`` is a shell line before each run."""
    scripts = {"stop": f"exec '{HOOK}' <'{top}/payload.json'", "again": prepare or ":"}
    (top / "payload.json").write_text(json.dumps(PAYLOAD | {"last_assistant_message": "the end"}))
    for name, line in scripts.items():
        (top / name).write_text(f"#!/bin/sh\n{line}\n")
        (top / name).chmod(0o755)
    stop, again = f"{top}/stop", f"{top}/again"
    if shutil.which("hyperfine", path=env["PATH"]):
        report = top / "hyperfine.json"
        words = f"--runs {runs} --warmup 2 --prepare {again} --export-json {report} --shell none {stop}"
        subprocess.run(["hyperfine", *words.split()], cwd=top, env=env, check=True, capture_output=True)
        found = json.loads(report.read_text())["results"][0]
        return {"timer": "hyperfine", **{k: found[k] * 1000 for k in ("median", "min", "max")}, "runs": runs}
    times = []
    for _ in range(runs):
        subprocess.run([again], check=True)
        times.append(timed_ms([stop], 1, env=env, cwd=top)["median"])
    return {"timer": "perf_counter", "median": statistics.median(times), "min": min(times), "max": max(times),
            "runs": runs}  # fmt: skip


def hook_ms(runs: int) -> dict[str, object]:
    """The hook where no session has a loop, and where another session has one."""
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home}
        out: dict[str, object] = {"no_loop_ms": stops_ms(Path(home), runs, env=env)}
        state = Path(home, ".local/state/humanize")
        (state / "sessions").mkdir(parents=True)
        (state / "sessions" / f"{'0' * 64}.json").write_text("{}")
        (state / "python").write_text(os.path.realpath(sys.executable) + "\n")
        out["another_sessions_loop_ms"] = stops_ms(Path(home), runs, env=env)
    return out


def long_loop(top: Path, rounds: int) -> dict[str, str]:
    """A loop in its last round below ``top``, its worktree left unclean; the environment that its hook needs."""
    repo, tools = top / "repo", top / "bin"
    for folder in (repo / ".humanize", tools, top / "home"):
        folder.mkdir(parents=True)
    reviewer = tools / "codex"
    reviewer.write_text(REVIEWER.format(python=sys.executable))
    reviewer.chmod(0o755)
    who = {
        f"GIT_{role}_{what}": "study@example.invalid" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    env = {"PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(top / "home"), **who}

    def run(*argv: object, data: str = "") -> str:
        words = [str(word) for word in argv]
        done = subprocess.run(words, cwd=repo, env=env, input=data, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def work(number: int, loop: Path) -> None:
        (repo / "a.txt").write_text(f"round {number}\n")
        run("git", "commit", "-qam", f"round {number}")
        text = "".join(f"## {heading}\n\nwork\n\n" for heading in HEADINGS)
        (loop / f"round-{number}-contract.md").write_text(text)
        (loop / f"round-{number}-summary.md").write_text(f"# Round {number} summary\n\n## What was done\n\nwork\n")

    run("git", "init", "-q", "-b", "main")
    (repo / ".gitignore").write_text(".humanize*\n")
    (repo / "a.txt").write_text("first\n")
    run("git", "add", "-A")
    run("git", "commit", "-qm", "first")
    (repo / ".humanize" / "plan.md").write_text(PLAN)
    run(ROOT / "scripts" / "setup-rlcr-loop.sh", ".humanize/plan.md", "--reviewer", "codex", "--session-id", "nobody")
    (loop,) = (repo / ".humanize" / "rlcr").glob("*-*")
    for number in range(rounds - 1):
        work(number, loop)
        said = json.loads(run(HOOK, data=json.dumps(PAYLOAD | {"last_assistant_message": f"round {number}"})))
        if "begins" not in said.get("reason", ""):
            sys.exit(f"round {number} was not followed by another one: {said}")
    work(rounds - 1, loop)
    (repo / "left.txt").write_text("not committed\n")
    return env


def gate_a_ms(rounds: int, runs: int) -> dict[str, object]:
    """A Stop that the rules refuse, in round ``rounds`` of a loop, always from the same state on disk."""
    with tempfile.TemporaryDirectory() as folder:
        top, kept = Path(folder, "at"), Path(folder, "kept")
        env = long_loop(top, rounds)
        shutil.copytree(top, kept, symlinks=True)
        again = f"rm -rf '{top}' && cp -a '{kept}' '{top}'"
        took = stops_ms(Path(folder), runs, env=env, prepare=again)
        return {"rounds": rounds, "journal_bytes": _journal_bytes(kept), **took}


def _journal_bytes(top: Path) -> int:
    return sum(path.stat().st_size for path in top.glob("repo/.humanize/rlcr/*/journal.jsonl"))


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", type=Path, help="a standalone repo, such as the demo's: its gate is timed too")
    parser.add_argument("--rounds", type=int, default=0, help="time Gate A in a loop of this many rounds (84)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    env = dict(os.environ)
    result: dict[str, object] = {
        "command": "python scripts/loop_study.py"
        + (" --repo DEMO" if options.repo else "")
        + (f" --rounds {options.rounds}" if options.rounds else ""),
        "machine": {"cores": os.cpu_count(), "python": sys.version.split()[0], "load": os.getloadavg()[0]},
        **hook_ms(25),
    }
    if options.rounds:
        result["gate_a_ms"] = gate_a_ms(options.rounds, 20)
    if options.repo:
        gate = [sys.executable, "-m", "kernelpilot_helpers", "gate", "--final", "--json"]
        said = json.loads(subprocess.run(gate, cwd=options.repo, capture_output=True, text=True, check=False).stdout)
        result["gate"] = {"pass": said["pass"], "done": said["done"]["met"], "findings": len(said["findings"])}
        result["gate_ms"] = timed_ms(gate, 5, env=env, cwd=options.repo)
        search = [sys.executable, "-m", "kernelpilot_helpers", "knowledge", "search", "fused add rmsnorm", "--json"]
        result["knowledge_search_ms"] = timed_ms(search, 10, env=env)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
