"""Attacks on the GPU referee that once went through: each test plays one of them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from kernelpilot_helpers import policy
from kernelpilot_helpers.attempt.job import Limits, TimeSpec, VerifySpec
from kernelpilot_helpers.attempt.raw import Raw, Samples
from kernelpilot_helpers.benchmark import judge, suspicions
from kernelpilot_helpers.executors import deploy
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.runtime import building, cuda, inventory, tenancy
from kernelpilot_helpers.runtime.spec import JobError
from tests import fakegpu
from tests.bench_sim import on_gpu, raw, samples
from tests.jobs import OPERATORS, norm_case
from tests.test_referee_decide import drive, facts
from tests.test_runtime_gpu import kinds, needs_torch, run

US = 1000
PAIRS = 10


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("fake")
    return deploy.deploy(base / "cache", source=fakegpu.runtime(base))


def timed(pair: int, arm: str, *, real_us: float, said_us: float, groups: int, gap_us: float = 4.2) -> Samples:
    """Blocks of ``groups`` spans that last ``real_us`` each; the worker says ``said_us``."""
    noise = [-0.1, 0.0, 0.1, 0.05, -0.02, 0.03, 0.08, -0.07]
    blocks = [n + 0.01 * math.sin(pair + (arm == "B")) for n in noise]
    ns = [round(groups * (said_us + n * 0.2) * US) for n in blocks]
    stamp = tuple(round(groups * (real_us + gap_us + n * 0.2) * US) for n in blocks)
    one = samples(pair, "c0", arm, ns, first="AB"[pair % 2])
    wall = tuple(round(groups * (real_us + 60.0) * US) + 40_000 for _ in ns)
    return msgspec.structs.replace(
        one, groups=groups, stamp_ns=stamp, flush_ns=(groups * 56 * US,) * len(ns), wall_ns=wall
    )


def outcome(*, real_b: float, said_b: float, us: float, groups: int, gap_b: float = 4.2) -> tuple[list[str], str, str]:
    items = []
    for pair in range(PAIRS):
        items.append(timed(pair, "A", real_us=us, said_us=us, groups=groups))
        items.append(timed(pair, "B", real_us=real_b, said_us=said_b, groups=groups, gap_us=gap_b))
    one: Raw = on_gpu(raw(items))
    bench = judge(
        (one,), tier=policy.tiers("gpu")["claim"], device=policy.GPU, required=frozenset({"c0"}), timed=("c0",)
    )
    return [f.code for f in suspicions([one])], bench.verdict, bench.reason


@pytest.mark.parametrize(("us", "said", "groups"), [(100.0, 97.5, 20), (2.5, 1.6, 64)])
def test_what_is_forged_within_the_limits_of_the_clocks_is_no_gain(us: float, said: float, groups: int) -> None:
    """2.5 % off groups of 100 us, or a third off isolated calls of 2.5 us: no clock is beyond its limit.

    Breaks when times that only the candidate's own process vouches for make an IMPROVED.
    """
    codes, verdict, reason = outcome(real_b=us, said_b=said, us=us, groups=groups)
    assert (codes, verdict) == ([], "AMBIGUOUS")
    assert reason.startswith("suspect.clock: by events +")


@pytest.mark.parametrize(("us", "real", "groups"), [(100.0, 97.5, 20), (2.5, 1.6, 64)])
def test_an_honest_gain_with_the_gaps_of_honest_arms_stands(us: float, real: float, groups: int) -> None:
    """Breaks when 0.3 us more between stamp and span, as honest arms have, take a gain away."""
    assert outcome(real_b=real, said_b=real, us=us, groups=groups, gap_b=4.5)[:2] == ([], "IMPROVED")


KEEPS_FIRST = """
import torch
KEPT = {}


def prepare(case, static):
    return KEPT.setdefault(case["case_id"], static["weight"].clone())


def entry(*, x, residual, weight, eps, out, state):
    residual[...] = x + residual
    mean = (residual * residual).sum(-1) / residual.shape[-1]
    out[...] = residual / ((mean + eps) ** 0.5).reshape(-1, 1) * state
"""
KEEPS_EACH = KEEPS_FIRST.replace('KEPT.setdefault(case["case_id"], static["weight"].clone())', 'static["weight"]')


@needs_torch
@pytest.mark.parametrize(("source", "right"), [(KEEPS_FIRST, False), (KEEPS_EACH, True)])
def test_a_prepared_weight_of_another_copy_is_a_wrong_one(
    runtime: Path, tmp_path: Path, source: str, right: bool
) -> None:
    """One prepared weight for all copies stays in the cache, which the incumbent's copies are there to prevent.

    Breaks when the copies hold the same content, so that nobody can tell.
    """
    got = run(
        runtime, tmp_path, phases=("time",), time=TimeSpec(pairs=2, blocks=8, sample_us=2000.0, recheck_share=1.0),
        b={"candidate.py": source}, stages=("prepare", "entry"), cases=(norm_case(4, 64),),
    )  # fmt: skip
    assert got.died is None
    checks = [c for c in got.checks if c.arm == "B" and c.probe == "timed" and c.output == "out"]
    assert checks
    assert all(c.where is None for c in checks) == right
    assert not [c for c in got.checks if c.arm == "A" and c.where is not None]
    assert kinds(got) == set()


LIES = (
    OPERATORS.replace("    residual[...]", "    lie()\n    residual[...]", 1)
    + """
