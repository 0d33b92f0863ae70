"""Where K, R and W lie in a standalone repo, and who may read them."""

from __future__ import annotations

from kernelpilot_helpers.contract.model import (
    CASES_FORMAT,
    CASES_VERSION,
    FORMAT,
    VERSION,
    Case,
    Contract,
    Lock,
)
from kernelpilot_helpers.records import Owner

CONTRACT_PATH = "contract.toml"
CASES_PATH = "workloads/cases.jsonl"
LOCK_PATH = "artifacts/contract.lock.json"


def _edit(path: str) -> str:
    """A line for a shell that opens the file, and what comes after it."""
    return f'"${{EDITOR:-vi}}" {path}  # mend what is named, then: kernelpilot lock'


CONTRACT = Owner(format=FORMAT, version=VERSION, type=Contract, fix=_edit(CONTRACT_PATH))
CASES = Owner(format=CASES_FORMAT, version=CASES_VERSION, type=Case, fix=_edit(CASES_PATH))
LOCK = Owner(format="kernelpilot.lock", version=1, type=Lock, fix="kernelpilot lock")
