"""Simulated timing jobs: a seeded machine with pair noise, block noise and an order effect."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import msgspec

from kernelpilot_helpers.attempt.raw import Build, GpuLook, Raw, Samples

ENV = {"cpu": "sim", "boot_id": "b1", "framework_version": "2.0", "started": 1, "seconds": 2.5, "clock_ns": 30}
CASES = ("c0", "c1", "c2", "c3")


def samples(
    pair: int, case: str, arm: str, ns: Sequence[int], *, first: str, calls: int = 4, extra_ns: int = 40_000
) -> Samples:
    wall = tuple(t + extra_ns for t in ns)
    return Samples(pair=pair, first_arm=first, case_id=case, arm=arm, calls=calls, ns=tuple(ns), wall_ns=wall)


def exact(
    logs: Mapping[str, Sequence[float]], *, base_ns: int = 10_000_000, firsts: str = "", job_id: str = "j"
) -> Raw:
    """A job with no noise inside a pair: log(tA / tB) of each case is exactly given per pair."""
    out: list[Samples] = []
    count = len(next(iter(logs.values())))
    firsts = firsts or "AB" * (count // 2) + "A" * (count % 2)
    for case, per_pair in logs.items():
        for pair, (first, log) in enumerate(zip(firsts, per_pair, strict=True)):
            out.append(samples(pair, case, "A", [round(base_ns * math.exp(log))] * 3, first=first))
            out.append(samples(pair, case, "B", [base_ns] * 3, first=first))
    return raw(out, job_id=job_id)


def raw(items: Sequence[Samples], *, job_id: str = "j", env: Mapping[str, object] = ENV) -> Raw:
    builds = tuple(
        Build(arm=arm, build_key=arm * 4, ok=True, binary_id=arm.lower() * 8, seconds=0.1) for arm in ("A", "B")
    )
    return Raw(
        job_id=job_id, job_sha256="0" * 64, framework="numpy", env=dict(env), builds=builds, samples=tuple(items)
    )


def simulate(
    rng: random.Random,
    *,
    pairs: int,
    first_pair: int = 0,
    gain: float | Mapping[str, float] = 1.0,
    pair_sd: float = 0.005,
    block_sd: float = 0.01,
    order: float = 0.0,
    blocks: int = 8,
    cases: Sequence[str] = CASES,
    job_id: str = "j",
) -> Raw:
    """One job. ``gain`` is tA / tB; ``order`` is added to log(tA / tB) when A starts first, taken off otherwise."""
    out: list[Samples] = []
    for pair in range(first_pair, first_pair + pairs):
        first = "A" if pair % 2 == 0 else "B"
        push = order if first == "A" else -order
        for ix, case in enumerate(cases):
            base = 300_000.0 * (1 + ix)
            speed = gain if isinstance(gain, float) else gain.get(case, 1.0)
            shift = math.log(speed) + push + rng.gauss(0.0, pair_sd)
            for arm, log in (("A", shift / 2), ("B", -shift / 2)):
                ns = [round(base * math.exp(log + rng.gauss(0.0, block_sd))) for _ in range(blocks)]
                out.append(samples(pair, case, arm, ns, first=first))
    return raw(out, job_id=job_id)


GPU_ENV = {**ENV, "gpu_uuid": "GPU-1", "driver": "580", "dram_gbs": 4800.0}


def on_gpu(
    one: Raw, *, method: str = "graph", mhz: Mapping[str, int] | int = 1800, looks: Sequence[GpuLook] = ()
) -> Raw:
    """The same samples as device times: a method, and one clock reading a block (by arm, or one for all)."""
    clocks = {"A": mhz, "B": mhz} if isinstance(mhz, int) else mhz
    timed = [msgspec.structs.replace(s, method=method, mhz=(clocks[s.arm],) * len(s.ns)) for s in one.samples]
    return msgspec.structs.replace(one, samples=tuple(timed), env=dict(GPU_ENV), gpu=tuple(looks))


def look(pair: int | None, *reasons: str) -> GpuLook:
    """Steady clocks with these throttle reasons."""
    return GpuLook(
        phase="time", pair=pair, sm_mhz=(1500, 1800, 1830), mem_mhz=3201, temp_c=(40, 45), power_w=(200.0, 300.0),
        reasons=reasons,
    )  # fmt: skip
