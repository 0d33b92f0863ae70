"""Read a repo once into facts that the gate can judge without touching anything."""

from kernelpilot_helpers.evidence.collect import collect
from kernelpilot_helpers.evidence.loop import active_round
from kernelpilot_helpers.evidence.model import (
    CommitFacts,
    Evidence,
    GitFacts,
    LoopFacts,
    RunFacts,
    StopFacts,
    TuningFacts,
)

__all__ = [
    "CommitFacts",
    "Evidence",
    "GitFacts",
    "LoopFacts",
    "RunFacts",
    "StopFacts",
    "TuningFacts",
    "active_round",
    "collect",
]
