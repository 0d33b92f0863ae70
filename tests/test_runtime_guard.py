"""When compilers may run and what they built be loaded: inside the window only, and only the real ones."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.runtime.guard import Guard

CC = shutil.which("cc") or "/usr/bin/cc"


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    (tmp_path / "build").mkdir()
    return Guard(closed=[str(tmp_path)], own=[str(tmp_path / "build")], readable=[])


def spawned(guard: Guard, *argv: str, event: str = "subprocess.Popen") -> set[str]:
    guard.hook(event, (argv[0], list(argv), None, None))
    return {kind for kind, _ in guard.take()}


def loaded(guard: Guard, path: Path) -> set[str]:
    guard.hook("ctypes.dlopen", (str(path),))
    return {kind for kind, _ in guard.take()}


@pytest.mark.parametrize("tool", [CC, "cc", "/sbin/ldconfig"])
def test_compilers_run_inside_the_window_only(guard: Guard, tool: str) -> None:
    """Breaks when the window is open on its own, stays open, or closes at the end of an inner one."""
    assert spawned(guard, tool, "-c", "x.c") == {"cheat.subprocess"}
    with guard.compiling():
        with guard.compiling:
            assert spawned(guard, tool, "-c", "x.c") == set()
        assert spawned(guard, tool, "-c", "x.c", event="os.posix_spawn") == set()
    assert spawned(guard, tool, "-c", "x.c") == {"cheat.subprocess"}


def test_other_programs_never_run(guard: Guard, tmp_path: Path) -> None:
    """Breaks when a compiler's name, a wrapper option or a shell gets any program started."""
    fake = tmp_path / "build" / "gcc"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    with guard.compiling():
        for argv in ((sys.executable, "-c", ""), ("/bin/sh", "-c", "cc x.c"), (str(fake),), ("nowhere-gcc",)):
            assert spawned(guard, *argv) == {"cheat.subprocess"}, argv
        assert spawned(guard, CC, "-wrapper", "/bin/sh", "x.c") == {"cheat.subprocess"}
        guard.hook("os.system", (b"cc x.c",))
        assert {kind for kind, _ in guard.take()} == {"cheat.subprocess"}


def test_a_library_is_loaded_after_a_compiler_ran(guard: Guard, tmp_path: Path) -> None:
    """Breaks when an embedded binary is loaded without any compiler, or what was built can be loaded at any time."""
    made, elsewhere = tmp_path / "build" / "stub.so", tmp_path / "stub.so"
    made.touch()
    os.utime(made, (2**31, 2**31))
    with guard.compiling():
        assert loaded(guard, made) == {"cheat.foreign_binary"}
        assert spawned(guard, CC, "-shared", "x.c") == set()
        assert loaded(guard, made) == set()
        assert loaded(guard, elsewhere) == {"cheat.foreign_binary"}
    assert loaded(guard, made) == {"cheat.foreign_binary"}


def test_a_library_of_an_earlier_worker_is_loaded_inside_the_window(tmp_path: Path) -> None:
    """Breaks when a second worker, which finds everything in the cache, is taken for a cheat."""
    made = tmp_path / "build" / "stub.so"
    made.parent.mkdir()
    made.touch()
    os.utime(made, (0, 0))
    guard = Guard(closed=[str(tmp_path)], own=[str(tmp_path / "build")], readable=[])
    with guard.compiling():
        assert loaded(guard, made) == set()
    assert loaded(guard, made) == {"cheat.foreign_binary"}
