"""Reports made up launch by launch: what the parts after the readers are tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelpilot_helpers.ncu.report import Code, File, Launch, Report, Rule, Series, Session, Value

PCT = ".avg.pct_of_peak_sustained_elapsed"
STALLED = "smsp__average_warps_issue_stalled_"
_UNITS = {"gpu__time_duration.sum": "ns", "gpc__cycles_elapsed.avg.per_second": "hz", "dram__bytes_read.sum": "byte",
          "dram__bytes_write.sum": "byte"}  # fmt: skip
BUSY = {
    f"sm__throughput{PCT}": 20.0,
    f"gpu__compute_memory_throughput{PCT}": 80.0,
    f"gpu__dram_throughput{PCT}": 80.0,
    f"lts__throughput{PCT}": 30.0,
    f"l1tex__throughput{PCT}": 25.0,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 70.0,
    "launch__registers_per_thread": 32,
    "smsp__inst_executed.sum": 1_000_000,
    "dram__bytes_read.sum": 500_000_000,
    "dram__bytes_write.sum": 500_000_000,
    "derived__local_spilling_requests": 0,
    "memory_l2_theoretical_sectors_global": 30_000_000,
    "memory_l2_theoretical_sectors_global_ideal": 30_000_000,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio": 32.0,
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio": 32.0,
    f"sm__pipe_tensor_cycles_active{PCT}": 0.0,
    f"sm__issue_active{PCT}": 20.0,
}


def launch(
    ns: float | None,
    *,
    ix: int = 0,
    kernel: str = "scale(float *)",
    grid: str = "(1000, 1, 1)",
    metrics: Mapping[str, float | str] | None = None,
    **more: object,
) -> Launch:
    """One launch: a memory-bound one of 1 GB unless ``metrics`` says otherwise."""
    given: dict[str, float | str] = {
        **BUSY,
        **({} if ns is None else {"gpu__time_duration.sum": ns}),
        **(metrics or {}),
    }
    values = {
        name: Value(
            number=None if isinstance(v, str) else v,
            text=v if isinstance(v, str) else "",
            unit=_UNITS.get(name, "%" if "pct" in name else ""),
            row=row,
        )
        for row, (name, v) in enumerate(given.items(), start=1)
    }
    plain = {"block": "(256, 1, 1)", "device": "0", "cc": "9.0", "stream": "7", "process": "1", **more}
    return Launch(id=str(ix), kernel=kernel, grid=grid, metrics=values, place=f"result {ix + 1}", **plain)  # type: ignore[arg-type]


def report(
    launches: Sequence[Launch], *, session: Session | None = None, code: Mapping[str, Code] | None = None
) -> Report:
    """A report of these launches on one GPU."""
    return Report(
        files=(File(name="r.ncu-rep", bytes=1, sha256="ab" * 32, form="report"),),
        launches=tuple(launches),
        session=session
        or Session(gpu="GPU A", cc="9.0", ncu="2025.3.1.0", clocks="none", cache="all", replay="kernel"),
        code=code or {},
    )


def times(*ns: float, **more: object) -> Report:
    """A report of launches of one kernel with these durations."""
    return report([launch(t, ix=ix, **more) for ix, t in enumerate(ns)])  # type: ignore[arg-type]


__all__ = ["BUSY", "PCT", "STALLED", "Rule", "Series", "launch", "report", "times"]
