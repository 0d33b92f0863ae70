"""The part that makes a roll-up throughput: by the file's own breakdown, else among the parts that ncu rolls up.

A raw page as CSV has the parts and not the list of them.
"""

from __future__ import annotations

from kernelpilot_helpers.ncu import breakdown
from kernelpilot_helpers.ncu.report import Launch

_PCT = ".avg.pct_of_peak_sustained_elapsed"
_ENOUGH = 8
"""Parts that must be there: fewer are a list of metrics, and the part that counts may not be among them."""
_PARTS = {
    "memory": """
        dram__cycles_active fbpa__dram_sectors l1tex__data_bank_reads l1tex__data_bank_writes
        l1tex__data_pipe_lsu_wavefronts l1tex__data_pipe_tex_wavefronts l1tex__f_wavefronts l1tex__lsu_writeback_active
        l1tex__lsuin_requests l1tex__m_l1tex2xbar_req_cycles_active l1tex__m_xbar2l1tex_read_sectors
        l1tex__m_xbar2l1tex_read_sectors_mem_dshared l1tex__tex_writeback_active l1tex__texin_sm2tex_req_cycles_active
        l1tex__tmain_requests lts__d_atomic_input_cycles_active lts__d_decomp_input_sectors lts__d_sectors
        lts__d_sectors_fill_device lts__d_sectors_fill_sysmem lts__lts2xbar_cycles_active lts__t_sectors
        lts__t_tag_requests lts__xbar2lts_cycles_active syslts__d_sectors syslts__d_sectors_fill_sysmem
        syslts__t_sectors syslts__t_tag_requests
    """,
    "sm": """
        idc__request_cycles_active sm__inst_executed sm__inst_executed_pipe_adu
        sm__inst_executed_pipe_cbu_pred_on_any sm__inst_executed_pipe_fp16 sm__inst_executed_pipe_ipa
        sm__inst_executed_pipe_lsu sm__inst_executed_pipe_tex sm__inst_executed_pipe_uniform
        sm__inst_executed_pipe_xu sm__issue_active sm__mio2rf_writeback_active sm__mio_inst_issued
        sm__mio_pq_read_cycles_active sm__mio_pq_write_cycles_active sm__pipe_alu_cycles_active
        sm__pipe_fma_cycles_active sm__pipe_fmaheavy_cycles_active sm__pipe_fp64_cycles_active
        sm__pipe_shared_cycles_active sm__pipe_tc_cycles_active sm__pipe_tensor_cycles_active sm__pipe_tma_cycles_active
    """,
}


def limiting(launch: Launch, throughput: breakdown.Throughput) -> tuple[str, float] | None:
    """(metric, percent of peak) of the part that makes the throughput; None where the file does not show it.

    ``throughput``: ``sm`` or ``memory``.
    """
    named = breakdown.limiting(launch, throughput)
    if named is not None and "internal_activity" not in named[0]:
        return named
    total = breakdown.total(launch, throughput)
    if total is None:
        return None
    names = [name + _PCT for name in _PARTS[throughput].split()]
    held = {n: float(v.number) for n in names if (v := launch.metrics.get(n)) is not None and v.number is not None}
    return breakdown.largest(held, total) if len(held) >= _ENOUGH else None
