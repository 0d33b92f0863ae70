"""A plain install into a private HOME: idempotent, honest, and undone to the byte."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from kernelpilot_install import trust
from kernelpilot_install.problems import InstallError


def data(world) -> Path:
    return world.home / ".local" / "share" / "kernelpilot"


def test_install_then_uninstall_leaves_home_as_it_was(hooked, capsys) -> None:
    """Breaks if anything is made that the manifest does not list, folders on the way included."""
    (hooked.home / ".claude").mkdir()
    settings = hooked.home / ".claude" / "settings.json"
    settings.write_bytes(b'{\r\n  "env": {"T": "[secret]"}\r\n}')
    settings.chmod(0o600)
    before = hooked.tree()
    assert hooked.run("--client", "both") == 0
    shim = hooked.home / ".local" / "bin" / "kernelpilot"
    assert shim.stat().st_mode & 0o777 == 0o755
    assert f'exec {shlex.quote(str(data(hooked) / "venv/bin/kernelpilot"))} "$@"' in shim.read_text()
    for client in (".codex", ".claude"):
        folder = hooked.home / client / "skills"
        assert sorted(p.name for p in folder.iterdir()) == ["alpha", "humanize"]
        assert (folder / "alpha").readlink() == hooked.clone / "skills" / "alpha"
        assert (folder / "humanize").readlink() == hooked.clone / "vendor" / "humanize"
    launcher = shlex.quote(str(hooked.clone / "vendor" / "humanize" / "hooks" / "stop-hook"))
    codex = json.loads((hooked.home / ".codex" / "hooks.json").read_text())
    assert [g["hooks"][0]["command"] for g in codex["hooks"]["Stop"]] == [launcher]
    assert b'"env": {"T": "[secret]"},\r\n  "hooks"' in settings.read_bytes()
    assert "secret" not in hooked.at.manifest.read_text()
    said = capsys.readouterr().out
    assert "pending review: open /hooks in Codex" in said
    assert "restart Codex" in said
    assert hooked.run("--uninstall") == 0
    assert hooked.tree() == before


def test_a_second_install_changes_nothing_and_says_so(hooked, capsys) -> None:
    """Breaks if a rerun rebuilds, rewrites or registers twice, or stops saying that the review is still pending."""
    assert hooked.run("--client", "both") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith("the Stop hook is pending review")
    assert said[-1].startswith("restart Codex")
    first, calls = hooked.tree(), len(hooked.pip.calls)
    assert hooked.run("--client", "both") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "everything is up to date: nothing changed"
    assert said[-1].startswith("the Stop hook is pending review")
    assert hooked.tree() == first
    assert len(hooked.pip.calls) == calls


def test_once_trusted_nothing_is_pending(hooked, capsys) -> None:
    """Breaks if a reviewed hook is called pending for ever, another's review counts, or damage is a claim."""
    hooked.run("--client", "codex")
    hooks_file = hooked.home / ".codex" / "hooks.json"
    (handler,) = json.loads(hooks_file.read_text())["hooks"]["Stop"][0]["hooks"]
    config = hooked.home / ".codex" / "config.toml"
    for command, pending in ((handler["command"], False), ("/elsewhere", True)):
        record = trust.digest({**handler, "command": command})
        key = json.dumps(f"{hooks_file}:stop:0:0")
        config.write_text(f'[hooks.state.{key}]\ntrusted_hash = "{record}"\n', encoding="utf-8")
        capsys.readouterr()
        assert hooked.run("--client", "codex") == 0
        assert ("pending review" in capsys.readouterr().out) == pending
    config.write_text("[hooks", encoding="utf-8")
    assert hooked.run("--client", "codex") == 0
    assert "cannot be read here: open /hooks" in capsys.readouterr().out


@pytest.mark.parametrize("edit", [('"timeout": 3600', '"timeout": 900'), ("stop-hook'", "stop-hook' ")])
def test_a_hook_that_the_user_edited_is_not_registered_again(hooked, edit) -> None:
    """Breaks if another time-out or quoting hides our own hook from us, and a rerun adds a second one."""
    hooked.run("--client", "claude")
    settings = hooked.home / ".claude" / "settings.json"
    edited = settings.read_text().replace(*edit)
    assert edited != settings.read_text()
    settings.write_text(edited, encoding="utf-8")
    assert hooked.run("--client", "claude") == 0
    assert settings.read_text() == edited


