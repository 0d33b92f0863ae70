"""A loop from its hash-chained journal. ``state.md`` and the other views beside it are never believed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.evidence import files
from kernelpilot_helpers.evidence.model import TERMINALS, LoopFacts, StopFacts
from kernelpilot_helpers.records import Fault, parse_json, sha256

LOOPS = ".humanize/rlcr"
EXPORTED = "artifacts/loop"
"""Where ``report --final`` puts a copy: the loop's own folder is not in git."""
JOURNAL = "journal.jsonl"
FINAL = "finalize-summary.md"
FORMAT, VERSION = "humanize.journal", 1
MOST = 64 * 1024 * 1024
FIX = "the loop's runtime alone writes it; see what changed it, cancel the loop and set up another one"
_HEX = re.compile(r"[0-9a-f]{40,64}")


def parse(data: bytes, directory: str) -> LoopFacts:
    """Facts of a journal's bytes; reading ends at the first line that is not sound, which is a fault. Pure."""
    state = _Fold(directory)
    lines = data.split(b"\n")
    if lines.pop() != b"":
        state.fault(len(lines) + 1, "a torn last line")
    if not lines:
        state.fault(1, "no header")
    for number, line in enumerate(lines, start=1):
        try:
            record = parse_json(line, at=directory, fix=FIX)
            if number == 1:
                state.header(record)
            else:
                state.line(record, number, sha256(lines[number - 2]))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            state.fault(number, str(error) or type(error).__name__)
            break
        except KernelPilotError as error:
            state.fault(number, error.what)
            break
    return state.facts()


class _Fold:
    """What the lines so far have told."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.setup: Mapping[str, Any] = {}
        self.phase, self.round = "", 0
        self.stops: list[StopFacts] = []
        self.faults: list[Fault] = []
        self.tampered: list[str] = []
        self.amends: list[str] = []

    def fault(self, line: int, what: str) -> None:
        self.faults.append(Fault(where=f"{self.directory}/{JOURNAL}:{line}", what=what[:300], fix=FIX))

    def header(self, record: Mapping[str, Any]) -> None:
        if (record["format"], record["version"]) != (FORMAT, VERSION):
            raise ValueError(f"not a journal of version {VERSION}")

    def line(self, record: Mapping[str, Any], number: int, previous: str) -> None:
        if record["prev"] != previous:
            raise ValueError("prev is not the hash of the line before: a line was edited, removed or added")
        if record["seq"] != number - 1:
            raise ValueError(f"seq: want {number - 1}, got {record['seq']!r}")
        data, event = record["data"], record["event"]
        if event == "setup":
            self.setup = data
            self.stops.append(StopFacts(round=0, head=_head(record), at=str(record["at"]), outcome="setup"))
        elif not self.setup:
            raise ValueError(f"{event} before the set-up")
        elif event == "intent" and data["cause"].get("kind") == "stop":
            self.stops.append(_stop(record, data, self.round))
        elif event == "tamper":
            self.tampered.append(f"{data.get('path', '')}: {data.get('what', '')}"[:200])
        elif event == "amend":
            self.amends.append(f"{data['what']}: {data['why']}"[:200])
            if data["what"] == "plan":
                self.setup = {**self.setup, "plan_sha256": data["sha256"]}
        if not isinstance(record["phase"], str) or not isinstance(record["round"], int):
            raise TypeError("phase or round is missing")
        self.phase, self.round = record["phase"], record["round"]

    def facts(self) -> LoopFacts:
        """The loop as far as it could be read."""
        setup = self.setup
        most = setup.get("max", 0)
        return LoopFacts(
            directory=self.directory,
            phase=self.phase,
            round=self.round,
            max_rounds=most if isinstance(most, int) else 0,
            reviewer=str(setup.get("reviewer", "")),
            base_commit=str(setup.get("base_commit", "")),
            plan_sha256=str(setup.get("plan_sha256", "")),
            stops=tuple(self.stops),
            faults=tuple(self.faults),
            tampered=tuple(self.tampered),
            amends=tuple(self.amends),
        )


def _head(record: Mapping[str, Any]) -> str:
    head = record["head"]
    if head != "" and not _HEX.fullmatch(head):
        raise ValueError(f"head: want a commit, got {head!r}")
    return str(head)


def _stop(record: Mapping[str, Any], data: Mapping[str, Any], before: int) -> StopFacts:
    gate = data.get("gate") or {}
    passed = gate.get("pass")
    number = data["cause"].get("round", before)
    return StopFacts(
        round=number if isinstance(number, int) else before,
        head=_head(record),
        at=str(record["at"]),
        passed=passed if isinstance(passed, bool) else None,
        findings=tuple(str(name) for name in gate.get("findings", ())),
        outcome=str(data["outcome"]),
        reason=str(data.get("reason", "")),
    )


def folders(root: Path) -> tuple[str, ...]:
    """Repo-relative folders of the loops that have a journal, oldest first; the exported copy where there is none."""
    base = root / LOOPS
    try:
        found = sorted(path.name for path in base.iterdir() if (path / JOURNAL).exists()) if base.is_dir() else []
    except OSError:
        found = []
    if found:
        return tuple(f"{LOOPS}/{name}" for name in found)
    return (EXPORTED,) if (root / EXPORTED / JOURNAL).exists() else ()


def export_faults(root: Path) -> list[Fault]:
    """The copy of a journal below artifacts/ must be the beginning of a loop's own, where there is one."""
    copy = root / EXPORTED / JOURNAL
    live = [name for name in folders(root) if name != EXPORTED]
    if not live or not (copy.exists() or copy.is_symlink()):
        return []
    try:
        told = copy.read_bytes() if files.plain(copy) else None
        if told and any((root / name / JOURNAL).read_bytes().startswith(told) for name in live):
            return []
    except OSError:
        pass  # a journal that cannot be read bears nothing out
    what = "not the beginning of any loop's journal: it was edited here"
    return [Fault(where=f"{EXPORTED}/{JOURNAL}", what=what, fix="kernelpilot report --final")]


def load(root: Path, directory: str) -> LoopFacts:
    """One loop from disk, with the texts that its worker wrote. What cannot be read is a fault of the loop."""
    path = root / directory / JOURNAL
    try:
        if not files.plain(path) or path.stat().st_size > MOST:
            raise OSError("not a plain file of reasonable size")
        facts = parse(path.read_bytes(), directory)
    except OSError as error:
        broken = _Fold(directory)
        broken.fault(1, f"cannot be read: {error.strerror or error}")
        return broken.facts()
    folder = root / directory
    written = re.sub(r"(?s)<!--.*?(?:-->|\Z)", "", files.text(folder / FINAL) or "")
    written = re.sub(r"(?m)^#.*$", "", written)
    return replace(
        facts,
        summaries=_pages(folder, "summary"),
        contracts=_pages(folder, "contract"),
        finalized=bool(written.strip()),
    )


def _pages(folder: Path, kind: str) -> dict[int, str]:
    """Round -> text of ``round-N-<kind>.md``."""
    out: dict[int, str] = {}
    for path in sorted(folder.glob(f"round-*-{kind}.md")):
        match = re.fullmatch(rf"round-(\d{{1,4}})-{kind}\.md", path.name)
        found = files.text(path)
        if match and found is not None:
            out[int(match[1])] = found
    return out


def active_round(root: Path) -> int | None:
    """The round that the newest loop of this repo is in; None when it has none, or only ended or unsound ones."""
    found = [name for name in folders(root) if name != EXPORTED]
    if not found:
        return None
    loop = load(root, found[-1])
    return None if loop.faults or not loop.phase or loop.phase in TERMINALS else loop.round
