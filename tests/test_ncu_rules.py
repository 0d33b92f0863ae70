"""Every class from a hand-made set of metrics, and the verdicts that would cost an expert's trust."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from kernelpilot_helpers.ncu import families, query, sections, steps, validity
from kernelpilot_helpers.ncu.advice import Agreement
from kernelpilot_helpers.ncu.decide import Decision, decide
from kernelpilot_helpers.ncu.facts import Facts, gather
from kernelpilot_helpers.ncu.metrics import ROLES, Readings
from kernelpilot_helpers.ncu.model import INSUFFICIENT, NextStep
from kernelpilot_helpers.ncu.report import Launch, Rule, Series, Session, Value

PCT = ".avg.pct_of_peak_sustained_elapsed"
ISSUED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
REASONS = (
    *("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard"),
    *("math_pipe_throttle", "membar", "mio_throttle", "no_instruction", "short_scoreboard", "sleeping", "wait"),
)
QUIET: Mapping[str, float] = {
    # A kernel of 100 us on 100 SMs with many waves, nothing busy, nothing wasted.
    "duration": 100_000, "cycles": 100_000, "clock": 1e9, "sm_sol": 30, "memory_sol": 30, "dram_sol": 30, "l2_sol": 20,
    "l1_sol": 15, "lsu_wavefronts": 10, "tensor": 0, "tma": 0, "issue": 30, "lanes": 32, "occupancy": 90,
    "occupancy_theoretical": 100, "limit_registers": 8, "limit_shared": 8, "limit_warps": 8, "limit_blocks": 32,
    "grid": 80_000, "block": 256, "sms": 100, "waves": 100, "registers": 32, "shared": 1024, "sm_cycles_max": 99_000,
    "sm_cycles_avg": 98_000, "instructions": 1e8, "shared_wavefronts": 1000, "shared_wavefronts_ideal": 1000,
    "global_sectors": 1e6, "global_sectors_ideal": 1e6, "bytes_per_sector_load": 32, "bytes_per_sector_store": 32,
    "spill_requests": 0, "l2_sectors": 1e6, "l2_misses": 5e5, "sysmem_misses": 0, "peer_misses": 0,
    "global_load_sectors": 6e5, "global_store_sectors": 4e5, "local_load_sectors": 0, "local_store_sectors": 0,
    "atomic_sectors": 0, "reduction_sectors": 0,
}  # fmt: skip
PIPES: Mapping[str, float] = {"alu": 10, "fma": 10, "lsu": 10, "xu": 1, "fp64": 0}


def launch(**given: Any) -> Launch:
    """The quiet kernel with some roles changed, under each role's newest name.

    Not roles: ``stalls``, ``pipes``, ``without`` (roles), ``raw`` (names), ``ops``, ``rules``, ``kernel``, ``cc``.
    """
    without = given.pop("without", ())
    stalls = given.pop("stalls", None) or dict.fromkeys(
        ("long_scoreboard", "wait", "barrier", "short_scoreboard", "mio_throttle"), 20.0
    )
    pipes, raw, ops = given.pop("pipes", PIPES), given.pop("raw", {}), given.pop("ops", ())
    names = {key: given.pop(key, default) for key, default in (("rules", ()), ("kernel", "k(int)"), ("cc", "9.0"))}
    metrics = {}
    for role, number in {**QUIET, **given}.items():
        if role not in without:
            kind, name = ROLES[role][:2]
            metrics[name] = Value(number=number, unit="" if kind == "count" else kind)
    if "stalls" not in without:
        metrics |= {ISSUED.format(r): Value(number=stalls.get(r, 0.0)) for r in REASONS}
    if "pipes" not in without:
        metrics |= {f"sm__inst_executed_pipe_{p}{PCT}": Value(number=v, unit="%") for p, v in pipes.items()}
    metrics |= {name: Value(number=v, unit="%" if "pct" in name else "") for name, v in raw.items()}
    counts = {"sass__inst_executed_per_opcode": Series(keys=ops, values=(1,) * len(ops))} if ops else {}
    return Launch(
        id="0", grid="", block="", device="0", stream="7", process="1", metrics=metrics, series=counts, **names
    )


def judged(one: Launch, *, session: Session | None = None, agreement: Agreement | None = None,
           launches: int = 1) -> tuple[Facts, Decision]:  # fmt: skip
    """Facts and decision of a launch."""
    facts = gather(Readings(launch=one, locale="C"))
    return facts, decide(facts, validity.doubts(facts, session), agreement=agreement, launches=launches)


def name_of(one: Launch, **given: int) -> str:
    return judged(one, launches=given.get("launches", 1))[1].hit.name


def step_of(one: Launch, *, min_bytes: int | None = None) -> NextStep:
    facts, decision = judged(one)
    return steps.step(facts, decision, min_bytes=min_bytes)


LONG = {"long_scoreboard": 80.0, "wait": 20.0}
CLASSES: dict[str, tuple[str, Launch]] = {
    "one-thread blocks": ("launch.block_partial_warp", launch(block=1, lanes=1)),
    "fewer blocks than SMs": ("launch.grid_small", launch(grid=20, waves=0.025)),
    "ends before the GPU is full": ("launch.grid_small", launch(duration=4000, cycles=4000, grid=300, waves=0.375)),
    "one block more than a wave": (
        "launch.tail", launch(grid=801, waves=1.0, sm_cycles_max=98_000, sm_cycles_avg=50_000)),
    "uneven blocks": ("exec.imbalance", launch(sm_cycles_max=99_000, sm_cycles_avg=50_000)),
    "DRAM": ("mem.dram_bw", launch(memory_sol=90, dram_sol=90, stalls=LONG)),
    "unused sectors under DRAM": (
        "mem.uncoalesced",
        launch(memory_sol=90, dram_sol=90, global_sectors_ideal=3e5, bytes_per_sector_load=10, stalls=LONG)),
    "unused sectors, latency": ("mem.uncoalesced", launch(global_sectors_ideal=3e5, stalls=LONG)),
    "L2": ("mem.l2_bw", launch(memory_sol=85, l2_sol=85, dram_sol=10, stalls=LONG)),
    "L1": ("mem.l1_lsu", launch(memory_sol=85, l1_sol=85, dram_sol=5, stalls={"lg_throttle": 90.0})),
    "LSU pipe": ("mem.l1_lsu", launch(sm_sol=85, pipes={**PIPES, "lsu": 85})),
    "few loads in flight": ("mem.bytes_in_flight", launch(stalls=LONG)),
    "spills": ("mem.spill", launch(spill_requests=1e6, local_load_sectors=5e6, local_store_sectors=5e6, stalls=LONG)),
    "conflicts at the L1 roof": ("mem.smem_conflict", launch(memory_sol=95, l1_sol=95, dram_sol=2,
                                 shared_wavefronts=32_000, stalls={"mio_throttle": 60.0})),
    "conflicts, latency": ("mem.smem_conflict", launch(shared_wavefronts=4000, stalls={"short_scoreboard": 60.0})),
    "atomics": ("mem.atomics", launch(reduction_sectors=9e5, stalls={"lg_throttle": 80.0})),
    "narrow stores": ("mem.partial_store", launch(bytes_per_sector_store=4, global_sectors_ideal=5e5, stalls=LONG)),
    "host memory": ("mem.remote", launch(sysmem_misses=4e5, stalls=LONG)),
    "shared memory for one block": ("lat.occupancy", launch(occupancy=6, occupancy_theoretical=6, limit_shared=1,
                                    issue=5, stalls=LONG)),
    "one accumulator": ("lat.dependency", launch(stalls={"wait": 80.0})),
    "barriers": ("lat.barrier", launch(stalls={"barrier": 70.0, "wait": 30.0})),
    "fences": ("lat.membar", launch(stalls={"membar": 70.0, "wait": 30.0})),
    "matrix operands": ("lat.warpgroup_skew", launch(tensor=30, tma=2, stalls={"gmma": 40.0, "wait": 10.0})),
    "big body": ("lat.icache", launch(stalls={"no_instruction": 60.0, "wait": 40.0})),
    "constants": ("lat.imc", launch(stalls={"imc_miss": 60.0, "wait": 40.0})),
    "paths by lane": ("exec.divergence", launch(sm_sol=80, issue=80, lanes=2, pipes={**PIPES, "alu": 75})),
    "tensor cores": ("exec.tensor_bound", launch(sm_sol=92, tensor=92, tma=1, memory_sol=94, l1_sol=94, dram_sol=20)),
    "product on FMA": ("exec.tensor_missing", launch(sm_sol=90, pipes={**PIPES, "fma": 90}, kernel="sgemm_tile(int)")),
    "FMA": ("exec.pipe_bound:fma", launch(sm_sol=97, issue=99, pipes={**PIPES, "fma": 97})),
    "special functions": ("exec.pipe_bound:xu", launch(sm_sol=95, issue=20, pipes={**PIPES, "xu": 95})),
    "double precision": ("exec.pipe_bound:fp64", launch(sm_sol=95, issue=20, pipes={**PIPES, "fp64": 95})),
    "issue slots": ("exec.pipe_bound:issue", launch(sm_sol=85, issue=85, pipes={**PIPES, "alu": 50})),
}  # fmt: skip


@pytest.mark.parametrize("what", CLASSES)
def test_a_set_of_metrics_gets_its_class_and_an_edit_that_can_be_checked(what: str) -> None:
    """Breaks when a rule is lost, shadowed by another, or its family names no movement, guard or way to refute it."""
    wanted, one = CLASSES[what]
    facts, decision = judged(one)
    step = steps.step(facts, decision, min_bytes=None)
    assert decision.hit.name == wanted
    assert decision.confidence in ("high", "medium")
    assert step.kind == ("stop" if what in ("tensor cores", "FMA") else "edit")
    assert step.bound is not None
    assert 0.0 < step.bound <= 1.0
    assert min(len(step.what), len(step.expect), len(step.guard), len(step.refute), len(step.command)) > 3
    assert step.query is not None
    assert step.query.name == wanted


def test_every_family_is_found_by_its_class_and_moves_a_known_role() -> None:
    """Breaks when a class has no edit, or an edit's metric is one that nothing reads."""
    derived = {"excess_share", "conflict_share", "imbalance", "top_stall_share", "atomic_share", "remote_share",
               "dram_bytes", "busiest_pipe"}  # fmt: skip
    for key, family in families.FAMILIES.items():
        assert family.role in ROLES or family.role in derived, key
        base, _, detail = key.partition("/")
        assert families.find(base, details=(detail,)) is family
    assert {wanted.partition(":")[0] for wanted, _ in CLASSES.values()} <= families.FAMILIES.keys()


