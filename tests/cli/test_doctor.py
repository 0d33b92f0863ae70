"""``kernelpilot doctor`` and the clients: true on an empty, an installed and a damaged machine; no traceback."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpilot_install import hooks, skills
from kernelpilot_install.places import places
from tests.doctor_sim import World, make_world

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def start(home: Path, *argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "KERNELPILOT_PYTHON": shlex.quote(sys.executable)}
    if "PYTHONPATH" in os.environ:
        env["PYTHONPATH"] = os.environ["PYTHONPATH"]
    program = [sys.executable, "-m", "kernelpilot_helpers", "doctor", *argv]
    return subprocess.run(program, env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


def test_an_empty_home_is_a_warning_and_nothing_is_written(tmp_path: Path) -> None:
    """Breaks when a machine without a client, a GPU or an install counts as broken, or the doctor leaves a trace."""
    home = tmp_path / "home"
    home.mkdir()
    done = start(home, "--json", cwd=tmp_path)
    checks = {c["name"]: c for c in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, done.stdout + done.stderr
    assert checks["clients"]["status"] == checks["command"]["status"] == "warn"
    assert checks["task-python"]["status"] == checks["evidence"]["status"] == checks["heartbeat"]["status"] == "ok"
    assert all(set(c) == {"name", "status", "what", "fix"} for c in checks.values())
    assert all((c["fix"] != "") == (c["status"] != "ok") for c in checks.values())
    assert [p.name for p in tmp_path.rglob("*")] == ["home"]


def test_the_words_end_in_a_count_and_a_failure_is_exit_1(tmp_path: Path) -> None:
    """Breaks when a failing check passes for success, or talks in anything but its own lines."""
    done = start(tmp_path, "--client", "codex", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("fail  hook-codex: ") for line in lines)
    assert any(line.startswith("      fix: ") for line in lines)
    assert lines[-1].endswith("fail")
    assert done.stderr == ""


def test_an_installed_home(world: World) -> None:
    """Breaks when what install.sh made is called wrong, or an untrusted hook is passed over."""
    world.install()
    before = world.tree()
    found = {c.name: c.status for c in world.look()}
    assert world.tree() == before
    assert found["skills-codex"] == found["skills-claude"] == found["hook-codex"] == found["hook-claude"] == "ok"
    assert found["trust-codex"] == "warn"
    assert "pending review" in world.one("trust-codex").what


def trusted(world: World, *, digest: str, key_at: Path | None = None) -> None:
    at = places(world.env, world.clone)
    key = f"{(key_at or at.codex) / 'hooks.json'}:stop:0:0"
    text = f'[hooks.state.{json.dumps(key)}]\ntrusted_hash = "sha256:{digest}"\n'
    (at.codex / "config.toml").write_text(text, encoding="utf-8")


def definition(world: World, command: str) -> str:
    import hashlib

    text = (
        '{"event_name":"stop","hooks":[{"async":false,"command":' + json.dumps(command)
        + ',"statusMessage":"KernelPilot: Stop gate","timeout":3600,"type":"command"}]}'
    )  # fmt: skip
    return hashlib.sha256(text.encode()).hexdigest()


def test_trust_is_recomputed(world: World) -> None:
    """Breaks when trust is read off the mere presence of a record, as a stale one would then count."""
    world.install()
    command = shlex.quote(str(world.clone / hooks.LAUNCHER))
    trusted(world, digest=definition(world, command))
    assert world.one("trust-codex").status == "ok"
    trusted(world, digest=definition(world, command + " --old"))
    assert "changed since it was reviewed" in world.one("trust-codex").what


def test_a_digest_that_codex_itself_computed() -> None:
    """Breaks when our digest departs from Codex's own (recorded from codex 0.171.0, with a non-ASCII path)."""
    from kernelpilot_install import trust

    handler = {
        "type": "command",
        "command": "'/opt/a bé/stop-hook'",
        "timeout": 3600,
        "statusMessage": "KernelPilot: Stop gate",
    }
    assert trust.digest(handler) == "sha256:9d1d5994d438b4f5b322f6a96c7a5fd0f9769e3bf505f02b949949df6f2f0100"


