"""The lock of one GPU: two processes, a death, old text, and an error that names who holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelpilot_helpers.runtime import gpulock

UUID = "GPU-11112222-3333-4444-5555-666677778888"
HOLDER = """
import sys, time
from pathlib import Path
from kernelpilot_helpers.runtime import gpulock
with gpulock.hold(sys.argv[1], 5.0, Path(sys.argv[2])):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, UUID, str(folder)], stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_job_waits_and_is_told_the_pid_and_a_death_frees_the_gpu(tmp_path: Path) -> None:
    """Breaks when two jobs may time at once, or when a killed one blocks the GPU for ever."""
    other = holder(tmp_path)
    try:
        started = time.monotonic()
        with (
            pytest.raises(gpulock.GpuBusy, match=rf"^gpu\.busy: pid {other.pid} holds it since 20") as busy,
            gpulock.hold(UUID, 0.2, tmp_path),
        ):
            pass
        assert busy.value.pid == other.pid and 0.2 <= time.monotonic() - started < 5.0
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    with gpulock.hold(UUID, 2.0, tmp_path) as path:
        assert gpulock.owner(path)[0] == os.getpid()


def test_old_text_never_blocks_and_is_gone_afterwards(tmp_path: Path) -> None:
    path = gpulock.lock_path(UUID, tmp_path)
    path.write_text(f"{os.getppid()} 2020-01-01T00:00:00Z\n")
    with gpulock.hold(UUID, 0.0, tmp_path):
        assert gpulock.owner(path)[0] == os.getpid()
    assert gpulock.owner(path) == (None, "")


def test_another_users_file_can_still_be_locked(tmp_path: Path) -> None:
    """Breaks when the first user of a shared machine keeps everybody else out."""
    path = gpulock.lock_path(UUID, tmp_path)
    path.touch()
    path.chmod(0o444)
    with gpulock.hold(UUID, 0.0, tmp_path), pytest.raises(gpulock.GpuBusy), gpulock.hold(UUID, 0.0, tmp_path):
        pass


def test_a_link_in_the_shared_folder_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep")
    gpulock.lock_path(UUID, tmp_path).symlink_to(target)
    with pytest.raises(gpulock.GpuBusy, match="cannot be opened"), gpulock.hold(UUID, 0.0, tmp_path):
        pass
    assert target.read_text() == "keep"


def test_each_gpu_has_its_own_lock_outside_the_jobs_private_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when the private TMPDIR of a job hides its lock from every other job."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert tmp_path not in gpulock.lock_path(UUID).parents
    assert gpulock.lock_path(UUID) != gpulock.lock_path(UUID.replace("1111", "9999"))
    assert gpulock.lock_path("GPU-../../x", tmp_path).parent == tmp_path