# --- what would cost trust -------------------------------------------------------------------------------------------

PERSISTENT: dict[str, float] = {
    "grid": 100, "waves": 1, "occupancy": 14, "occupancy_theoretical": 19, "limit_registers": 1, "limit_shared": 1,
    "issue": 12, "tma": 1,
}  # fmt: skip


def test_one_block_an_sm_by_design_is_not_low_occupancy_nor_a_small_grid() -> None:
    """Breaks when few warps and few blocks, the design of a persistent pipeline, are called its problem."""
    one = launch(**PERSISTENT, tensor=45, stalls={"long_scoreboard": 60.0, "barrier": 30.0, "gmma": 5.0})
    _, decision = judged(one)
    assert decision.hit.name not in ("lat.occupancy", "launch.grid_small", "launch.tail", "lat.barrier")
    short = launch(**{**PERSISTENT, "duration": 6000, "cycles": 6000, "waves": 0.5, "grid": 96}, tensor=10)
    assert judged(short)[1].hit.name != "launch.grid_small"


def test_stalls_of_idle_producers_are_not_ranked() -> None:
    """Breaks when warps that wait by design, of a kernel with bulk copies, name the class."""
    waits = {"long_scoreboard": 70.0, "wait": 20.0, "gmma": 2.0}
    by_counter = launch(**PERSISTENT, tensor=35, dram_sol=10, memory_sol=20, stalls=waits)
    by_opcode = launch(**{**PERSISTENT, "tma": 0}, dram_sol=10, memory_sol=20, stalls=waits, ops=("UTMALDG", "FFMA"))
    for one in (by_counter, by_opcode):
        facts, decision = judged(one)
        assert decision.hit.name == INSUFFICIENT
        assert steps.step(facts, decision, min_bytes=None).kind == "capture"


