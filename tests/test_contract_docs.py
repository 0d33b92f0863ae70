"""The format pages: their examples are accepted, and their tables name every field that is read."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import contract, scaffold
from kernelpilot_helpers.contract.model import Case, Contract, Lock, Tensor

DOCS = Path(__file__).parents[1] / "docs" / "formats"


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
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/candidate.py").write_text("def entry(*, x, y): y[...] = 2 * x\n")
    (tmp_path / "scale_ref.py").write_text("def ref(*, x): return 2 * x\n")
    made = scaffold.parse_request(block("request.md", "toml"), str(tmp_path / "request.toml"))
    assert made.reference == tmp_path / "scale_ref.py"
    assert made.contract.task.name == "scale"


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
