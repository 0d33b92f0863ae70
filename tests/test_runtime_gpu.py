"""The whole GPU path of the runtime, on a stand-in for the device; sizes and residency by hand."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelpilot_helpers.attempt.job import Job, JobCase, Limits, TensorSpec, TimeSpec, VerifySpec
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.executors import deploy
from kernelpilot_helpers.executors.lab import encode_job, parse_raw
from kernelpilot_helpers.runtime import procs, residency, tenancy, verify
from kernelpilot_helpers.runtime.commands import Ticks
from kernelpilot_helpers.runtime.gpu_bench import GpuBench, Plan
from kernelpilot_helpers.runtime.gpu_timing import sized
from kernelpilot_helpers.runtime.looks import Looks
from kernelpilot_helpers.runtime.spec import JobError, parse_case
from tests import fakegpu
from tests.jobs import OPERATORS, materialise, norm_case

PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON") or (
    sys.executable if importlib.util.find_spec("torch") else ""
)
needs_torch = pytest.mark.skipif(not PYTHON, reason="no torch here: set KERNELPILOT_TEST_TORCH_PYTHON")
QUICK = VerifySpec(seeds=1, calls=2)
SHORT = TimeSpec(pairs=2, blocks=4, sample_us=50.0)
MIB = 1 << 20


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("fake")
    source = fakegpu.runtime(base)
    device = source / "cuda.py"  # a GPU of our own: jobs of other test processes hold the lock of theirs
    device.write_text(device.read_text().replace("GPU-00000000", f"GPU-{os.urandom(4).hex()}"))
    return deploy.deploy(base / "cache", source=source)


def run(runtime: Path, folder: Path, *, env: dict[str, str] | None = None, **how: object) -> Raw:
    """One job through the runtime with the stand-in device."""
    known: dict[str, object] = {
        "device": "gpu", "framework": "torch", "library_calls": True, "b": {"candidate.py": OPERATORS},
        "cases": (norm_case(4, 64),), "verify": QUICK,
        "limits": Limits(call_s=10.0, build_s=30.0, wall_s=90.0, lock_s=30.0), **how,
    }  # fmt: skip
    job: Job = materialise(folder, **known)  # type: ignore[arg-type]
    (folder / "job.json").write_bytes(encode_job(job))
    done = subprocess.run(
        [PYTHON, "-I", str(runtime), str(folder)], env={"PATH": os.environ["PATH"], **(env or {})},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return parse_raw((folder / "raw.json").read_bytes())


def kinds(raw: Raw, arm: str = "B") -> set[str]:
    return {e.kind for e in raw.events if e.arm == arm} - {"note.inventory"}


@needs_torch
def test_a_whole_gpu_job_times_captured_calls_and_reports_figures(runtime: Path, tmp_path: Path) -> None:
    """Breaks when any step of the GPU path no longer fits the next one."""
    chained = norm_case(3, 32)
    cases = (norm_case(4, 64), JobCase(**{**{f: getattr(chained, f) for f in chained.__struct_fields__},
                                          "figure": "chained"}))  # fmt: skip
    raw = run(
        runtime, tmp_path, phases=("audit", "verify", "time", "figures"), cases=cases,
        time=TimeSpec(pairs=3, first_pair=1, blocks=4, sample_us=50.0), report=("host", "isolated"),
    )  # fmt: skip
    assert (raw.died, kinds(raw), kinds(raw, "A")) == (None, set(), set())
    assert raw.env["gpu"] == "stand-in"
    laps = {k for k in raw.env["phase_seconds"] if k.startswith("verify.")}
    assert laps == {
        f"verify.{part}" for part in (
            "start", "contents", "arena", "fill", "warm", "want", "run", "faults", "digest", "measure", "capture",
            "inventory",
        )
    }  # fmt: skip
    assert not [c for c in raw.checks if c.arm == "B" and c.where is not None]
    assert {c.probe for c in raw.checks} >= {"graph", "late", "timed"}
    r4 = [s for s in raw.samples if s.case_id == "r4_n64"]
    assert [(s.pair, s.first_arm, s.arm) for s in r4] == [
        (1, "B", "B"), (1, "B", "A"), (2, "A", "A"), (2, "A", "B"), (3, "B", "B"), (3, "B", "A"),
    ]  # fmt: skip
    assert {(s.case_id, s.figure, s.method) for s in raw.samples} == {
        ("r4_n64", "pipelined", "graph"), ("r3_n32", "chained", "graph"),
    }  # fmt: skip
    assert all(s.mhz == (1980,) * 4 and s.cpu_ns == () and len(s.ns) == 4 for s in raw.samples)
    assert all(w > n > 0 for s in raw.samples for n, w in zip(s.ns, s.wall_ns, strict=True))
    assert {(f.arm, f.case_id, f.figure) for f in raw.figures} == {
        (arm, case, figure) for arm in "AB" for case in ("r4_n64", "r3_n32")
        for figure in ("host", "isolated", "floor", "touch")
    }  # fmt: skip
    assert {r.tensor: r.reached for r in raw.residency if r.case_id == "r4_n64"} == {
        "x": "cold", "residual": "cold", "weight": "cold", "out": "cold",
    }  # fmt: skip
    assert [(g.phase, g.pair, g.sm_mhz) for g in raw.gpu] == [
        ("time", 1, (1980, 1980, 1980)), ("time", 2, (1980, 1980, 1980)), ("time", 3, (1980, 1980, 1980)),
        ("figures", None, (1980, 1980, 1980)),
    ]  # fmt: skip


REFUSES = (
    OPERATORS.replace("    residual[...]", "    refuse()\n    residual[...]", 1)
    + """

