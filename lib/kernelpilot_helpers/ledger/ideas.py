"""Source ideas: which public code was read, for what hypothesis, and what came of it. Read once, never twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord, Refused

IDEAS_PATH = "artifacts/source-ideas.jsonl"


class Idea(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One place in somebody's source that was opened."""

    key: str = ""
    """``idea_key`` of the four fields below; empty only before ``add``."""
    repo: str
    commit: str
    path: str
    symbol: str = ""
    pr: str = ""
    opened: tuple[str, ...] = ()
    """Tests and benchmarks that were opened beside it."""
    hypothesis: str
    result: str = ""
    """Empty: the view tells the verdicts of the attempts that cite the key."""
    at: str
    """UTC time, ISO 8601, to the second; empty for an imported idea without one."""
    reread_reason: str = ""


IDEAS: records.Owner[Idea] = records.Owner(
    format="kernelpilot.source-ideas", version=1, type=Idea, fix="git checkout -- artifacts/source-ideas.jsonl"
)


def idea_key(*, repo: str, commit: str, path: str, symbol: str) -> str:
    """First 16 hex digits of the sha256 over the four parts, each ended by a zero byte."""
    return records.sha256(b"".join(part.encode() + b"\0" for part in (repo, commit, path, symbol)))[:16]


def parse_ideas(data: bytes, at: str = IDEAS_PATH) -> tuple[tuple[Idea, ...], tuple[records.Fault, ...]]:
    """Every readable idea, and a fault for each line that is not or whose key is not its own."""
    log = records.parse_log(data, IDEAS, at=at)
    faults = list(log.faults)
    for idea in log.rows:
        own = idea_key(repo=idea.repo, commit=idea.commit, path=idea.path, symbol=idea.symbol)
        if idea.key != own:
            what = f"key {idea.key!r} is not that of {idea.repo} {idea.path}: want {own!r}"
            faults.append(records.Fault(where=at, what=what, fix=IDEAS.fix))
    return log.rows, tuple(faults)


def load_ideas(repo: Path) -> tuple[Idea, ...]:
    """The readable ideas of a repo, none without the file; what is not readable is for ``parse_ideas`` to tell."""
    path = repo / IDEAS_PATH
    return parse_ideas(path.read_bytes())[0] if path.exists() else ()


def add(ideas: Sequence[Idea], idea: Idea) -> Idea:
    """The idea with its key, fit to be appended.

    Raises BadRecord when repo, commit, path or hypothesis is empty, Refused when the same place was read before
    and no reason is given for reading it again.
    """
    for name in ("repo", "commit", "path", "hypothesis"):
        if not getattr(idea, name).strip():
            raise BadRecord(f"{name} is empty", where="source idea", fix=f"give --{name}")
    key = idea_key(repo=idea.repo, commit=idea.commit, path=idea.path, symbol=idea.symbol)
    before = next((old for old in ideas if old.key == key), None)
    if before is not None and not idea.reread_reason.strip():
        raise Refused(
            f"{idea.repo} {idea.path} {idea.symbol}".rstrip() + f" was read already (key {key})",
            where=IDEAS_PATH,
            fix=f"use what it gave ({before.result or before.hypothesis}), or say why: --reread-reason TEXT",
        )
    return msgspec.structs.replace(idea, key=key)


def append_idea(repo: Path, idea: Idea) -> Idea:
    """Decide by what is on disk, then append durably. Raises what ``add`` raises, BadRecord for a garbled log."""
    path = repo / IDEAS_PATH
    known: tuple[Idea, ...] = ()
    if path.exists():
        known, faults = parse_ideas(path.read_bytes())
        if faults:
            raise BadRecord(faults[0].what, where=faults[0].where, fix=faults[0].fix)
    keyed = add(known, idea)
    records.append(path, keyed, IDEAS)
    return keyed
