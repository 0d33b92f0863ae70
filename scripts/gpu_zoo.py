"""The whole GPU zoo on this machine: every cheat must be caught, no honest candidate flagged.

    python scripts/gpu_zoo.py --python PYTHON --out docs/measurements/zoo-gpu.json      # all of it, one after the other
    python scripts/gpu_zoo.py --python PYTHON --core                                    # one of each kind
    python scripts/gpu_zoo.py --python PYTHON --gpus 0,1,2,3                            # a lane a GPU
    python scripts/gpu_zoo.py --python PYTHON --only memo_device,honest_pdl --shard 1/3 --budget 540

PYTHON is one whose torch was built for CUDA (default: KERNELPILOT_PYTHON). The JSON file is written after each
candidate; ``--resume`` leaves out what it holds as judged rightly. ``--list`` prints the zoo as a table and
``--compile`` compiles every kernel of it: neither needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Lock
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from kernelpilot_helpers.errors import KernelPilotError  # noqa: E402 - after the path of the tests
from kernelpilot_helpers.executors import deploy  # noqa: E402
from tests.hostile.gpu import table  # noqa: E402
from tests.hostile.gpu.compiles import compiled, kernels  # noqa: E402
from tests.hostile.gpu.pen import ZOO, Pen, faults, flagged  # noqa: E402

FORMAT = "kernelpilot.gpu_zoo"


@dataclass
class Study:
    """What was asked, and what has been found so far."""

    out: Path | None
    started: float = field(default_factory=time.monotonic)
    results: list[dict[str, Any]] = field(default_factory=list)
    env: dict[str, Any] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def add(self, entry: dict[str, Any], env: dict[str, Any]) -> None:
        """Keep, print and store one candidate's end."""
        with self.lock:
            self.results = [*(r for r in self.results if r["name"] != entry["name"]), entry]
            self.env = self.env or env
            mark = "ok  " if entry["ok"] else "FAIL"
            said = f"{entry['verdict']} {entry['reason']}"[:150]
            print(f"{mark} {entry['seconds']:6.1f} s  {entry['name']:20s} row {entry['row']:2d}  {said}", flush=True)
            if self.out is not None:
                self.out.parent.mkdir(parents=True, exist_ok=True)
                self.out.write_text(json.dumps(self.document(), indent=1) + "\n")

    def document(self) -> dict[str, Any]:
        """Everything, in the order of the table."""
        order = {name: ix for ix, name in enumerate(names())}
        results = sorted(self.results, key=lambda r: order.get(r["name"], len(order)))
        cheats, honest = [r for r in results if not r["honest"]], [r for r in results if r["honest"]]
        return {
            "format": FORMAT, "version": 1, "env": self.env, "wall_s": round(time.monotonic() - self.started, 1),
            "cheats": len(cheats), "caught": sum(r["ok"] for r in cheats), "honest": len(honest),
            "flagged": sum(not r["ok"] for r in honest), "results": results,
        }  # fmt: skip


def names() -> list[str]:
    """Every inhabitant, in the order of the table."""
    return [*(c.name for c in table.CHEATS), *table.HONEST]


def measure(pen: Pen, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what one candidate ended in, the machine)."""
    cheat = next((c for c in table.CHEATS if c.name == name), None)
    kind = cheat.kind if cheat else table.HONEST[name]
    entry: dict[str, Any] = {"name": name, "row": cheat.row if cheat else 0, "honest": cheat is None, "kind": kind}
    started = time.monotonic()
    try:
        outcome = pen.outcome(ZOO / name, kind=kind, call_s=cheat.call_s if cheat else table.HONEST_CALL_S)
    except (KernelPilotError, OSError, ValueError, AssertionError, LookupError, TypeError, AttributeError) as error:
        traceback.print_exc()
        seconds = round(time.monotonic() - started, 2)
        return {
            **entry,
            "ok": False,
            "verdict": "NONE",
            "reason": f"{type(error).__name__}: {error}",
            "seconds": seconds,
        }, {}
    if cheat is None:
        why, wanted = flagged(name, outcome), {"verdict": "any but WRONG, BROKEN", "codes": []}
    else:
        why = faults(name, outcome, verdict=cheat.verdict, codes=cheat.codes)
        wanted = {"verdict": cheat.verdict, "codes": list(cheat.codes)}
    events = sorted({e.kind for raw in pen.raws for e in raw.events if e.arm in ("", "B")})
    methods = sorted({s.method for raw in pen.raws for s in raw.samples if s.arm == "B"})
    entry.update(
        ok=not why, verdict=outcome.verdict, reason=outcome.reason, wanted=wanted, events=events, methods=methods,
        seconds=round(pen.seconds, 2), jobs=len(pen.raws),
        speedup=round(outcome.gain.speedup, 3) if outcome.gain else None,
    )  # fmt: skip
    env = {k: v for raw in pen.raws for k, v in raw.env.items() if k in ENV}
    return entry, env


ENV = ("gpu", "driver", "arch", "cuda", "triton", "python", "torch", "framework_version", "l2_bytes", "sm_count")


TOGETHER = """

def alone(processes):  # several candidates of the zoo share this GPU
    pass


def still_alone(sensors, workers):
    pass


