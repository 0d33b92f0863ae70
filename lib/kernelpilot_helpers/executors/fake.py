"""FakeLab answers a job from a small script: verdict code is tested without a compiler or a clock."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kernelpilot_helpers.attempt.job import Arm, Job, JobCase, TensorSpec
from kernelpilot_helpers.attempt.raw import Build, Check, Died, Event, Mutant, Raw, Samples, Stats, Where
from kernelpilot_helpers.executors import absent, fake_gpu
from kernelpilot_helpers.executors.lab import JOB_FILE, RAW_FILE, encode_job, job_sha256

MUST_FAIL = (
    "zeros",
    "mean",
    "permuted",
    "truncated",
    "scaled",
    "last_column_tile",
    "last_row",
    "stale",
    "uninitialised",
)
MUST_PASS = ("baseline", "storage_precision", "reversed")
REGIMES = ("gen", "small", "large", "heavy_tail", "sparse")
CALLS = 8
BASE_RMS = 0.31
BASE_MAX = 1.5


class FakeLab:
    """A deterministic Lab.

    ``speedup`` is old time over new time of B against every other arm (a number, or one per case_id,
    default 1); arms of one build key are one program and get 1.0. ``noise`` is the sd of one pair's log
    ratio per case. ``wrong``: ``""``; ``"tail"`` (last columns far off), ``"all"``, ``"nonfinite"``,
    ``"unwritten"``, ``"timed"`` (only the rechecks of timed blocks) or ``"second_call"`` (every call but
    the first); only arm B is ever wrong.
    ``died`` ends the job: checks and samples are left out from its stage on.
    ``gpu`` adds what only a GPU shows; ``wrong`` may there also be ``"graph"`` or ``"late"``: that probe alone.
    """

    def __init__(
        self,
        *,
        speedup: float | Mapping[str, float] = 1.0,
        noise: float = 0.002,
        wrong: str = "",
        events: Sequence[Event] = (),
        died: Died | None = None,
        binary: Literal["same", "different"] = "different",
        seed: int = 0,
        gpu: fake_gpu.Script | None = None,
    ) -> None:
        self.speedup = speedup
        self.noise = noise
        self.wrong = wrong
        self.events = tuple(events)
        self.died = died
        self.binary = binary
        self.gpu = gpu or fake_gpu.Script()
        self.jobs: list[Job] = []
        """Every job answered so far, oldest first."""
        self._random = random.Random(seed)  # noqa: S311

    def run(self, job: Job, workdir: Path) -> Raw:
        """Answer ``job``; where ``workdir`` exists, leave job.json and raw.json in it as a real lab would.

        Raises Refused when ``died`` says that there is no GPU, as a real lab does.
        """
        self.jobs.append(job)
        stage = self.died.stage if self.died else ""
        stop = stage in ("build", "load", "oracle")
        raw = Raw(
            job_id=job.job_id,
            job_sha256=job_sha256(job),
            framework="numpy" if job.framework == "any" else job.framework,
            env=_env(),
            builds=tuple(self._build(arm) for arm in job.arms),
            mutants=() if stop or "audit" not in job.phases else tuple(_mutants(job)),
            checks=() if stop else tuple(self._checks(job)),
            samples=() if self.died else tuple(self._samples(job)),
            events=self.events,
            died=self.died,
        )
        if job.device == "gpu":
            raw = self._on_gpu(job, raw)
        if workdir.is_dir():
            (workdir / JOB_FILE).write_bytes(encode_job(job))
            (workdir / RAW_FILE).write_bytes(_dump(raw))
        return absent.require_gpu(raw, workdir)

    def _on_gpu(self, job: Job, raw: Raw) -> Raw:
        raw = msgspec.structs.replace(raw, framework="torch", env={**raw.env, **fake_gpu.env()})
        if self.died is not None:
            return raw
        return msgspec.structs.replace(
            raw,
            inventory=tuple(fake_gpu.inventory(job, ours=self.gpu.ours)),
            figures=tuple(fake_gpu.figures(job)),
            residency=tuple(fake_gpu.residency(job)),
            gpu=tuple(fake_gpu.looks(job)),
            sanitizer=tuple(fake_gpu.sanitizer(job, errors=self.gpu.sanitizer)),
            ceilings=fake_gpu.CEILINGS if "ceilings" in job.phases else {},
        )

    def _build(self, arm: Arm) -> Build:
        key = "shared" if self.binary == "same" else arm.build_key
        broken = self.died is not None and self.died.stage == "build" and self.died.arm == arm.name
        return Build(
            arm=arm.name,
            build_key=arm.build_key,
            ok=not broken,
            binary_id=hashlib.sha256(key.encode()).hexdigest(),
            seconds=0.1,
            log=self.died.log if broken and self.died else "",
        )

    def _gain(self, job: Job, case_id: str, arm: Arm) -> float:
        others = {a.build_key for a in job.arms if a.name != "B"}
        if arm.name != "B" or arm.build_key in others:
            return 1.0
        return self.speedup if isinstance(self.speedup, int | float) else self.speedup.get(case_id, 1.0)

    def _checks(self, job: Job) -> Iterator[Check]:
        if "verify" in job.phases and job.verify:
            for ix, case in enumerate(job.cases):
                for seed in range(max(job.verify.seeds, 1)):
                    regime = "gen" if seed == 0 else REGIMES[1 + (ix + seed - 1) % 4]
                    for arm in job.arms:
                        for call, probe in enumerate(_probes(job, seed)):
                            yield from self._outputs(case, arm, seed, regime, probe, call, None)
        if "time" in job.phases and job.time and not self.died:
            for pair in range(job.time.pairs):
                for case in job.cases:
                    for arm in job.arms if case.timed else ():
                        at = pair + job.time.first_pair
                        yield from self._outputs(case, arm, 0, "gen", "timed", job.time.blocks - 1, at)

    def _outputs(
        self, case: JobCase, arm: Arm, seed: int, regime: str, probe: str, call: int, pair: int | None
    ) -> Iterator[Check]:
        bad = arm.name == "B" and bool(self.wrong)
        bad &= self.wrong not in ("timed", "graph", "late") or probe == self.wrong
        bad &= self.wrong != "second_call" or call > 0
        for tensor in outputs(case):
            stats, where = _bad(tensor, self.wrong) if bad else (_good(tensor), None)
            yield Check(
                arm=arm.name, case_id=case.case_id, seed_ix=seed, regime=regime, probe=probe, call_ix=call,
                output=tensor.name, stats=stats, where=where, pair=pair,
            )  # fmt: skip

    def _samples(self, job: Job) -> Iterator[Samples]:
        if "time" not in job.phases or job.time is None:
            return
        spec = job.time
        for pair in range(spec.first_pair, spec.first_pair + spec.pairs):
            first = "A" if pair % 2 == 0 else "B"
            for ix, case in enumerate(c for c in job.cases if c.timed):
                base = spec.sample_us * 1000 * (1.2 + 0.1 * ix)
                for arm in job.arms:
                    at = base / self._gain(job, case.case_id, arm)
                    at *= math.exp(self._random.gauss(0, self.noise / math.sqrt(2)))
                    ns = tuple(round(at * math.exp(self._random.gauss(0, self.noise))) for _ in range(spec.blocks))
                    sample = Samples(
                        pair=pair, first_arm=first, case_id=case.case_id, arm=arm.name, calls=CALLS,
                        ns=ns, wall_ns=tuple(t + 40_000 for t in ns), figure=case.figure,
                    )  # fmt: skip
                    if job.device == "gpu":
                        clocks = (fake_gpu.MHZ,) * len(ns)
                        sample = msgspec.structs.replace(sample, method=self.gpu.method, mhz=clocks)
                    yield sample


def _probes(job: Job, seed: int) -> tuple[str, ...]:
    """What each call of one process on one case was for, in order."""
    calls = job.verify.calls if job.verify else 0
    more = fake_gpu.probes(job) if job.device == "gpu" and seed == 0 else ()
    return (*("call",)[:calls], *("repeat",) * (calls - 1), *more)


def outputs(case: JobCase) -> tuple[TensorSpec, ...]:
    """The tensors of ``case`` that a call writes, in the order listed."""
    return tuple(t for t in case.tensors if t.role in ("out", "inout"))


def _matrix(tensor: TensorSpec) -> tuple[int, int]:
    cols = tensor.shape[-1] if tensor.shape else 1
    return max(math.prod(tensor.shape[:-1]), 1), cols


def _exact(tensor: TensorSpec) -> bool:
    return not tensor.dtype.startswith(("float", "bfloat"))


def _good(tensor: TensorSpec) -> Stats:
    exact = _exact(tensor)
    rms, worst = (0.0, 0.0) if exact else (BASE_RMS, BASE_MAX)
    return Stats(
        n=math.prod(tensor.shape), rms=rms, max=worst, bias=0.001 if not exact else 0.0, bias_se=0.01,
        base_rms=rms, base_max=worst, base_bias=0.0, row_ratio=1.1, row_ix=0, col_ratio=1.1, col_ix=0,
        tile_ratio=1.05, tile_ix=(0, 0), nonfinite_equal=True, unwritten=0, exact=exact,
    )  # fmt: skip


def _bad(tensor: TensorSpec, how: str) -> tuple[Stats, Where]:
    rows, cols = _matrix(tensor)
    first = cols - max(cols // 8, 1) if how == "tail" else 0
    lost = how == "unwritten"
    stats = Stats(
        n=rows * cols, rms=5.0e4, max=4.0e6, bias=-1.2e3, bias_se=10.0,
        base_rms=BASE_RMS, base_max=BASE_MAX, base_bias=0.0, row_ratio=6.0e4, row_ix=0, col_ratio=2.0e5,
        col_ix=cols - 1, tile_ratio=1.0e5, tile_ix=(0, (cols - 1) // 64),
        nonfinite_equal=not lost and how != "nonfinite", unwritten=rows * cols if lost else 0,
        exact=_exact(tensor),
    )  # fmt: skip
    where = Where(
        rows_total=rows, cols_total=cols, bad=rows * (cols - first), bad_rows=((0, rows),),
        bad_cols=((first, cols),), n_bad_rows=rows, n_bad_cols=cols - first,
        sample=((0, cols - 1, 0.0, 1.25),),
    )  # fmt: skip
    return stats, where


def _mutants(job: Job) -> Iterator[Mutant]:
    for case in [c for c in job.cases if c.timed][:4]:
        outs = outputs(case)
        inputs = [t for t in case.tensors if t.role in ("in", "inout", "static")]
        dropped = [f"dropped:{t.name}" for t in inputs if not _exact(t)]
        fail = {t.name: _bad(t, "all")[0] for t in outs}
        good = {t.name: _good(t) for t in outs}
        for name in (*MUST_FAIL, *dropped):
            yield Mutant(name=name, kind="must_fail", case_id=case.case_id, applicable=True, outputs=fail)
        for name in MUST_PASS:
            yield Mutant(name=name, kind="must_pass", case_id=case.case_id, applicable=True, outputs=good)
        for tensor in inputs:
            name = f"react:{tensor.name}"
            yield Mutant(name=name, kind="react", case_id=case.case_id, applicable=True, outputs=fail)


def _env() -> dict[str, object]:
    return {
        "python": "3.11.0", "framework_version": "0", "machine": "fake", "cpu": "fake", "cores": 2,
        "boot_id": "fake", "compiler": "fake", "clock_ns": 30, "started": 0, "seconds": 0.0,
    }  # fmt: skip


def _dump(raw: Raw) -> bytes:
    return msgspec.json.encode(raw)