def refuse():
    import sys
    if any(f.f_code.co_name == "record" for f in frames()):
        raise RuntimeError("capture: capture.sync: it reads a result")


def frames():
    import sys
    frame = sys._getframe()
    while frame:
        yield frame
        frame = frame.f_back
"""
)


@needs_torch
@pytest.mark.parametrize(("graph", "kind"), [("may", "note.capture"), ("must", "capture.sync")])
def test_what_cannot_be_captured_is_timed_by_events_for_every_arm(
    runtime: Path, tmp_path: Path, graph: str, kind: str
) -> None:
    """Breaks when one arm is timed by graph and the other by events, or a must is only noted."""
    raw = run(runtime, tmp_path, phases=("time",), time=SHORT, graph=graph, b={"candidate.py": REFUSES})
    assert (raw.died, kinds(raw)) == (None, {kind})
    assert {(s.arm, s.method) for s in raw.samples} == {("A", "events"), ("B", "events")}


@needs_torch
@pytest.mark.parametrize(
    ("env", "phases", "said"),
    [
        ({"CUDA_FAKE_ABSENT": "1"}, ("verify",), "gpu.absent: "),
        ({"CUDA_FAKE_PROCESSES": "1"}, ("time",), "gpu.busy: pid 1 (100 MiB) "),
    ],
)
def test_a_gpu_that_is_not_there_or_not_free_is_named(
    runtime: Path, tmp_path: Path, env: dict[str, str], phases: tuple[str, ...], said: str
) -> None:
    """Breaks when a job is timed beside a foreign process, or ends in a traceback without a GPU."""
    raw = run(runtime, tmp_path, env=env, phases=phases, time=SHORT)
    assert raw.died is not None
    assert (raw.died.stage, raw.died.log[: len(said)]) == ("oracle", said)
    assert (raw.samples, raw.checks) == ((), ())


@needs_torch
def test_a_build_alone_needs_no_gpu(runtime: Path, tmp_path: Path) -> None:
    """Breaks when registers and spills can be seen on a machine with a GPU only."""
    raw = run(runtime, tmp_path, env={"CUDA_FAKE_ABSENT": "1"}, phases=())
    assert raw.died is None
    assert [(b.arm, b.ok) for b in raw.builds] == [("A", True), ("B", True)]


@needs_torch
def test_a_hang_ends_within_its_limit_and_the_next_job_works(runtime: Path, tmp_path: Path) -> None:
    """Breaks when an endless call holds its job longer than its limit and two seconds, or the GPU for ever.

    It hangs in its first call, which might still compile: without a sign of that, the limit is a call's all the same.
    The next job only checks: a foreign process on the GPU, which cannot spoil that, does not stop it.
    """
    hang = OPERATORS.replace("    residual[...]", "    while x is not None: pass\n    residual[...]", 1)
    limits = Limits(call_s=1.0, build_s=30.0, wall_s=60.0, lock_s=30.0)
    raw = run(runtime, tmp_path / "a", phases=("verify",), b={"candidate.py": hang}, limits=limits)
    assert raw.died is not None
    assert (raw.died.arm, raw.died.stage, raw.died.timeout) == ("B", "call", True)
    assert 1.0 <= raw.env["phase_seconds"]["verify"] < 1.0 + 2.0 + 3.0  # loading takes its time on a busy machine
    after = run(runtime, tmp_path / "b", phases=("verify",), env={"CUDA_FAKE_PROCESSES": "1"})
    assert after.died is None
    assert after.checks


SLEEPS = """
import sys, time


