"""Which metrics answer which question: role, unit, then every name by age and architecture, best first.

``_elapsed`` counts all cycles of the kernel, ``_active`` only those in which the unit had work; an ``_active`` name
stands last, and its name in the reading says that it was taken. Names: reports of Nsight Compute 2019 to 2026, sm_61 to
sm_120.
"""

from __future__ import annotations

from collections.abc import Mapping

_PCT = ".avg.pct_of_peak_sustained_elapsed"
_ACT = ".avg.pct_of_peak_sustained_active"
_TENSOR = (
    "sm__pipe_tensor_cycles_active", "sm__pipe_tc_cycles_active", "sm__pipe_tensor_cycles_active_v2",
    "sm__pipe_tensor_op_hmma_cycles_active", "sm__pipe_tensor_op_imma_cycles_active",
    "sm__pipe_tensor_op_dmma_cycles_active", "sm__pipe_tensor_op_hmma_cycles_active_v2",
    "sm__pipe_tensor_op_imma_cycles_active_v2", "sm__pipe_tensor_subpipe_hmma_cycles_active",
    "sm__pipe_tensor_subpipe_imma_cycles_active", "sm__pipe_tensor_subpipe_dmma_cycles_active",
    "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active",
)  # fmt: skip
"""sm_70 to 90: ``pipe_tensor``; sm_89: ``_v2``; sm_100 on: ``pipe_tc`` for UTCMMA, subpipes for the older forms."""
_TENSOR_INST = (
    "sm__inst_executed_pipe_tensor", "sm__inst_executed_pipe_tensor_op_gmma", "sm__inst_executed_pipe_tensor_op_hmma",
    "sm__inst_executed_pipe_tensor_op_imma", "sm__inst_executed_pipe_tensor_op_dmma", "sm__inst_executed_pipe_tc",
)  # fmt: skip
_TMA = ("sm__pipe_tma_cycles_active", "sm__inst_executed_pipe_tma", "l1tex__tmain_requests")
_TMEM = ("sm__mem_tensor_cycles_active", "sm__inst_executed_pipe_tmem")
LARGEST: Mapping[str, tuple[tuple[str, ...], ...]] = {
    role: (tuple(n + _PCT for n in cycles), tuple(n + _ACT for n in cycles), *rest)
    for role, cycles, rest in (
        ("tensor", _TENSOR, (tuple(n + _PCT for n in _TENSOR_INST), tuple(n + _ACT for n in _TENSOR_INST))),
        ("tma", _TMA, ()),
        ("tmem", _TMEM, ()),
    )
}
"""Roles that several units share: of the first family that is there the largest counts."""

