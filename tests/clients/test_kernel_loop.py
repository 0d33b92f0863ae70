"""The main job inside the real clients: from the first sentence to COMPLETE, with a model that does as it is told."""

from __future__ import annotations

from client_lab import Lab
from tests.clients.kernel_play import FASTER, MENTION, RENAMED, kernel_loop


def test_codex_plays_a_kernel_loop_with_a_gain_to_complete(lab: Lab) -> None:
    """Breaks when Codex does not load the skill, run the hook or show its reason, or a remedy that is named is none."""
    lab.client = "codex"
    kernel_loop(lab, MENTION["codex"][0], FASTER)


def test_claude_code_plays_a_kernel_loop_with_a_stop_decision_to_complete(lab: Lab) -> None:
    """Breaks for the same reasons in Claude Code, and when a task without a gain cannot end."""
    lab.client = "claude"
    kernel_loop(lab, MENTION["claude"][0], RENAMED)