def inside(op):
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != op:
        frame = frame.f_back
    return frame is not None


""" + OPERATORS.replace("    residual[...]", "    while inside(OP): pass\n    residual[...]", 1)


@needs_torch
def test_a_hang_in_a_replay_takes_a_calls_limit_and_no_more(runtime: Path, tmp_path: Path) -> None:
    """Breaks when what hangs in a graph only is waited for without a limit, or twice."""
    limits = Limits(call_s=1.0, build_s=30.0, wall_s=60.0, lock_s=30.0)
    raw = run(
        runtime, tmp_path, phases=("verify", "time"), time=SHORT, limits=limits,
        b={"candidate.py": SLEEPS.replace("OP", repr("replay"))},
    )  # fmt: skip
    assert raw.died is not None
    assert (raw.died.arm, raw.died.stage, raw.died.timeout) == ("B", "call", True)
    assert raw.died.log.startswith("no reply within 1.")
    assert 1.0 <= raw.env["phase_seconds"]["verify"] < 1.0 + 2.0 + 3.0  # loading takes its time on a busy machine


@needs_torch
def test_a_first_call_that_compiles_gets_the_builds_limit(runtime: Path, tmp_path: Path) -> None:
    """Breaks when a kernel that its first call compiles for longer than a call may last is called a hang."""
    slow = """
import os, time

DONE = []


def compiled():
    for step in range(6 if not DONE else 0):
        time.sleep(0.4)
        folder = os.environ["TRITON_CACHE_DIR"]
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{os.getpid()}-{step}.log"), "w") as file:
            file.write("step")
    DONE.append(1)


