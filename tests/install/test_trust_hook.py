"""``--trust-hook``: Codex is asked to trust our own handler, by name, and nothing else moves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelpilot_install.options import parse
from kernelpilot_install.problems import InstallError
from tests.install.fake_codex import put

FOREIGN = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/bin/mine", "timeout": 5}]}]}}'
RECORD = (
    '# mine\nmodel = "x"  # trailing\n\n[hooks.state."{home}/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:00"\n'
)


@pytest.fixture
def codexed(hooked, tmp_path: Path):
    """A user of Codex with a hook of their own that was reviewed once and changed since."""
    hooked.fake = tmp_path / "programs"
    put(hooked.fake)
    hooked.env["PATH"] = f"{hooked.fake}:/usr/bin:/bin"
    (hooked.home / ".codex").mkdir()
    (hooked.home / ".codex" / "hooks.json").write_text(FOREIGN, encoding="utf-8")
    (hooked.home / ".codex" / "config.toml").write_text(RECORD.format(home=hooked.home), encoding="utf-8")
    return hooked


def config(world) -> str:
    return (world.home / ".codex" / "config.toml").read_text(encoding="utf-8")


def test_our_handler_alone_is_trusted_and_that_is_said(codexed, capsys) -> None:
    """Breaks if another hook is trusted with ours, the user's file is rewritten, or nothing says how to undo it."""
    before = config(codexed)
    assert codexed.run("--client", "codex", "--trust-hook") == 0
    said = capsys.readouterr().out
    key = f"{codexed.home}/.codex/hooks.json:stop:1:0"
    assert "recorded in" in said and "as --trust-hook asked" in said
    assert f'remove the table [hooks.state."{key}"]' in said
    assert "pending review" not in said
    assert config(codexed).startswith(before)
    ((edit),) = json.loads((codexed.fake / "written.json").read_text())
    assert (edit["keyPath"], edit["mergeStrategy"], list(edit["value"])) == ("hooks.state", "upsert", [key])
    (codexed.fake / "written.json").unlink()
    assert codexed.run("--client", "codex", "--trust-hook") == 0
    assert "trusts the Stop hook already: nothing was recorded" in capsys.readouterr().out
    assert not (codexed.fake / "written.json").exists()
    assert codexed.run("--uninstall") == 0
    assert f'Codex\'s record of our hook stays: remove the table [hooks.state."{key}"]' in capsys.readouterr().out


def test_without_the_flag_nothing_is_asked_and_the_review_is_pending(codexed, capsys) -> None:
    """Breaks if a plain install, or a demo of it, trusts the hook or starts Codex at all."""
    before = config(codexed)
    assert codexed.run("--client", "codex") == 0
    assert "pending review" in capsys.readouterr().out
    assert config(codexed) == before
    assert not (codexed.fake / "asked").exists()


def test_a_dry_run_says_it_and_asks_nobody(codexed, capsys) -> None:
    """Breaks if --dry-run trusts, or leaves the trust out of what it would do."""
    before = codexed.tree()
    assert codexed.run("--client", "codex", "--trust-hook", "--dry-run") == 0
    assert "would ask Codex to record that our Stop hook is trusted" in capsys.readouterr().out
    assert codexed.tree() == before
    assert not (codexed.fake / "asked").exists()


@pytest.mark.parametrize(
    ("says", "word"),
    [
        ({"server": "dies"}, "ended"),
        ({"errors": {"hooks/list": "no such\nmethod"}}, "answers hooks/list with an error: no such method"),
        ({"errors": {"config/batchWrite": "read-only"}}, "answers config/batchWrite with an error: read-only"),
        ({"no_hooks": True}, "does not list our Stop hook"),
        ({"twist": {"command": "/evil/stop-hook"}}, "is not our Stop hook: /evil/stop-hook"),
        ({"twist": {"currentHash": "sha256:beef"}}, "is not our Stop hook"),
        ({"twist": {"enabled": False}}, "was switched off"),
        ({"twist": {"eventName": "preToolUse"}}, "is not our Stop hook"),
    ],
)
def test_what_is_not_our_hook_is_not_trusted(codexed, says, word) -> None:
    """Breaks if an error counts as done, or something that only stands in our place is trusted."""
    put(codexed.fake, **says)
    before = config(codexed)
    with pytest.raises(InstallError) as e:
        codexed.run("--client", "codex", "--trust-hook")
    assert word in e.value.what
    assert e.value.fix
    assert config(codexed) == before
    assert "stop-hook" in (codexed.home / ".codex" / "hooks.json").read_text()


def test_a_record_that_does_not_take_or_takes_more_is_an_error(codexed) -> None:
    """Breaks if "done" is printed without asking Codex again, or another hook's new trust goes unseen."""
    put(codexed.fake, takes=False)
    with pytest.raises(InstallError) as e:
        codexed.run("--client", "codex", "--trust-hook")
    assert "took the record and calls it untrusted" in e.value.what
    text = config(codexed).replace("stop:0:0", "stop:9:0")
    (codexed.home / ".codex" / "config.toml").write_text(text, encoding="utf-8")
    besides = f'\n[hooks.state."{codexed.home}/.codex/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:01"\n'
    put(codexed.fake, writes_besides=besides)
    with pytest.raises(InstallError) as e:
        codexed.run("--client", "codex", "--trust-hook")
    assert "another hook changed" in e.value.what


def test_without_codex_nothing_is_touched(codexed) -> None:
    """Breaks if the install is made first and the wish refused after it."""
    codexed.env["PATH"] = "/usr/bin:/bin"
    before = codexed.tree()
    with pytest.raises(InstallError) as e:
        codexed.run("--client", "codex", "--trust-hook")
    assert "no `codex` on PATH" in e.value.what
    assert codexed.tree() == before


def test_a_machine_without_the_client_is_refused(hooked) -> None:
    """Breaks if the flag is dropped in silence where Codex is not served."""
    (hooked.home / ".claude").mkdir()
    before = hooked.tree()
    with pytest.raises(InstallError) as e:
        hooked.run("--trust-hook")
    assert "Codex is not served here" in e.value.what
    assert hooked.tree() == before


@pytest.mark.parametrize(
    "argv", [["--demo"], ["--test"], ["--uninstall"], ["--project", "."], ["--client", "claude"], ["--client", "none"]]
)
def test_the_flag_goes_with_a_plain_install_only(argv, capsys) -> None:
    """Breaks if a demo, a test run or an uninstall takes the flag and trusts, or swallows it."""
    with pytest.raises(SystemExit) as stop:
        parse([*argv, "--trust-hook"])
    assert stop.value.code == 2
    assert "--trust-hook" in capsys.readouterr().err.rpartition("error:")[2]
