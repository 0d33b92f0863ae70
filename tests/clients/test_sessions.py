"""Which Stops of the real clients are judged, which are let go, and when the hook gives up."""

from __future__ import annotations

from typing import Any

import pytest

from client_lab import Lab
from tests.clients import drive_play, plays

BOTH = pytest.mark.parametrize("client", ["codex", "claude"])


def test_an_install_shows_one_hook_and_the_skills_in_both_clients(installed: tuple[Lab, list[dict[str, Any]]]) -> None:
    """Breaks when install.sh registers twice or not at all, or when doctor and Codex disagree on trust."""
    checks = installed[1]
    assert len(checks) == 8
    assert [c for c in checks if not c["passed"]] == []


def test_a_hook_that_nobody_reviewed_does_not_run_in_codex(lab: Lab) -> None:
    """Breaks when trust is granted silently, or when doctor does not say that it is missing."""
    plays.untrusted(lab)


def test_claude_code_takes_a_hook_that_comes_in_mid_session(lab: Lab) -> None:
    """Breaks when a loop that is begun before the install is not held after it."""
    plays.mid_session(lab)


@BOTH
def test_only_the_session_that_began_the_loop_is_held(lab: Lab, client: str) -> None:
    """Breaks when an error ends the loop, when a foreign session is held, or when a resumed one is not."""
    lab.client = client
    plays.strangers(lab)


@BOTH
def test_an_idle_agent_is_parked_before_the_client_ends_its_turn(lab: Lab, client: str) -> None:
    """Breaks when the hook blocks more often than Claude Code's cap of 8, or for ever in Codex."""
    lab.client = client
    name = "the same words"
    plays.idle(lab, name, plays.TALK[name])


@BOTH
def test_linked_worktrees_and_symlinked_folders_are_held(lab: Lab, client: str) -> None:
    """Breaks when the loop is looked for by the session's folder or by a path that is spelt another way."""
    lab.client = client
    plays.places(lab)


@BOTH
def test_a_client_that_is_driven_from_outside_is_judged_once(lab: Lab, client: str) -> None:
    """Breaks when the trusted hook judges beside the driver, when a turn is not resumed, or when a reason is lost."""
    lab.client = client
    drive_play.drive_play(lab)