def test_a_matrix_vector_product_is_not_told_to_use_tensor_cores() -> None:
    """Breaks when a GEMV, or any kernel that merely uses FMA, is sent to tensor cores."""
    busy = {"sm_sol": 85.0, "pipes": {**PIPES, "fma": 85}}
    assert name_of(launch(**busy, kernel="gemv2T_kernel_val(int)")) == "exec.pipe_bound:fma"
    assert name_of(launch(**busy, kernel="nbody(float4*)")) == "exec.pipe_bound:fma"
    assert name_of(launch(**busy, kernel="sgemm(int)", cc="6.1")) == "exec.pipe_bound:fma"


def test_dram_at_its_roof_with_twice_the_bytes_is_no_stop() -> None:
    """Breaks when a kernel at 90 % DRAM that moves too much, or an unknown share too much, is called done."""
    one = launch(memory_sol=91, dram_sol=91, stalls=LONG, dram_read=1e8, dram_write=1e8)
    assert [step_of(one, min_bytes=b).kind for b in (200_000_000, 100_000_000, None)] == ["stop", "edit", "edit"]


@pytest.mark.parametrize(("pipe", "kind"), [("fma", "stop"), ("xu", "edit"), ("fp64", "edit"), ("alu", "edit")])
def test_only_pipes_that_nothing_can_relieve_are_a_stop(pipe: str, kind: str) -> None:
    """Breaks when a full special-function, double or integer pipe is called the end of the road."""
    assert step_of(launch(sm_sol=95, issue=60, pipes={**PIPES, pipe: 95})).kind == kind


def test_a_short_kernel_is_judged() -> None:
    """Breaks when 10 us mute the digest: decoding lives below it."""
    _, decision = judged(launch(duration=6000, cycles=6000, memory_sol=85, dram_sol=85, stalls=LONG))
    assert (decision.hit.name, decision.confidence) == ("mem.dram_bw", "medium")


def test_replayed_streams_and_settings_are_told() -> None:
    """Breaks when overlap is judged from a replay that runs kernels alone, or a cold capture passes for a hot one."""
    two = [launch(), dataclasses.replace(launch(), stream="8")]
    assert any("overlap cannot be seen" in f for f in validity.of_file(two, "C", 0))
    cold = validity.of_file(two[:1], "", 0, Session(cache="all", clocks="base", replay="kernel"))
    assert [word for word in ("flushed", "held", "one by one") if any(word in f for f in cold)] == [
        "flushed", "held", "one by one",
    ]  # fmt: skip


