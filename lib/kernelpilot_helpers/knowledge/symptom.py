"""A digest of Nsight Compute as the values that rules read."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.knowledge.lexicon import Lexicon

FORMAT = "kernelpilot.ncu-digest"
FIX = "kernelpilot ncu digest REPORT.ncu-rep --json > digest.json"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The headline kernel of a digest."""

    class_name: str
    kernel: str
    capability: int
    """90 for sm_90; 0 where the digest is silent."""
    families: tuple[str, ...]
    dtypes: tuple[str, ...]
    values: dict[str, float]
    """Role, ``stall.REASON``, ``occ.NAME``, ``duration_us`` or ``launches`` -> value."""
    metrics: dict[str, str]
    """Role -> the counter that it was read from."""


class _Value(msgspec.Struct, frozen=True):
    value: float | None = None
    metric: str | None = None


class _Group(msgspec.Struct, frozen=True, kw_only=True):
    kernel: str = ""
    launches: float = 1.0
    duration_us: float | None = None
    evidence: dict[str, _Value] = {}
    stalls: dict[str, float] | None = None
    occupancy: dict[str, Any] | None = None


class _Query(msgspec.Struct, frozen=True, kw_only=True):
    text: str = ""
    arch: str = ""
    operator: str = ""


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    query: _Query | None = None


class _Digest(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    class_name: str = msgspec.field(name="class")
    headline: int | None = None
    groups: tuple[_Group, ...] = ()
    next_step: _Step | None = None
    session: dict[str, Any] = {}


def case_of(data: bytes, lexicon: Lexicon, *, at: str) -> Case:
    """The headline kernel of a digest.json.

    Raises BadRecord for anything else, Refused for a digest that holds no judged kernel.
    """
    try:
        digest = msgspec.json.decode(data, type=_Digest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRecord(f"is no digest: {error}", where=at, fix=FIX) from None
    if digest.format != FORMAT:
        raise BadRecord(f"format: want {FORMAT!r}, got {digest.format[:60]!r}", where=at, fix=FIX)
    number = digest.headline or 0
    if digest.class_name in ("none.refused", "none.insufficient") or not 0 <= number < len(digest.groups):
        what = f"the digest says {digest.class_name}: it judges no kernel, so nothing follows from it"
        raise Refused(what, where=at, fix="capture what the digest asks for: kernelpilot ncu digest REPORT.ncu-rep")
    group = digest.groups[number]
    query = (digest.next_step.query if digest.next_step else None) or _Query()
    spoken = lexicon.heard(f"{query.operator} {group.kernel}", "f")
    try:
        values = _values(group)
    except OverflowError:
        raise BadRecord("is no digest: a number in it is none that can be measured", where=at, fix=FIX) from None
    return Case(
        class_name=digest.class_name,
        kernel=group.kernel,
        capability=_capability(query.arch, str(digest.session.get("cc", ""))),
        families=tuple(sorted(name for _, name in spoken)),
        dtypes=tuple(sorted(name for _, name in lexicon.heard(f"{query.text} {group.kernel}", "d"))),
        values=values,
        metrics={role: value.metric for role, value in group.evidence.items() if value.metric},
    )


def _capability(arch: str, cc: str) -> int:
    found = re.fullmatch(r"sm_?([0-9]{1,4})[af]?", arch) or re.fullmatch(r"([0-9]{1,3}\.[0-9])", cc)
    return int(found[1].replace(".", "")) if found else 0


def _values(group: _Group) -> dict[str, float]:
    out = {role: value.value for role, value in group.evidence.items() if value.value is not None}
    out |= {f"stall.{reason}": share for reason, share in (group.stalls or {}).items()}
    numbers = {f"occ.{k}": v for k, v in (group.occupancy or {}).items() if isinstance(v, int | float)}
    out |= {name: float(value) for name, value in numbers.items()}
    if group.duration_us is not None:
        out["duration_us"] = group.duration_us
    return {**out, "launches": group.launches}
