"""What uninstall does with the cache, and what it names beside the manifest."""

from __future__ import annotations

import fcntl
import json
import shutil
from pathlib import Path

import pytest

from kernelpilot_helpers import proc
from kernelpilot_helpers.executors.deploy import deploy


def fill(cache: Path) -> None:
    """What the tool leaves there: a runtime, search tables, the device lock."""
    deploy(cache)
    (cache / "runtime" / ".new-abc123").mkdir()
    (cache / f"knowledge-1-{'0a' * 8}.sqlite").write_bytes(b"")
    (cache / "device.lock").write_bytes(b"")
    (cache / "device.lock.owner").write_bytes(b"1")


@pytest.mark.parametrize("moved", [False, True])
def test_the_cache_goes_with_the_install(hooked, tmp_path: Path, moved: bool, capsys) -> None:
    """Breaks when megabytes stay behind, in a cache that was moved too, or a dry run removes it."""
    if moved:
        hooked.env["XDG_CACHE_HOME"] = str(tmp_path / "other cache")
    hooked.run("--client", "none")
    cache = proc.cache_dir(hooked.env)
    fill(cache)
    assert hooked.run("--uninstall", "--dry-run") == 0
    assert f"would remove the cache {cache}" in capsys.readouterr().out
    assert (cache / "device.lock").is_file()
    assert hooked.run("--uninstall") == 0
    assert f"remove the cache {cache}\n" in capsys.readouterr().out
    assert not cache.exists()
    fill(cache)
    assert hooked.run("--uninstall") == 0  # after a demo's own uninstall nothing is listed, and the cache still goes
    assert not cache.exists()


def test_what_is_not_ours_in_the_cache_stays(hooked, tmp_path: Path, capsys) -> None:
    """Breaks when a folder of that name is removed whole, or what it links to is."""
    cache = hooked.home / ".cache" / "kernelpilot"
    fill(cache)
    for name in ("mine.txt", "knowledge-1-notahash.sqlite", "runtime/mine.txt"):
        (cache / name).write_text("mine", encoding="utf-8")
    hooked.run("--uninstall")
    left = sorted(p.relative_to(cache).as_posix() for p in cache.rglob("*"))
    assert left == ["knowledge-1-notahash.sqlite", "mine.txt", "runtime", "runtime/mine.txt"]
    assert "what is not ours in it is left" in capsys.readouterr().out
    shutil.rmtree(cache)
    fill(tmp_path / "elsewhere")
    cache.symlink_to(tmp_path / "elsewhere")
    hooked.run("--uninstall")
    assert (tmp_path / "elsewhere" / "device.lock").is_file()


def test_a_running_measurement_keeps_its_cache(hooked, capsys) -> None:
    """Breaks when the lock that keeps two jobs apart is removed under one of them."""
    cache = hooked.home / ".cache" / "kernelpilot"
    fill(cache)
    with (cache / "device.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        hooked.run("--uninstall")
    assert f"leave {cache}: a measurement is running" in capsys.readouterr().out
    assert (cache / "runtime").is_dir()


def test_what_else_is_left_is_named(hooked, tmp_path: Path, monkeypatch, capsys) -> None:
    """Breaks when a demo's repo, the loops' registry or byte code stays behind without a word, or is removed."""
    monkeypatch.chdir(tmp_path)
    hooked.run("--client", "none")
    left = [
        tmp_path / "kernelpilot-demo-2",
        hooked.home / ".local" / "state" / "humanize",
        hooked.clone / "lib" / "x" / "__pycache__",
        hooked.at.data / "task-venv",
        hooked.home / ".cache" / "humanize",
    ]
    for folder in left:
        folder.mkdir(parents=True)
    capsys.readouterr()
    assert hooked.run("--uninstall") == 0
    out = capsys.readouterr().out
    assert f"still here: {left[0]}, a demo's repo; rm -r {left[0]}\n" in out
    assert f"rm -r '{left[1]}'\n" in out
    assert f"find '{hooked.clone}' -name __pycache__" in out
    assert f"still here: {hooked.at.data}, it holds what the manifest does not list" in out
    assert f"still here: {left[4]}, the logs of loops" in out
    assert "warning" not in out
    assert out.endswith("uninstalled\n")
    assert all(p.is_dir() for p in left)


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_an_active_loop_is_named_before_its_hook_goes(hooked, tmp_path: Path, capsys, dry: tuple[str, ...]) -> None:
    """Breaks when an uninstall leaves a running loop without a judge, and says nothing of it."""
    hooked.run("--client", "none")
    sessions = hooked.home / ".local" / "state" / "humanize" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / f"{'a' * 64}.json").write_text(json.dumps({"worktree": "/somewhere/repo"}), encoding="utf-8")
    (sessions / f"{'b' * 64}.json").write_text("[", encoding="utf-8")
    capsys.readouterr()
    assert hooked.run("--uninstall", *dry) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("warning: a loop is active, /somewhere/repo: without the Stop hook nobody judges it")
    assert str(sessions / f"{'b' * 64}.json") in out[1]
