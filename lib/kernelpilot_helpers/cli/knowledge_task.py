"""What the task of the repo around a folder is about, for ``kernelpilot knowledge next``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelpilot_helpers.contract import Contract
    from kernelpilot_helpers.knowledge.lexicon import Lexicon
    from kernelpilot_helpers.knowledge.listing import Wish

FAMILY_OF = {"act": "activation", "scan": "scan-sort-reduce"}
"""Families whose operation a contract calls otherwise; ``other`` and ``grad`` name none."""
NONE = ("other", "grad")


def around(folder: Path) -> tuple[Path, Contract] | None:
    """The contract upwards of a folder and its path, None without one. Raises BadRecord, NewerFormat."""
    from kernelpilot_helpers import contract, records

    here = folder.resolve()
    for place in (here, *here.parents):
        path = place / contract.CONTRACT_PATH
        if path.is_file():
            data = records.read_bytes(path, fix="git checkout -- contract.toml")
            return path, contract.parse(data, at=str(path))
    return None


def wish_of(task: Contract, lexicon: Lexicon) -> Wish:
    """Families by operation, name, API and summary; data types of the tensors. Both may be empty."""
    from kernelpilot_helpers.knowledge.listing import Wish

    said = f"{task.task.name} {task.task.api} {task.task.summary}"
    families = {name for _, name in lexicon.heard(said, "f")}
    if task.task.op not in NONE:
        families.add(FAMILY_OF.get(task.task.op, task.task.op))
    types = " ".join(tensor.dtype for tensor in task.tensors.values() if tensor.role != "scalar")
    return Wish(families=tuple(sorted(families)), dtypes=tuple(sorted({name for _, name in lexicon.heard(types, "d")})))
