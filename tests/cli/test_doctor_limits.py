"""``kernelpilot doctor`` on time-outs and block caps: the loop must end first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kernelpilot_install import hooks
from kernelpilot_install.doctor import Check, limits
from rlcr import evidence as pinned
from rlcr import options, step
from tests.doctor_sim import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = make_world(tmp_path)
    made.install()
    subprocess.run(["git", "init", "-q", str(made.folder)], check=True)
    return made


def test_the_numbers_are_the_loops_own() -> None:
    """Breaks when the loop's patience or its margins change and the doctor goes on with the old ones."""
    assert hooks.TIMEOUT_S == options.HOOK_S
    assert limits.MARGIN_S == options.MARGIN_S
    assert limits.LEAST_REVIEW_S == pinned.LEAST_REVIEW_S
    assert limits.PATIENCE == step.PATIENCE < limits.CLAUDES_OWN_CAP


def order(world: World, client: str) -> Check:
    return world.ask(limits.order, client, world.home / f".{client}")


def test_the_doctor_asks_both(world: World) -> None:
    """Breaks if a check is written and never called."""
    found = {c.name: c.status for c in world.look()}
    assert found["timeout-codex"] == found["timeout-claude"] == found["cap-claude"] == "ok"


def evidence(world: World, *seconds: float | None) -> None:
    commands = [{"name": "n", "argv": ["/bin/true"], **({} if s is None else {"timeout_s": s})} for s in seconds]
    (world.folder / ".humanize").mkdir(exist_ok=True)
    text = json.dumps({"format": "humanize.evidence", "version": 1, "commands": commands})
    (world.folder / ".humanize" / "evidence.json").write_text(text, encoding="utf-8")


def test_evidence_and_a_review_fit_into_the_hook(world: World) -> None:
    """Breaks when evidence that leaves a review no time is found out at the first stop only."""
    assert "3540 s are left" in order(world, "codex").what
    evidence(world, 900)
    assert order(world, "claude").what == "hook 3600 s, evidence 900 s, margin 60 s: 2640 s are left for a review"
    evidence(world, None, 2580)
    said = order(world, "codex")
    assert said.status == "ok" and "60 s are left" in said.what
    evidence(world, None, 2581)
    said = order(world, "codex")
    assert said.status == "fail" and "59 s are left for a review, which needs 60" in said.what
    assert "evidence.json" in said.fix and "at most 3480" in said.fix


@pytest.mark.parametrize("given", ["900", '"3600"', "true", "null"])
def test_a_hook_that_is_cut_off_before_the_loop_ends_fails(world: World, given: str) -> None:
    """Breaks when the client's time-out comes before the loop's own: the turn then ends without a word."""
    path = world.home / ".codex" / "hooks.json"
    path.write_text(path.read_text().replace('"timeout": 3600', f'"timeout": {given}'), encoding="utf-8")
    said = order(world, "codex")
    assert said.status == "fail" and "the loop plans with 3600" in said.what
    assert order(world, "claude").status == "ok"


@pytest.mark.parametrize(
    ("value", "status"),
    [("0", "ok"), ("1", "fail"), ("3", "fail"), ("4", "warn"), ("8", "ok"), ("84", "ok"), ("many", "warn")],
)
def test_claudes_cap_on_blocks(world: World, value: str, status: str) -> None:
    """Breaks when Claude Code would end the turn before the loop can park, and nobody says so."""
    assert world.ask(limits.caps).status == "ok"
    world.env[limits.CAP] = value
    assert world.ask(limits.caps).status == status
    del world.env[limits.CAP]
    settings = world.home / ".claude" / "settings.json"
    data = json.loads(settings.read_text())
    settings.write_text(json.dumps({**data, "env": {limits.CAP: value}}), encoding="utf-8")
    said = world.ask(limits.caps)
    assert said.status == status and str(settings) in said.what
    (world.folder / ".claude").mkdir()
    local = world.folder / ".claude" / "settings.local.json"
    local.write_text(json.dumps({"env": {limits.CAP: "2"}}), encoding="utf-8")
    assert [c.status for c in limits.caps(world.here())] == [status, "fail"]
