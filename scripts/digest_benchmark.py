"""Is the digest of Nsight Compute reports right? Kernels of known bottleneck, captured on a GPU, digested, scored.

    python scripts/digest_benchmark.py capture --out captures
    python scripts/digest_benchmark.py score --captures captures --out docs/measurements/digest-benchmark.json
    python scripts/digest_benchmark.py speed --report captures/spill.full.ncu-rep --out digest-speed.json

`capture` needs a GPU, nvcc and ncu; it takes up where it was cut. `score` needs neither. `speed` needs ncu: it times,
whole process and in turn, NVIDIA's export of a report and our digest of it. The kernels are tests/gpu/microkernels.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import digest_capture as capturing
import digest_score as scoring
from tests.gpu.microkernels.table import BY_NAME

_FILE = re.compile(r"(\w+)\.(full|basic|stalls|metrics)(?:\.r(\d+))?\.(ncu-repz?|base\.csv|auto\.csv|details\.csv)")
DIGEST_S = 120.0


def capture(args: argparse.Namespace) -> int:
    """Build, capture full sets, time the arms, capture the smaller sets, repeat."""
    if lacks := capturing.missing():
        print("cannot capture here; missing:", *lacks, sep="\n  ", file=sys.stderr)
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()

    def left() -> float:
        return float(args.budget - (time.monotonic() - started))

    chosen, gpus = capturing.names(args.only), args.gpus.split(",")
    faults = list(capturing.build_all(chosen, args.out, jobs=args.jobs, arch=args.arch).values())
    built = [m for m in chosen if capturing.program(m, args.out).exists()]
    print(f"built {len({m.source for m in built})} programs in {args.budget - left():.0f} s", flush=True)
    shots = capturing.plan(built, args.sets.split(","), args.recapture)
    done: dict[str, float] = {}
    cut: list[str] = []
    for part in ("full", "rest"):
        now = [s for s in shots if (s.what == "full" and not s.again) == (part == "full")]
        lanes = capturing.Lanes(now, args.out, jobs=args.jobs, left=left)
        lanes.run(gpus)
        done |= lanes.seconds
        cut += lanes.cut
        faults += lanes.faults
        print(f"{part}: {len(lanes.seconds)} captures, {args.budget - left():.0f} s so far", flush=True)
        if part == "full":
            capturing.times(built, args.out, left)
    env = capturing.environment(gpus, args.arguments)
    note = {**env, "seconds": done, "cut": cut, "faults": faults}
    (args.out / "env.json").write_text(json.dumps(note, indent=1, sort_keys=True) + "\n")
    print(*faults, f"{len(cut)} captures were cut by the budget", sep="\n")
    return 1 if faults or cut else 0


def timing(args: argparse.Namespace) -> int:
    """Build and time only: do the programs run, are results the same, are the fixes faster?"""
    args.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + args.budget
    chosen = capturing.names(args.only)
    for source, said in capturing.build_all(chosen, args.out, jobs=args.jobs, arch=args.arch).items():
        print(f"NOT BUILT {source}: {said}")
    known = capturing.times(chosen, args.out, lambda: end - time.monotonic())
    for micro in chosen:
        twin = BY_NAME[micro.twin] if micro.twin and micro.fix else None
        us, other = scoring.arm_us(known, micro), twin and scoring.arm_us(known, twin)
        gain = f"  fix {other:9.1f} us, {us / other:6.2f} x" if us and other else ""
        fault = "" if us else f"  {known.get(Path(micro.source).stem, 'cut by the budget')}"
        if twin or micro.classes:
            print(f"{micro.name:18} {us or 0:9.1f} us{gain}{fault}"[:400])
    return 0


def digest(file: Path, min_bytes: int | None = None) -> dict[str, Any]:
    """Our digest of one file, as `--json` prints it."""
    argv = [sys.executable, "-m", "kernelpilot_helpers", "ncu", "digest", str(file), "--json"]
    argv += ["--min-bytes", str(min_bytes)] if min_bytes else []
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DIGEST_S, check=False)
    try:
        data: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        print(f"{file.name}: no digest: {done.stderr.strip()[-200:]}", file=sys.stderr)
        return {"class": "error"}
    return data


def _least(times: dict[str, Any], name: str) -> int | None:
    micro = BY_NAME[name]
    arm = times.get(micro.source.removesuffix(".cu"), {}).get("arms", {}).get(micro.arm, {})
    return int(arm.get("min_bytes", 0)) or None


def answers(folder: Path, times: dict[str, Any], *, jobs: int) -> list[scoring.Answer]:
    """Digest every capture in a folder."""
    found = [(p, m) for p in sorted(folder.iterdir()) if (m := _FILE.fullmatch(p.name)) and m[1] in BY_NAME]
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        read = pool.map(lambda f: digest(f[0], _least(times, f[1][1])), found)
        return [
            scoring.answer(
                data,
                kernel=m[1],
                source=BY_NAME[m[1]].source,
                what=m[2],
                again=int(m[3] or 0),
                form=m[4].removeprefix("ncu-").removesuffix("z").removesuffix(".csv"),
            )
            for (_, m), data in zip(found, read, strict=True)
        ]


def score(args: argparse.Namespace) -> int:
    """Digest what was captured and write the scores."""

    def load(name: str) -> dict[str, Any]:
        path = args.captures / name
        return dict(json.loads(path.read_text())) if path.exists() else {}

    times, env = load("times.json"), load("env.json")
    given = answers(args.captures, times, jobs=args.jobs)
    if not given:
        print(f"{args.captures} holds no capture: make some with `capture --out {args.captures}`", file=sys.stderr)
        return 2
    kept = {k: env[k] for k in ("gpu", "gpus", "ncu", "nvcc", "ncu_command") if k in env}
    data = {**scoring.score(given, BY_NAME, times, form=args.form), "env": kept, "times": times}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
    summary(data)
    return 0


def summary(data: dict[str, Any]) -> None:
    """The numbers on a screen."""
    for what, forms in data["accuracy"].items():
        for form, here in forms.items():
            print(f"{what:8}{form:8} right {here['right']}/{here['n']}, asked {here['asked']}, wrong {here['wrong']}")
    for miss in data["accuracy"].get("full", {}).get(data["judged_format"], {}).get("misses", []):
        print(f"  {miss['kernel']}: {miss['got']} ({miss['confidence']}), expected {' or '.join(miss['expected'])}")
    for one in data["counterfactual"]["each"]:
        if not one["holds"]:
            print(f"  fix of {one['kernel']}: {one['speedup']} x, its class {one['twin_class']}")
    print("calibration", {k: f"{v['right']}/{v['n']}" for k, v in sorted(data["calibration"].items())})
    for key in ("counterfactual", "hotspot", "stability"):
        print(key, {k: v for k, v in data[key].items() if not isinstance(v, list)})
    print(json.dumps(data["met"], indent=1))


def _child(argv: Sequence[str], sink: Path) -> dict[str, float]:
    """Wall seconds and peak MB of one process and its children, its output in a file.

    Linux charges a child with what its parent held when it was made: about 18 MB here, less than either side needs.
    """
    with sink.open("wb") as out:
        started = time.monotonic()
        child = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode or not sink.stat().st_size:
        raise SystemExit(f"{argv[0]} ended with {child.returncode}: {sink.read_text(errors='replace')[-400:]}")
    return {"seconds": seconds, "mb": used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)}


def speed(args: argparse.Namespace) -> int:
    """NVIDIA's export and our digest of one report in turn; medians and ratios are added to a JSON file."""
    ours = [sys.executable, "-m", "kernelpilot_helpers", "ncu", "digest", str(args.report), "--json"]
    sides = {"ncu": [args.ncu, "--import", str(args.report), "--page", "raw", "--csv"], "digest": ours}
    seen: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as tmp:
        for turn in range(args.repeats + 1):
            for side, argv in sides.items():
                one = _child(argv, Path(tmp) / side)
                if turn:  # the first of each reads the disk
                    seen[side].append(one)
    row: dict[str, Any] = {"report": args.report.name, "bytes": args.report.stat().st_size, "repeats": args.repeats}
    for side, each in seen.items():
        row[side] = {k: round(statistics.median(e[k] for e in each), 4) for k in ("seconds", "mb")}
    row["ratio"] = {k: round(row["digest"][k] / row["ncu"][k], 3) for k in ("seconds", "mb")}
    rows = json.loads(args.out.read_text()) if args.out.exists() else []
    args.out.write_text(json.dumps([*rows, row], indent=1, sort_keys=True) + "\n")
    print(json.dumps(row))
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description="Is the digest of Nsight Compute reports right?")
    sub = top.add_subparsers(required=True)
    for name, act, budget in (("capture", capture, 290.0), ("time", timing, 60.0)):
        one = sub.add_parser(name, help=act.__doc__)
        one.set_defaults(act=act)
        one.add_argument("--out", type=Path, required=True, help="folder of the captures")
        one.add_argument("--only", default="", help="kernels, comma-separated; their twins come along")
        one.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), help="builds and exports at once")
        one.add_argument("--budget", type=float, default=budget, help="seconds after which nothing new is begun")
        one.add_argument("--arch", default="native", help="for nvcc's -arch")
        if name == "capture":
            one.add_argument("--sets", default=",".join(capturing.SETS))
            one.add_argument("--recapture", type=int, default=0, help="more full captures of some kernels, last")
            one.add_argument("--gpus", default="0", help="CUDA device ids, comma-separated; one capture runs on each")
    one = sub.add_parser("score", help=score.__doc__)
    one.set_defaults(act=score)
    one.add_argument("--captures", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--form", choices=scoring.FORMS, default="rep", help="format that is judged")
    one.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    one = sub.add_parser("speed", help=speed.__doc__)
    one.set_defaults(act=speed)
    one.add_argument("--report", type=Path, required=True)
    one.add_argument("--repeats", type=int, default=5)
    one.add_argument("--ncu", default="ncu")
    one.add_argument("--out", type=Path, default=Path("digest-speed.json"))
    return top


def main(argv: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    args = parser().parse_args(given)
    args.arguments = given
    return int(args.act(args))


if __name__ == "__main__":
    sys.exit(main())
