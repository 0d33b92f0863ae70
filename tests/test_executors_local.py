"""LocalLab and the runtime's copy: whatever the other side does, the answer is a record or a named error."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers.attempt.job import Limits
from kernelpilot_helpers.errors import BadRecord, Busy, Refused
from kernelpilot_helpers.executors.deploy import content_sha256, deploy, source_dir
from kernelpilot_helpers.executors.lab import encode_job, job_sha256, parse_raw
from kernelpilot_helpers.executors.local import LocalLab, task_env
from kernelpilot_helpers.executors.task_python import TaskPython
from kernelpilot_helpers.proc import cache_dir, file_lock
from tests.jobs import materialise, norm_case

ONE = (norm_case(4, 64),)


def lab(tmp_path: Path, argv: tuple[str, ...], **how: float) -> LocalLab:
    python = TaskPython(argv=argv, framework="numpy", version="0")
    return LocalLab(python, tmp_path / "device.lock", cache=tmp_path / "cache", **how)


def script(path: Path, body: str) -> tuple[str, ...]:
    """A stand-in for the task's Python: arguments are -I RUNTIME --die-with PID JOBDIR."""
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    return (str(path),)


def test_the_copy_is_named_by_its_content_and_repaired(tmp_path: Path) -> None:
    first = deploy(tmp_path)
    assert first.name == "kernelpilot_runtime"
    assert first.parent.name == content_sha256(source_dir()) == content_sha256(first)
    (first / "main.py").write_text("tampered")
    assert deploy(tmp_path) == first
    assert content_sha256(first) == first.parent.name
    assert sorted(p.name for p in (tmp_path / "runtime").iterdir()) == [first.parent.name]


def test_other_content_gets_another_name_and_the_old_one_stays(tmp_path: Path) -> None:
    old = deploy(tmp_path)
    other = tmp_path / "src"
    other.mkdir()
    (other / "main.py").write_text("x = 1\n")
    new = deploy(tmp_path, other)
    assert new != old and old.is_dir() and [p.name for p in new.iterdir()] == ["main.py"]


def test_the_cache_follows_the_environment() -> None:
    assert cache_dir({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/kernelpilot")
    assert cache_dir({"HOME": "/h"}) == Path("/h/.cache/kernelpilot")


def test_the_environment_is_an_allow_list() -> None:
    kept = {"PATH": "/bin", "CUDA_HOME": "/cuda", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "1", "NVIDIA_X": "all"}
    dropped = {"SECRET_TOKEN": "s", "HOME": "/home/me", "CUDA_CACHE_PATH": "/c", "TRITON_CACHE_DIR": "/t"}
    assert task_env({**kept, **dropped}, "/p") == {**kept, "HOME": "/p", "TMPDIR": "/p"}


def test_a_gpu_job_waits_for_gpu_jobs_only(tmp_path: Path) -> None:
    """Breaks if a long CPU measurement keeps a GPU idle, or two GPU jobs run at once."""
    job = materialise(tmp_path / "job", cases=ONE)
    on_gpu = msgspec.structs.replace(job, device="gpu")
    one = lab(tmp_path, script(tmp_path / "py", "exit 3\n"), lock_s=0.1)
    with file_lock(one.lock_of(job), timeout_s=1, what="the device"):
        died = one.run(on_gpu, tmp_path / "job").died
        assert died is not None and "status 3" in died.log
    with file_lock(one.lock_of(on_gpu), timeout_s=1, what="the device"), pytest.raises(Busy):
        one.run(on_gpu, tmp_path / "job")


def test_a_machine_without_a_gpu_refuses_and_leaves_no_answer(tmp_path: Path) -> None:
    """Breaks if the next command adopts the answer of a run that never took place."""
    job = msgspec.structs.replace(materialise(tmp_path / "job", cases=ONE), device="gpu")
    died = '"died":{"arm":"","stage":"oracle","log":"gpu.absent: no driver"}'
    body = (
        f'printf \'{{"format":"kernelpilot.raw","version":1,"job_id":"{job.job_id}","job_sha256":"{job_sha256(job)}",'
        f'"framework":"torch","env":{{}},{died}}}\' > "$5/raw.json"\n'
    )
    with pytest.raises(Refused, match=r"no GPU to measure on: gpu.absent: no driver"):
        lab(tmp_path, script(tmp_path / "py", body)).run(job, tmp_path / "job")
    assert not (tmp_path / "job" / "raw.json").exists()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exit 3\n", "status 3"),
        ("echo what happened; exit 0\n", "what happened"),
        ('echo "{" > "$5/raw.json"\n', "cannot be read"),
        ("kill -9 $$\n", "status -9"),
    ],
)
def test_a_runtime_without_an_answer_is_a_death_of_the_oracle(tmp_path: Path, body: str, words: str) -> None:
    job = materialise(tmp_path / "job", cases=ONE)
    raw = lab(tmp_path, script(tmp_path / "py", body)).run(job, tmp_path / "job")
    assert raw.died is not None and (raw.died.arm, raw.died.stage) == ("", "oracle")
    assert words in raw.died.log
    assert raw.job_sha256 == job_sha256(job)


