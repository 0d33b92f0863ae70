"""``kernelpilot doctor`` on the loop of a worktree and on the machine: nothing stale is called ready."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_install.doctor import ask, gpu_task
from kernelpilot_install.places import places
from tests.doctor_sim import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def repo(world: World, argv0: str) -> None:
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    (world.folder / "contract.toml").write_text("", encoding="utf-8")
    value = {"format": "humanize.evidence", "version": 1}
    value["commands"] = [{"name": "gate", "argv": [argv0, "gate", "--json"], "timeout_s": 900}]
    (world.folder / ".humanize").mkdir()
    (world.folder / ".humanize" / "evidence.json").write_text(json.dumps(value), encoding="utf-8")


def test_a_stale_evidence_command_fails(world: World, tmp_path: Path) -> None:
    """Breaks when a gate that can no longer start is found out only at the first stop."""
    program = tmp_path / "kernelpilot"
    repo(world, str(program))
    assert "absent or not executable" in world.one("evidence").what
    program.write_text("#!/bin/sh\necho kernelpilot, version 9\n", encoding="utf-8")
    program.chmod(0o755)
    said = world.one("evidence")
    assert said.status == "ok"
    assert "version 9" in said.what
    program.write_text("#!/bin/sh\nexit 4\n", encoding="utf-8")
    assert "--version exits 4" in world.one("evidence").what
    repo_file = world.folder / ".humanize" / "evidence.json"
    for text in ("{", "[]", '{"commands": [{"argv": []}]}', '{"commands": 3}', '{"commands": []}'):
        repo_file.write_text(text, encoding="utf-8")
        assert world.one("evidence").status == "fail", text
    repo_file.unlink()
    said = world.one("evidence")
    assert "no gate would run" in said.what
    assert shlex.quote(str(places(world.env, world.clone).shim)) + " plan" in said.fix


def test_a_relative_evidence_command_fails(world: World) -> None:
    """Breaks when a name is trusted that only this shell's PATH finds."""
    repo(world, "true")
    assert "not an absolute path" in world.one("evidence").what


def session(world: World, worktree: Path, **more: object) -> None:
    base = world.home / ".local" / "state" / "humanize" / "sessions"
    base.mkdir(parents=True, exist_ok=True)
    value = {"loop_dir": "L", "worktree": str(worktree), "created": "T", **more}
    (base / "ab.json").write_text(json.dumps(value), encoding="utf-8")


def test_a_gate_that_never_ran_is_said(world: World, tmp_path: Path) -> None:
    """Breaks when a loop whose hook never fired looks like one under review."""
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    session(world, tmp_path, last_fired=None)
    assert "no loop is active" in world.one("heartbeat").what
    session(world, world.folder, last_fired=None, fired=0)
    said = world.one("heartbeat")
    assert said.status == "warn"
    assert "the gate never ran" in said.what
    assert "rlcr-stop-gate.sh" in said.fix
    session(world, world.folder, last_fired="2026-11-30T08:00:00Z", fired=3, last_outcome="block")
    assert world.one("heartbeat").what == "the hook last fired 2026-11-30T08:00:00Z (3 times, last: block)"
    session(world, world.folder, last_fired="2026-11-30T08:00:00Z", fired=3, last_outcome="block", asked=2)
    assert world.one("heartbeat").what.endswith("(3 times, last: block); judged without it 2 times")
    asked = {"last_fired": "", "fired": 0, "asked": 4, "last_asked": "2026-11-30T09:00:00Z", "last_outcome": "block"}
    session(world, world.folder, **asked, asked_by="hand")
    said = world.one("heartbeat")
    assert said.status == "warn" and "rlcr-stop-gate.sh" in said.fix
    assert (
        said.what
        == "the hook never fired in L; its Stops were judged by hand (4 times, last 2026-11-30T09:00:00Z: block)"
    )
    session(world, world.folder, **asked, asked_by="drive")
    said = world.one("heartbeat")
    assert said.status == "ok" and "driven by rlcr drive" in said.what and "4 times" in said.what
    session(world, world.folder, last_fired="2026-11-30T08:00:00Z", parked="the journal cannot be read")
    assert world.one("heartbeat").status == "warn"


