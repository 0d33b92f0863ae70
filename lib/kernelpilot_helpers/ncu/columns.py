"""Columns of the source page and the metrics behind them; each was compared with the instances of that metric."""

from __future__ import annotations

from collections.abc import Mapping

_STALL = "smsp__pcsamp_warps_issue_stalled_"
_REASONS: Mapping[str, str] = {
    "dispatch": "dispatch_stall",
    "imc": "imc_miss",
    "lg": "lg_throttle",
    "long_sb": "long_scoreboard",
    "math": "math_pipe_throttle",
    "mio": "mio_throttle",
    "no_inst": "no_instructions",
    "short_sb": "short_scoreboard",
    "sleep": "sleeping",
    "tex": "tex_throttle",
    "gmma": "warpgroup_arrive",
}
_EVICT = "smsp__sass_inst_executed_memdesc_explicit_"
_NAMED: Mapping[str, str] = {
    "Warp Stall Sampling (All Samples)": "group:smsp__pcsamp_warp_stall_reasons",
    "Warp Stall Sampling (Not-issued Samples)": "group:smsp__pcsamp_warp_stall_reasons_not_issued",
    "# Samples": "smsp__pcsamp_sample_count",
    "Instructions Executed": "inst_executed",
    "Thread Instructions Executed": "thread_inst_executed",
    "Predicated-On Thread Instructions Executed": "thread_inst_executed_true",
    "Avg. Threads Executed": "derived__avg_thread_executed",
    "Avg. Predicated-On Threads Executed": "derived__avg_thread_executed_true",
    "Derivative Avg. Predicated-On Threads Executed": "derived__derivative_avg_thread_executed_true",
    "Avg. Predicated-On Threads Unexecuted": "derived__avg_thread_unexecuted_true",
    "Divergent Branches": "smsp__branch_targets_threads_divergent",
    "L1 Tag Requests Global": "memory_l1_tag_requests_global",
    "L1 Conflicts Shared N-Way": "derived__memory_l1_conflicts_shared_nway",
    "L1 Wavefronts Shared Excessive": "derived__memory_l1_wavefronts_shared_excessive",
    "L1 Wavefronts Shared": "memory_l1_wavefronts_shared",
    "L1 Wavefronts Shared Ideal": "memory_l1_wavefronts_shared_ideal",
    "L2 Theoretical Sectors Global Excessive": "derived__memory_l2_theoretical_sectors_global_excessive",
    "L2 Theoretical Sectors Global": "memory_l2_theoretical_sectors_global",
    "L2 Theoretical Sectors Global Ideal": "memory_l2_theoretical_sectors_global_ideal",
    "L2 Theoretical Sectors Local": "memory_l2_theoretical_sectors_local",
    "L2 Explicit Hit Policy Evict First": f"{_EVICT}hitprop_evict_first",
    "L2 Explicit Hit Policy Evict Last": f"{_EVICT}hitprop_evict_last",
    "L2 Explicit Hit Policy Evict Normal": f"{_EVICT}hitprop_evict_normal",
    "L2 Explicit Hit Policy Evict Normal Demote": f"{_EVICT}hitprop_evict_normal_demote",
    "L2 Explicit Miss Policy Evict First": f"{_EVICT}missprop_evict_first",
    "L2 Explicit Miss Policy Evict Normal": f"{_EVICT}missprop_evict_normal",
}


def metric(column: str) -> str:
    """The metric behind a column of the source page; the column's own label when it is not known.

    >>> metric("stall_long_sb (Not Issued)"), metric("Something New")
    ('smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued', 'Something New')
    """
    label, _, twin = column.partition(" (Not Issued")
    if label.startswith("stall_"):
        reason = label.removeprefix("stall_")
        return f"{_STALL}{_REASONS.get(reason, reason)}{'_not_issued' if twin else ''}"
    return _NAMED.get(column, column)