def test_an_answer_to_another_job_is_refused(tmp_path: Path) -> None:
    job = materialise(tmp_path / "job", cases=ONE)
    body = (
        'printf \'{"format":"kernelpilot.raw","version":1,"job_id":"test","job_sha256":"00",'
        '"framework":"numpy","env":{}}\' > "$5/raw.json"\n'
    )
    raw = lab(tmp_path, script(tmp_path / "py", body)).run(job, tmp_path / "job")
    assert raw.died is not None and "another job" in raw.died.log


def test_an_old_answer_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    job = materialise(tmp_path / "job", cases=ONE)
    (tmp_path / "job" / "raw.json").write_text("{}")
    raw = lab(tmp_path, script(tmp_path / "py", "exit 0\n")).run(job, tmp_path / "job")
    assert raw.died is not None and "no raw.json" in raw.died.log


def test_the_wall_limit_kills_everything_the_job_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelpilot_helpers.executors.local.GRACE_S", 0.0)
    job = materialise(tmp_path / "job", cases=ONE, limits=Limits(wall_s=0.5))
    body = f"sleep 60 & echo $! > {tmp_path}/child\nwait\n"
    raw = lab(tmp_path, script(tmp_path / "py", body)).run(job, tmp_path / "job")
    assert raw.died is not None and "within 0.5 s" in raw.died.log
    child = int((tmp_path / "child").read_text())
    assert gone(child)


def gone(pid: int, seconds: float = 5.0) -> bool:
    """True once ``pid`` is neither running nor waiting to be."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_killing_the_runtime_kills_its_workers(tmp_path: Path) -> None:
    """A worker in its own session outlives a killed group unless it asked the kernel not to."""
    loop = {
        "candidate.py": "import os\nopen(os.environ['HOME'] + '/pid', 'w').write(str(os.getpid()))\nwhile 1: pass\n"
    }
    job = materialise(tmp_path / "job", cases=ONE, b=loop)
    (tmp_path / "job" / "job.json").write_bytes(encode_job(job))
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    argv = [sys.executable, "-I", str(deploy(tmp_path / "cache")), str(tmp_path / "job")]
    process = subprocess.Popen(argv, env=env)
    deadline = time.monotonic() + 20
    while not (found := [p for p in tmp_path.glob("kp-*/home-B-*/pid") if p.read_text()]):
        assert time.monotonic() < deadline, "the worker never started"
        time.sleep(0.05)
    worker = int(found[0].read_text())
    process.kill()
    process.wait()
    assert gone(worker)


def test_a_held_device_is_busy_and_names_its_holder(tmp_path: Path) -> None:
    lock = tmp_path / "device.lock"
    code = (
        "import sys, time; from pathlib import Path\n"
        "from kernelpilot_helpers.proc import file_lock\n"
        f"with file_lock(Path({str(lock)!r}), timeout_s=1.0, what='the device'):\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(Busy, match=f"process {holder.pid}"), file_lock(lock, timeout_s=0.1, what="the device"):
            pass
        holder.kill()
    with file_lock(lock, timeout_s=1.0, what="the device"):
        assert lock.with_name("device.lock.owner").read_text() == f"{os.getpid()}\n"
    assert not lock.with_name("device.lock.owner").exists()


@pytest.mark.parametrize(
    "text",
    ['{"format":"kernelpilot.raw","version":1,"job_id":"a","job_id":"b","job_sha256":"","framework":"","env":{}}',
     '{"format":"kernelpilot.raw","version":1,"job_id":"a","job_sha256":"","framework":"","env":{"x":NaN}}',
     '{"format":"kernelpilot.raw","version":1,"job_id":"a","job_sha256":"","framework":"","env":{},"more":1}',
     '{"format":"kernelpilot.raw","version":1,"job_id":1,"job_sha256":"","framework":"","env":{}}'],
)  # fmt: skip
def test_an_answer_is_read_strictly(text: str) -> None:
    with pytest.raises(BadRecord, match=r"raw\.json"):
        parse_raw(text.encode())
