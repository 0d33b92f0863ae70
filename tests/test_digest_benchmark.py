"""The benchmark of the digest: its table of kernels, its command lines and its arithmetic, without a GPU."""

from __future__ import annotations

import importlib
import json
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers.ncu.families import FAMILIES
from tests.gpu.microkernels.table import BY_NAME, CASES, FOLDER, KERNELS, Micro, hot_lines

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
STUB_NCU = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
if [ "$1" = --import ]; then echo '"ID","Kernel Name"'; exit 0; fi
while [ $# -gt 0 ]; do
  case "$1" in --export) out=$2;; --kernel-name) name=$2;; esac
  shift
done
case "$name" in *smem_column_twin*) echo "==ERROR== no access"; exit 1;; esac
echo report > "$out.ncu-rep"
"""


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module, with its two parts as ``capturing`` and ``scoring``."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    for name in ("digest_capture", "digest_score", "digest_benchmark"):
        sys.modules.pop(name, None)
    return importlib.import_module("digest_benchmark")


def source(micro: Micro) -> str:
    return (FOLDER / micro.source).read_text()


def test_every_kernel_of_the_table_is_in_its_source() -> None:
    """Breaks when a kernel, an arm or a hot line was renamed in one place only: the capture would then be empty."""
    for micro in KERNELS:
        text = source(micro)
        functions = re.findall(r"__global__ void (?:__launch_bounds__\([\d, ]+\) )?(\w+)\(", text)
        assert f'"{micro.arm}"' in text, micro.name
        if micro.kernel.startswith("^"):
            assert [f for f in functions if re.search(micro.kernel, f)] == [micro.kernel.strip("^$")]
        if micro.classes and micro.name != "tensor_gemm":  # the library's source is not here
            assert hot_lines(micro), micro.name
    assert {m.source for m in KERNELS} == {p.name for p in FOLDER.glob("*.cu")}


def test_twins_name_each_other_and_families_exist() -> None:
    """Breaks when a fix is judged against a kernel that is not its case, or no family advises the edit."""
    assert len(BY_NAME) == len(KERNELS)
    for micro in KERNELS:
        if micro.name == "dram_copy":
            assert (micro.twin, micro.steps) == (None, ("stop",))
            continue
        twin = BY_NAME[str(micro.twin)]
        assert (twin.twin, twin.source, twin.fix) == (micro.name, micro.source, not micro.fix)
        assert not micro.fix or micro.classes
    known = {f.id for f in FAMILIES.values()}
    assert {f for m in CASES for f in m.families} <= known


def test_a_marker_is_a_whole_comment(tmp_path: Path) -> None:
    """Breaks when the marker of one kernel claims the lines of another in the same file."""
    assert len(hot_lines(BY_NAME["fma_chain"])) == len(hot_lines(BY_NAME["fma_serial"])) == 1
    assert hot_lines(BY_NAME["fma_chain"]) != hot_lines(BY_NAME["fma_serial"])
    assert hot_lines(BY_NAME["spill_twin"]) == ()


def test_capture_skips_the_warm_up_and_leaves_the_clocks(scripts: Any) -> None:
    """Breaks when the command profiles a warm-up, locks clocks, or takes launches of another kernel."""
    shot = scripts.capturing.Shot(micro=BY_NAME["spill"], what="full")
    assert scripts.capturing.ncu_argv(shot, Path("o")) == [
        "ncu", "--clock-control", "none", "--target-processes", "application-only", "--set", "full", "--import-source",
        "on", "--kernel-name", "regex:^spill$", "--launch-skip", "2", "--launch-count", "1", "--force-overwrite",
        "--export", "o/spill-full-partial", "o/bin/spill", "case",
    ]  # fmt: skip
    many = scripts.capturing.ncu_argv(scripts.capturing.Shot(micro=BY_NAME["launch_bound"], what="full"), Path("o"))
    assert many[many.index("--launch-count") + 1] == "12"
    plain = scripts.capturing.Shot(micro=BY_NAME["launch_bound"], what="metrics")
    argv = scripts.capturing.ncu_argv(plain, Path("o"))
    names = argv[argv.index("--metrics") + 1].split(",")
    assert len(names) == 6 and not [n for n in names if "memory" in n or "dram" in n]
    assert argv[argv.index("--launch-count") + 1] == "1"


def test_what_matters_most_is_captured_first(scripts: Any) -> None:
    """Breaks when a cut budget would lose full captures of cases before anything else."""
    chosen = scripts.capturing.names("strided_load,dram_copy")
    stems = [s.stem for s in scripts.capturing.plan(chosen, ["full", "basic", "metrics"], 2)]
    assert stems == [
        "dram_copy.full", "strided_load.full", "strided_load_twin.full", "dram_copy.basic", "strided_load.basic",
        "dram_copy.metrics", "strided_load.metrics", "strided_load.full.r1", "strided_load.full.r2",
    ]  # fmt: skip
    with pytest.raises(SystemExit, match="no such kernel: nought"):
        scripts.capturing.names("nought")


def test_capture_resumes_and_names_what_failed(scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a complete file is captured again, a failed one is left as if complete, or its reason is lost."""
    tools, out = tmp_path / "tools", tmp_path / "out"
    tools.mkdir()
    out.mkdir()
    (tools / "ncu").write_text(STUB_NCU)
    (tools / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    shots = scripts.capturing.plan(scripts.capturing.names("smem_column"), ["full"], 0)
    for expected in (["smem_column_twin.full: ==ERROR== no access"],) * 2:
        lanes = scripts.capturing.Lanes(shots, out, jobs=2, left=lambda: 1.0)
        lanes.run(["0"])
        assert lanes.faults == expected
    files = sorted(p.name for p in out.iterdir() if p.is_file())
    assert files == [f"smem_column.full.{e}" for e in ("auto.csv", "base.csv", "details.csv", "ncu-rep")]
    calls = (tools / "calls").read_text()
    assert (calls.count("smem_column case"), calls.count("smem_column twin"), calls.count("--import ")) == (1, 2, 3)
    late = scripts.capturing.Lanes(shots[1:], out, jobs=1, left=lambda: 0.0)
    late.run(["0"])
    assert late.cut == ["smem_column_twin.full"]


def test_capture_without_a_gpu_says_what_is_missing(
    scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a machine without the tools gets a traceback or an empty folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert scripts.main(["capture", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert all(f"\n  {tool}" in said for tool in ("nvcc", "ncu", "an NVIDIA GPU"))
    assert not (tmp_path / "out").exists()


def said(kernel: str, name: str, confidence: str, kind: str, **more: Any) -> dict[str, Any]:
    """One digest as a row: which file, and the JSON that is read."""
    step = {"kind": kind, "family": more.pop("family", "")}
    groups = [{"hotspots": [{"line": n} for n in more.pop("lines")]}] if "lines" in more else [{}]
    data = {"class": name, "confidence": confidence, "next_step": step, "groups": groups}
    return {"data": data, "kernel": kernel, "what": "full", "form": "rep", "again": 0, **more}


HOT = hot_lines(BY_NAME["spill"])[0]
DIGESTS = [
    said("strided_load", "mem.uncoalesced", "high", "edit", family="coalesce"),
    said("strided_load", "mem.uncoalesced", "high", "edit", again=1),
    said("strided_load", "mem.dram_bw", "high", "edit", again=2),
    said("strided_load_twin", "mem.dram_bw", "medium", "edit"),
    said("smem_column", "mem.smem_conflict", "high", "edit", family="coalesce", lines=[1, 2, 3]),
    said("smem_column_twin", "mem.smem_conflict", "low", "edit"),
    said("spill", "mem.spill", "medium", "edit", family="fewer-live-registers", lines=[9, HOT]),
    said("spill_twin", "exec.pipe_bound:fma", "high", "edit"),
    said("tail", "exec.imbalance", "high", "edit", lines=[1, 2, 3, hot_lines(BY_NAME["tail"])[0]]),
    said("icache", "none.insufficient", "none", "capture"),
    said("spill", "mem.spill", "low", "edit", what="metrics", form="base"),
    said("tail", "mem.l2_bw", "low", "edit", what="metrics", form="base"),
    said("icache", "none.insufficient", "none", "capture", what="metrics", form="base"),
]


def timed(case: float, twin: float, *, same: bool = True) -> dict[str, Any]:
    return {"same": same, "arms": {"case": {"us": case}, "twin": {"us": twin}}}


TIMES = {"strided_load": timed(110.0, 100.0), "smem_column": timed(90.0, 10.0), "spill": timed(50.0, 10.0, same=False)}


@pytest.fixture
def scored(scripts: Any) -> Any:
    rows = [dict(row) for row in DIGESTS]
    given = [scripts.scoring.answer(row.pop("data"), **row) for row in rows]
    return scripts.scoring.score(given, BY_NAME, TIMES, form="rep")


def test_accuracy_counts_right_asked_and_wrong(scored: Any) -> None:
    """Breaks when a refusal counts as right or wrong, a repeat counts twice, or a miss is not listed."""
    full = scored["accuracy"]["full"]["rep"]
    assert (full["n"], full["right"], full["asked"], full["wrong"], full["share"]) == (5, 3, 1, 1, 0.6)
    assert full["right_family_of_right_edit"] == 0.6667  # one of three says another family
    assert full["misses"] == [
        {"kernel": "tail", "expected": ["launch.tail"], "got": "exec.imbalance", "confidence": "high", "step": "edit"},
        {"kernel": "icache", "expected": ["lat.icache"], "got": "none.insufficient", "confidence": "none",
         "step": "capture"},
    ]  # fmt: skip
    assert scored["met"]["top1_full_at_least_0.90"] is False


def test_a_definite_class_from_plain_metrics_is_counted(scored: Any) -> None:
    """Breaks when a guess from too little passes because it happens to be right, or is not named when wrong."""
    plain = scored["refusal"]["metrics"]
    assert (plain["n"], plain["asked_for_capture"], plain["definite"]) == (3, 1, 2)
    assert [w["kernel"] for w in plain["wrong_definite"]] == ["tail"]
    assert scored["met"]["metrics_only_no_wrong_class"] is False
    assert scored["met"]["metrics_only_all_capture"] is False


def test_calibration_leaves_out_repeats_and_fixes(scored: Any) -> None:
    """Breaks when kernels without a known class dilute the shares."""
    assert scored["calibration"] == {
        "high": {"n": 3, "right": 2, "share": 0.6667},
        "medium": {"n": 1, "right": 1, "share": 1.0},
        "none": {"n": 1, "right": 0, "share": 0.0},
    }
    assert scored["met"]["high_right_at_least_0.95"] is False


def test_the_counterfactual_needs_speed_another_class_and_one_result(scored: Any) -> None:
    """Breaks when a fix counts that is no faster, is judged the same, or computes something else."""
    would = scored["counterfactual"]
    assert {e["kernel"]: (e["speedup"], e["holds"]) for e in would["each"]} == {
        "strided_load": (1.1, True),
        "smem_column": (9.0, False),  # its twin's digest names the same class
        "spill": (None, False),  # its arms do not agree
    }
    assert (would["n"], would["holds"], would["share"]) == (3, 1, 0.3333)


def test_a_hot_line_must_be_among_the_top_three(scored: Any) -> None:
    """Breaks when a fourth place counts, or a digest without hotspots counts as a miss."""
    hot = scored["hotspot"]
    assert (hot["n"], hot["found"], hot["not_available"], hot["share"]) == (3, 1, 2, 0.3333)
    assert [m["kernel"] for m in hot["misses"]] == ["smem_column", "tail"]


def test_a_line_of_another_file_keeps_its_place(scripts: Any) -> None:
    """Breaks when line 30 of a header counts as line 30 of the kernel, or lets a fourth line move up."""
    spots = [
        {"file": "src/spill.cu", "line": 30},
        {"file": "common.cuh", "line": 31},
        {"line": 32},
        {"file": "spill.cu"},
    ]
    data = {"groups": [{"hotspots": spots}]}
    assert scripts.scoring.answer(data, kernel="spill", what="full", form="rep", source="spill.cu").lines == (
        30,
        0,
        32,
        0,
    )


def test_repeats_must_agree(scored: Any) -> None:
    """Breaks when a class that flips between captures of one program goes unseen."""
    assert scored["stability"] == {
        "n": 1, "same": 0, "changed": {"strided_load": ["mem.uncoalesced", "mem.uncoalesced", "mem.dram_bw"]},
    }  # fmt: skip


def test_nothing_captured_is_nothing_met(scripts: Any) -> None:
    """Breaks when an empty folder passes a threshold."""
    assert set(scripts.scoring.score([], BY_NAME, {})["met"].values()) == {None}


def test_score_reads_files_by_name(scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a file is taken for another kernel, set or format, or the least bytes of a case get lost."""
    for name in ("dram_copy.full.ncu-rep", "spill.basic.base.csv", "spill.full.r2.ncu-rep", "spill.full.csv", "x.txt"):
        (tmp_path / name).write_text("x")
    times = {"dram_copy": {"same": True, "arms": {"case": {"us": 1.0, "min_bytes": 480}}}}
    (tmp_path / "times.json").write_text(json.dumps(times))
    asked: dict[str, int | None] = {}

    def digest(file: Path, least: int | None) -> dict[str, Any]:
        asked[file.name] = least
        return {"class": "mem.spill", "confidence": "high", "next_step": {"kind": "edit"}, "groups": []}

    monkeypatch.setattr(scripts, "digest", digest)
    found = scripts.answers(tmp_path, times, jobs=1)
    assert asked == {"dram_copy.full.ncu-rep": 480, "spill.basic.base.csv": None, "spill.full.r2.ncu-rep": None}
    assert [(a.kernel, a.what, a.form, a.again) for a in found] == [
        ("dram_copy", "full", "rep", 0), ("spill", "basic", "base", 0), ("spill", "full", "rep", 2),
    ]  # fmt: skip
    assert scripts.main(["score", "--captures", str(tmp_path), "--out", str(tmp_path / "s.json"), "--jobs", "1"]) == 0
    assert json.loads((tmp_path / "s.json").read_text())["accuracy"]["full"]["rep"]["n"] == 1


def test_speed_measures_each_process_by_itself(scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the second process is charged with the memory of the first, or a failed one is timed."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux charges a child with this much
    big = f"import sys; x = bytearray({round(held) + 150} << 20); print(len(x))"
    fat = scripts._child([sys.executable, "-c", big], tmp_path / "a")
    thin = scripts._child([sys.executable, "-c", "print(1)"], tmp_path / "b")
    assert fat["mb"] > held + 150 > held + 60 > thin["mb"]
    with pytest.raises(SystemExit, match="ended with 3: gone"):
        scripts._child([sys.executable, "-c", "print('gone'); raise SystemExit(3)"], tmp_path / "c")


def gpu_tools() -> str:
    """Why nothing can be captured here, or nothing."""
    lacks = [tool for tool in ("nvcc", "ncu", "nvidia-smi") if not shutil.which(tool)]
    if not lacks:
        seen = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
        lacks = [] if "GPU 0" in seen else ["a GPU"]
    return f"no {', '.join(lacks)} here" if lacks else ""


@pytest.mark.gpu
@pytest.mark.skipif(bool(gpu_tools()), reason=gpu_tools())
def test_one_kernel_is_captured_and_scored(scripts: Any, tmp_path: Path) -> None:
    """Breaks when the whole chain, from nvcc to a score, does not hold on a real GPU."""
    out = tmp_path / "captures"
    assert scripts.main(["capture", "--out", str(out), "--only", "smem_column", "--sets", "full,metrics"]) == 0
    assert scripts.main(["score", "--captures", str(out), "--out", str(tmp_path / "s.json"), "--form", "base"]) == 0
    score = json.loads((tmp_path / "s.json").read_text())
    assert score["accuracy"]["full"]["base"]["right"] == 1
    assert score["refusal"]["metrics"]["wrong_definite"] == []
    assert score["counterfactual"]["each"][0]["speedup"] > 2
