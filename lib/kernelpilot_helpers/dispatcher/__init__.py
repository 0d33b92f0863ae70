"""Stage 3, second half: from the performance map to shape rules and code that needs nothing of ours. Pure."""

from kernelpilot_helpers.dispatcher.choose import choose, pick
from kernelpilot_helpers.dispatcher.closure import closure
from kernelpilot_helpers.dispatcher.generate import RUNTIME, VARIANTS, Generated, check, generate, trees_of
from kernelpilot_helpers.dispatcher.model import (
    BASELINE,
    CODE_PATH,
    DECISIONS_PATH,
    FOLDER,
    FORMAT,
    OWNER,
    TABLE_PATH,
    VERSION,
    Guard,
    Refusal,
    ShapeRule,
    Table,
)

__all__ = [
    "BASELINE",
    "CODE_PATH",
    "DECISIONS_PATH",
    "FOLDER",
    "FORMAT",
    "OWNER",
    "RUNTIME",
    "TABLE_PATH",
    "VARIANTS",
    "VERSION",
    "Generated",
    "Guard",
    "Refusal",
    "ShapeRule",
    "Table",
    "check",
    "choose",
    "closure",
    "generate",
    "pick",
    "trees_of",
]