""" + OPERATORS.replace("    residual[...]", "    compiled()\n    residual[...]", 1)
    limits = Limits(call_s=1.0, build_s=30.0, wall_s=60.0, lock_s=30.0)
    raw = run(runtime, tmp_path, phases=("verify",), b={"candidate.py": slow}, limits=limits)
    assert raw.died is None
    assert raw.env["phase_seconds"]["verify.warm"] > 2.4


@pytest.mark.parametrize(
    ("cores", "free", "phases", "told"),
    [
        (15, 100 << 30, ("verify", "time"), ["A", "B"]),
        (2, 100 << 30, ("verify", "time"), []),
        (15, 1 << 30, ("verify", "time"), []),
        (15, 100 << 30, ("verify",), []),
    ],
)
def test_the_pilots_workers_start_during_verification_where_there_is_room(
    cores: int, free: int, phases: tuple[str, ...], told: list[str]
) -> None:
    """Breaks when contexts are made one after the other, or workers start that nobody uses or that find no memory."""
    started: list[str] = []
    session = SimpleNamespace(
        gpu=True, cores=tuple(range(cores)), device=SimpleNamespace(free_bytes=lambda: free), arms={"A": "A", "B": "B"},
        job={"phases": phases, "time": {"pairs": 2}}, cases=[case({"name": "x", "n": 4})],
    )  # fmt: skip
    verify.ahead(session, SimpleNamespace(early=started.extend))  # type: ignore[arg-type]
    assert started == told


def case(*tensors: dict[str, object]) -> object:
    """A case of these tensors."""
    base = {"role": "in", "dtype": "float32", "align": 64}
    specs = []
    for t in tensors:
        n = t.pop("n")
        spec = TensorSpec(**{**base, "shape": (n,), "stride": (1,), **t})  # type: ignore[arg-type]
        specs.append({f: getattr(spec, f) for f in spec.__struct_fields__})
    return parse_case({"case_id": "c", "axes": {}, "flags": {}, "timed": True, "tensors": specs})


def plan(**how: object) -> Plan:
    known = {
        "case_id": "c", "figure": "pipelined", "method": "graph", "calls": 4, "group": 4, "copies": 1, "hot": (),
        "us": 1.0,
    }  # fmt: skip
    return Plan(**{**known, **how})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("figure", "us", "room", "want"),
    [
        ("pipelined", 2.0, 1 << 30, (150, 50)),  # 300 us of 2 us calls, 100 us a group
        ("pipelined", 7.0, 1 << 30, (45, 15)),
        ("pipelined", 900.0, 1 << 30, (4, 4)),
        ("pipelined", 0.01, 1 << 30, (4096, 4096)),
        ("isolated", 2.0, 1 << 30, (64, 1)),
        ("pipelined", 2.0, 8192 * 3, (3, 3)),
    ],
)
def test_blocks_are_sized_by_time_and_memory(figure: str, us: float, room: int, want: tuple[int, int]) -> None:
    """Breaks when a block is shorter than events resolve, or larger than its memory. A call takes 8 KiB or less."""
    one = case({"name": "x", "n": 1024}, {"name": "y", "n": 896 - 64, "role": "out"})
    got = sized(one, plan(figure=figure, us=us), 300.0, room, MIB)  # type: ignore[arg-type]
    assert (got.calls, got.group) == want
    assert got.calls % got.group == 0


def test_a_cold_weight_has_a_copy_a_call_or_more_than_the_cache_holds() -> None:
    """Breaks when calls of a group find their weight in the cache although it should be cold."""
    small = case({"name": "w", "n": 1024, "role": "static"}, {"name": "x", "n": 16})
    large = case({"name": "w", "n": MIB, "role": "static"}, {"name": "x", "n": 16})
    hot = case({"name": "w", "n": 1024, "role": "static", "residency": "hot"}, {"name": "x", "n": 16})
    assert residency.copies_of(small, 50, MIB, 1 << 30) == 50  # type: ignore[arg-type]
    assert residency.copies_of(small, 90, MIB, 1 << 30) == 64  # type: ignore[arg-type]
    assert residency.copies_of(large, 50, MIB, 1 << 30) == 2  # type: ignore[arg-type]
    assert residency.copies_of(hot, 50, MIB, 1 << 30) == 1  # type: ignore[arg-type]

    def reached(what: object, group: int, copies: int) -> dict[str, str]:
        found = residency.entries(what, group=group, copies=copies, l2_bytes=MIB)  # type: ignore[arg-type]
        return {e["tensor"]: e["reached"] for e in found}

    assert reached(small, 50, 50) == {"w": "cold", "x": "cold"}
    assert reached(small, 90, 64) == {"w": "partial", "x": "cold"}
    assert reached(large, 50, 2) == {"w": "cold", "x": "cold"}
    assert reached(hot, 50, 1) == {"w": "hot", "x": "cold"}
    wide = case({"name": "x", "n": 1024, "residency": "hot"}, {"name": "y", "n": MIB // 8, "role": "out"})
    assert reached(wide, 1, 1) == {"x": "hot", "y": "cold"}
    assert reached(wide, 2, 1) == {"x": "partial", "y": "cold"}


def test_a_chain_is_what_the_calls_add_and_a_missing_span_is_no_time() -> None:
    """Breaks when stubs count as the candidate's time, or a worker that leaves spans out looks faster."""
    two = plan(figure="chained", group=2)
    assert two.ns(Ticks(spans=(900, 300, 800, 250), wall_ns=1)) == 1150
    assert two.ns(Ticks(spans=(900, 300, 800), wall_ns=1)) is None
    assert plan(group=2).ns(Ticks(spans=(5, 7), wall_ns=1)) == 12
    assert plan(group=2).ns(Ticks(spans=(5,), wall_ns=1)) is None
    assert plan(group=4, figure="floor").ns(Ticks(spans=(40, 999), wall_ns=1)) == 40


