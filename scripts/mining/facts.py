"""What the miner stores of a change: the type is the library's, which checks it; the rules are the miner's."""

from __future__ import annotations

from kernelpilot_helpers.knowledge.mined import FACTS, Facts, File

__all__ = ["FACTS", "RULES", "Facts", "File"]

RULES = 3
"""Counts up when the same commit may give other facts; a cursor of other rules starts anew."""
