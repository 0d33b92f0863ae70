"""The format pages: their examples are accepted, and their tables name every field that is read."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import contract, scaffold
from kernelpilot_helpers.contract.model import Case, Contract, Lock, Tensor
from kernelpilot_helpers.correctness import device
from kernelpilot_helpers.executors import absent, task_python
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.referee import locking
from kernelpilot_helpers.runtime import building
from tests import doc_files, referee_sim, taskpy

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "formats"
SILU = ["request.toml", "silu_ref.py", "slow/candidate.py"]
SOFTMAX = ["softmax/request.toml", "softmax/reference.py", "softmax/baseline/softmax.py"]
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
    assert doc_files.write(DOCS / "request.md", tmp_path) == SILU + SOFTMAX
    made = scaffold.parse_request((tmp_path / "request.toml").read_bytes(), str(tmp_path / "request.toml"))
    assert made.reference == tmp_path / "silu_ref.py"
    assert made.contract.task.name == "silu"


def test_the_gpu_example_makes_a_whole_repo_and_is_the_one_in_the_examples(tmp_path: Path) -> None:
    """Breaks when the GPU request of the page is refused, leaves a stub, or drifts from its copy to start from."""
    doc_files.write(DOCS / "request.md", tmp_path)
    path = tmp_path / "softmax/request.toml"
    made = scaffold.parse_request(path.read_bytes(), str(path))
    assert contract.device(made.contract.target) == "gpu"
    assert {t.residency for t in made.contract.tensors.values()} == {"hot", "cold"}
    assert scaffold.make(made, tmp_path / "repo", kernelpilot=Path(sys.executable)).todo == ()
    kept = ROOT / "examples/requests/softmax_bf16"
    for name in SOFTMAX:
        assert (tmp_path / name).read_bytes() == (kept / name.removeprefix("softmax/")).read_bytes(), name


def test_the_refused_suffixes_are_the_ones_that_the_page_lists() -> None:
    """Breaks when a kind of file is refused that the page does not name, or the other way round."""
    text = (DOCS / "candidate.md").read_text()
    listed = text.partition("a file in it ends in")[2].partition(", or begins like")[0]
    assert set(re.findall(r"`(\.\w+)`", listed)) == set(building.BINARY_SUFFIXES)


def test_every_reason_code_of_a_gpu_has_its_remedy() -> None:
    """Breaks when a capture or a GPU can fail in a way that the GPU page does not know, or lists one that is gone."""
    told = set(re.findall(r"^\| `([a-z]+\.\w+)` \| \S", (ROOT / "docs/gpu.md").read_text(), re.MULTILINE))
    captures = {code for code in device.FIXES if code.startswith("capture.")}
    assert {code for code in told if code.startswith("capture.")} == captures
    assert set(absent.FIXES) <= told


def test_the_seconds_of_the_gpu_page_are_the_measured_ones() -> None:
    """Breaks when the operating curve is measured again and the page keeps the old figures."""
    effects = json.loads((ROOT / "docs/measurements/operating-curve.json").read_text())["effects"]
    text = (ROOT / "docs/gpu.md").read_text()
    for tier in ("screen", "accept", "claim"):
        row = re.search(rf"^\| {tier} \|(.*)\|$", text, re.MULTILINE)
        assert row is not None
        shown = [float(cell.split()[0]) for cell in row[1].split("|")]
        assert shown == [effects[e]["tiers"][tier]["seconds"] for e in ("A/A", "slower 0.5 %", "slower 2 %")]


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
