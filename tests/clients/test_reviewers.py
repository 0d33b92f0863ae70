"""The real clients as reviewers of a loop that the real clients drive."""

from __future__ import annotations

import pytest

from client_lab import Lab
from tests.clients import review_play


@pytest.mark.parametrize("client", ["codex", "claude"])
def test_a_review_is_in_the_schema_read_only_and_without_hooks(lab: Lab, client: str) -> None:
    """Breaks when a client refuses our flags or schema, when its Stop is judged, or when prose counts as a pass."""
    lab.client = client
    review_play.reviewed_loop(lab, client)


@pytest.mark.parametrize("client", ["codex", "claude"])
def test_a_worker_cannot_send_the_reviewer_to_another_model(lab: Lab, client: str) -> None:
    """Breaks when settings committed in the repo decide whom the reviewer asks."""
    lab.client = client
    review_play.rerouted(lab, client)
