"""One review by a separate reviewer process: read-only, fresh, bounded in time, and never a pass by accident."""

from __future__ import annotations

from rlcr.review.logs import log_dir
from rlcr.review.model import BLOCKING, KINDS, Ac, Finding, Infra, Request, Verdict
from rlcr.review.prompt import prompt_for
from rlcr.review.run import review

__all__ = [
    "BLOCKING",
    "KINDS",
    "Ac",
    "Finding",
    "Infra",
    "Request",
    "Verdict",
    "log_dir",
    "prompt_for",
    "review",
]