def test_a_loop_without_a_session_is_said(world: World) -> None:
    """Breaks when a loop that no Stop hook serves is passed over; an ended one must not be."""
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    loop = world.folder / ".humanize" / "rlcr" / "2026-11-30_08-00-00"
    loop.mkdir(parents=True)
    (loop / "journal.jsonl").write_text("", encoding="utf-8")
    assert "no session is registered" in world.one("heartbeat").what
    (loop / "complete-state.md").write_text("", encoding="utf-8")
    assert world.one("heartbeat").status == "ok"


def test_the_tasks_python(world: World, tmp_path: Path) -> None:
    """Breaks when a named Python that cannot measure is passed over, or one is found that is not there."""
    assert "has numpy" in world.one("task-python").what
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\necho has neither >&2\nexit 1\n", encoding="utf-8")
    bare.chmod(0o755)
    assert world.one("task-python", task_argv=(str(bare),)).status == "fail"
    assert world.one("task-python", task_argv=None, task_fault="local.toml: broken").what == "local.toml: broken"
    world.env["PATH"] = str(tmp_path)
    found = world.look(task_argv=None)
    assert "no python3 on PATH" in next(c.what for c in found if c.name == "task-python")


def test_gpu_and_ncu_when_they_are_there(world: World, tmp_path: Path) -> None:
    """Breaks when a present GPU or profiler is missed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
        "nvidia-smi": "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'",
        "ncu": "echo NVIDIA; echo Version 2026.1.0.0",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    world.env["PATH"] = f"{programs}:{world.env['PATH']}"
    assert (world.one("gpu").status, world.one("gpu").what) == ("ok", "GPU 0: NVIDIA H200")
    assert world.one("ncu").what.startswith("Version 2026.1.0.0")


def test_a_program_that_hangs_is_left_behind_with_its_children(tmp_path: Path) -> None:
    """Breaks when a probe waits for a grandchild that keeps the pipe open."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 60 &\nsleep 60\n", encoding="utf-8")
    slow.chmod(0o755)
    answer = ask.ask([str(slow)], env=os.environ, cwd=tmp_path, seconds=0.3)
    assert (answer.code, answer.why) == (None, "did not answer within 0 s")


def test_the_small_venv_is_the_last_task_python(world: World, tmp_path: Path) -> None:
    """Breaks when the venv that the fix makes is not found, is preferred to the user's, or the fix is no command."""
    answers = "#!/bin/sh\necho '/x|2.1|'\n"
    small = world.home / ".local/share/kernelpilot/task-venv/bin/python"
    small.parent.mkdir(parents=True)
    small.write_text(answers, encoding="utf-8")
    small.chmod(0o755)
    programs = tmp_path / "bin"
    programs.mkdir()
    world.env["PATH"] = str(programs)
    found = {c.name: c for c in world.look(task_argv=None)}
    assert found["task-python"].what == f"{shlex.quote(str(small))} has numpy 2.1, no torch: tasks on numpy arrays only"
    (programs / "python3").write_text(answers, encoding="utf-8")
    (programs / "python3").chmod(0o755)
    assert world.one("task-python", task_argv=None).what.startswith(str(programs))
    (programs / "python3").unlink()
    small.unlink()
    fix = world.one("task-python", task_argv=None).fix
    assert shlex.split(fix)[:3] == ["python3", "-m", "venv"]
    assert Path(shlex.split(fix)[3]) == small.parents[1]


def test_a_machine_without_a_gpu_says_what_is_left_to_do(world: World) -> None:
    """Breaks when an agent with a GPU task looks for a way round instead of for another machine."""
    said = world.one("gpu")
    assert said.status == "warn"
    assert said.what.startswith("no NVIDIA GPU (") and said.what.endswith("CPU targets only")
    assert said.fix.startswith("# CPU target: nothing to do") and "kernelpilot lock there" in said.fix


