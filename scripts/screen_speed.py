"""From an edit to a verdict: the screen tier beside the usual way, on eight shapes, the same CUDA C++ kernel in both.

    python scripts/screen_speed.py --out docs/measurements/screen-speed.json

(a) `kernelpilot attempt --tier screen` of a freshly edited candidate in a scaffolded and locked repo: build through
NVRTC, verification, timing, row. (b) scripts/sequential_bench.py in a new process: load_inline, five trials a case, 100
samples a case. Each is timed from its command's start to its end; every repeat has another source, so that neither
finds a cached build. Needs a GPU, nvcc and ninja for (b), and a task Python with torch (KERNELPILOT_PYTHON, the active
venv, or python3). Making and locking the repo is done before and is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import curve_workload as workload
from kernelpilot_helpers.executors import task_python

VARIANT = "speed"
NAME = "add_rms"
SEQUENTIAL = Path(__file__).resolve().parent / "sequential_bench.py"
LIMIT_S = 300.0
SETUP_S = 900.0


def cli(*args: str, limit_s: float = LIMIT_S) -> tuple[dict[str, Any], float]:
    """One KernelPilot command with --json: its object and its wall seconds. Ends the study where there is none."""
    started = time.monotonic()
    argv = [sys.executable, "-m", "kernelpilot_helpers", *args, "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s, check=False)
    seconds = time.monotonic() - started
    try:
        data: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = (done.stdout + done.stderr).strip()
        raise SystemExit(f"kernelpilot {shlex.join(args)} ended with {done.returncode}:\n{said[-2000:]}") from None
    return data, seconds


def edited(nonce: int) -> dict[str, str]:
    """The kernel with an edit that reaches the machine code: another constant that nothing reads."""
    files = workload.program(name=NAME)
    return {**files, "kernel.cu": files["kernel.cu"] + f"__device__ volatile int edit_{nonce} = {nonce};\n"}


def write(folder: Path, nonce: int) -> None:
    """Put the edited kernel into the variant's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in edited(nonce).items():
        (folder / file).write_text(text)


def prepare(repo: Path) -> Path:
    """A scaffolded and locked repo of the built-in task; returns the variant's folder."""
    cli("scaffold", str(repo), "--device", "cuda")
    _, seconds = cli("lock", "--repo", str(repo), limit_s=SETUP_S)
    print(f"  repo made and locked (lock: {seconds:.1f} s, not counted)", flush=True)
    task = next(p for p in (repo / "src").iterdir() if p.is_dir())
    return task / "variants" / VARIANT


def screen(repo: Path, folder: Path, nonce: int) -> dict[str, Any]:
    """(a) once."""
    write(folder, nonce)
    data, seconds = cli("attempt", VARIANT, "--tier", "screen", "-m", f"edit {nonce}", "--repo", str(repo))
    verdict = data.get("verdict") or data.get("row", {}).get("verdict")
    print(f"  screen tier       {seconds:6.1f} s  {verdict}", flush=True)
    if verdict in ("WRONG", "BROKEN", None):
        raise SystemExit(f"the kernel must pass to be compared: {verdict} {data.get('reason', '')}")
    return {"seconds": round(seconds, 2), "verdict": verdict, "phases": phases(repo, data["run_ids"])}


def phases(repo: Path, runs: list[str]) -> list[dict[str, float]]:
    """Seconds by phase of each job, as its oracle counted them; ``verify.want`` and the like are parts of a phase."""
    raws = [json.loads((repo / "artifacts" / "runs" / run / "raw.json").read_text()) for run in runs]
    return [{k: round(v, 2) for k, v in raw["env"].get("phase_seconds", {}).items()} for raw in raws]


def whole(repo: Path, tier: str) -> dict[str, Any]:
    """The last edit once more at another tier: wall seconds, and those of its builds."""
    data, seconds = cli("attempt", VARIANT, "--tier", tier, "--again", "-m", f"at {tier}", "--repo", str(repo))
    spent = phases(repo, data["run_ids"])
    builds = sum(s.get("build", 0.0) for s in spent)
    print(f"  {tier:<17} {seconds:6.1f} s  {data['verdict']}, builds {builds:.1f} s", flush=True)
    gain = {k: data.get(k) for k in ("verdict", "reason", "geomean")}
    return {"seconds": round(seconds, 2), "build_s": round(builds, 2), "phases": spent, **gain}


def sequential(python: task_python.TaskPython, tmp: Path, nonce: int) -> dict[str, Any]:
    """(b) once."""
    spec = {"kernel": edited(nonce)["kernel.cu"], "name": NAME, "nonce": nonce, "shapes": workload.SHAPES}
    path = tmp / "spec.json"
    path.write_text(json.dumps(spec))
    started = time.monotonic()
    argv = [*python.argv, str(SEQUENTIAL), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    seconds = time.monotonic() - started
    if done.returncode:
        raise SystemExit(f"the sequential loop failed:\n{done.stderr[-2000:]}")
    data = json.loads(done.stdout.strip().splitlines()[-1])
    print(
        f"  sequential loop   {seconds:6.1f} s  build {data['build_s']:.1f} s, correct: {data['correct']}", flush=True
    )
    return {"seconds": round(seconds, 2), **data}


def summary(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians and their ratio."""
    a, b = (statistics.median(r["seconds"] for r in runs) for runs in (ours, theirs))
    return {
        "screen_seconds": a,
        "sequential_seconds": b,
        "ratio": round(b / a, 2),
        "screen": ours,
        "sequential": theirs,
        "what": "wall seconds from edit to verdict, eight shapes of a fused add and RMSNorm, medians",
    }


def main() -> int:
    """Measure both, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tiers", default="", help="tiers to measure too, separated by commas: accept, claim")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    python = task_python.find(explicit=task_python.explicit_argv(Path(), os.environ), framework="torch")
    with tempfile.TemporaryDirectory(prefix="kp-speed-") as tmp:
        repo = Path(tmp) / "repo"
        folder = prepare(repo)
        first = int.from_bytes(os.urandom(3), "little")
        ours = [screen(repo, folder, first + i) for i in range(options.repeats)]
        tiers = {tier: whole(repo, tier) for tier in options.tiers.split(",") if tier}
        theirs = [sequential(python, Path(tmp), first + i) for i in range(options.repeats)]
    result = {**summary(ours, theirs), "tiers": tiers}
    print(
        f"screen tier {result['screen_seconds']:.1f} s, sequential {result['sequential_seconds']:.1f} s: "
        f"{result['ratio']:.1f} times"
    )
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
