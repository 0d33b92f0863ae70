"""What the loop costs: the Stop hook without a loop, beside another session's loop, and the gate over a repo.

python scripts/loop_study.py [--repo DIR] --out docs/measurements/loop.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOOK = Path(__file__).resolve().parents[1] / "vendor" / "humanize" / "hooks" / "stop-hook"
PAYLOAD = {"session_id": "nobody", "cwd": "/", "hook_event_name": "Stop", "stop_hook_active": False}


def timed_ms(argv: list[str], runs: int, *, env: dict[str, str], data: str = "", cwd: Path | None = None) -> object:
    """Wall milliseconds of a command: median, best and worst of several runs; every one must print nothing or JSON."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(argv, input=data, capture_output=True, text=True, check=False, env=env, cwd=cwd)
        found.append((time.perf_counter() - start) * 1000)
        if done.stdout:
            json.loads(done.stdout)
    return {"median": statistics.median(found), "min": min(found), "max": max(found), "runs": runs}


def hook_ms(runs: int) -> dict[str, object]:
    """The hook where no session has a loop, and where another session has one."""
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home}
        data = json.dumps(PAYLOAD)
        out: dict[str, object] = {"no_loop_ms": timed_ms([str(HOOK)], runs, env=env, data=data, cwd=Path(home))}
        state = Path(home, ".local/state/humanize")
        (state / "sessions").mkdir(parents=True)
        (state / "sessions" / f"{'0' * 64}.json").write_text("{}")
        (state / "python").write_text(os.path.realpath(sys.executable) + "\n")
        out["another_sessions_loop_ms"] = timed_ms([str(HOOK)], runs, env=env, data=data, cwd=Path(home))
    return out


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", type=Path, help="a standalone repo, such as the demo's: its gate is timed too")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    env = dict(os.environ)
    result: dict[str, object] = {
        "command": "python scripts/loop_study.py" + (" --repo DEMO" if options.repo else ""),
        "machine": {"cores": os.cpu_count(), "python": sys.version.split()[0], "load": os.getloadavg()[0]},
        **hook_ms(25),
    }
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
