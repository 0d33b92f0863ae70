"""The dispatcher's table: readable shape rules, first match wins, the baseline where none matches."""

from __future__ import annotations

from typing import Literal

import msgspec

from kernelpilot_helpers import records

FORMAT = "kernelpilot.dispatch"
VERSION = 1
FOLDER = "dispatch"
TABLE_PATH = "dispatch/table.json"
CODE_PATH = "dispatch/dispatch.py"
DECISIONS_PATH = "artifacts/tuning-decisions.md"
BASELINE = "baseline"


class Guard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``low <= axis <= high``, both ends included."""

    axis: str
    low: int
    high: int


class ShapeRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All guards must hold. ``version`` is a lineage label."""

    regime: str
    guards: tuple[Guard, ...]
    flags: dict[str, bool | int | float | str] = {}
    version: str
    variant: str
    tree: str
    why: str
    """Which cases it rests on and what the map says of them, in words with figures."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the table does not do, and why: these shapes go to the baseline."""

    regime: str
    version: str
    """``baseline`` where no version was good enough to be considered."""
    why: str


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``dispatch/table.json``. Shapes that no rule covers go to the baseline."""

    format: Literal["kernelpilot.dispatch"] = "kernelpilot.dispatch"
    version: int = VERSION
    kind: Literal["table", "trivial"]
    """``trivial``: W has one regime."""
    epoch: int
    map_sha256: str
    rules: tuple[ShapeRule, ...]
    refused: tuple[Refusal, ...] = ()
    fallback: Literal["baseline"] = "baseline"
    files: dict[str, str]
    """Repo-relative path -> sha256 of every generated or copied file below ``dispatch/``, the table left out."""


OWNER = records.Owner(
    format=FORMAT, version=VERSION, type=Table, fix=f"git checkout -- {FOLDER}, or kernelpilot dispatch"
)
