"""``kernelpilot doctor`` asks Codex itself, in bounded time, and says which of two sources spoke."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_install import hooks, trust
from kernelpilot_install.doctor import codex_rpc, features, trusting, visible
from kernelpilot_install.places import places
from tests.doctor_sim import World, make_world
from tests.install.fake_codex import put


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An installed HOME, and a codex that shows what was installed."""
    made = make_world(tmp_path)
    made.install()
    say(made)
    made.env["PATH"] = f"{fake(made)}:{made.env['PATH']}"
    return made


def fake(world: World) -> Path:
    return world.home.parent / "programs"


def say(world: World, **says: Any) -> None:
    alpha = {"name": "alpha", "path": str(world.clone / "skills" / "alpha" / "SKILL.md"), "enabled": True}
    put(fake(world), **{"skills": [alpha], **says})


def record(world: World, digest: str) -> None:
    key = json.dumps(f"{world.home}/.codex/hooks.json:stop:0:0")
    text = f'[hooks.state.{key}]\ntrusted_hash = "{digest}"\n'
    (world.home / ".codex" / "config.toml").write_text(text, encoding="utf-8")


def ours(world: World) -> str:
    at = places(world.env, world.clone)
    handler = json.loads((at.codex / "hooks.json").read_text())["hooks"]["Stop"][0]["hooks"][0]
    return trust.digest(handler)


def test_trust_is_what_codex_says(world: World) -> None:
    """Breaks if an untrusted hook is called fine, or Codex's own word is not the one that is told."""
    said = world.ask(trusting.codex_trust)
    assert said.status == "warn"
    assert "pending review" in said.what and "as Codex itself says (hooks/list)" in said.what
    assert "--client codex --trust-hook" in said.fix.partition("  # ")[2]
    assert "--trust-hook" not in said.fix.partition("  # ")[0]
    record(world, ours(world))
    said = world.ask(trusting.codex_trust)
    assert (said.status, said.what) == (
        "ok",
        "the Stop hook was reviewed and is trusted, as Codex itself says (hooks/list)",
    )
    record(world, "sha256:old")
    assert "was changed since it was reviewed" in world.ask(trusting.codex_trust).what
    record(world, ours(world))
    say(world, twist={"enabled": False})
    said = world.ask(trusting.codex_trust)
    assert said.status == "warn" and "was switched off in /hooks" in said.what


def test_the_doctor_asks_all_three(world: World) -> None:
    """Breaks if a check of Codex is written and never called."""
    found = {c.name: c.status for c in world.look()}
    assert (found["visible-codex"], found["feature-codex"], found["trust-codex"]) == ("ok", "ok", "warn")


def test_two_sources_that_disagree_are_a_warning(world: World) -> None:
    """Breaks if our arithmetic and Codex's own word differ and the doctor picks one in silence."""
    record(world, ours(world))
    say(world, twist={"trustStatus": "modified"})
    said = world.ask(trusting.codex_trust)
    assert said.status == "warn"
    assert "was changed since it was reviewed" in said.what
    assert "by its record in config.toml, recomputed, it was reviewed and is trusted" in said.what
    record(world, "sha256:old")
    say(world, twist={"trustStatus": "trusted"})
    assert world.ask(trusting.codex_trust).status == "warn"


def test_a_hook_that_codex_does_not_list_fails(world: World) -> None:
    """Breaks if a stale record makes a hook trusted that Codex does not know of."""
    record(world, ours(world))
    say(world, no_hooks=True)
    said = world.ask(trusting.codex_trust)
    assert said.status == "fail" and "is not listed by Codex at all" in said.what


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ({"server": "dies"}, "codex app-server ended"),
        ({"errors": {"hooks/list": "unknown method"}}, "with an error: unknown method"),
        ({"twist": {"trustStatus": "novel"}}, "hooks/list answers 'novel'"),
    ],
)
def test_when_codex_does_not_answer_its_record_speaks(world: World, says: dict[str, object], why: str) -> None:
    """Breaks if an answer that did not come is taken for trust, or for a failure of the hook."""
    record(world, ours(world))
    say(world, **says)
    said = world.ask(trusting.codex_trust)
    assert said.status == "ok"
    assert "by its record in config.toml (Codex itself was not asked:" in said.what and why in said.what
    record(world, "sha256:old")
    assert world.ask(trusting.codex_trust).status == "warn"


def test_without_a_codex_program_that_is_said(world: World) -> None:
    """Breaks if three checks fail, or pass without a word, only because nobody could be asked."""
    world.env["PATH"] = "/usr/bin:/bin"
    seen = world.ask(visible.codex)
    assert seen.status == "warn" and "there is no `codex` on PATH" in seen.what
    assert "Codex itself was not asked: there is no `codex` on PATH" in world.ask(trusting.codex_trust).what
    assert world.ask(features.codex).status == "ok"
    assert not (fake(world) / "asked").exists()


