"""What the pages call a metric: (section, label) of the details page, and columns of the source page.

Source: pairs of pages that ncu 2025.3 printed of one report, once with labels and once with names; the labels of
2019 to 2021 from those versions' section files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

_PCT = ".avg.pct_of_peak_sustained_elapsed"
_ACTIVE = ".avg.pct_of_peak_sustained_active"

SECTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    # title: id, metric by label
    "GPU Speed Of Light Throughput": ("SpeedOfLight", {
        "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
        "SM Frequency": "gpc__cycles_elapsed.avg.per_second",
        "Elapsed Cycles": "gpc__cycles_elapsed.max",
        "Memory Throughput": f"gpu__compute_memory_throughput{_PCT}",
        "DRAM Throughput": f"gpu__dram_throughput{_PCT}",
        "Duration": "gpu__time_duration.sum",
        "L1/TEX Cache Throughput": f"l1tex__throughput{_ACTIVE}",
        "L2 Cache Throughput": f"lts__throughput{_PCT}",
        "SM Active Cycles": "sm__cycles_active.avg",
        "Compute (SM) Throughput": f"sm__throughput{_PCT}",
        "Memory Frequency": "dram__cycles_elapsed.avg.per_second",
        "SOL SM": f"sm__throughput{_PCT}",
        "SOL Memory": f"gpu__compute_memory_throughput{_PCT}",
        "SOL DRAM": f"gpu__dram_throughput{_PCT}",
        "SOL L1/TEX Cache": f"l1tex__throughput{_ACTIVE}",
        "SOL L2 Cache": f"lts__throughput{_PCT}",
    }),
    "PM Sampling": ("PmSampling", {
        "Maximum Buffer Size": "profiler__pmsampler_buffer_size_bytes",
        "Maximum Sampling Interval": "profiler__pmsampler_interval_time",
        "# Pass Groups": "profiler__pmsampler_pass_groups",
        "Dropped Samples": "profiler__pmsampler_dropped_samples",
    }),
    "Compute Workload Analysis": ("ComputeWorkloadAnalysis", {
        "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
        "Executed Ipc Elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
        "Issue Slots Busy": f"sm__inst_issued{_PCT}",
        "Issued Ipc Active": "sm__inst_issued.avg.per_cycle_active",
        "SM Busy": f"sm__instruction_throughput{_PCT}",
    }),
    "Memory Workload Analysis": ("MemoryWorkloadAnalysis", {
        "Local Memory Spilling Requests": "derived__local_spilling_requests",
        "Local Memory Spilling Request Overhead": "derived__local_spilling_requests_pct",
        "Memory Throughput": "dram__bytes.sum.per_second",
        "Mem Busy": f"gpu__compute_memory_access_throughput{_PCT}",
        "Max Bandwidth": f"gpu__compute_memory_request_throughput{_PCT}",
        "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
        "L2 Persisting Size": "launch__persisting_l2_cache_size",
        "L2 Compression Success Rate": "lrc__average_ilc_input_sector_success_rate.pct",
        "L2 Compression Ratio": "lrc__average_ilc_output_sector_compression_achieved_rate.pct",
        "L2 Compression Input Sectors": "lrc__ilc_input_sectors.sum",
        "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
        "Mem Pipes Busy": f"sm__memory_throughput{_PCT}",
    }),
    "Scheduler Statistics": ("SchedulerStats", {
        "One or More Eligible": f"smsp__issue_active{_ACTIVE}",
        "Issued Warp Per Scheduler": "smsp__issue_active.avg.per_cycle_active",
        "No Eligible": f"smsp__issue_inst0{_ACTIVE}",
        "Active Warps Per Scheduler": "smsp__warps_active.avg.per_cycle_active",
        "Eligible Warps Per Scheduler": "smsp__warps_eligible.avg.per_cycle_active",
    }),
    "Warp State Statistics": ("WarpStateStats", {
        "Warp Cycles Per Issued Instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
        "Warp Cycles Per Executed Instruction": "smsp__average_warps_active_per_inst_executed.ratio",
        "Avg. Active Threads Per Warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
        "Avg. Not Predicated Off Threads Per Warp": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    }),
    "Instruction Statistics": ("InstructionStats", {
        "Avg. Executed Instructions Per Scheduler": "smsp__inst_executed.avg",
        "Executed Instructions": "smsp__inst_executed.sum",
        "Avg. Issued Instructions Per Scheduler": "smsp__inst_issued.avg",
        "Issued Instructions": "smsp__inst_issued.sum",
    }),
    "Launch Statistics": ("LaunchStats", {
        "Block Size": "launch__block_size",
        "Cluster Scheduling Policy": "launch__cluster_scheduling_policy",
        "Cluster Size": "launch__cluster_size",
        "Preferred Cluster Size": "launch__preferred_cluster_size",
        "Function Cache Configuration": "launch__func_cache_config",
        "Grid Size": "launch__grid_size",
        "Registers Per Thread": "launch__registers_per_thread",
        "Shared Memory Configuration Size": "launch__shared_mem_config_size",
        "Driver Shared Memory Per Block": "launch__shared_mem_per_block_driver",
        "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
        "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
        "# SMs": "launch__sm_count",
        "Stack Size": "launch__stack_size",
        "Threads": "launch__thread_count",
        "# TPCs": "launch__tpc_count",
        "Enabled TPC IDs": "launch__tpc_enabled",
        "Uses Green Context": "launch__uses_green_context",
        "Waves Per SM": "launch__waves_per_multiprocessor",
    }),
    "Occupancy": ("Occupancy", {
        "Max Active Clusters": "launch__cluster_max_active",
        "Max Cluster Size": "launch__cluster_max_potential_size",
        "Overall GPU Occupancy": "launch__occupancy_cluster_gpu_pct",
        "Cluster Occupancy": "launch__occupancy_cluster_pct",
        "Block Limit Barriers": "launch__occupancy_limit_barriers",
        "Block Limit SM": "launch__occupancy_limit_blocks",
        "Block Limit Registers": "launch__occupancy_limit_registers",
        "Block Limit Shared Mem": "launch__occupancy_limit_shared_mem",
        "Block Limit Warps": "launch__occupancy_limit_warps",
        "Theoretical Active Warps per SM": "sm__maximum_warps_avg_per_active_cycle",
        "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
        "Achieved Occupancy": f"sm__warps_active{_ACTIVE}",
        "Achieved Active Warps Per SM": "sm__warps_active.avg.per_cycle_active",
    }),
    "GPU and Memory Workload Distribution": ("WorkloadDistribution", {
        "Average DRAM Active Cycles": "dram__cycles_active.avg",
        "Total DRAM Elapsed Cycles": "dram__cycles_elapsed.sum",
        "Average L1 Active Cycles": "l1tex__cycles_active.avg",
        "Total L1 Elapsed Cycles": "l1tex__cycles_elapsed.sum",
        "Average L2 Active Cycles": "lts__cycles_active.avg",
        "Total L2 Elapsed Cycles": "lts__cycles_elapsed.sum",
        "Average SM Active Cycles": "sm__cycles_active.avg",
        "Total SM Elapsed Cycles": "sm__cycles_elapsed.sum",
        "Average SMSP Active Cycles": "smsp__cycles_active.avg",
        "Total SMSP Elapsed Cycles": "smsp__cycles_elapsed.sum",
    }),
    "Source Counters": ("SourceCounters", {
        "Branch Instructions Ratio": "derived__smsp__inst_executed_op_branch_pct",
        "Branch Instructions": "smsp__inst_executed_op_branch.sum",
        "Branch Efficiency": "smsp__sass_average_branch_targets_threads_uniform.pct",
        "Avg. Divergent Branches": "smsp__sass_branch_targets_threads_divergent.avg",
    }),
}  # fmt: skip
_TITLES = {"GPU Speed Of Light": "GPU Speed Of Light Throughput"}
"""Of 2019 to 2021."""
_MOVED = frozenset({"Issue Slots Busy", "SM Busy"})
"""Percent of active cycles until ncu 2024.2, of elapsed cycles in 2025.3; between them nobody looked."""
Age = Literal["old", "new", ""]


def age(labels: frozenset[str]) -> Age:
    """Which of two generations a file's labels prove; empty for neither.

    ``Waves Per SM`` ends the launch statistics: only behind it is it known that they hold no TPCs.

    >>> age(frozenset({"Local Memory Spilling Requests"})), age(frozenset({"Waves Per SM"})), age(frozenset())
    ('new', 'old', '')
    """
    if "Local Memory Spilling Requests" in labels:
        return "new"
    return "old" if "Waves Per SM" in labels and "# TPCs" not in labels else ""


def metric(section: str, label: str, *, age: Age) -> str:
    """The metric behind a label; empty when it is not known.

    >>> metric("Memory Workload Analysis", "Memory Throughput", age="")
    'dram__bytes.sum.per_second'
    """
    found = SECTIONS.get(_TITLES.get(section, section), ("", {}))[1].get(label, "")
    if label in _MOVED:
        return {"new": found, "old": found.replace("_elapsed", "_active"), "": ""}[age]
    return found


def section_id(title: str) -> str:
    """Id of a section by its title; empty when it is not known."""
    return SECTIONS.get(_TITLES.get(title, title), ("", {}))[0]