def test_a_launcher_that_cannot_start_stops_the_install(hooked) -> None:
    """Breaks if a hook is registered that both clients would pass over as failed."""
    (hooked.clone / "vendor" / "humanize" / "hooks" / "stop-hook").chmod(0o644)
    with pytest.raises(InstallError) as e:
        hooked.run("--client", "codex")
    assert "not executable" in e.value.what
    assert hooked.tree() == {}


def test_dry_run_changes_nothing_and_names_each_change(hooked, capsys) -> None:
    """Breaks if --dry-run writes, locks or leaves a change out."""
    before = hooked.tree()
    assert hooked.run("--client", "codex", "--dry-run") == 0
    assert hooked.tree() == before
    assert hooked.pip.calls == []
    said = capsys.readouterr().out
    for path in ("kernelpilot/venv", "bin/kernelpilot", ".codex/skills/alpha", ".codex/hooks.json"):
        assert f"{hooked.home}/" in said
        assert path in said


def test_without_a_hook_and_a_client_nothing_is_claimed(world, capsys) -> None:
    """Breaks if the last lines speak of a hook, a restart or skills that do not exist."""
    assert world.run() == 0
    said = capsys.readouterr().out
    assert "no Stop hook in this version: nothing registered" in said
    assert "no client found" in said
    assert "restart" not in said
    assert "/hooks" not in said
    assert "is not on PATH" in said
    assert not (world.home / ".codex").exists()


def test_another_kernelpilot_earlier_on_path_is_named(world, tmp_path, capsys) -> None:
    """Breaks if the user is told to run a command that starts something else."""
    other = tmp_path / "other" / "kernelpilot"
    other.parent.mkdir()
    other.write_text("", encoding="utf-8")
    other.chmod(0o755)
    shim = world.home / ".local" / "bin" / "kernelpilot"
    world.env["PATH"] = f"{other.parent}:{shim.parent}"
    world.run()
    assert f"{other} comes before {shim} on PATH" in capsys.readouterr().out
    world.env["PATH"] = str(shim.parent)
    world.run()
    assert "PATH" not in capsys.readouterr().out


def test_the_clients_found_are_served(world) -> None:
    """Breaks if a present client is missed, or CODEX_HOME is ignored."""
    elsewhere = world.home / "c o d e x"
    world.env["CODEX_HOME"] = str(elsewhere)
    (world.home / ".claude").mkdir()
    assert world.run() == 0
    assert (elsewhere / "skills" / "alpha" / "SKILL.md").is_file()
    assert (world.home / ".claude" / "skills" / "alpha").is_symlink()


def test_unreadable_settings_stop_the_install_before_anything_is_touched(hooked) -> None:
    """Breaks if one client is served before the other's settings are found to be broken."""
    (hooked.home / ".claude").mkdir()
    (hooked.home / ".claude" / "settings.json").write_text('{\n "hooks": {"Stop": 3}}', encoding="utf-8")
    before = hooked.tree()
    with pytest.raises(InstallError) as e:
        hooked.run("--client", "both")
    assert e.value.where.endswith("settings.json, line 2, column 20")
    assert hooked.tree() == before


def test_a_foreign_command_is_never_overwritten(world) -> None:
    """Breaks if a kernelpilot of the user's own is replaced or anything else is written first."""
    shim = world.home / ".local" / "bin" / "kernelpilot"
    shim.parent.mkdir(parents=True)
    shim.write_text("#!/bin/sh\necho mine\n", encoding="utf-8")
    before = world.tree()
    with pytest.raises(InstallError) as e:
        world.run()
    assert e.value.where == str(shim)
    assert world.tree() == before


def test_a_foreign_skill_of_that_name_is_a_finding(world, capsys) -> None:
    """Breaks if a user's own skill is replaced, or the conflict is passed over with exit 0."""
    mine = world.home / ".codex" / "skills" / "alpha"
    mine.mkdir(parents=True)
    (mine / "SKILL.md").write_text("mine", encoding="utf-8")
    assert world.run() == 1
    assert f"finding: {mine}" in capsys.readouterr().out
    assert (mine / "SKILL.md").read_text() == "mine"
    world.run("--uninstall")
    assert (mine / "SKILL.md").read_text() == "mine"


