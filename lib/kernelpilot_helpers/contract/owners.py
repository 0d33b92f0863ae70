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

CONTRACT = Owner(format=FORMAT, version=VERSION, type=Contract, fix=f"edit {CONTRACT_PATH}, then: kernelpilot lock")
CASES = Owner(format=CASES_FORMAT, version=CASES_VERSION, type=Case, fix=f"edit {CASES_PATH}, then: kernelpilot lock")
LOCK = Owner(format="kernelpilot.lock", version=1, type=Lock, fix="kernelpilot lock")
