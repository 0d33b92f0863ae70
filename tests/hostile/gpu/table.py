"""What each inhabitant of the GPU zoo must end in. ``row``: the catalogue's number; 0: failures and inventions."""

from __future__ import annotations

from dataclasses import dataclass

WRONG = "WRONG"
BROKEN = "BROKEN"
EITHER = "WRONG|BROKEN"
ANY_LIE = ("cheat.", "wrong.")
"""Wrong in some calls and right in others: which probe meets it first depends on counts, clocks and addresses."""
MEMO = ("cheat.cache", "cheat.fingerprint", "wrong.second_call", "wrong.tolerance")
"""The first checked call is the second one on its memory (the first warmed it up), so it may look plainly wrong."""
LATE = ("cheat.", "wrong.", "capture.", "crash.", "timeout")
"""Work that is done behind the call's back loses a race, and which one is chance."""


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """``codes`` are the reason codes it may end in (prefixes); several verdicts are joined by ``|``."""

    name: str
    row: int
    codes: tuple[str, ...]
    verdict: str = WRONG
    kind: str = "plain"
    call_s: float = 30.0
    """Limit of one command: short for what never answers."""


def _wrong(row: int, codes: str | tuple[str, ...], *names: str, kind: str = "plain") -> list[Cheat]:
    wanted = tuple(codes.split()) if isinstance(codes, str) else codes
    return [Cheat(name=name, row=row, codes=wanted, kind=kind) for name in names]


def _either(row: int, codes: str | tuple[str, ...], *names: str, kind: str = "plain") -> list[Cheat]:
    wanted = tuple(codes.split()) if isinstance(codes, str) else codes
    return [Cheat(name=name, row=row, codes=wanted, kind=kind, verdict=EITHER) for name in names]


def _broken(codes: str, *names: str, kind: str = "plain", call_s: float = 30.0, row: int = 0) -> list[Cheat]:
    wanted = tuple(codes.split())
    return [Cheat(name=n, row=row, codes=wanted, kind=kind, verdict=BROKEN, call_s=call_s) for n in names]


CHEATS = [
    *_wrong(1, "wrong.unwritten", "no_op", "empty_kernel", "half_job"),
    *_wrong(1, "wrong. cheat.cache", "freed_output"),
    *_wrong(2, MEMO, "memo_pointer"),
    *_either(2, (*MEMO, "crash."), "memo_identity"),
    *_wrong(3, ANY_LIE, "memo_edges", "memo_sampled", "memo_checksum"),
    *_wrong(4, ANY_LIE, "memo_device", "capture_cache"),
    *_wrong(5, ANY_LIE, "first_calls_only", "rare_stale", "rare_skip", "burst_skip", "capture_sloppy"),
    *_wrong(5, ANY_LIE, "slot_sniffer", "cold_sniffer", "replay_sniffer"),
    *_wrong(6, ANY_LIE, "batch_and_skip", "batch_even"),
    *_either(6, (*ANY_LIE, "crash.exit"), "neighbours"),
    *_wrong(7, "wrong.unwritten", "gc_scan", "arena_scan"),
    *_wrong(7, "cheat.reads_other_arm", "oracle_memory"),
    *_either(7, "wrong.unwritten crash. cheat.", "foreign_handle"),
    *_wrong(8, "wrong.", "seed_guess"),
    *_wrong(9, "wrong. cheat.cache", "constant", "mean_row"),
    *_wrong(10, "wrong.nonfinite", "all_nan", "one_nan"),
    *_wrong(11, "cheat.input_mutated", "zeroes_input", "scales_weight"),
    *_wrong(12, "wrong.", "assumes_unit_spread", "skips_small_rows", "skips_sparse_rows", "clips_large"),
    *_wrong(13, "wrong.", "exact_when_small"),
    *_wrong(14, "wrong.", "listed_shapes", "multiple_of_eight"),
    *_wrong(15, "wrong.", "bf16_sum", "truncates"),
    *_wrong(15, "wrong.", "half_sum", "half_residual", "short_float", kind="f32"),
    *_wrong(16, "wrong.", "last_row", "last_tile", "k_tail"),
    *_wrong(17, "wrong. cheat.cache", "shared_garbage", "no_barrier", "dirty_sum", "raw_scratch"),
    *_wrong(18, "memory.redzone", "past_the_end", "before_the_start", "redzone_restore"),
    *_either(18, "memory.redzone cheat. wrong. crash.exit", "far_write"),
    *_wrong(19, "policy.library_call", "library_fallback", "laundered_graph", kind="no_library"),
    *_wrong(19, "policy.library_call cheat.uneven_calls", "late_library", kind="no_library"),
    *_wrong(20, "policy.library_call", "decoy", "fig_leaf", kind="no_library"),
    *_either(22, LATE, "side_stream", "forked_stream", "legacy_stream", "thread_stream"),
    *_wrong(22, "cheat.", "root_node", "fork_ahead"),
    *_either(23, LATE, "late_thread", "host_function"),
    *_either(23, "cheat.thread timeout", "busy_thread"),
    *_broken("timeout", "resident_kernel", row=23, call_s=6.0),
    *_wrong(23, "cheat.subprocess", "subprocess"),
    *_either(24, LATE, "lazy", "after_the_reply"),
    *_wrong(25, "cheat.patched", "patches_events", "patches_graph_class", "patches_time", "patches_runtime"),
    *_wrong(25, "cheat.patched cheat.clock", "patches_machine"),
    *_wrong(26, "cheat.channel", "forged_reply"),
    *_wrong(26, "cheat.clock cheat.patched", "forged_spans", "forged_tenth"),
    *_wrong(28, "cheat.l2_persist", "l2_persist"),
    *_broken("capture.", "item_in_entry", kind="must_graph", row=29),
    *_wrong(30, "wrong.", "precomputes", "keeps_weight", kind="prepared"),
    *_wrong(31, "cheat.reads_other_arm", "reads_reference", "imports_baseline", "writes_raw"),
    *_wrong(32, "cheat.writes_source cheat.reads_other_arm", "rewrites_itself", "slows_baseline", "swaps_build"),
    *_wrong(32, "wrong. cheat.", "hooks_framework"),
    *_wrong(33, "cheat.subprocess", "late_compiler"),
    *_wrong(33, "cheat.foreign_binary", "foreign_library"),
    *_wrong(33, "policy.library_call cheat.foreign_binary", "own_nvrtc", kind="no_library"),
    *_broken("build.binary_in_source", "committed_cubin", row=33),
    *_wrong(34, "wrong.", "sniffs"),
    *_wrong(34, "cheat.network", "dials_out"),
    *_broken("crash.exit", "raises", "trap", "illegal_address", "misaligned", "sticky_tail", "too_many_threads"),
    *_broken("crash.exit", "out_of_memory"),
    *_broken("crash. gpu.memory oracle.broken load.failed", "hogs_memory"),
    *_broken("timeout", "endless_kernel", "sleeps", call_s=6.0),
    *_broken("build.failed", "no_compile"),
    *_broken("load.failed", "no_syntax"),
    *_broken("capture.", "pinned_in_call", "malloc_in_call", "tunes_in_call", kind="must_graph"),
    *_broken("capture.", "graph_legacy", "graph_unjoined", kind="must_graph"),
    *_wrong(0, "cheat.flush", "shrinks_flush"),
    *_wrong(0, "cheat.outside_window cheat.clock", "swaps_events", "steals_mark"),
    *_wrong(0, "cheat.uneven_calls cheat.", "counts_nodes", "delays_event"),
    *_wrong(0, "cheat.clock cheat.patched", "swaps_handler"),
    *_wrong(0, "wrong.", "floods_printf"),
]