def test_what_the_user_changed_is_left_and_named(hooked, capsys) -> None:
    """Breaks if uninstall removes an edited command or a link that now points elsewhere."""
    hooked.run("--client", "codex")
    shim = hooked.home / ".local" / "bin" / "kernelpilot"
    shim.write_text(shim.read_text() + "# mine\n", encoding="utf-8")
    link = hooked.home / ".codex" / "skills" / "alpha"
    link.unlink()
    link.symlink_to(hooked.home)
    hooks = hooked.home / ".codex" / "hooks.json"
    text = hooks.read_text().rstrip()
    assert text.endswith("]\n  }\n}")
    hooks.write_text(text.removesuffix("\n}") + ',\n  "description": "mine"\n}\n', encoding="utf-8")
    capsys.readouterr()
    assert hooked.run("--uninstall") == 1
    said = capsys.readouterr().out
    assert f"leave {shim}: changed" in said
    assert f"leave {link}: no longer the link" in said
    assert json.loads(hooks.read_text()) == {"hooks": {"Stop": []}, "description": "mine"}
    assert not data(hooked).exists()


def test_a_second_clone_needs_replace_and_then_takes_everything_over(hooked, second_clone) -> None:
    """Breaks if two clones silently fight over one command, or --replace leaves the first one's hook behind."""
    hooked.run("--client", "codex")
    first, hooked.clone = hooked.clone, second_clone
    before = hooked.tree()
    with pytest.raises(InstallError) as e:
        hooked.run("--client", "codex")
    assert str(first) in str(e.value)
    assert str(second_clone) in str(e.value)
    assert hooked.tree() == before
    assert hooked.run("--client", "codex", "--replace") == 0
    assert (hooked.home / ".codex" / "skills" / "alpha").readlink() == second_clone / "skills" / "alpha"
    hooks = (hooked.home / ".codex" / "hooks.json").read_text()
    assert str(first) not in hooks
    assert hooks.count(str(second_clone)) == 1
    assert hooked.run("--uninstall") == 0
    assert hooked.tree() == {}


def test_after_a_pull_a_rerun_upgrades(world) -> None:
    """Breaks if new pins, a new skill or a dropped one are not followed."""
    world.run("--client", "codex")
    (world.clone / "requirements.lock").write_text("x==2\n", encoding="utf-8")
    (world.clone / "skills" / "beta").mkdir()
    (world.clone / "skills" / "alpha" / "SKILL.md").rename(world.clone / "skills" / "beta" / "SKILL.md")
    (world.clone / "skills" / "alpha").rmdir()
    calls = len(world.pip.calls)
    assert world.run("--client", "codex") == 0
    assert world.pip.calls[calls:] == [
        "install venv -r requirements.lock",
        "install venv --no-deps --no-build-isolation --editable clone one",
    ]
    assert [p.name for p in (world.home / ".codex" / "skills").iterdir()] == ["beta"]
    assert world.run("--uninstall") == 0
    assert world.tree() == {}


def test_project_scope_writes_no_client_file_of_the_user(hooked, tmp_path, capsys) -> None:
    """Breaks if --project still edits ~/.codex or ~/.claude, or claims a hook."""
    project = tmp_path / "project"
    project.mkdir()
    assert hooked.run("--client", "both", "--project", str(project)) == 0
    assert (project / ".codex" / "skills" / "alpha").is_symlink()
    assert (project / ".claude" / "skills" / "alpha").is_symlink()
    assert [p.name for p in hooked.home.iterdir()] == [".local"]
    assert "no Stop hook registered" in capsys.readouterr().out
    assert hooked.run("--uninstall") == 0
    assert list(project.iterdir()) == []


def test_a_file_system_without_links_gets_copies(world, monkeypatch) -> None:
    """Breaks if the copy is not listed, not refreshed after a pull, or not removed."""

    def no_links(self: Path, *_args: object, **_kw: object) -> None:
        raise OSError(95, "no links here")

    monkeypatch.setattr(Path, "symlink_to", no_links)
    world.run("--client", "codex")
    skill = world.home / ".codex" / "skills" / "alpha"
    assert not skill.is_symlink()
    assert world.run("--client", "codex") == 0
    (world.clone / "skills" / "alpha" / "SKILL.md").write_text("new", encoding="utf-8")
    world.run("--client", "codex")
    assert (skill / "SKILL.md").read_text() == "new"
    assert world.run("--uninstall") == 0
    assert world.tree() == {}