def test_a_server_that_hangs_is_left_in_time_with_its_children(world: World, monkeypatch: Any) -> None:
    """Breaks if a doctor can hang on the client it looks at, or leaves a process of it behind."""
    say(world, server="hangs")
    program = str(fake(world) / "codex")
    start = time.monotonic()
    with (
        pytest.raises(codex_rpc.Unanswered) as e,
        codex_rpc.Server(program, env=world.env, cwd=world.folder, seconds=1.5) as server,
    ):
        server.call("hooks/list", {"cwds": []})
    assert "did not answer hooks/list within 1.5 s" in str(e.value)
    assert time.monotonic() - start < 5
    child = int((fake(world) / "child").read_text())
    until = time.monotonic() + 5
    while time.monotonic() < until and Path(f"/proc/{child}/status").exists():
        if "State:\tZ" in Path(f"/proc/{child}/status").read_text():
            break
        time.sleep(0.02)
    else:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


def test_skills_are_what_the_model_is_shown(world: World) -> None:
    """Breaks if a skill that Codex drops, turns off or cannot load is called visible since its file is there."""
    assert world.ask(visible.codex).what == "Codex shows the model alpha"
    path = str(world.clone / "skills" / "alpha" / "SKILL.md")
    off = {"name": "alpha", "path": path, "enabled": False}
    for says, word in (
        ({"shown": ["beta"]}, "leaves it out of the model's list"),
        ({"skills": []}, "does not find alpha"),
        ({"skills": [off]}, "alpha is turned off"),
        (
            {"skills": [], "skill_errors": [{"path": path, "message": "missing\n`description`"}]},
            "does not load alpha: missing `description`",
        ),
    ):
        say(world, **says)
        said = world.ask(visible.codex)
        assert said.status == "fail" and word in said.what, says
        assert said.fix
    say(world, shown=["beta"])
    (world.clone / "skills" / "alpha" / "agents").mkdir()
    yaml = world.clone / "skills" / "alpha" / "agents" / "openai.yaml"
    yaml.write_text("policy:\n  allow_implicit_invocation: false\n", encoding="utf-8")
    assert world.ask(visible.codex).what.endswith("by name only: alpha")


@pytest.mark.parametrize(
    ("toml", "listed", "status", "word"),
    [
        ("", "hooks stable true", "ok", "hooks is on"),
        ("[features]\nhooks = true\n", "hooks stable true", "ok", "hooks is on"),
        ("[features]\nhooks = false\n", "hooks stable false", "fail", "hooks = false turns every hook off"),
        ("[features]\ncodex_hooks = false\n", "hooks stable false", "fail", "and false turns every hook off"),
        ("", "hooks stable false", "fail", "though the user's config.toml does not say so"),
        ("", "codex_hooks experimental true", "warn", "this Codex is old"),
        ("", "codex_hooks experimental false", "fail", "its `codex_hooks` is off"),
        ("", "goals stable true", "fail", "lists no hooks"),
    ],
)
def test_the_feature_key(world: World, toml: str, listed: str, status: str, word: str) -> None:
    """Breaks if a Codex that runs no hook passes, or a current one is refused for not listing an older name."""
    (world.home / ".codex" / "config.toml").write_text(toml, encoding="utf-8")
    say(world, features=listed)
    said = world.ask(features.codex)
    assert said.status == status and word in said.what
    assert (said.fix == "") == (status == "ok")


def test_the_older_key_is_removed_by_the_fix(world: World) -> None:
    """Breaks if the older key is passed over, or the fix takes another line with it."""
    config = world.home / ".codex" / "config.toml"
    config.write_text('# a\n[features]\n  codex_hooks = true\nhooks = true\nx = "codex_hooks = 1"\n', encoding="utf-8")
    first, second = features.codex(world.here())
    assert (first.status, second.status) == ("warn", "ok")
    assert os.system(first.fix) == 0
    assert config.read_text() == '# a\n[features]\nhooks = true\nx = "codex_hooks = 1"\n'
    assert shlex.split(first.fix)[0] == "sed"


def test_codex_is_not_asked_where_it_has_no_folder(tmp_path: Path) -> None:
    """Breaks if asking makes Codex create its folder in a home that never had it."""
    world = make_world(tmp_path)
    put(fake(world))
    world.env["PATH"] = f"{fake(world)}:{world.env['PATH']}"
    assert "has no folder" in world.one("visible-codex", client="codex").what
    assert not (fake(world) / "asked").exists()
    assert not (world.home / ".codex").exists()


def test_the_launcher_of_the_fake_is_ours() -> None:
    """Breaks if the fake no longer recognises our handler by its command, and twists nothing."""
    assert "stop-hook" in str(hooks.LAUNCHER)