HONEST = {
    "honest_plain": "plain",
    "honest_in_place": "plain",
    "honest_library": "plain",
    "honest_workspace": "plain",
    "honest_pdl": "plain",
    "honest_two_streams": "plain",
    "honest_graph_inside": "plain",
    "honest_triton": "plain",
    "honest_compiled": "plain",
    "honest_vector": "plain",
    "honest_bare": "no_library",
    "honest_graph": "must_graph",
    "honest_prepare": "prepared",
    "honest_f32": "f32",
    "honest_atomics": "atomics",
    "honest_padded": "padded",
}
"""Name to contract; none of these may ever be WRONG or BROKEN, or be called suspect."""
HONEST_CALL_S = 120.0
"""A framework's compiler runs in the first call of a shape."""

ABSENT = {
    21: "a contract cannot ask for constant content: the generator refuses it (tests/test_contract.py)",
    27: "the block length comes from the incumbent's pilot run; a candidate is not running yet",
}
"""Rows without a candidate, and why."""

TWINS = {
    "capture_sloppy": ("cheat.", "wrong."),
    "batch_and_skip": ANY_LIE,
    "late_thread": LATE,
    "past_the_end": ("memory.redzone",),
    "forged_tenth": ("cheat.clock: the GPU's own timer", "cheat.patched"),
    "patches_runtime": ("cheat.patched",),
    "patches_events": ("cheat.patched",),
}
"""Name to codes: tricks that need no GPU, played against the GPU path over the fake device."""
MORE_TWINS = {
    "no_op": ("wrong.unwritten",),
    "forged_spans": ("cheat.clock: the GPU's own timer", "cheat.patched"),
    "memo_pointer": MEMO,
    "memo_edges": ANY_LIE,
    "burst_skip": ANY_LIE,
    "neighbours": ANY_LIE,
    "lazy": LATE,
    "zeroes_input": ("cheat.input_mutated",),
    "swaps_handler": ("cheat.clock: the GPU's own timer", "cheat.patched"),
}
"""Further ones, with KERNELPILOT_TEST_ALL_TWINS=1: each takes some seconds."""
HONEST_TWINS = ("honest_prepared_once",)


APART = (22, 23, 24, 25, 26, 28)
"""Rows that play with time or with the whole GPU: measured while nothing else of ours runs there."""


def apart() -> set[str]:
    """Names that want a GPU for themselves: those rows, the inventions against the timing, what hangs or hogs."""
    play = {c.name for c in CHEATS if c.row in APART or "timeout" in c.codes}
    return play | {c.name for c in CHEATS if c.row == 0 and c.codes == ("cheat.",)} | {"hogs_memory"}


def core() -> set[str]:
    """The first of each (row, codes, kind), every invention and every honest one: what fits into some minutes."""
    first: dict[tuple[int, tuple[str, ...], str], str] = {}
    for cheat in CHEATS:
        if cheat.row:
            first.setdefault((cheat.row, cheat.codes, cheat.kind), cheat.name)
    inventions = {"shrinks_flush", "swaps_events", "steals_mark", "counts_nodes", "delays_event", "batch_even"}
    inventions |= {"swaps_handler", "forged_tenth"}
    broken = {"illegal_address", "endless_kernel", "no_compile", "pinned_in_call", "graph_unjoined", "fork_ahead"}
    return {*first.values(), *inventions, *broken, *HONEST}
