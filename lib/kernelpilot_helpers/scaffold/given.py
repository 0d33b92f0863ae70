"""The code that a new repo is handed out with: whoever starts from it has taken it from nobody's baseline."""

from __future__ import annotations

from collections.abc import Mapping

from kernelpilot_helpers.contract.model import Contract
from kernelpilot_helpers.scaffold import content, starter
from kernelpilot_helpers.scaffold.request import TEMPLATES

SUFFIXES = (".py", ".cu", ".cpp", ".txt")


def given(made: Contract) -> Mapping[str, str]:
    """Name -> text: the candidates to copy from, the README's first candidate, and the stubs of this contract.

    The baselines of the built-in tasks are not among them: they are what has to be beaten.
    """
    out = {f"stub {one.id}.py": content.baseline_stub(made, one.fn.partition(":")[2]) for one in made.baseline}
    out |= {"stub reference.py": content.reference_stub(made)}
    out |= {"starter.py": starter.candidate(made), "starter.cu": starter.kernel(made)}
    for path in sorted((TEMPLATES / "cuda").rglob("*")):
        name = path.relative_to(TEMPLATES).as_posix()
        if path.suffix in SUFFIXES and "/baseline/" not in name and "__pycache__" not in name:
            out[name] = path.read_text(encoding="utf-8")
    return out
