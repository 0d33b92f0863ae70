"""The generated dispatcher on a real GPU, in a process that has nothing of the tool and starts without any cache.

    python scripts/dispatcher_gpu.py --out docs/measurements/dispatcher-gpu.json
    python scripts/dispatcher_gpu.py --thorough     # also two extensions of one name, and extensions on a second GPU

A repo is made by the tool's own steps over a played lab (scripts/dispatcher_repo.py): NVRTC, Triton, autotuned Triton,
a torch extension and plain torch, each for a shape of its own. Then scripts/dispatcher_checks.py runs in the task's
Python (KERNELPILOT_PYTHON, the active venv, or python3; torch for CUDA, nvcc, ninja and c++ for the extension): called
eagerly, as the torch operator, from two threads, captured and replayed on new content, on a second GPU, outside the
map, with the builds deleted; and the host time of a call beside the chosen version's own. Exit status 1 when one fails.
"""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dispatcher_repo
from kernelpilot_helpers.executors import task_python

CHECKS = Path(__file__).resolve().with_name("dispatcher_checks.py")
NAMES = (
    "eager", "operator", "threads", "graph", "second_gpu", "outside", "overhead", "load_beside",
    "caller", "lost_builds",
)  # fmt: skip
WHAT = (
    "The generated dispatcher of the built-in task add_rmsnorm used on a GPU: what was checked, seconds of the first "
    "call of each version (it builds), and host microseconds of a call through the dispatcher beside the direct call "
    "of the version it chose, taken in turn in one process. Which version serves which shape was played, not measured."
)
LIMIT_S = 150.0
CACHES = ("TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")
DRIVER = Path("/proc/driver/nvidia/version")


def environment(folder: Path) -> dict[str, str]:
    """The caller's, with empty folders for home, caches and builds, and without the tool on the path."""
    env = {k: v for k, v in os.environ.items() if k not in CACHES}
    for name, variable in (("home", "HOME"), ("cache", "XDG_CACHE_HOME"), ("builds", "TMPDIR")):
        (folder / name).mkdir()
        env[variable] = str(folder / name)
    env.setdefault("PYTHONUSERBASE", str(Path.home() / ".local"))  # a torch that was installed there is still found
    path = [
        p for p in env.pop("PYTHONPATH", "").split(os.pathsep) if p and not (Path(p) / "kernelpilot_helpers").exists()
    ]
    return {**env, **({"PYTHONPATH": os.pathsep.join(path)} if path else {})}


def driver() -> str:
    """The NVIDIA driver's version; empty where nothing says it."""
    try:
        found = re.search(r"\d+\.\d+(?:\.\d+)?", DRIVER.read_text())
        return found[0] if found else ""
    except OSError:
        return ""


def checked(
    repo: Path, folder: Path, python: Sequence[str], *, device: str, late: Sequence[int], more: Sequence[str] = (),
    limit_s: float = LIMIT_S,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # fmt: skip
    """(machine, one row a check) of the checks in a process of their own; what never came is a failed row."""
    results = folder / "results.jsonl"
    argv = [*python, str(CHECKS), str(repo), "--device", device, "--results", str(results), *more]
    argv += ["--cache", str(folder / "home" / ".triton")]
    for kept in late:
        argv += ["--late", str(kept)]
    try:
        code = subprocess.run(argv, env=environment(folder), cwd=folder, timeout=limit_s, check=False).returncode
        ended = f"the process ended with {code}"
    except subprocess.TimeoutExpired:
        ended = f"the process was ended after {limit_s:g} s"
    found = [json.loads(text) for text in results.read_text().splitlines()] if results.is_file() else []
    rows = [row for row in found if "check" in row]
    got = {row["check"] for row in rows}
    rows += [{"check": name, "ok": False, "said": f"never came: {ended}"} for name in NAMES if name not in got]
    rows.append(left_behind(folder / "builds", ended="" if "eager" in got else ended))
    return next((row["machine"] for row in found if "machine" in row), {}), rows


def left_behind(builds: Path, *, ended: str = "") -> dict[str, Any]:
    """The row that says whether the process took its builds away; ``ended`` is how one did that built nothing."""
    if ended:
        return {"check": "left_behind", "ok": False, "said": f"never came: {ended}"}
    left = sorted(path.name for path in builds.glob("dispatch-*"))
    said = f"left in the folder for temporary files: {', '.join(left)}" if left else "no build is left when it ended"
    return {"check": "left_behind", "ok": not left, "said": said}


def document(machine: dict[str, Any], rows: list[dict[str, Any]], *, thorough: bool, made_s: float) -> dict[str, Any]:
    """What is written."""
    version = {"driver": driver()} if machine.get("gpu") else {}
    return {
        "what": WHAT,
        "command": "python scripts/dispatcher_gpu.py --out docs/measurements/dispatcher-gpu.json"
        + (" --thorough" if thorough else ""),
        "machine": {**machine, **version},
        "repo_made_s": round(made_s, 1),
        "failed": [row["check"] for row in rows if row["ok"] is False],
        "skipped": [row["check"] for row in rows if row["ok"] is None],
        "checks": rows,
    }


def main() -> int:
    """Make the repo, check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--thorough", action="store_true", help="minutes more: each extension takes a compiler long")
    parser.add_argument("--quick", action="store_true", help="without the extension and the autotuned version")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for the checks")
    options = parser.parse_args()
    python = task_python.find(explicit=task_python.explicit_argv(Path(), os.environ), framework="torch")
    versions = dispatcher_repo.QUICK if options.quick else dispatcher_repo.ALL
    versions += (dispatcher_repo.TWIN,) if options.thorough else ()
    with tempfile.TemporaryDirectory(prefix="kp-dispatcher-") as tmp:
        started = time.monotonic()
        repo = dispatcher_repo.make(Path(tmp) / "repo", versions)
        made_s = time.monotonic() - started
        print(f"repo made, {len(versions)} versions dispatched ({made_s:.1f} s)", flush=True)
        machine, rows = checked(
            repo, Path(tmp), python.argv, device="cuda", late=[v.rows for v in dispatcher_repo.LATE],
            more=("--extensions",) if options.thorough else (), limit_s=options.limit,
        )  # fmt: skip
    found = document(machine, rows, thorough=options.thorough, made_s=made_s)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    for row in rows:
        if row["check"] == "left_behind" or "seconds" not in row:  # the others were printed as they came
            print(f"{'ok' if row['ok'] else 'failed':8s}{row['check']:12s}          {row['said']}")
    good = sum(row["ok"] is True for row in rows)
    print(f"{good} ok, {len(found['failed'])} failed, {len(found['skipped'])} skipped")
    return int(bool(found["failed"]))


if __name__ == "__main__":
    sys.exit(main())
