"""Constants of this GPU that kernel authors reckon with, each with its method: clock cycles, not wall time.

    PYTHONPATH=lib PYTHON scripts/gpu_constants.py --out docs/measurements/constants-h200.json   # PYTHON has torch

Instruction latency: one warp, each turn needs the last one's result. Throughput: 1,024 threads of one block on one SM,
four independent values each. Tensor products: one block on one SM, operands of zeros, so that no power limit is met.
Loads: one thread follows pointers in random order through the bytes that the row names, one a line; L1 a second time,
L2 after a read of everything, DRAM from another place each time, with the misses of address translation. Atomics: the
whole GPU, from a replayed graph. A figure is the median of its repeats, with their spread beside it.
"""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import constants_kernels as kernels
import gpu_holes

LINE = 128
TURNS = 4096
CACHE = 256 << 20
"""Bytes beyond any L2."""
CHASES = (
    ("ca", 64 << 10, "L1"),
    ("cg", 1 << 20, "L2, 1 MiB"),
    ("cg", 16 << 20, "L2, 16 MiB"),
    ("cg", 1 << 30, "DRAM, 1 GiB"),
)
ATOMICS = ((0, "one address"), (1, "one address a warp"), (2, "one address a thread, neighbours"))


def row(group: str, name: str, unit: str, values: list[float]) -> dict[str, Any]:
    """One figure with its spread in percent."""
    middle = statistics.median(values)
    spread = 100 * (max(values) - min(values)) / middle if middle else 0.0
    print(f"{group:14s} {name:40s} {middle:10.2f} {unit}  (spread {spread:.1f} %)", flush=True)
    return {"group": group, "name": name, "value": round(middle, 3), "unit": unit, "spread_pct": round(spread, 2)}


class Bench:
    """Compiles and runs kernels through the referee's own runtime."""

    def __init__(self, folder: Path, repeats: int) -> None:
        self.kp = gpu_holes.runtime()
        self.device = self.kp.cuda.open_device()
        self.folder, self.repeats, self.files = folder, repeats, 0
        self.kp.build.begin(self.kp.build.Session(
            source=folder, target=folder, key="k", known={}, gpu=True, during=lambda _: None, admit=lambda _: None,
            arch=self.device.facts["arch"], device=self.device,
        ))  # fmt: skip
        self.time = torch.zeros(1, dtype=torch.int64, device="cuda")
        self.out = torch.zeros(1024, device="cuda")

    def built(self, text: str, *names: str) -> list[Any]:
        """Kernels of one source."""
        self.files += 1
        name = f"k{self.files}.cu"
        (self.folder / name).write_text(text)
        module = self.kp.build.nvrtc(name, name=f"k{self.files}")
        return [module.kernel(n) for n in names]

    def cycles(self, launch: Any) -> list[float]:
        """What a kernel wrote to ``time``, once to warm up and then each repeat."""
        found = []
        for _ in range(self.repeats + 1):
            launch()
            torch.cuda.synchronize()
            found.append(float(self.time.item()))
        return found[1:]


def probes(bench: Bench) -> list[dict[str, Any]]:
    """Instructions, barriers, shared memory, tensor products."""
    major, minor = torch.cuda.get_device_capability()
    out = []
    for probe in kernels.PROBES:
        if probe.needs > 10 * major + minor or (probe.name.startswith("wgmma") and major != 9):
            continue
        (kernel,) = bench.built(kernels.source(probe), "probe")
        found = bench.cycles(lambda k=kernel, p=probe: k(1, p.threads, (bench.time, bench.out, 3)))
        each = probe.figure == "cycles each"
        values = [n / probe.count if each else probe.count / n for n in found]
        out.append(row(probe.group, probe.name, "cycles" if each else probe.figure.replace("each", "a"), values))
    return out


def ring(size: int) -> torch.Tensor:
    """A closed chain of pointers through ``size`` bytes, in random order."""
    count = size // LINE
    order = torch.tensor(random.Random(7).sample(range(count), count))  # noqa: S311 - an order, no secret
    words = torch.zeros(size // 8, dtype=torch.int64, device="cuda")
    at = (order * (LINE // 8)).cuda()
    words[at] = words.data_ptr() + torch.roll(order, -1).cuda() * LINE
    return words


def loads(bench: Bench) -> list[dict[str, Any]]:
    """Cycles of a load that waits for the last one."""
    out = []
    pick = random.Random(11)  # noqa: S311 - a place to begin, no secret
    for where, size, name in CHASES:
        words, turns = ring(size), min(TURNS, size // LINE)
        chase, shared = bench.built(kernels.CHASE.replace("WHERE", where), "chase", "chase_shared")

        def once(
            begin: int, chase: Any = chase, words: torch.Tensor = words, turns: int = turns, where: str = where
        ) -> None:
            chase(1, 1, (words[begin:], bench.time, bench.out, turns, turns if where == "ca" else 0))

        def cold(words: torch.Tensor = words, once: Any = once) -> None:
            once(pick.randrange(words.numel() // (LINE // 8)) * (LINE // 8))  # never the same lines

        def warm(words: torch.Tensor = words, once: Any = once) -> None:
            words.sum()  # all of it into the L2
            once(0)

        found = bench.cycles(cold if size > CACHE else warm)
        out.append(row("load", name, "cycles", [n / turns for n in found]))
        if where == "ca":
            found = bench.cycles(lambda s=shared: s(1, 1, (bench.time, bench.out, TURNS)))
            out.append(row("load", "shared memory", "cycles", [n / TURNS for n in found]))
    return out


def atomics(bench: Bench, turns: int = 64) -> list[dict[str, Any]]:
    """Additions without a result to memory, from all SMs at once: how many a nanosecond."""
    blocks, threads = 2 * torch.cuda.get_device_properties(0).multi_processor_count, 512
    words = torch.zeros(blocks * threads, dtype=torch.int32, device="cuda")
    (adds,) = bench.built(kernels.CHASE.replace("WHERE", "cg"), "adds")
    out = []
    for mode, name in ATOMICS:
        us = gpu_holes.spans(
            bench.kp, bench.device, lambda m=mode: adds(blocks, threads, (words, m, turns)), flush=False
        )
        out.append(row("atomics", name, "additions a ns", [blocks * threads * turns / 1000 / n for n in us]))
    return out


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kp-constants-") as folder:
        bench = Bench(Path(folder), options.repeats)
        rows = [*probes(bench), *loads(bench), *atomics(bench)]
    if options.out is not None:
        facts = {k: bench.device.facts[k] for k in ("gpu", "arch", "cuda", "driver") if k in bench.device.facts}
        document = {
            "format": "kernelpilot.gpu_constants", "version": 1,
            "command": "PYTHONPATH=lib PYTHON scripts/gpu_constants.py --out docs/measurements/constants-h200.json",
            "method": (__doc__ or "").split("\n\n")[2].replace("\n", " "),
            "gpu": facts, "torch": torch.__version__, "repeats": options.repeats, "rows": rows,
        }  # fmt: skip
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
