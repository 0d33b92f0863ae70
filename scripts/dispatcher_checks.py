"""Checks of a generated dispatcher in the process that uses it: torch and the standard library, nothing of the tool.

    PYTHON scripts/dispatcher_checks.py REPO --device cuda --results FILE --late 512

``scripts/dispatcher_gpu.py`` makes the repo and runs this. On ``--device cpu`` the same checks run over tensors in host
memory, where a captured graph is the body itself, run again at each replay. One line a check; FILE gets one JSON object
a check, written before the next one starts. Exit status 1 when one failed.
"""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from dispatcher_bed import CALLS, Bed, Skipped, Wrong, copied, expect, host_us, machine, refused, serve

SETS = 3
"""Calls of each shape that each of two threads makes at once."""
ROUNDS = 9
"""Rounds over all ways of calling, in turn."""


def eager(bed: Bed) -> dict[str, Any]:
    """Each shape goes to the version of its rule and comes out right; the first call builds."""
    first = {}
    for shape, version in bed.shapes.items():
        chosen = bed.dispatcher.which(**bed.tensors(shape))
        if chosen != version:
            raise Wrong(f"{shape} goes to {chosen}, the table says {version}")
        started = time.perf_counter()
        serve(bed, shape, bed.dispatcher.entry, version)
        first[version] = round(time.perf_counter() - started, 2)
        serve(bed, shape, bed.dispatcher.entry, f"{version} again", seed=1)
    shown = ", ".join(f"{version} {seconds} s" for version, seconds in first.items())
    return {"said": f"first call of each shape: {shown}", "first_call_s": first}


def operator(bed: Bed) -> dict[str, Any]:
    """The torch operator, with its arguments in order and by name, and ``bind``."""
    for shape, version in bed.shapes.items():
        serve(bed, shape, bed.operator, f"{version} by name", seed=2)
        serve(bed, shape, lambda **given: bed.operator(*given.values()), f"{version} in order", seed=3)
        bound = bed.dispatcher.bind(**bed.tensors(shape))
        serve(bed, shape, bound, f"{version} bound", seed=4)
    return {"said": f"{len(bed.shapes)} shapes by name, in order and bound"}


