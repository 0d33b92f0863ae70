"""The lock names every file that changed, went or came."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelpilot_helpers import contract, records
from kernelpilot_helpers.contract import lock
from kernelpilot_helpers.errors import Refused

GOOD = Path(__file__).parent / "golden" / "contract" / "good"
TWO = contract.parse((GOOD / "two_outputs.toml").read_bytes(), at="contract.toml")
FILES = {
    "contract.toml": b"c",
    "oracle/rowwise.py": b"r",
    "workloads/cases.jsonl": b"w",
    "baseline/loop.py": b"b",
    "tests/test_correctness.py": b"t",
}


def made(**more: object) -> contract.Lock:
    facts: dict[str, object] = {"epoch": 1, "locked_at": "2030-01-02T03:04:05Z", "why": "", "mutation_score": "9/9"}
    return lock.make(FILES, **{**facts, **more})  # type: ignore[arg-type]


def test_locked_paths() -> None:
    """Breaks if the reference's own file, a helper of the baseline or a test could be edited to win."""
    listing = [
        "README.md", "baseline/loop.py", "baseline/lib/k.cu", "tests/test_correctness.py", "benchmarks/bench.py",
        "tests/__pycache__/x.pyc", "src/t/variants/a/candidate.py", "artifacts/lineage.jsonl", "contract.toml",
    ]  # fmt: skip
    assert contract.locked_paths(TWO, listing) == [
        "baseline/lib/k.cu", "baseline/loop.py", "benchmarks/bench.py", "contract.toml", "oracle/rowwise.py",
        "tests/test_correctness.py", "workloads/cases.jsonl",
    ]  # fmt: skip


def test_an_untouched_repo_has_no_fault() -> None:
    """Breaks if comparing hashes the wrong bytes."""
    assert lock.compare(made(), FILES) == []
    assert made().files["baseline/loop.py"] == records.sha256(b"b")


def test_changed_missing_and_added_are_each_named() -> None:
    """Breaks if only the first difference is told, or an added helper of the baseline goes unseen."""
    now = {**FILES, "oracle/rowwise.py": b"easier", "tests/extra.py": b"x"}
    del now["baseline/loop.py"]
    assert [(f.where, f.what) for f in lock.compare(made(), now)] == [
        ("baseline/loop.py", "locked, and missing"),
        ("oracle/rowwise.py", "changed since lock epoch 1"),
        ("tests/extra.py", "not in the lock, and in a place that it covers"),
    ]


def test_an_amendment_needs_a_reason_and_a_past() -> None:
    """Breaks if a loosened contract can be locked again without a trace."""
    with pytest.raises(Refused, match="needs a reason"):
        made(epoch=2, why=" ", previous="ab")
    with pytest.raises(Refused, match="needs a reason"):
        made(epoch=2, why="wider W")
    with pytest.raises(Refused, match="1 is the first"):
        made(epoch=1, previous="ab")
    assert made(epoch=2, why="wider W", previous="ab").epoch == 2


def test_a_lock_survives_the_disk(tmp_path: Path) -> None:
    """Breaks if the owner's format or type does not fit what make returns."""
    records.save(tmp_path / "contract.lock.json", made(survivors=("scaled",)))
    assert records.load(tmp_path / "contract.lock.json", contract.LOCK) == made(survivors=("scaled",))