def test_a_known_thread_may_run_and_another_one_is_seen() -> None:
    """Breaks when the driver's own threads are taken for the candidate's, or the candidate's for the driver's."""
    done = threading.Event()

    def spin() -> None:
        while not done.is_set():
            pass

    before = procs.threads(os.getpid())
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        after = procs.threads(os.getpid())
        assert len(after - before) == 1
        assert any(procs.look(os.getpid(), before).others_run for _ in range(200))
        assert not any(procs.look(os.getpid(), after).others_run for _ in range(20))
    finally:
        done.set()
        thread.join()


def test_only_this_process_may_be_on_the_gpu() -> None:
    """Breaks when the job refuses itself, or takes a neighbour for itself."""
    tenancy.alone([(os.getpid(), 500)])
    with pytest.raises(JobError, match=r"gpu.busy: pid 7 \(300 MiB\)"):
        tenancy.alone([(os.getpid(), 500), (7, 300)])


class Sensors:
    """Two moments."""

    def __init__(self) -> None:
        self.moments = iter([(1980, 40, 110.5, []), (1755, 61, 690.0, ["power_cap"])])

    def sm_mhz(self) -> int:
        return 1900

    def sample(self) -> dict[str, object]:
        mhz, temp, power, reasons = next(self.moments)
        return {"sm_mhz": mhz, "mem_mhz": 3201, "temp_c": temp, "power_w": power, "reasons": reasons}


def test_a_look_keeps_the_extremes_and_every_reason() -> None:
    """Breaks when a throttled moment between two calm ones leaves no trace."""
    looks = Looks(Sensors())
    assert looks.entry("time") is None
    assert looks.mhz() == 1900
    looks.sample()
    looks.sample()
    assert looks.entry("time", 3) == {
        "phase": "time", "pair": 3, "sm_mhz": (1755, 1900, 1980), "mem_mhz": 3201, "temp_c": (40, 61),
        "power_w": (110.5, 690.0), "reasons": ("power_cap",),
    }  # fmt: skip
    assert (Looks(None).mhz(), Looks(None).entry("time")) == (0, None)


class LateWorker:
    """Busy for ``ns`` after each reply in turn."""

    def __init__(self, *ns: int) -> None:
        self.arm = SimpleNamespace(name="B")
        self.pair = 2
        self.sync = iter(ns).__next__


@pytest.mark.parametrize(
    ("busy", "told"), [((20_000,), False), ((5_000_000, 20_000), False), ((5_000_000, 4_000_000, 4_000_000), True)]
)
def test_work_after_the_reply_is_told_from_a_host_that_was_held_up_once(busy: tuple[int, ...], told: bool) -> None:
    """Breaks when work queued behind the reply goes unseen, or one hiccup of the host is called a cheat."""
    events: list[str] = []
    bench = GpuBench.__new__(GpuBench)
    bench._idle = 0
    bench.case = case({"name": "x", "n": 4})  # type: ignore[assignment]
    bench.session = SimpleNamespace(event=lambda _arm, kind, *_, **__: events.append(kind))  # type: ignore[assignment]
    bench._after(LateWorker(*busy), 1)  # type: ignore[arg-type]
    assert events == []
    bench._after(LateWorker(*busy), 0)  # type: ignore[arg-type]
    assert events == (["cheat.late_work"] if told else [])