def threads(bed: Bed) -> dict[str, Any]:
    """Two new threads at once, whose first work on the GPU is a call of ours; over all shapes, in opposite order."""
    todo = [(shape, seed) for seed in range(SETS) for shape in bed.shapes]
    work = []
    for number in range(2):
        mine = [bed.tensors(shape, seed=10 + 10 * number + seed) for shape, seed in todo]
        work.append([(given, copied(given)) for given in (mine[::-1] if number else mine)])
    bed.wait()
    begin, faults = threading.Barrier(2), []

    def run(calls: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        try:
            begin.wait()
            for given, _ in calls:
                bed.dispatcher.entry(**given)
        except Exception as fault:  # noqa: BLE001 - said by the thread that waits
            faults.append(f"{type(fault).__name__}: {fault}")

    both = [threading.Thread(target=run, args=(calls,)) for calls in work]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    if faults:
        raise Wrong("; ".join(faults))
    bed.wait()
    for given, before in [pair for calls in work for pair in calls]:
        expect(given, before, f"{bed.dispatcher.which(**given)} in a thread")
    return {"said": f"2 threads, {len(todo)} calls each"}


def graph(bed: Bed) -> dict[str, Any]:
    """A call and the operator are captured, then replayed over other content."""
    for shape, version in bed.shapes.items():
        for call, what in ((bed.dispatcher.entry, "entry"), (bed.operator, "the operator")):
            serve(bed, shape, call, version)  # a call of each shape comes before its capture, as the documents say
            given = bed.tensors(shape, seed=40)
            replay = bed.captured(partial(call, **given))
            for seed in (41, 42):
                fresh = bed.tensors(shape, seed=seed)
                for name in ("x", "residual"):
                    given[name].copy_(fresh[name])
                fresh["weight"] = given["weight"]
                given["out"].fill_(torch.nan)
                replay()
                bed.wait()
                expect(given, fresh, f"{version}: {what} replayed")
    how = "a stand-in: the body again" if bed.device == "cpu" else "torch.cuda.graph"
    return {"said": f"{len(bed.shapes)} shapes, entry and operator, 2 replays each ({how})"}


def second_gpu(bed: Bed, *, extensions: bool = False) -> dict[str, Any]:
    """Tensors on another GPU than torch's current one; extensions are built once more for it, so only when asked."""
    if bed.device == "cpu":
        raise Skipped("no GPU here")
    if torch.cuda.device_count() < 2:
        raise Skipped("this machine has one GPU")
    served, last = [], next(iter(bed.shapes))
    for shape, version in bed.shapes.items():
        if "extension" in version and not extensions:
            continue
        given = bed.tensors(shape, seed=50, device="cuda:1")
        before = copied(given)
        bed.dispatcher.entry(**given)
        bed.wait()
        expect(given, before, f"{version} on the second GPU")
        served.append(version)
        last = shape
    if torch.cuda.current_device() != 0:
        raise Wrong(f"torch's current GPU is {torch.cuda.current_device()} now")
    apart = {**bed.tensors(last), "x": bed.tensors(last, device="cuda:1")["x"]}
    refused(bed, apart, "tensors on two GPUs")
    return {"said": ", ".join(served), "gpu": torch.cuda.get_device_name(1)}


def outside(bed: Bed) -> dict[str, Any]:
    """What the map does not hold goes to the baseline and comes out right; what the contract forbids is refused."""
    fallback = bed.dispatcher.FALLBACK
    served = set(bed.shapes) | set(bed.late)
    odd = [s for rows, n in served for s in ((rows + 1, n), (rows, n + 8)) if s not in served]
    rows, columns = shape = next(iter(bed.shapes))
    wide = bed.tensors((rows, columns + 8), seed=60)
    given = {n: t[..., 8:] if hasattr(t, "shape") else t for n, t in wide.items()}
    tries = [(f"shape {s}", bed.tensors(s, seed=61)) for s in sorted(odd)] + [("strided rows", given)]
    for what, tensors in tries:
        if (chosen := bed.dispatcher.which(**tensors)) != fallback:
            raise Wrong(f"{what}: goes to {chosen}")
        before = copied(tensors)
        bed.dispatcher.entry(**tensors)
        bed.wait()
        expect(tensors, before, what)
    good = bed.tensors(shape)
    refused(bed, {**good, "x": good["x"].float()}, "tensors of another dtype")
    refused(bed, {n: t for n, t in good.items() if n != "out"}, "tensors without an output")
    refused(bed, {**good, "out": good["out"][:-1]}, "tensors of two sizes")
    return {"said": f"{len(tries)} by the baseline, 3 refused"}


def overhead(bed: Bed) -> dict[str, Any]:
    """Host microseconds of a call, beside the chosen version's own function in the same rounds. No limit is set."""
    rows = []
    for shape, version in bed.shapes.items():
        given = bed.tensors(shape, seed=70)
        ways = {
            "direct": bed.loaded(version).function, "bound": bed.dispatcher.bind(**given),
            "entry": bed.dispatcher.entry, "operator": bed.operator,
        }  # fmt: skip
        took: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(ROUNDS + 1):
            names = list(ways)[turn % len(ways) :] + list(ways)[: turn % len(ways)]
            for name in names:
                us = host_us(bed, ways[name], given)
                took[name] += [us] if turn else []  # the first round warms up
        row = {f"{name}_us": round(statistics.median(values), 2) for name, values in took.items()}
        added = [e - d for e, d in zip(took["entry"], took["direct"], strict=True)]
        times = [e / d for e, d in zip(took["entry"], took["direct"], strict=True)]
        middle = {"added_us": round(statistics.median(added), 2), "ratio": round(statistics.median(times), 2)}
        rows.append({"version": version, **row, **middle})
    shown = ", ".join(f"{r['version']} {r['direct_us']} us + {r['added_us']} us ({r['ratio']} x)" for r in rows)
    return {"said": f"entry beside the direct call: {shown}", "calls": CALLS, "rounds": ROUNDS, "host": rows}


def caller(bed: Bed) -> dict[str, Any]:
    """The process is as it was: no environment, no extension's name, no path of ours, and nothing of the tool."""
    changed = {k for k in {*bed.before, *os.environ} if bed.before.get(k) != os.environ.get(k)}
    builds = f"{bed.dispatcher._scratch()}{os.sep}"
    left = [n for n, m in list(sys.modules.items()) if str(getattr(m, "__file__", None) or "").startswith(builds)]
    tool = [n for n in sys.modules if n.split(".")[0] == "kernelpilot_helpers"]
    paths = [p for p in sys.path if "dispatch" in Path(p).parts]
    found = [f"{what}: {', '.join(sorted(names))}" for what, names in (
        ("environment", changed), ("modules of builds", left), ("modules of the tool", tool), ("sys.path", paths),
    ) if names]  # fmt: skip
    if found:
        raise Wrong("; ".join(found))
    return {"said": "environment, sys.path and sys.modules as before"}


def load_beside(bed: Bed) -> dict[str, Any]:
    """A version is loaded and built while another thread calls the loaded ones: it is built from its own files."""
    if not bed.late:
        raise Skipped("no version was kept back for it")
    shape, version = next(iter(bed.late.items()))
    others = [bed.tensors(s, seed=90) for s in bed.shapes]
    bed.wait()
    done, faults, calls = threading.Event(), [], [0]

    def others_on() -> None:
        try:
            while not done.is_set():
                for given in others:
                    bed.dispatcher.entry(**given)
                    calls[0] += 1
                bed.wait()
        except Exception as fault:  # noqa: BLE001 - said by the thread that waits
            faults.append(f"{type(fault).__name__}: {fault}")

    thread = threading.Thread(target=others_on)
    thread.start()
    try:
        serve(bed, shape, bed.dispatcher.entry, version, seed=91)
    finally:
        done.set()
        thread.join()
    if faults:
        raise Wrong(f"beside a load: {'; '.join(faults)}")
    if not bed.loaded(version).session.artifacts:
        raise Wrong(f"{version} was built as another version's")
    return {"said": f"{version} was built beside {calls[0]} calls of {len(others)} others"}


def lost_builds(bed: Bed) -> dict[str, Any]:
    """Builds (and the cache) are deleted: what is loaded goes on, what is not is built in a new folder."""
    shapes = bed.shapes
    for shape, version in shapes.items():
        serve(bed, shape, bed.dispatcher.entry, version)
    shutil.rmtree(bed.dispatcher._scratch())
    if bed.cache is not None:
        shutil.rmtree(bed.cache, ignore_errors=True)
    for shape, version in shapes.items():
        serve(bed, shape, bed.dispatcher.entry, f"{version}, its build deleted", seed=80)
    late = dict(list(bed.late.items())[1:])
    for shape, version in late.items():
        serve(bed, shape, bed.dispatcher.entry, f"{version}, loaded after that", seed=81)
    return {"said": f"{len(shapes)} loaded versions went on, {len(late)} were built afterwards"}


CHECKS: dict[str, Callable[[Bed], dict[str, Any]]] = {
    "eager": eager, "operator": operator, "threads": threads, "graph": graph, "second_gpu": second_gpu,
    "outside": outside, "overhead": overhead, "load_beside": load_beside,
    "caller": caller, "lost_builds": lost_builds,
}  # fmt: skip
"""In this order: the last one takes the builds away."""


def results(bed: Any, checks: dict[str, Callable[[Any], dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """One row a check: ``ok`` is None where it was skipped."""
    for name, check in checks.items():
        started, row = time.perf_counter(), {}
        try:
            row = {"ok": True, **check(bed)}
        except Skipped as why:
            row = {"ok": None, "said": str(why)}
        except Exception as fault:  # noqa: BLE001 - a fault of any kind is the check's result
            row = {"ok": False, "said": f"{type(fault).__name__}: {str(fault)[-2000:]}"}
        yield {"check": name, **row, "seconds": round(time.perf_counter() - started, 2)}


def line(row: dict[str, Any]) -> str:
    """A row for a person."""
    mark = {True: "ok", False: "failed", None: "skipped"}[row["ok"]]
    return f"{mark:8s}{row['check']:12s}{row.get('seconds', 0.0):6.1f} s  {row['said']}"


def main() -> int:
    """Check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repo", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--late", type=int, action="append", default=[], help="rows whose version is loaded last")
    parser.add_argument("--extensions", action="store_true", help="on the second GPU too")
    parser.add_argument("--cache", type=Path, help="Triton's cache, to be deleted on the way")
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("this Python's torch has no GPU: name another one in KERNELPILOT_PYTHON")
    warnings.filterwarnings("ignore")
    failed = 0
    with options.results.open("a", buffering=1) as out:
        out.write(json.dumps({"machine": machine(options.device)}) + "\n")
        bed = Bed(options.repo, options.device, options.late, options.cache)
        checks = {**CHECKS, "second_gpu": lambda bed: second_gpu(bed, extensions=options.extensions)}
        for row in results(bed, checks):
            out.write(json.dumps(row) + "\n")
            print(line(row), flush=True)
            failed += row["ok"] is False
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
