"""What to know of a task before time goes into it: what cannot be measured yet, and which files are stubs."""

from __future__ import annotations

from pathlib import Path

from kernelpilot_helpers.contract.model import Contract
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.scaffold import content

GPU_LANGUAGES = ("cuda", "cutlass", "cute", "hip", "ptx", "triton", "tilelang")


GPU_WALL = "this version cannot measure a GPU target"
GPU_ENDS = f"stop here and report to the user: {GPU_WALL}"
"""Nothing else is a remedy: another target would be another task."""


def on_gpu(made: Contract) -> bool:
    """Whether the target is a device that this version cannot measure on."""
    return made.target.gpu.lower() != "cpu"


def notes(made: Contract) -> tuple[str, ...]:
    """Walls that lie ahead of this contract, one line each; none for a task that can be played through."""
    out: list[str] = []
    if on_gpu(made):
        out.append(f'target.gpu = "{made.target.gpu}": {GPU_ENDS}')
    elif made.policy.language.lower() in GPU_LANGUAGES:
        out.append(
            f'policy.language = "{made.policy.language}" with target.gpu = "cpu": nothing written in it runs on this '
            'target; set policy.language = "any" in contract.toml'
        )
    return tuple(out)


def stubs(repo: Path, made: Contract) -> list[Fault]:
    """Reference and baseline files that still hold the stub which ``make`` wrote."""
    wanted = ((made.reference.fn, content.REFERENCE_TODO), (made.baseline[0].fn, content.BASELINE_TODO))
    out: list[Fault] = []
    for spec, what in wanted:
        path = spec.partition(":")[0]
        at = repo / path
        if at.is_file() and f'raise NotImplementedError("{what}")' in at.read_text(encoding="utf-8", errors="replace"):
            out.append(Fault(where=path, what=f"still a stub: {what}", fix=f"write {path}"))
    return out