ROLES: Mapping[str, tuple[str, ...]] = {
    "duration": ("ns", "gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration_avg",
                 "gpu__time_duration"),
    "sm_sol": ("%", f"sm__throughput{_PCT}", "sm__sol_pct"),
    "memory_sol": ("%", f"gpu__compute_memory_throughput{_PCT}", "gpu__compute_memory_sol_pct"),
    "dram_sol": ("%", f"gpu__dram_throughput{_PCT}", f"dram__throughput{_PCT}", f"dram__cycles_active{_PCT}",
                 "dram__sol_pct", f"fbpa__dram_sectors{_PCT}", f"fbpa__throughput{_PCT}"),
    "l2_sol": ("%", f"lts__throughput{_PCT}", "lts__sol_pct", f"ltc__throughput{_PCT}"),
    "l1_sol": ("%", f"l1tex__throughput{_PCT}"),
    "lsu_wavefronts": ("%", f"l1tex__data_pipe_lsu_wavefronts{_PCT}"),
    "l1_active": ("%", f"l1tex__throughput{_ACT}"),
    **{role: ("%", *(n for family in families for n in family)) for role, families in LARGEST.items()},
    "issue": ("%", f"sm__issue_active{_PCT}", f"sm__inst_issued{_PCT}", f"smsp__issue_active{_ACT}",
              f"sm__inst_issued{_ACT}"),
    "eligible": ("count", "smsp__warps_eligible.avg.per_cycle_active"),
    "lanes": ("count", "smsp__thread_inst_executed_per_inst_executed.ratio"),
    "lanes_on": ("count", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"),
    "occupancy": ("%", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    "occupancy_theoretical": ("%", "sm__maximum_warps_per_active_cycle_pct"),
    "limit_registers": ("count", "launch__occupancy_limit_registers"),
    "limit_shared": ("count", "launch__occupancy_limit_shared_mem"),
    "limit_warps": ("count", "launch__occupancy_limit_warps"),
    "limit_blocks": ("count", "launch__occupancy_limit_blocks"),
    "limit_barriers": ("count", "launch__occupancy_limit_barriers"),
    "waves": ("count", "launch__waves_per_multiprocessor"),
    "grid": ("count", "launch__grid_size"),
    "block": ("count", "launch__block_size"),
    "cluster": ("count", "launch__cluster_size"),
    "sms": ("count", "launch__sm_count", "device__attribute_multiprocessor_count"),
    "registers": ("count", "launch__registers_per_thread"),
    "stack": ("count", "launch__stack_size"),
    "shared": ("byte/block", "launch__shared_mem_per_block"),
    "shared_dynamic": ("byte/block", "launch__shared_mem_per_block_dynamic"),
    "sm_cycles_max": ("count", "sm__cycles_active.max"),
    "sm_cycles_avg": ("count", "sm__cycles_active.avg"),
    "l2_cycles_max": ("count", "lts__cycles_active.max"),
    "l2_cycles_avg": ("count", "lts__cycles_active.avg"),
    "dram_cycles_max": ("count", "dram__cycles_active.max"),
    "dram_cycles_avg": ("count", "dram__cycles_active.avg"),
    "cycles": ("count", "gpc__cycles_elapsed.max"),
    "clock": ("hz", "gpc__cycles_elapsed.avg.per_second"),
    "dram_read": ("byte", "dram__bytes_read.sum"),
    "dram_write": ("byte", "dram__bytes_write.sum"),
    "dram_rate": ("byte/s", "dram__bytes.sum.per_second"),
    "instructions": ("count", "smsp__inst_executed.sum"),
    "shared_wavefronts": ("count", "memory_l1_wavefronts_shared"),
    "shared_wavefronts_ideal": ("count", "memory_l1_wavefronts_shared_ideal"),
    "shared_wavefronts_lsu": ("count", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
    "shared_conflicts": ("count", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    "global_sectors": ("count", "memory_l2_theoretical_sectors_global", "memory_l2_sectors_global"),
    "global_sectors_ideal": ("count", "memory_l2_theoretical_sectors_global_ideal", "memory_l2_sectors_global_ideal"),
    "bytes_per_sector_load": ("count", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"),
    "bytes_per_sector_store": ("count", "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"),
    "spill_requests": ("count", "derived__local_spilling_requests", "sass__inst_executed_register_spilling"),
    "spill_share": ("%", "derived__local_spilling_requests_pct"),
    "local_loads": ("count", "smsp__sass_inst_executed_op_local_ld.sum", "sass__inst_executed_local_loads"),
    "local_stores": ("count", "smsp__sass_inst_executed_op_local_st.sum", "sass__inst_executed_local_stores"),
    "l1_hits": ("%", "l1tex__t_sector_hit_rate.pct"),
    "l2_hits": ("%", "lts__t_sector_hit_rate.pct"),
    "l2_sectors": ("count", "lts__t_sectors_srcunit_tex.sum", "lts__t_sectors.sum"),
    "l2_misses": ("count", "lts__t_sectors_srcunit_tex_lookup_miss.sum", "lts__t_sectors_lookup_miss.sum"),
    "sysmem_misses": ("count", "lts__t_sectors_srcunit_tex_aperture_sysmem_lookup_miss.sum",
                      "lts__t_sectors_aperture_sysmem_lookup_miss.sum"),
    "peer_misses": ("count", "lts__t_sectors_srcunit_tex_aperture_peer_lookup_miss.sum",
                    "lts__t_sectors_aperture_peer_lookup_miss.sum"),
    "global_load_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    "global_store_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    "global_load_requests": ("count", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
    "global_store_requests": ("count", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
    "local_load_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"),
    "local_store_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"),
    "atomic_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
                       "lts__t_sectors_srcunit_tex_op_atom.sum", "lts__t_sectors_op_atom.sum"),
    "reduction_sectors": ("count", "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
                          "lts__t_sectors_srcunit_tex_op_red.sum", "lts__t_sectors_op_red.sum"),
    "atomic_requests": ("count", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"),
    "reduction_requests": ("count", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"),
    "atomic_unit": ("%", f"lts__d_atomic_input_cycles_active{_PCT}"),
    "thread_instructions": ("count", "thread_inst_executed"),
    "pm_dropped": ("count", "profiler__pmsampler_dropped_samples"),
    "passes": ("count", "profiler__replayer_passes"),
}  # fmt: skip