def test_indexed_local_arrays_are_not_spills() -> None:
    """Breaks when local traffic without spilled registers, or mostly of arrays, is called a spill."""
    local = {"local_load_sectors": 5e6, "local_store_sectors": 5e6}
    assert name_of(launch(**local, stalls=LONG)) == "mem.bytes_in_flight"
    assert name_of(launch(**local, spill_requests=1e3, spill_share=5, stalls=LONG)) == "mem.bytes_in_flight"


def test_advice_that_is_in_the_code_already_is_not_given() -> None:
    """Breaks when a kernel with asynchronous copies is told to use them."""
    assert "asynchronous already" in step_of(launch(stalls=LONG, ops=("LDGSTS", "FFMA"))).what
    assert "asynchronous already" not in step_of(launch(stalls=LONG, ops=("LDG", "FFMA"))).what


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (launch(grid=20, waves=0.025, kernel="nvjet_sm90_hsh_64x32(int)"), "stream-K"),
        (launch(grid=20, waves=0.025, kernel="flash_fwd_splitkv(int)"), "keys and values"),
        (launch(grid=20, waves=0.025, duration=2000, cycles=2000), "CUDA graph"),
        (launch(sm_sol=70, tensor=70, tma=1, ops=("UTCHMMA",), cc="10.0"), "TMEM"),
        (launch(sm_sol=70, tensor=70, tma=1, kernel="flash_fwd(int)"), "softmax"),
        (launch(sm_sol=70, tensor=70, ops=("HMMA", "LDSM")), "fragments"),
        (launch(memory_sol=85, l2_sol=85, dram_sol=10, stalls=LONG, kernel="gemm_k(int)"), "multicast"),
        (launch(stalls={"barrier": 70.0}, kernel="row_softmax(int)"), "shuffles first"),
    ],
)
def test_the_edit_fits_the_kind_of_kernel(one: Launch, words: str) -> None:
    """Breaks when every kernel of a class gets the same sentence."""
    assert words in step_of(one).what


# --- the same cause written by somebody else -------------------------------------------------------------------------

UNEVEN: dict[str, float] = {"sm_cycles_max": 99_000, "sm_cycles_avg": 76_000}
"""The busiest SM over the average one: 1.3."""
HOT = {f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum": n for op, n in (
    ("ld", 1e6), ("st", 0.0), ("atom", 0.0), ("red", 1e6))}  # fmt: skip