gpulock.hold = lambda uuid, wait_s: contextlib.nullcontext()
"""
"""Laid over runtime/tenancy.py of a copy: candidates that do not play with time may be judged beside each other."""


def sharing(folder: Path) -> Path:
    """A copy of the runtime whose jobs neither wait for each other nor refuse each other."""
    source = folder / "runtime-together"
    shutil.copytree(deploy.source_dir(), source, ignore=shutil.ignore_patterns("__pycache__"))
    tenancy = source / "tenancy.py"
    tenancy.write_text(tenancy.read_text() + TOGETHER)
    return source


def lane(study: Study, todo: Queue[str], folder: Path, options: argparse.Namespace, gpu: str) -> None:
    """Measure candidates on one GPU until there are none left; one locked repo a contract serves them all."""
    environ = {**os.environ, **({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})}
    pen = Pen(folder, options.python, gpu=options.gpu, environ=environ, blocks=options.blocks)
    while True:
        try:
            name = todo.get_nowait()
        except Empty:
            return
        if options.budget and time.monotonic() - study.started > options.budget:
            print(f"the budget of {options.budget:g} s is used up before {name}; go on with --resume", flush=True)
            return
        entry, env = measure(pen, name)
        study.add(entry, env)


def chosen(options: argparse.Namespace) -> list[str]:
    """The names to measure, by --only, --core, --shard and --resume."""
    wanted = options.only.split(",") if options.only else names()
    if unknown := set(wanted) - set(names()):
        raise SystemExit(f"not in the zoo: {', '.join(sorted(unknown))}")
    if options.core:
        wanted = [n for n in wanted if n in table.core()]
    number, _, of = options.shard.partition("/")
    return wanted[int(number) - 1 :: int(of)]


def listed() -> None:
    """The zoo as two Markdown tables, as tests/hostile/gpu/README.md holds them."""

    def does(name: str) -> str:
        return (ZOO / name / "candidate.py").read_text().splitlines()[0].strip('"').removeprefix("Honest: ")

    print(
        "| row | candidate | what it does | contract | verdict | reason codes (prefixes) |\n|---|---|---|---|---|---|"
    )
    for c in table.CHEATS:
        verdict = c.verdict.replace("|", " or ")
        print(f"| {c.row} | {c.name} | {does(c.name)} | {c.kind} | {verdict} | {', '.join(c.codes)} |")
    print("\n| candidate | contract | what it does |\n|---|---|---|")
    for name, kind in table.HONEST.items():
        print(f"| {name} | {kind} | {does(name)} |")


def compile_all() -> int:
    """Compile every kernel with every candidate's macros; 1 where one that should does not."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise SystemExit("nvcc is not on PATH")
    jobs = {job: name for name in names() if name != "no_compile" for job in kernels(ZOO / name)}
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for (path, flags), name in jobs.items():
            if said := compiled(nvcc, path, flags, Path(folder)):
                bad += 1
                print(f"{name}: {path.name} {' '.join(flags)}\n{said}")
    print(f"{len(jobs) - bad} of {len(jobs)} kernels compile")
    return int(bad > 0)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("KERNELPILOT_PYTHON", ""))
    parser.add_argument("--gpu", default="H200", help="the contract's target.gpu")
    parser.add_argument("--gpus", default="", help="CUDA_VISIBLE_DEVICES of each lane, separated by commas")
    parser.add_argument(
        "--together", type=int, default=1,
        help="candidates that share a GPU, but for those that play with time; what fails is judged again alone",
    )  # fmt: skip
    parser.add_argument("--only", default="")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--shard", default="1/1", help="the K-th of N parts")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds after which no candidate is started")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--resume", type=Path, help="keep this JSON file's right verdicts, run the rest")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


def run(study: Study, todo: list[str], folder: Path, options: argparse.Namespace, gpus: list[str]) -> None:
    """Measure ``todo`` with one lane for each entry of ``gpus``."""
    queue: Queue[str] = Queue()
    for name in todo:
        queue.put(name)
    with ThreadPoolExecutor(len(gpus)) as pool:
        lanes = [pool.submit(lane, study, queue, folder / f"lane{ix}", options, gpu) for ix, gpu in enumerate(gpus)]
        for future in lanes:
            future.result()


def main() -> int:
    """Exit status 1 when a cheat passed or an honest candidate was flagged."""
    options = parsed()
    if options.list:
        listed()
        return 0
    if options.compile:
        return compile_all()
    if not options.python:
        raise SystemExit("name a Python with torch for CUDA: --python PYTHON")
    study = Study(options.out)
    if options.resume and options.resume.is_file():
        before = json.loads(options.resume.read_text())
        study.results, study.env = before["results"], before["env"]
    done = {r["name"] for r in study.results if r["ok"]}
    todo = [n for n in chosen(options) if n not in done]
    gpus = options.gpus.split(",") if options.gpus else [""]
    with tempfile.TemporaryDirectory(prefix="gpu-zoo-") as folder:
        place = Path(folder)
        if options.together > 1:
            apart, own = [n for n in todo if n in table.apart()], deploy.source_dir
            shared = sharing(place)
            deploy.source_dir = lambda: shared
            run(study, [n for n in todo if n not in apart], place / "together", options, gpus * options.together)
            deploy.source_dir = own
            again = [r["name"] for r in study.results if not r["ok"] and r["name"] in todo]
            todo = [*apart, *(name for name in again if name not in apart)]
        run(study, todo, place / "alone", options, gpus)
    found = study.document()
    slow = sorted(found["results"], key=lambda r: -r["seconds"])[:5]
    print(f"caught {found['caught']} of {found['cheats']} cheats")
    print(f"flagged {found['flagged']} of {found['honest']} honest; {found['wall_s']} s")
    print("slowest: " + ", ".join(f"{r['name']} {r['seconds']:.1f} s" for r in slow))
    return int(found["caught"] < found["cheats"] or found["flagged"] > 0)


if __name__ == "__main__":
    sys.exit(main())
