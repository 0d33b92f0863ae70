"""``bindings/`` of a new repo: the dispatcher as a torch operator, with a schema made from the contract."""

from __future__ import annotations

from kernelpilot_helpers import contract
from kernelpilot_helpers.contract import Contract
from kernelpilot_helpers.contract.dtypes import normalise
from kernelpilot_helpers.contract.model import Tensor
from kernelpilot_helpers.scaffold.request import template

SCALARS = {"bool": "bool", "int8": "int", "uint8": "int", "int32": "int", "int64": "int"}
"""What torch's schemas call a scalar of a dtype; the others are ``float``."""


def schema(made: Contract) -> str:
    """The arguments in call order; each that is written has an alias mark of its own, an optional one may be None."""
    parts = [f"{_type(tensor, place)} {name}" for place, (name, tensor) in enumerate(made.tensors.items())]
    return f"({', '.join(parts)}) -> ()"


def _type(tensor: Tensor, place: int) -> str:
    if tensor.role == "scalar":
        return SCALARS.get(normalise(tensor.dtype), "float")
    if tensor.role in ("out", "inout"):
        return f"Tensor(a{place}!)"
    return "Tensor?" if tensor.optional else "Tensor"


def binding_files(made: Contract) -> dict[str, bytes]:
    """Repo-relative path -> bytes. A task without torch tensors of a GPU has no operator, only the page."""
    if contract.device(made.target) == "cpu":
        return {"bindings/README.md": template("bindings.md").encode()}
    words = {
        "@TASK@": made.task.name,
        "@NAMES@": ", ".join(f'"{name}"' for name in made.tensors) + ("," if len(made.tensors) == 1 else ""),
        "@ARGUMENTS@": ", ".join(f"{name}={name}" for name in made.tensors),
        "@SCHEMA@": schema(made),
    }
    pages = {"README.md": "cuda/bindings.md", "torch_op.py": "cuda/torch_op.txt"}
    return {f"bindings/{path}": template(source, words).encode() for path, source in pages.items()}