OTHERS: dict[str, tuple[str, Launch]] = {
    # The last wave reaches every SM: only blocks that differ are left as a cause.
    "uneven blocks in more than one wave": (
        "exec.imbalance", launch(grid=1500, waves=1.875, sm_cycles_max=99_000, sm_cycles_avg=55_000)),
    "a last wave explains the SMs that end early": (
        "launch.tail", launch(grid=850, waves=1.0625, sm_cycles_max=99_000, sm_cycles_avg=72_000, stalls={"wait": 40.0,
                              "long_scoreboard": 40.0, "barrier": 40.0})),
    "few warps and a ragged last wave": (
        "lat.occupancy", launch(occupancy=6, occupancy_theoretical=6, limit_shared=1, issue=5, stalls=LONG, grid=227,
                                waves=2.27, **UNEVEN)),
    "a slow start beside waits for memory": ("mem.bytes_in_flight", launch(stalls=LONG, **UNEVEN)),
    "conflicts beside mildly uneven SMs": (
        "mem.smem_conflict", launch(shared_wavefronts=4000, stalls={"short_scoreboard": 60.0}, **UNEVEN)),
    "one lane of a warp follows a list": ("mem.bytes_in_flight", launch(lanes=1, issue=3, stalls=LONG)),
    "each load ends in an atomic to one address": (
        "mem.atomics", launch(reduction_sectors=2e5, l2_sectors=1e6, stalls={"lg_throttle": 80.0}, raw=HOT)),
    "byte stores that L2 takes": (
        "mem.partial_store", launch(memory_sol=48, l2_sol=48, dram_sol=10, bytes_per_sector_load=0,
                                    bytes_per_sector_store=8, global_load_sectors=0, global_sectors_ideal=2.5e5,
                                    stalls={"wait": 50.0, "short_scoreboard": 30.0, "drain": 15.0})),
    "L2 just below the busy mark": (
        "mem.l2_bw", launch(memory_sol=55, l2_sol=55, dram_sol=5, stalls=LONG, raw={
            f"{name}{PCT}": 5.0 for name in ("l1tex__data_bank_reads", "l1tex__lsuin_requests", "l1tex__f_wavefronts",
                                             "lts__d_sectors", "lts__t_tag_requests", "fbpa__dram_sectors",
                                             "l1tex__data_bank_writes")} | {f"lts__t_sectors{PCT}": 55.0})),
    "a product on FMA behind a busy L1": (
        "exec.tensor_missing", launch(sm_sol=66, memory_sol=72, l1_sol=72, dram_sol=3, pipes={**PIPES, "fma": 65},
                                      kernel="matmul_tiled(int)", stalls={"mio_throttle": 60.0})),
    "a loop counter beside eight accumulators": (
        "exec.pipe_bound:fma", launch(sm_sol=99, issue=99, pipes={**PIPES, "fma": 76, "alu": 20})),
    "unused sectors keep the load pipe busy": (
        "mem.uncoalesced", launch(sm_sol=85, memory_sol=65, dram_sol=20, pipes={**PIPES, "lsu": 85},
                                  global_sectors_ideal=3e5, bytes_per_sector_load=10)),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
def test_a_cause_keeps_its_class_under_another_shape(what: str) -> None:
    """Breaks when a grid, mask, mix or size that another author would choose hides the cause behind a symptom."""
    wanted, one = OTHERS[what]
    _, decision = judged(one)
    assert (decision.hit.name, decision.confidence in ("high", "medium")) == (wanted, True)


def test_a_few_launches_of_a_kernel_with_nothing_to_do_are_many_small_ones() -> None:
    """Breaks when ncu profiled three of two thousand launches, or a single block is taken for a floor kernel."""
    idle = {"duration": 2500.0, "cycles": 2500.0, "sm_sol": 3.0, "memory_sol": 3.0, "dram_sol": 2.0}
    assert [name_of(launch(**idle, grid=300, waves=0.375), launches=n) for n in (1, 3)] == ["launch.many_small"] * 2
    assert name_of(launch(**idle, grid=1, waves=0.001), launches=3) == "launch.grid_small"


STREAM: dict[str, float] = {
    "memory_sol": 90, "dram_sol": 90, "dram_read": 6e5 * 32, "dram_write": 3.8e5 * 32, "bytes_per_sector_load": 32,
}  # fmt: skip


def test_a_stream_at_the_dram_roof_stops_without_being_called_done() -> None:
    """Breaks when a copy at the roof is tuned on, or is said to be at its limit where caches or order could help."""
    stop = step_of(launch(**STREAM, stalls=LONG))
    assert (stop.kind, stop.family) == ("stop", "fewer-bytes")
    assert "--min-bytes" in stop.refute
    others = ({"dram_sol": 79, "memory_sol": 79}, {"dram_read": 6e5 * 32 * 1.5}, {"global_sectors_ideal": 9e5},
              {"dram_read": 2e5 * 32})  # fmt: skip
    for changed in others:
        assert step_of(launch(**{**STREAM, **changed}, stalls=LONG)).kind == "edit", changed
    least = step_of(launch(**STREAM, stalls=LONG), min_bytes=31_000_000)
    more = step_of(launch(**STREAM, stalls=LONG), min_bytes=15_000_000)
    assert [(s.kind, s.family) for s in (least, more)] == [("stop", "at-roof"), ("edit", "fewer-bytes")]


def test_a_page_without_pipes_or_atomics_is_judged_by_what_speaks_against_them() -> None:
    """Breaks when a details page of a clear kernel is sent back for counters that cannot change its class."""

    def said(text: str) -> Rule:
        return Rule(id="HighPipeUtilization", section="ComputeWorkloadAnalysis", type="optimization", title="",
                    text=text)  # fmt: skip

    idle = said("All compute pipelines are under-utilized.")
    fma = said("FMA is the highest-utilized pipeline (67.5%) based on elapsed cycles")
    xu = launch(sm_sol=97, memory_sol=1, dram_sol=1, issue=32, stalls={"mio_throttle": 80.0},
                without=("pipes", "tensor", "tma"), rules=(idle,))  # fmt: skip
    gemm = launch(sm_sol=73, memory_sol=40, kernel="sgemm(int)", without=("pipes", "tensor", "tma"), rules=(fma,))
    gone = ("atomic_sectors", "reduction_sectors")
    chase = launch(stalls=LONG, without=gone)
    l1 = launch(memory_sol=85, l1_sol=85, dram_sol=5, stalls={"lg_throttle": 90.0}, without=gone)
    drain = launch(memory_sol=2, dram_sol=0, l2_sol=2, stalls={"drain": 70.0, "short_scoreboard": 30.0}, without=gone)
    assert [name_of(one) for one in (xu, gemm, chase, l1, drain)] == [
        "exec.pipe_bound:xu", "exec.tensor_missing", "mem.bytes_in_flight", "mem.l1_lsu", INSUFFICIENT,
    ]  # fmt: skip


def test_what_an_old_ncu_lacks_is_taken_from_what_it_has() -> None:
    """Breaks when reports from before 2024 are sent back for metrics that their ncu never had."""
    tail = {"grid": 801.0, "waves": 1.01, "sm_cycles_avg": 50_000.0}
    assert name_of(launch(**tail, without=("sm_cycles_max",))) == "launch.tail"
    short = {**tail, "duration": 8000.0, "cycles": 8000.0, "sm_cycles_avg": 4000.0}
    assert name_of(launch(**short, without=("sm_cycles_max",))) == INSUFFICIENT
    bytes_gone = ("bytes_per_sector_load", "bytes_per_sector_store")
    stores = {"memory_sol": 70.0, "dram_sol": 70.0, "global_load_sectors": 0.0, "global_sectors_ideal": 2.5e5}
    assert name_of(launch(**stores, without=bytes_gone)) == "mem.partial_store"
    pascal = launch(sm_sol=97, issue=99, pipes={**PIPES, "fma": 97}, without=("tensor", "tma"), cc="6.1")
    assert name_of(pascal) == "exec.pipe_bound:fma"


@pytest.mark.parametrize(
    ("lost", "one"),
    [
        ("no_instruction", launch(stalls={"no_instruction": 90.0, "wait": 10.0})),
        ("drain", launch(stalls={"drain": 70.0, "short_scoreboard": 30.0}, reduction_sectors=9e5)),
    ],
)
def test_a_stall_reason_that_was_not_captured_is_not_zero(lost: str, one: Launch) -> None:
    """Breaks when a list of metrics without the largest reason names the second one."""
    left = dataclasses.replace(one, metrics={k: v for k, v in one.metrics.items() if lost not in k})
    facts, decision = judged(left)
    assert (facts.stalls, decision.hit.name) == ({}, INSUFFICIENT)
    assert judged(one)[1].hit.name != INSUFFICIENT


def test_a_half_known_unit_names_nothing() -> None:
    """Breaks when the store side of unused sectors, the FMA pipe or the average SM is missing and is taken for none."""
    stores = {"memory_sol": 70.0, "dram_sol": 70.0, "global_sectors_ideal": 2.5e5, "bytes_per_sector_load": 0.0}
    unseen = ("bytes_per_sector_store", "global_load_sectors")
    assert name_of(launch(**stores, without=unseen)) == INSUFFICIENT
    no_fma = {p: v for p, v in PIPES.items() if p != "fma"}
    assert name_of(launch(sm_sol=95, issue=95, pipes=no_fma)) == INSUFFICIENT
    text = "waiting for a MIO (memory) operation (not to L1TEX). It represents about 31.5% of the total"
    short = Rule(id="CPIStall", section="", type="optimization", title="Short Scoreboard", text=text)
    assert name_of(launch(reduction_sectors=9e5, without=("stalls",), rules=(short,))) == INSUFFICIENT
    uneven = launch(sm_cycles_max=99_000, stalls={"wait": 90.0}, without=("sm_cycles_avg",))
    assert name_of(uneven) == INSUFFICIENT


# --- what cannot be known --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [(), ("sm_sol",), ("memory_sol", "dram_sol"), ("dram_sol", "issue", "lanes")])
def test_a_list_of_metrics_ends_in_a_capture(left: tuple[str, ...]) -> None:
    """Breaks when a few metrics, without one of the two speeds of light, name a class."""
    one = launch(**dict.fromkeys(left, 95.0), without=(*(r for r in QUIET if r not in left), "stalls", "pipes"))
    facts, decision = judged(one)
    step = steps.step(facts, decision, min_bytes=None)
    assert (decision.hit.name, decision.confidence, step.kind) == (INSUFFICIENT, "none", "capture")
    assert "--section SpeedOfLight" in step.command


WASTE_ROLES = ("shared_wavefronts", "global_sectors", "bytes_per_sector_load", "bytes_per_sector_store",
               "spill_requests", "local_load_sectors", "global_load_sectors", "atomic_sectors", "lanes")  # fmt: skip
BASIC = (*WASTE_ROLES, "l1_sol", "l2_misses", "instructions", "stalls")
CONSTITUENTS = {f"{name}{PCT}": 5.0 for name in (
    "l1tex__data_bank_reads", "l1tex__lsuin_requests", "l1tex__f_wavefronts", "lts__t_sectors", "lts__d_sectors",
    "lts__t_tag_requests", "lts__lts2xbar_cycles_active", "fbpa__dram_sectors")}  # fmt: skip


def test_a_basic_set_names_only_what_no_missing_metric_can_change() -> None:
    """Breaks when a set without waste metrics gives a class that those metrics could overturn."""
    sure = {
        "launch.grid_small": launch(grid=20, waves=0.025, without=BASIC),
        "exec.tensor_bound": launch(sm_sol=90, tensor=90, without=BASIC),
    }  # fmt: skip
    assert {wanted: name_of(one) for wanted, one in sure.items()} == {wanted: wanted for wanted in sure}
    unsure = (
        launch(memory_sol=90, dram_sol=90, without=BASIC, raw={**CONSTITUENTS, f"dram__cycles_active{PCT}": 90.0}),
        launch(memory_sol=70, dram_sol=70, without=BASIC, raw={**CONSTITUENTS, f"dram__cycles_active{PCT}": 70.0}),
        launch(memory_sol=90, dram_sol=90, without=BASIC),
        launch(memory_sol=90, dram_sol=5, l2_sol=90, without=BASIC),
        launch(sm_sol=90, pipes={**PIPES, "fma": 90}, without=BASIC),
        launch(without=BASIC),
    )
    assert {name_of(one) for one in unsure} == {INSUFFICIENT}


@pytest.mark.parametrize("what", CLASSES)
def test_a_dropped_section_changes_a_class_only_to_a_capture(what: str) -> None:
    """Breaks when a missing section makes another class, or a surer one."""
    wanted, one = CLASSES[what]
    rank = {"none": 0, "low": 1, "medium": 2, "high": 3}
    before = judged(one)[1]
    for section, roles in sections.SECTIONS.items():
        gone = {ROLES[r][1] for r in roles.split() if r in ROLES}
        gone |= {ISSUED.format(r) for r in REASONS} if "stalls" in roles.split() else set()
        gone |= {f"sm__inst_executed_pipe_{p}{PCT}" for p in PIPES} if "pipes" in roles.split() else set()
        left = dataclasses.replace(one, metrics={k: v for k, v in one.metrics.items() if k not in gone})
        facts, after = judged(left)
        kind = steps.step(facts, after, min_bytes=None).kind
        assert after.hit.name == wanted or kind == "capture", section
        assert after.hit.name != wanted or rank[after.confidence] <= rank[before.confidence], section


# --- names and ages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cc", "names"),
    [
        ("7.5", {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 85.0}),
        ("8.9", {"sm__pipe_tensor_op_hmma_cycles_active_v2.avg.pct_of_peak_sustained_active": 85.0}),
        ("10.0", {f"sm__pipe_tensor_cycles_active{PCT}": 0.0, f"sm__pipe_tc_cycles_active{PCT}": 85.0}),
        ("12.0", {f"sm__pipe_tensor_subpipe_hmma_cycles_active{PCT}": 85.0}),
    ],
)
def test_tensor_cores_are_found_under_every_name(cc: str, names: dict[str, float]) -> None:
    """Breaks when a chip's tensor pipe is missed, or the idle one of two tensor pipes counts."""
    one = launch(sm_sol=85, without=("tensor",), raw=names, cc=cc)
    assert name_of(one) == "exec.tensor_bound"