def test_a_gpu_repo_is_told_what_this_machine_can_do_for_it(world: World, tmp_path: Path) -> None:
    """Breaks when all is said to be well for a task that cannot be measured here, or a CPU task hears of it."""
    assert world.of("gpu-task") == world.of("nvcc") == []
    programs = tmp_path / "bin"
    programs.mkdir()

    def program(name: str, text: str) -> Path:
        (programs / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
        return programs / name

    world.env["PATH"] = str(programs)
    facts = {"torch": "2.11", "triton": "3.6", "ninja": "", "cuda": "13.0", "nvrtc": "/x/libnvrtc.so.13"}
    python = program("good", f"echo '{json.dumps(facts)}'")
    bare = program("bare", f"echo '{json.dumps({**facts, 'cuda': ''})}'")
    here = {"task_argv": (str(python),), "gpu_target": "cuda"}
    (none, *tools) = list(gpu_task.able(world.here(**here)))
    assert none.status == "warn" and "no NVIDIA GPU is here: this machine can plan, build" in none.what
    assert none.fix.startswith(f"git clone HOST:{world.folder} && cd repo && kernelpilot plan && kernelpilot lock  # ")
    assert [(c.name, c.status, c.fix) for c in tools] == [(n, "ok", "") for n in ("nvcc", "nvrtc", "ninja", "triton")]
    assert [c.what.split()[0] for c in tools] == ["none", "/x/libnvrtc.so.13", "none", "3.6"]
    program("nvidia-smi", "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'")
    program("nvcc", "exit 0")
    (able, nvcc, *_) = list(gpu_task.able(world.here(**here)))
    assert (able.status, able.what.endswith("for CUDA 13.0: this machine can measure")) == ("ok", True)
    assert nvcc.what == str(programs / "nvcc")
    (lacks, *_) = list(gpu_task.able(world.here(**{**here, "task_argv": (str(bare),)})))
    assert lacks.status == "warn" and "has a torch without CUDA" in lacks.what
    assert lacks.fix.startswith("export KERNELPILOT_PYTHON=$(which python3)  # ")
    (programs / "python3").symlink_to(bare)
    world.env["VIRTUAL_ENV"] = str(tmp_path / "venv")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(python)
    assert next(gpu_task.able(world.here(**{**here, "task_argv": None}))).status == "ok"


def test_the_probe_of_a_gpu_repo_runs_in_a_real_python() -> None:
    """Breaks when the program that is asked for torch, NVRTC, ninja and triton does not run, or loses a key."""
    done = subprocess.run([sys.executable, "-I", "-c", gpu_task.PROBE], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout.splitlines()[-1])) == {"torch", "triton", "ninja", "cuda", "nvrtc"}


def test_every_fix_that_starts_with_a_program_is_a_line_for_a_shell(world: World) -> None:
    """Breaks when prose is glued to a command: what stands behind it must be a comment."""
    repo(world, "/absent/kernelpilot")
    (world.folder / ".humanize" / "rlcr" / "2026-11-30_08-00-00").mkdir(parents=True)
    (world.folder / ".humanize/rlcr/2026-11-30_08-00-00/journal.jsonl").write_text("", encoding="utf-8")
    fixes = {c.name: c.fix for c in world.look()}
    for name in ("command", "clients", "evidence", "heartbeat"):
        command, _, _ = fixes[name].partition("  # ")
        assert "(" not in command and "; " not in command and ", " not in command, fixes[name]
    world.env["PATH"] = ""
    (world.clone / "skills" / "alpha" / "x").mkdir()
    (world.clone / "skills" / "alpha" / "x" / "SKILL.md").write_text("{{X}}", encoding="utf-8")
    for client in (None, "both"):
        for check in world.look(client=client, task_argv=None):
            assert (check.fix == "") == (check.status == "ok"), check
            assert subprocess.run(["/bin/sh", "-n", "-c", check.fix], check=False).returncode == 0, check
