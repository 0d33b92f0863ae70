"""How long the tool takes to start, and the demo to play.

python scripts/startup_study.py [--demo] --out docs/measurements/start-up.json
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


def timed_ms(argv: list[str], runs: int) -> dict[str, float]:
    """Wall milliseconds of a command: median, best and worst of several runs."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(argv, check=True, capture_output=True)
        found.append((time.perf_counter() - start) * 1000)
    return {"median": statistics.median(found), "min": min(found), "max": max(found), "runs": runs}


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", action="store_true", help="play the demo too (a minute or two)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    python = sys.executable
    result: dict[str, object] = {
        "command": "python scripts/startup_study.py" + (" --demo" if options.demo else ""),
        "machine": {"cores": os.cpu_count(), "python": sys.version.split()[0], "load": os.getloadavg()[0]},
        "python_alone_ms": timed_ms([python, "-c", "pass"], 20),
        "import_ms": timed_ms([python, "-c", "import kernelpilot_helpers"], 20),
        "help_ms": timed_ms([python, "-m", "kernelpilot_helpers", "--help"], 20),
    }
    if options.demo:
        with tempfile.TemporaryDirectory() as tmp:
            argv = [python, "-m", "kernelpilot_helpers", "demo", "--dir", f"{tmp}/demo", "--json"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            said = json.loads(done.stdout)
        result["demo"] = {k: said[k] for k in ("state", "seconds")} | {
            "attempts": [{k: a[k] for k in ("version", "verdict")} for a in said["attempts"]]
        }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