def test_names_of_2019_and_pascal_are_read() -> None:
    """Breaks when an old report's speed of light or stalls are not recognised."""
    old = {"smsp__warp_cycles_per_issue_stall_barrier": 7.0, "smsp__warp_cycles_per_issue_stall_wait": 2.0,
           "smsp__warp_cycles_per_issue_stall_long_scoreboard": 1.0}  # fmt: skip
    one = launch(without=("stalls", "sm_sol", "memory_sol", "tma"), raw=old, cc="6.1")
    metrics = {**one.metrics, "sm__sol_pct": Value(number=30, unit="%"),
               "gpu__compute_memory_sol_pct": Value(number=30, unit="%")}  # fmt: skip
    facts, decision = judged(dataclasses.replace(one, metrics=metrics))
    assert decision.hit.name == "lat.barrier"
    assert facts.stalls["barrier"] == pytest.approx(0.7)


def test_stall_families_are_never_mixed() -> None:
    """Breaks when samples fill the holes of counters, or samples of not-issued warps count twice."""
    cut = {ISSUED.format("wait"): 90.0}
    samples = {f"smsp__pcsamp_warps_issue_stalled_{r}": 1.0 for r in REASONS} | {
        "smsp__pcsamp_warps_issue_stalled_barrier": 20.0, "smsp__pcsamp_warps_issue_stalled_barrier_not_issued": 500.0,
        "smsp__pcsamp_warps_issue_stalled_selected": 900.0,
        "smsp__pcsamp_warps_issue_stalled_gmma": 0.0,
    }  # fmt: skip
    facts, decision = judged(launch(without=("stalls",), raw={**cut, **samples}))
    assert decision.hit.name == "lat.barrier"
    assert facts.stalls["barrier"] == pytest.approx(20 / 33)


