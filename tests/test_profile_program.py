"""The program below ncu, with an ncu that starts it and a GPU that is played: what is captured, and how it fails."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelpilot_helpers.attempt.profile import Launches
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors import deploy, ncu_tool, profile_stage
from kernelpilot_helpers.executors.lab import encode_job
from kernelpilot_helpers.executors.profile_stage import LocalStage, Scene
from kernelpilot_helpers.executors.task_python import TaskPython
from tests import fakegpu
from tests.jobs import materialise, norm_case
from tests.profile_sim import PERMISSION, ncu

PYTHON = os.environ.get("KERNELPILOT_TEST_TORCH_PYTHON") or (
    sys.executable if importlib.util.find_spec("torch") else ""
)
pytestmark = pytest.mark.skipif(not PYTHON, reason="no torch: set KERNELPILOT_TEST_TORCH_PYTHON")
HEAD = "def entry(*, x, residual, weight, eps, out):\n"
COUNTS = """import os, torch
log = open("seen", "a")
torch.cuda.profiler.start = lambda: print("start", file=log, flush=True)
torch.cuda.profiler.stop = lambda: print("stop", file=log, flush=True)
"""
GOOD = COUNTS + HEAD + "    print('call', file=log, flush=True)\n    out.copy_(x)\n"
SPOOF = (
    COUNTS
    + HEAD
    + f"""    print({PERMISSION!r}, flush=True)
    if "LD_PRELOAD_PLAYED" in os.environ:
        raise ValueError("not below a profiler")
    out.copy_(x)
"""
)
MakeScene = Callable[[str], Scene]


@pytest.fixture
def stage(tmp_path: Path) -> LocalStage:
    lib = deploy.deploy(tmp_path / "cache", source=fakegpu.runtime(tmp_path))
    return LocalStage(TaskPython(argv=(PYTHON,), framework="torch", version="2"), tmp_path / "lock", runtime=lib)


@pytest.fixture
def scene(tmp_path: Path) -> MakeScene:
    def make(code: str) -> Scene:
        case, folder = norm_case(4, 16), tmp_path / "job"
        job = materialise(
            folder, phases=("verify",), cases=(case,), device="gpu", framework="torch", b={"candidate.py": code}
        )
        (folder / "job.json").write_bytes(encode_job(job))
        made = Scene(jobdir=folder, arm="B", case_id=case.case_id, folder=tmp_path / "scene", limit=60)
        made.folder.mkdir()
        return made

    return make


def below(stage: LocalStage, scene: Scene, tools: Path) -> ncu_tool.Ended:
    """One run of the played ncu, which puts a variable into the program's environment as the real one does."""
    program, env = stage.program(scene)
    tool = ncu_tool.Tool(path=str(ncu(tools, "run") / "ncu"), version="1", sections=("SpeedOfLight",))
    argv = ncu_tool.argv(tool, Launches(calls=3, warm_up=3, skip=0, count=3), tools / "r.ncu-rep", program)
    return ncu_tool.run(
        argv, tools / "r.ncu-rep", env={**env, "LD_PRELOAD_PLAYED": "1"}, cwd=scene.folder, log=tools / "ncu.log",
        limit=60, done=scene.folder / profile_stage.DONE,
    )  # fmt: skip


def test_three_calls_are_captured_after_three_and_nothing_of_the_version_is_in_ncu_s_log(
    stage: LocalStage, scene: MakeScene, tmp_path: Path
) -> None:
    """Breaks when the warm-up is captured, or a version that prints speaks in ncu's name."""
    where = scene(GOOD)
    found = stage.rehearse(where)
    assert found.ok and found.sm_count > 0, found.log
    (where.folder / "seen").unlink()
    ended = below(stage, where, tmp_path / "tools")
    assert ended.why is None and ended.report is not None and profile_stage.fault(where) == ""
    seen = (where.folder / "seen").read_text().split()
    assert seen == ["call"] * 3 + ["start", "call", "stop"] * 3
    assert (tmp_path / "tools" / "ncu.log").read_bytes() == b""
    assert json.loads((where.folder / "known.json").read_text()) == {}


def test_a_version_that_fails_below_ncu_alone_is_told_in_its_own_words_and_waives_nothing(
    stage: LocalStage, scene: MakeScene, tmp_path: Path
) -> None:
    """Breaks when a version that prints ncu's refusal gets its waiver, or its own fault gets lost."""
    where = scene(SPOOF)
    ended = below(stage, where, tmp_path / "tools")
    assert ended.why is not None and ended.why.code == "ncu.failed" and ended.report is None
    assert profile_stage.fault(where) == "ValueError: not below a profiler"
    assert PERMISSION in (where.folder / profile_stage.LOG).read_text()
    (where.folder / profile_stage.ANSWER).write_text(json.dumps({"ok": False, "stage": "gpu", "log": "gpu.busy: x"}))
    with pytest.raises(Refused, match=r"no GPU to profile on: gpu\.busy"):
        profile_stage.fault(where)


def test_a_version_that_does_not_run_is_told_before_ncu_is_started(stage: LocalStage, scene: MakeScene) -> None:
    """Breaks when a fault of the version gets lost."""
    found = stage.rehearse(scene(HEAD + "    raise ValueError('broken on purpose')\n"))
    assert not found.ok and "broken on purpose" in found.log


def test_the_program_ends_with_the_command_that_asked_for_it(stage: LocalStage, scene: MakeScene) -> None:
    """Breaks when a killed command leaves a program on the GPU."""
    where = scene(COUNTS + "import time\n" + HEAD + "    print('call', file=log, flush=True)\n    time.sleep(5)\n")
    argv, env = stage.program(where)
    owner = subprocess.Popen(["/bin/sleep", "60"])
    with subprocess.Popen([*argv[:-1], str(owner.pid)], env=dict(env), cwd=where.folder) as program:
        while program.poll() is None and not (where.folder / "seen").exists():
            time.sleep(0.05)
        owner.kill()
        owner.wait()
        assert program.wait(60) == 1
    assert not (where.folder / profile_stage.ANSWER).exists()
    assert argv[-1] == str(os.getpid()) and not (where.folder / profile_stage.DONE).exists()
