"""What to know of a task before time goes into it: what cannot run on its target, and which files are stubs."""

from __future__ import annotations

from pathlib import Path

from kernelpilot_helpers import contract
from kernelpilot_helpers.contract.model import Contract
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.scaffold import content

GPU_LANGUAGES = ("cuda", "cutlass", "cute", "hip", "ptx", "triton", "tilelang")


def notes(made: Contract) -> tuple[str, ...]:
    """Walls that lie ahead of this contract, one line each; none for a task that can be played through."""
    out: list[str] = []
    if contract.device(made.target) == "cpu" and made.policy.language.lower() in GPU_LANGUAGES:
        out.append(
            f'policy.language = "{made.policy.language}" with target.gpu = "cpu": nothing written in it runs on this '
            'target; set policy.language = "any" in contract.toml'
        )
    return tuple(out)


def stubs(repo: Path, made: Contract) -> list[Fault]:
    """Reference and baseline files that still hold the stub which ``make`` wrote."""
    wanted = {made.reference.fn.partition(":")[0]: content.REFERENCE_TODO}
    wanted |= {one.fn.partition(":")[0]: content.BASELINE_TODO for one in made.baseline}
    out: list[Fault] = []
    for path, what in wanted.items():
        at = repo / path
        if at.is_file() and f'raise NotImplementedError("{what}")' in at.read_text(encoding="utf-8", errors="replace"):
            out.append(Fault(where=path, what=f"still a stub: {what}", fix=f"write {path}"))
    return out
