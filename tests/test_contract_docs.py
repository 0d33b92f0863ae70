"""The format pages: their examples are accepted, and their tables name every field that is read."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import contract, scaffold
from kernelpilot_helpers.contract.model import Case, Contract, Lock, Tensor
from kernelpilot_helpers.executors import task_python
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.referee import locking
from tests import doc_files, referee_sim, taskpy

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "formats"
REQUEST_OF_THE_SKILL = "skills/humanize-kernel-agent-loop/references/request.md"


def block(page: str, kind: str) -> bytes:
    found = re.search(rf"```{kind}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert found is not None
    return found.group(1).encode()


def test_the_examples_are_accepted() -> None:
    """Breaks if the first thing a reader copies is refused."""
    made = contract.parse(block("contract.md", "toml"), at="contract.md")
    cases = contract.parse_cases(block("cases.md", "json"), made, at="cases.md")
    assert [contract.timed(c) for c in cases] == [True, True, False]


def test_the_request_example_is_accepted(tmp_path: Path) -> None:
    """The same for a whole request."""
    assert doc_files.write(DOCS / "request.md", tmp_path) == ["request.toml", "silu_ref.py", "slow/candidate.py"]
    made = scaffold.parse_request((tmp_path / "request.toml").read_bytes(), str(tmp_path / "request.toml"))
    assert made.reference == tmp_path / "silu_ref.py"
    assert made.contract.task.name == "silu"


@taskpy.needs_numpy
@pytest.mark.parametrize("page", ["docs/formats/request.md", REQUEST_OF_THE_SKILL])
def test_the_request_examples_lock_as_they_stand(tmp_path: Path, page: str) -> None:
    """Breaks when the files that a page shows are not enough for a lock, or their task does not pass its audit."""
    shown, repo = tmp_path / "shown", tmp_path / "repo"
    doc_files.write(ROOT / page, shown)
    made = scaffold.parse_request((shown / "request.toml").read_bytes(), str(shown / "request.toml"))
    scaffold.make(made, repo, kernelpilot=Path(sys.executable))
    lab = LocalLab(task_python.find(explicit=[taskpy.NUMPY]), tmp_path / "lock", cache=tmp_path / "cache")
    locked = locking.lock(repo, amend=False, why="", lab=lab, clock=referee_sim.clock, say=referee_sim.quiet)
    assert locked.lock.epoch == 1
    assert locked.audit is not None


@pytest.mark.parametrize(("page", "kind"), [("cases.md", Case), ("lock.md", Lock), ("contract.md", Tensor)])
def test_every_field_stands_in_a_table(page: str, kind: type[msgspec.Struct]) -> None:
    """Breaks if a field is added to the record and not to its page."""
    named = set(re.findall(r"`(\w+)`", (DOCS / page).read_text()))
    assert {f.encode_name for f in msgspec.structs.fields(kind)} - named == set()


def test_every_field_of_the_contract_stands_in_a_table() -> None:
    """The same for the nested tables."""
    text = (DOCS / "contract.md").read_text()
    for table in ("task", "target", "call", "reference", "numerics", "timing", "objective", "policy"):
        record = next(f.type for f in msgspec.structs.fields(Contract) if f.name == table)
        line = "\n".join(row for row in text.splitlines() if row.startswith(f"| `{table}."))
        missing = [f.encode_name for f in msgspec.structs.fields(record) if f.encode_name not in line]
        assert (table, missing) == (table, [])
