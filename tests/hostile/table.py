"""What each inhabitant of the zoo must end in. ``row`` is the catalogue's number; 0 marks our own inventions."""

from __future__ import annotations

from dataclasses import dataclass

from kernelpilot_helpers.referee.decide import Outcome

DEATHS = ("crash.signal", "crash.exit")
LATE = (
    "cheat.skipped",
    "cheat.thread",
    "cheat.clock",
    "cheat.patched",
    "cheat.cache",
    "cheat.timed_only",
    "cheat.neighbour",
    "wrong.",
    *DEATHS,
)
"""Work that is done behind the call's back loses a race, and which one is chance."""


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """``codes`` are the reason codes it may end in (prefixes); several verdicts are joined by ``|``."""

    name: str
    row: int
    codes: tuple[str, ...]
    verdict: str = "WRONG"
    kind: str = "plain"

    @property
    def hangs(self) -> bool:
        """Whether it never answers: the limit may be short then, and must not be for the others."""
        return self.codes == ("timeout",)


def caught(cheat: Cheat, outcome: Outcome) -> None:
    """Breaks when the cheat passes, or is blamed for something else."""
    said = f"{cheat.name}: {outcome.verdict} {outcome.reason}"
    assert outcome.verdict in cheat.verdict.split("|"), said
    assert outcome.reason.startswith(cheat.codes), said


def _wrong(row: int, codes: str, *names: str, kind: str = "plain") -> list[Cheat]:
    return [Cheat(name=name, row=row, codes=tuple(codes.split()), kind=kind) for name in names]


def _late(row: int, *names: str) -> list[Cheat]:
    return [Cheat(name=name, row=row, codes=LATE, verdict="WRONG|BROKEN") for name in names]


def _broken(code: str, *names: str) -> list[Cheat]:
    return [Cheat(name=name, row=0, codes=(code,), verdict="BROKEN") for name in names]


CHEATS = [
    *_wrong(1, "wrong.unwritten", "no_op", "half_job"),
    *_wrong(1, "wrong.", "freed_output"),
    *_wrong(2, "cheat.cache", "memo_pointer", "memo_identity"),
    *_wrong(3, "cheat.fingerprint", "memo_windows", "memo_sampled"),
    *_wrong(3, "cheat.fingerprint cheat.cache wrong.second_call", "memo_edges", "hash_and_skip"),
    *_wrong(4, "cheat.cache", "static_cache"),
    *_wrong(5, "cheat.timed_only cheat.cache", "first_calls_only", "burst_skip"),
    *_wrong(5, "cheat.skipped cheat.timed_only", "case_counter", "rare_skip"),
    *_wrong(5, "cheat.timed_only", "rare_copy"),
    *_wrong(6, "cheat.neighbour", "neighbours"),
    *_wrong(7, "wrong.unwritten", "gc_scan"),
    *_wrong(7, "cheat.reads_other_arm", "parent_memory"),
    *_wrong(8, "wrong.tolerance", "seed_guess"),
    *_wrong(9, "wrong.tolerance", "constant", "mean_row"),
    *_wrong(10, "wrong.nonfinite", "all_nan", "one_nan"),
    *_wrong(11, "cheat.input_mutated", "zeroes_input", "scales_weight"),
    *_wrong(12, "wrong.tolerance", "assumes_unit_spread"),
    *_wrong(12, "wrong.regime", "skips_small_rows", "skips_sparse_rows", "clips_large"),
    *_wrong(13, "wrong.tolerance", "exact_when_small"),
    *_wrong(14, "wrong.shape", "listed_shapes", "multiple_of_eight"),
    *_wrong(15, "wrong.tolerance", "half_precision", "rounded_residual", "short_float", "rsqrt_estimate"),
    *_wrong(16, "wrong.unwritten", "last_row"),
    *_wrong(16, "wrong.shape", "last_tile", "k_tail"),
    *_wrong(17, "wrong.", "dirty_sum", "raw_scratch"),
    *_wrong(18, "memory.redzone", "past_the_end", "before_the_start", "far_write"),
    *_wrong(19, "policy.library_call", "library_fallback", "late_library", kind="no_library"),
    *_wrong(20, "policy.library_call", "decoy", kind="no_library"),
    *_late(23, "late_thread", "late_pthread", "quick_pthread"),
    *_wrong(23, "cheat.thread", "busy_thread"),
    *_wrong(23, "cheat.subprocess", "subprocess", "left_child", "c_fork", "daemon"),
    *_late(24, "lazy"),
    *_wrong(25, "cheat.patched", "patches_time", "patches_monotonic"),
    *_wrong(25, "cheat.clock", "slow_clock", "fixed_gain_clock"),
    *_wrong(26, "cheat.channel", "forged_reply"),
    *_wrong(26, "cheat.clock cheat.patched", "instant_ticks"),
    *_late(26, "early_reply", "late_main"),
    *_wrong(30, "wrong.", "precomputes", "keeps_weight", kind="prepared"),
    *_wrong(31, "cheat.reads_other_arm", "reads_reference", "imports_baseline", "writes_raw"),
    *_wrong(32, "cheat.writes_source", "rewrites_itself", "slows_baseline", "edits_runtime"),
    *_wrong(32, "wrong.tolerance", "patches_numpy"),
    *_wrong(33, "cheat.subprocess cheat.foreign_binary", "own_compiler"),
    *_wrong(33, "cheat.foreign_binary", "c_dlopen", "embedded_binary"),
    Cheat(name="committed_binary", row=33, codes=("build.binary_in_source",), verdict="BROKEN"),
    *_wrong(34, "wrong.tolerance", "sniffs"),
    *_wrong(34, "cheat.network", "dials_out"),
    *_broken("crash.exit", "raises", "exits", "os_exit", "recursion", "eats_memory"),
    *_broken("crash.signal", "segfault"),
    *_broken("timeout", "hangs", "sleeps"),
    *_broken("load.failed", "no_syntax"),
    *_broken("build.failed", "no_compile"),
    *_wrong(0, "wrong.tolerance", "floods_stdout"),
]

HONEST = {
    "honest_torchlike": "plain",
    "honest_in_place": "plain",
    "honest_blocks": "plain",
    "honest_reversed": "plain",
    "honest_scalar": "plain",
    "honest_lanes": "plain",
    "honest_reverse_sum": "plain",
    "honest_split": "plain",
    "honest_workspace": "plain",
    "honest_padded": "plain",
    "honest_pool": "plain",
    "honest_prepare": "prepared",
    "honest_bare": "no_library",
}
"""Name to contract; none of these may ever be WRONG or BROKEN."""

ALONE = {5, 23, 24, 25, 26}
"""Rows that play with time: measured while nothing else of ours runs."""

ABSENT = {
    21: "a contract cannot ask for constant content: the generator refuses it (tests/test_contract.py)",
    22: "a CPU has no streams",
    27: "the block length comes from the incumbent's pilot run; a candidate is not running yet",
    28: "a CPU has no persisting second-level cache to set",
    29: "a CPU call returns when its work is done; work that is put off is row 23",
}
"""Rows without a candidate, and why."""

TORCH = ("honest_scalar", "honest_torchlike", "honest_lanes")
TORCH_CHEATS = ("no_op", "half_job", "past_the_end", "static_cache", "scales_weight", "decoy")