def test_the_part_that_makes_the_memory_figure_decides_the_tier() -> None:
    """Breaks when L2's own figure, which runs high on large chips, hides DRAM, or atomics pass for bandwidth."""

    def by(part: str, **roles: float) -> str:
        return name_of(launch(memory_sol=80, stalls=LONG, raw={**CONSTITUENTS, f"{part}{PCT}": 80.0}, **roles))

    assert by("dram__cycles_active", dram_sol=80, l2_sol=90) == "mem.dram_bw"
    assert by("lts__lts2xbar_cycles_active", dram_sol=20, l2_sol=70) == "mem.l2_bw"
    assert by("l1tex__m_xbar2l1tex_read_sectors", dram_sol=20, l2_sol=70) == "mem.l2_bw"
    assert by("l1tex__lsuin_requests", dram_sol=20, l2_sol=70) == "mem.l1_lsu"
    assert by("lts__d_atomic_input_cycles_active", dram_sol=20, l2_sol=70) == "mem.atomics"
    assert by("lts__d_sectors_fill_sysmem", dram_sol=20, l2_sol=70) == "mem.remote"


def test_a_page_with_rules_but_without_their_metrics_is_judged_by_what_the_rules_print() -> None:
    """Breaks when a details page, which has the rules' numbers, is told to capture again, or taken for clean."""

    def said(rule: str, text: str, section: str) -> Rule:
        return Rule(id=rule, section=section, type="optimization", title="", text=text)

    gone = ("global_sectors", "bytes_per_sector_load", "bytes_per_sector_store", "shared_wavefronts")
    bad = said("UncoalescedGlobalAccess", "x 7 excessive sectors (75% of the total 9 sectors)", "SourceCounters")
    one = launch(memory_sol=85, dram_sol=85, stalls=LONG, without=gone, rules=(bad,))
    assert name_of(one) == "mem.uncoalesced"
    other = said("CPIStall", "a sibling at a CTA barrier. It represents about 71.0% of the total", "SourceCounters")
    clean = launch(memory_sol=85, dram_sol=85, without=(*gone, "stalls"), rules=(other,))
    assert name_of(clean) == "mem.dram_bw"
    assert judged(clean)[0].stalls == {"barrier": 0.71}