import sys


def lie():
    score = sys.modules["kernelpilot_runtime.score"]
    score.OURS = (*score.OURS, "mine")
"""
)


@needs_torch
def test_a_table_of_the_runtime_that_was_exchanged_is_seen(runtime: Path, tmp_path: Path) -> None:
    """What is our own in a captured graph is a table: a name more, and a library's kernel is never listed.

    Breaks when functions are watched and the data that they go by is not.
    """
    got = run(
        runtime, tmp_path, phases=("verify",), b={"candidate.py": LIES}, verify=VerifySpec(seeds=1, calls=2),
        limits=Limits(call_s=10.0, build_s=30.0, wall_s=90.0, lock_s=30.0),
    )  # fmt: skip
    assert "cheat.patched" in kinds(got)


@pytest.mark.parametrize(
    "name",
    [
        "void pytorch_flash::flash_fwd_kernel<Traits, false>(Params)",
        "_ZN13pytorch_flash16flash_fwd_kernelI6TraitsEEvP6Params",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
        "_Z15gemv2T_kernelIif23cublasGemvTensorStridedEvT_",
    ],
)
def test_a_namesake_of_a_frameworks_kernel_is_not_the_candidates(tmp_path: Path, name: str) -> None:
    """Breaks when a decoy with the name of the framework's attention makes that the candidate's own work."""
    symbols = (
        b"_ZN13pytorch_flash16flash_fwd_kernelI6TraitsEEvP6Params _Z15gemv2T_kernelIif23cublasGemvTensorStridedEvT_"
    )
    (tmp_path / "kernel.cubin").write_bytes(b"\x7fELF " + symbols + b" fmha_cutlassF_bf16_aligned_64x64_rf_sm80 ")
    assert inventory.ours([name], tmp_path) == {name: False}


@pytest.mark.parametrize("device", [policy.GPU, policy.CPU])
def test_a_candidate_that_cheats_in_the_one_direct_run_gains_nothing(device: policy.DevicePolicy) -> None:
    """The direct run has no verification before it, so that a candidate can tell; its rechecked blocks are wrong.

    Breaks when the run that gives the gain over the only baseline is not judged.
    """
    known = facts(incumbent_is_baseline=False, device=device)
    outcome, asked = drive(known, FakeLab(speedup=1.1), {0: FakeLab(speedup=9.0, wrong="timed")})
    assert asked[-1] == ("baseline", 0)
    assert (outcome.verdict, outcome.reason.split(":")[0], outcome.vs_baseline) == ("WRONG", "cheat.timed_only", None)


def test_a_process_that_comes_to_the_gpu_while_it_is_timed_is_named() -> None:
    """A candidate's compiler window lets tools run, which may leave a process with a context of its own.

    Breaks when the GPU is looked at before the first block only, or an own worker is taken for a stranger.
    """
    own, workers = os.getpid(), {11, 12}
    tenancy.still_alone(SimpleNamespace(processes=lambda: [(own, 500), (11, 600), (12, 600)]), workers)
    tenancy.still_alone(SimpleNamespace(processes=lambda: [(4711, 500)]), workers)  # pids of another namespace
    tenancy.still_alone(None, workers)
    with pytest.raises(JobError, match=r"gpu\.shared: pid 1 \(70 MiB\)"):
        tenancy.still_alone(SimpleNamespace(processes=lambda: [(own, 500), (11, 600), (1, 70)]), workers)
    ended = 2**22 + 1  # above the largest pid: a worker that is gone and still listed
    tenancy.still_alone(SimpleNamespace(processes=lambda: [(own, 500), (ended, 70)]), workers)


def test_a_cuda_source_that_no_build_names_is_part_of_the_program(tmp_path: Path) -> None:
    """Breaks when two programs that compile other sources by themselves are called one and the same."""
    (tmp_path / "candidate.py").write_text("x = 1\n")
    (tmp_path / "a.cu").write_text("// a\n")
    (tmp_path / "b.cu").write_text("// b\n")
    built = [{"path": "a.cubin", "normal_sha256": "0" * 64, "command": ["nvrtc", "a.cu", "a.cubin"]}]
    before = building.binary_id(tmp_path, built)
    (tmp_path / "a.cu").write_text("// another comment: the cubin stands for it\n")
    assert building.binary_id(tmp_path, built) == before
    (tmp_path / "b.cu").write_text("// compiled by the candidate itself\n")
    assert building.binary_id(tmp_path, built) != before


def test_a_driver_that_fails_before_the_lock_is_a_gpu_that_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a driver in a bad state ends a job in a traceback that is taken for the reference's."""

    def fails() -> str:
        raise cuda.CudaError("cuInit", 802, "CUDA_ERROR_SYSTEM_NOT_READY")

    monkeypatch.setattr(cuda, "first_uuid", fails)
    with pytest.raises(JobError, match=r"gpu\.absent: cuInit: CUDA_ERROR_SYSTEM_NOT_READY"), tenancy.hold(("time",), 1):
        pass
