"""The sanitizer phase: reports in the tools' own words, and a whole run with a stand-in for the tool and the GPU."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelpilot_helpers.executors.lab import encode_job
from kernelpilot_helpers.runtime import sanitize
from tests import fakegpu
from tests.jobs import materialise, norm_case

PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON") or (
    sys.executable if importlib.util.find_spec("torch") else ""
)
needs_torch = pytest.mark.skipif(not PYTHON, reason="no torch: set KERNELPILOT_TEST_TORCH_PYTHON")

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at rms(float *, int)+0x120 in kernel.cu:12
=========     by thread (0,0,0) in block (3,0,0)
=========     Access at 0x7f0000000400 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernel [0x1234]
=========
========= ERROR SUMMARY: 3 errors
"""
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at rms(float *)+0x10 and Read access at rms(float *)+0x40
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_a_report_gives_the_count_and_the_first_error_in_one_line() -> None:
    errors, note = sanitize.verdict("memcheck", MEMCHECK, done=False)
    assert errors == 3
    assert note == (
        "Invalid __global__ write of size 4 bytes; at rms(float *, int)+0x120 in kernel.cu:12; "
        "by thread (0,0,0) in block (3,0,0); Access at 0x7f0000000400 is out of bounds"
    )
    assert sanitize.verdict("racecheck", RACE, done=True)[0] == 1


def test_no_summary_or_no_finished_call_is_no_pass() -> None:
    """Breaks when a tool that saw nothing counts as one that found nothing."""
    assert sanitize.verdict("initcheck", "", done=True) == (None, "the tool gave no summary")
    assert sanitize.verdict("initcheck", "========= ERROR SUMMARY: 0 errors", done=False)[0] is None
    clean = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
    assert sanitize.verdict("racecheck", clean, done=True) == (0, "")
    doubtful = "========= W: maybe\n=========\n========= RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)"
    assert sanitize.verdict("racecheck", doubtful, done=True) == (0, "2 warnings: W: maybe")


TOOL = """#!{python}
import json, subprocess, sys
argv = sys.argv[1:]
tool, report = argv[argv.index("--tool") + 1], argv[argv.index("--log-file") + 1]
done = subprocess.run(argv[argv.index("--log-file") + 2:])
errors = int(tool == "initcheck")
open(report, "w").write("========= COMPUTE-SANITIZER\\n" + "========= Uninitialized read\\n=========\\n" * errors
                        + "========= ERROR SUMMARY: %d errors\\n" % errors)
sys.exit(done.returncode)
"""

DRIVER = """
import importlib.util, json, sys, time
from pathlib import Path
runtime = Path("RUNTIME")
sys.path[:] = [p for p in sys.path if p and Path(p).resolve() != runtime]
spec = importlib.util.spec_from_file_location("kernelpilot_runtime", runtime / "__init__.py",
                                              submodule_search_locations=[str(runtime)])
module = importlib.util.module_from_spec(spec)
sys.modules["kernelpilot_runtime"] = module
spec.loader.exec_module(module)
from kernelpilot_runtime import sanitize
from kernelpilot_runtime.session import Session
from kernelpilot_runtime.spec import parse_arm, parse_case
if sys.argv[1] == "--sanitize":
    raise SystemExit(sanitize.child(sys.argv[2:]))
jobdir, tmp = Path(sys.argv[1]), Path(sys.argv[2])
job = json.loads((jobdir / "job.json").read_bytes())

class Stub:
    tmp, jobdir, job, known = tmp, jobdir, job, {}
    cases = [parse_case(c) for c in job["cases"]]
    arms = {a["name"]: parse_arm(a) for a in job["arms"]}
    events = []
    def build_dir(self, arm):
        return self.tmp / "build-B"
    def left(self):
        return 100.0
    def event(self, arm, kind, detail="", **more):
        self.events.append([arm, kind, detail, more["case_id"]])

found = sanitize.sanitize(Stub(), sys.argv[0])
print(json.dumps({"found": found, "events": Stub.events}))
"""


def run(tmp_path: Path, candidate: str, path: str, sanitize_s: float = 20.0) -> dict[str, Any]:
    from kernelpilot_helpers.attempt.job import Limits

    cases = (norm_case(64, 64), norm_case(4, 64), norm_case(3, 33, timed=False))
    job = materialise(
        tmp_path / "job", b={"candidate.py": candidate}, cases=cases, framework="torch",
        limits=Limits(sanitize_s=sanitize_s),
    )  # fmt: skip
    (tmp_path / "job" / "job.json").write_bytes(encode_job(job))
    (tmp_path / "driver.py").write_text(DRIVER.replace("RUNTIME", str(fakegpu.runtime(tmp_path))))
    (tmp_path / "tmp" / "build-B").mkdir(parents=True)
    done = subprocess.run(
        [PYTHON, "-I", str(tmp_path / "driver.py"), str(tmp_path / "job"), str(tmp_path / "tmp")],
        env={"PATH": path, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


GOOD = """
def entry(*, x, residual, weight, eps, out):
    residual += x
    out[...] = residual * (residual.square().mean(-1, keepdim=True) + eps).rsqrt() * weight
"""


@needs_torch
def test_every_tool_runs_on_the_smallest_timed_and_an_edge_case(tmp_path: Path) -> None:
    """Breaks when the candidate is not really called under the tool, or when errors make no event."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    tool = bin_dir / "compute-sanitizer"
    tool.write_text(TOOL.format(python=PYTHON))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    got = run(tmp_path, GOOD, f"{bin_dir}:/usr/bin:/bin", sanitize_s=60.0)
    short = [(e["tool"], e["case_id"], e["errors"], e["note"]) for e in got["found"]]
    read = "Uninitialized read"
    assert short == [
        ("memcheck", "r4_n64", 0, ""), ("racecheck", "r4_n64", 0, ""), ("initcheck", "r4_n64", 1, read),
        ("memcheck", "r3_n33", 0, ""), ("racecheck", "r3_n33", 0, ""), ("initcheck", "r3_n33", 1, read),
    ]  # fmt: skip
    assert got["events"] == [["B", "memory.sanitizer", f"initcheck: {read}", case] for case in ("r4_n64", "r3_n33")]


def test_a_tool_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """Breaks when a sanitizer may hold the job longer than its limit."""
    process = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & sleep 60"], start_new_session=True)
    hanging = sanitize.Run(tool="racecheck", folder=tmp_path, process=process, started=time.monotonic())
    entry = sanitize._finish([hanging], "c0", 0.3)[0]
    assert (entry["errors"], entry["note"], entry["seconds"]) == (None, "did not finish within 0 s", 0.3)
    assert process.returncode == -signal.SIGKILL


def test_an_absent_tool_is_said_and_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sanitize, "PLACES", ("/nonexistent",))

    case = sanitize.parse_case(json.loads(_case()))
    found = sanitize.sanitize(SimpleNamespace(arms={"B": None}, cases=[case]), "")  # type: ignore[arg-type]
    assert [(e["tool"], e["errors"], e["note"]) for e in found] == [
        (tool, None, "compute-sanitizer is not installed") for tool in ("memcheck", "racecheck", "initcheck")
    ]


def _case() -> str:
    import msgspec

    return msgspec.json.encode(norm_case(4, 64)).decode()