def test_settings_behind_a_link_keep_the_link_and_their_mode(hooked) -> None:
    """Breaks if a dotfile manager's link is replaced by a file, or the rights widen."""
    real = hooked.home / "dotfiles.json"
    real.write_text("{}\n", encoding="utf-8")
    real.chmod(0o640)
    (hooked.home / ".claude").mkdir()
    (hooked.home / ".claude" / "settings.json").symlink_to(real)
    before = hooked.tree()
    hooked.run("--client", "claude")
    assert "Stop" in real.read_text()
    assert hooked.run("--uninstall") == 0
    assert hooked.tree() == before


def test_a_venv_of_somebody_else_is_refused(world) -> None:
    """Breaks if --dev builds into, or uninstall removes, a .venv that the user made."""
    (world.clone / ".venv").mkdir()
    (world.clone / ".venv" / "pyvenv.cfg").write_text("", encoding="utf-8")
    with pytest.raises(InstallError) as e:
        world.run("--dev")
    assert e.value.where == str(world.clone / ".venv")
    assert world.tree() == {}


def test_a_failed_download_is_finished_by_the_next_run(world) -> None:
    """Breaks if a half-built venv passes for a finished one."""
    world.pip.fail_at = "install venv -r"
    with pytest.raises(InstallError):
        world.run()
    assert not (world.home / ".local" / "bin" / "kernelpilot").exists()
    world.pip.fail_at = ""
    assert world.run() == 0
    assert world.pip.calls[-1].startswith("install venv --no-deps")


class Killed(BaseException):
    """Stands for kill -9: no code of ours runs after it but context managers closing files."""


@pytest.mark.parametrize("scenario", ["fresh", "replace", "from dev"])
@pytest.mark.parametrize("end", ["install", "uninstall"])
def test_a_kill_at_any_step_can_be_finished_or_undone(hooked, second_clone, monkeypatch, scenario, end, capsys) -> None:
    """Breaks if the manifest is behind the disk at any step: something of ours stays, or a rerun is refused."""
    settings = hooked.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"a": 1}\n', encoding="utf-8")
    before, one = hooked.tree(), hooked.clone

    def die(_code: int) -> None:
        raise Killed

    monkeypatch.setattr(os, "_exit", die)
    kills = 0
    for point in [f"save-{i}" for i in range(1, 30)] + [f"change-{i}" for i in range(20)]:
        hooked.clone = one
        if scenario == "replace":
            assert hooked.run("--client", "both") == 0
            hooked.clone = second_clone
        if scenario == "from dev":
            assert hooked.run("--client", "both", "--dev") == 0
        monkeypatch.setenv("KP_CRASH_AT", point)
        try:
            hooked.run("--client", "both", "--replace")
        except Killed:
            kills += 1
        monkeypatch.delenv("KP_CRASH_AT")
        if end == "install":
            assert hooked.run("--client", "both", "--replace") == 0, point
            assert (hooked.home / ".codex" / "skills" / "alpha").readlink() == hooked.clone / "skills" / "alpha"
            assert settings.read_text().count("stop-hook") == 1
        assert hooked.run("--uninstall") == 0, (point, capsys.readouterr().out)
        assert hooked.tree() == before, point
    assert kills >= (4 if scenario == "from dev" else 12)


def test_a_killed_uninstall_is_finished_by_the_next(hooked, monkeypatch) -> None:
    """Breaks if an entry is dropped before its change is undone."""
    hooked.run("--client", "both")

    def die(_code: int) -> None:
        raise Killed

    monkeypatch.setattr(os, "_exit", die)
    for step in range(8):
        monkeypatch.setenv("KP_CRASH_AT", f"undo-{step % 3 + 1}")
        try:
            hooked.run("--uninstall")
        except Killed:
            continue
    monkeypatch.delenv("KP_CRASH_AT")
    hooked.run("--uninstall")
    assert hooked.tree() == {}
