"""The base unit of a metric by its name: a binary report stores none.

Every rule was fitted to the row of units of raw pages in base units, made from reports with the same metrics.
"""

from __future__ import annotations

import functools
import re

_EXACT = {
    "launch__registers_per_thread": "register/thread",
    "launch__registers_per_thread_allocated": "register/thread",
    "launch__thread_count": "thread",
    "launch__sm_count": "SM",
    "launch__cluster_max_active": "cluster",
    "launch__shared_mem_config_size": "byte",
    "launch__persisting_l2_cache_size": "byte",
    "profiler__pmsampler_interval_time": "ns",
    "profiler__pmsampler_interval_cycles": "cycle",
    "profiler__pmsampler_buffer_size_bytes": "byte",
    "profiler__pmsampler_merged_samples": "sample",
    "profiler__pmsampler_dropped_samples": "sample",
    "derived__pct_occupancy_per_block_size": "%",
    "derived__pct_occupancy_per_register_count": "%/register",
    "derived__pct_occupancy_per_shared_mem_size": "%/byte",
    "inst_executed": "inst",
}
_NOUNS = (
    (re.compile(r"bytes_per_sector"), "byte/sector"),
    (re.compile(r"issue_stalled_.*_per_issue_active|pcsamp_.*_no_instructions"), "inst"),
    (re.compile(r"average_warps?_(?:active|latency)_per_inst"), "cycle"),
    (re.compile(r"^launch__shared_mem_per_block"), "byte/block"),
    (
        re.compile(r"^launch__(?:block_dim|occupancy_limit)|ctas_launched|workids_granted|cluster_max_potential"),
        "block",
    ),
    (re.compile(r"time_duration"), "ns"),
    (re.compile(r"per_opcode|_average_|^smsp__pcsamp_(?:interval|sample)|gcc_sectors|cgas_"), ""),
    (re.compile(r"branch_targets|branch_resolving"), "branches"),
    (re.compile(r"^thread_inst_executed"), "inst"),
    (re.compile(r"thread_inst_executed|avg_thread_"), "thread"),
    (re.compile(r"_passes(?:_|$)"), "pass"),
    (re.compile(r"_bytes(?:_|$)|bytes_mem|lts2xbar_bytes"), "byte"),
    (re.compile(r"sectors(?:_|$)|^memory_l1_|^memory_l2_"), "sector"),
    (re.compile(r"(?:^lts__t_|^gcc__cache_)requests"), "request"),
    (re.compile(r"requests(?:_|$)"), ""),
    (re.compile(r"(?:warps|warp)_(?:active|eligible|issue_stalled)|maximum_warps"), "warp"),
    (re.compile(r"cycles(?:_|$)|_active(?:_|$)"), "cycle"),
    (re.compile(r"inst_executed|inst_issued|sass__inst|^inst_executed"), "inst"),
    (re.compile(r"^smsp__pcsamp_"), "warp"),
)


@functools.lru_cache(maxsize=8192)
def unit(name: str) -> str:
    """Base unit as a raw page prints it (``ns``, ``byte``, ``byte/s``, ``hz``, ``%``, ...); empty for a plain number.

    >>> unit("dram__bytes.sum.per_second"), unit("gpc__cycles_elapsed.avg.per_second"), unit("gpu__time_duration.sum")
    ('byte/s', 'hz', 'ns')
    >>> unit("sm__throughput.avg.pct_of_peak_sustained_elapsed"), unit("launch__waves_per_multiprocessor")
    ('%', '')
    """
    if name in _EXACT:
        return _EXACT[name]
    if name.startswith(("breakdown:", "group:")):
        return ""
    parts = name.rpartition(":")[2].split(".")
    # A PM sampling series of 2024 and 2025 has the counter's unit and trigger before its name.
    while len(parts) > 1 and "__" not in parts[0]:
        parts = parts[1:]
    base, last = parts[0], parts[-1]
    if any(part.startswith(("pct", "pct_of")) for part in parts[1:]) or base.endswith("_pct"):
        return "%"
    noun = next((word for pattern, word in _NOUNS if pattern.search(base)), "")
    if last == "per_second":
        return {"cycle": "hz", "": ""}.get(noun, f"{noun}/s")
    if last.startswith("per_cycle") or last == "peak_sustained":
        noun = "inst" if noun == "thread" else noun
        return f"{noun}/cycle" if noun in ("inst", "byte", "sector") else noun if noun == "warp" else ""
    return noun