def test_codex_spells_its_folder_by_how_it_was_named(world: World, tmp_path: Path) -> None:
    """Breaks when a CODEX_HOME behind a link is looked up as written: Codex records the real path there."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    world.env["CODEX_HOME"] = str(tmp_path / "link")
    world.install()
    digest = definition(world, shlex.quote(str(world.clone / hooks.LAUNCHER)))
    trusted(world, digest=digest)
    assert world.one("trust-codex").status == "warn"
    trusted(world, digest=digest, key_at=real)
    assert world.one("trust-codex").status == "ok"


@pytest.mark.parametrize("root", ["home .agents", "repo .codex", "repo .agents"])
def test_a_second_skill_of_the_same_name_fails(world: World, root: str) -> None:
    """Breaks when a copy goes unseen: Codex then injects nothing for $name, without a word."""
    world.install()
    base, kind = root.split()
    folder = (world.home if base == "home" else world.folder) / kind / "skills" / "deep" / "other-folder"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text('---\nname: "alpha"\ndescription: x\n---\n', encoding="utf-8")
    double = [c for c in world.of("skills-codex") if c.status == "fail"]
    assert len(double) == 1
    assert str(folder) in double[0].what
    shutil.rmtree(folder)
    (folder.parent / "alpha").symlink_to(world.clone / "skills" / "alpha")
    assert {c.status for c in world.of("skills-codex")} == {"ok"}


def test_a_missing_or_foreign_link_fails(world: World) -> None:
    """Breaks when a skill that is gone, or points to another clone, is called visible."""
    world.install()
    link = world.home / ".claude" / "skills" / "alpha"
    link.unlink()
    assert f"{link} is absent" in world.one("skills-claude").what
    link.symlink_to(world.folder)
    assert "is not this clone's" in world.one("skills-claude").what


def test_broken_settings_are_a_check_with_line_and_column(world: World) -> None:
    """Breaks when a damaged settings file ends in an exception, or hides the other checks."""
    world.install()
    path = world.home / ".claude" / "settings.json"
    path.write_text('{\n  "hooks": {,}\n}', encoding="utf-8")
    said = world.one("hook-claude")
    assert said.status == "fail"
    assert f"{path}, line 2, column 13" in said.what
    assert world.one("hook-codex").status == "ok"
    for text in ("[]", "3", "\xff", '{"hooks": {"Stop": 3}}', '{"hooks": {"Stop": [{"hooks": [{"command": "\'"}]}]}}'):
        path.write_text(text, encoding="latin-1")
        assert any(c.status == "fail" for c in world.of("hook-claude")), text


def test_broken_toml_of_codex_is_a_check(world: World) -> None:
    """Breaks when config.toml of another shape is a traceback, or passes for trust."""
    world.install()
    config = world.home / ".codex" / "config.toml"
    for text in ("[hooks", "hooks = 3", "[hooks]\nstate = 3", '[skills]\nconfig = "x"'):
        config.write_text(text, encoding="utf-8")
        assert world.one("trust-codex").status != "ok", text


def test_a_hook_in_two_layers_fails(world: World) -> None:
    """Breaks when the hook would run twice at one stop and nobody says so."""
    world.install()
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    (world.folder / ".codex").mkdir()
    shutil.copy(world.home / ".codex" / "hooks.json", world.folder / ".codex" / "hooks.json")
    assert "stands 2 times" in world.one("hook-codex").what


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ('{"hooks": {}, "_by": 1}', "drops the whole file for the key '_by'"),
        ("", "does not hold this clone's Stop hook"),
    ],
)
def test_what_voids_the_hook_in_codex(world: World, change: str, want: str) -> None:
    """Breaks when a hooks.json that Codex ignores is called registered."""
    world.install()
    (world.home / ".codex" / "hooks.json").write_text(change, encoding="utf-8")
    assert any(want in c.what and c.status == "fail" for c in world.of("hook-codex"))


def test_a_launcher_that_cannot_start_fails(world: World) -> None:
    """Breaks when a lost x-bit, which both clients let pass as a failed hook, is not seen."""
    world.install()
    (world.clone / hooks.LAUNCHER).chmod(0o644)
    assert "not executable" in world.one("hook-claude").what


def test_the_real_bundle_when_it_is_linked(tmp_path: Path) -> None:
    """Breaks when the shipped skills do not pass the doctor's own look."""
    home = tmp_path / "home"
    (home / ".codex" / "skills").mkdir(parents=True)
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    real = World(home=home, clone=ROOT, folder=tmp_path, env=env)
    for w in skills.wanted(ROOT, {"codex": home / ".codex"}):
        w.path.symlink_to(w.target)
    said = real.one("skills-codex", client="codex")
    assert said.status == "ok"
    assert "humanize-kernel-agent-loop" in said.what