# --- launches, ranges, confidence, the step --------------------------------------------------------------------------


def test_many_launches_of_a_floor_kernel_are_one_problem() -> None:
    """Breaks when a thousand launches at the floor are told to make more blocks, or one such launch is called many."""
    one = launch(duration=2500, cycles=2500, grid=300, waves=0.375)
    assert (name_of(one, launches=12), name_of(one, launches=1)) == ("launch.many_small", "launch.grid_small")
    assert name_of(launch(memory_sol=85, dram_sol=85, stalls=LONG), launches=12) == "mem.dram_bw"


def test_an_idle_range_is_a_launch_problem_and_a_busy_one_is_taken_apart() -> None:
    """Breaks when figures of several kernels together name a class of one kernel."""
    idle = dataclasses.replace(launch(memory_sol=5, sm_sol=5, sm_cycles_max=20_000), kind="range")
    busy = dataclasses.replace(launch(memory_sol=85, dram_sol=85), kind="graph")
    assert (name_of(idle), name_of(busy)) == ("launch.many_small", INSUFFICIENT)


def test_confidence_falls_with_each_doubt() -> None:
    """Breaks when High survives a contradiction, a narrow margin, a second doubt or NVIDIA's own rule."""
    one = launch(memory_sol=90, dram_sol=90, stalls=LONG)
    against = Agreement(disagrees=("SOLBottleneck: Small Grid",))
    assert judged(one)[1].confidence == "high"
    assert judged(one, agreement=against)[1].confidence == "medium"
    assert judged(launch(memory_sol=65, dram_sol=65, stalls=LONG))[1].confidence == "medium"
    late = launch(memory_sol=65, dram_sol=65, stalls=LONG, duration=5e6)
    assert judged(late)[1].confidence == "low"
    assert judged(one, session=Session(ncu="2020.1.0"))[1].confidence == "medium"


def test_occupancy_names_every_limiter_and_the_next_step_of_the_first() -> None:
    """Breaks when a tie is hidden, or the what-if table is read the wrong way round."""
    one = launch(occupancy=6, occupancy_theoretical=6, limit_shared=1, limit_registers=1, registers=200, issue=5,
                 stalls=LONG)  # fmt: skip
    table = Series(keys=(64, 128, 168, 200, 224), values=(32, 16, 12, 8, 8))
    one = dataclasses.replace(one, series={"launch__occupancy_per_register_count": table})
    what = step_of(one).what
    assert "registers and shared memory" in what
    assert "168 instead of 200 registers per thread let 12 instead of 8 warps" in what


@dataclasses.dataclass(frozen=True)
class Spot:
    file: str = "a.cu"
    line: int | None = 7
    pc: str = "0x40"
    sass: str = "@P0 LDG.E R2, [R4]"
    share: float = 0.5


def test_the_step_points_at_the_hot_place_only_where_it_is_hot() -> None:
    """Breaks when a place with a tenth of the metric becomes the target, or the predicate becomes the opcode."""
    facts, decision = judged(launch(stalls=LONG))
    hot = steps.step(facts, decision, min_bytes=None, hotspots=(Spot(),)).target
    cool = steps.step(facts, decision, min_bytes=None, hotspots=(Spot(share=0.1),)).target
    assert (hot.function, hot.file, hot.line, hot.opcode, hot.share) == ("k", "a.cu", 7, "LDG.E", 0.5)
    assert (cool.function, cool.line) == ("k", None)


def test_the_knowledge_query_runs() -> None:
    """Breaks when the command has an option that the search does not know, or an arch that no record has."""
    new = query.query(launch(kernel="void flash_fwd<bf16>(int)"), class_name="mem.spill", words="register spill")
    old = query.query(launch(kernel="k(int)", cc="6.1"), class_name="lat.icache", words="")
    assert (new.operator, new.dsl, new.arch, old.arch) == ("attention", "flash-attention", "sm_90", "sm_61")
    assert "--arch" not in old.command
    argv = shlex.split(new.command)[1:]
    done = subprocess.run([sys.executable, "-m", "kernelpilot_helpers", *argv], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_units_are_compared_each_with_its_own_average() -> None:
    """Breaks when an uneven L2 or DRAM is hidden behind even SMs, or a unit that was not compared counts as even."""
    facts, _ = judged(launch(l2_cycles_max=150, l2_cycles_avg=100))
    assert facts.uneven() == {"sm": pytest.approx(99 / 98), "l2": 1.5}
