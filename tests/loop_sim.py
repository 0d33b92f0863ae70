"""A loop's journal written by hand: what the loop's runtime would write, line by line, with its hash chain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelpilot_helpers import proc

HEADER = b'{"format":"humanize.journal","version":1}'
NAME = "2026-11-30_08-00-00"


def encode(record: object) -> bytes:
    """One compact line without its newline."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


class Loop:
    """One loop of a repo. Every method appends what its name says."""

    def __init__(self, repo: Path, name: str = NAME) -> None:
        self.repo = repo
        self.folder = repo / ".humanize/rlcr" / name
        self.lines = [HEADER]
        self.phase, self.round = "BUILD", 0

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    def add(self, event: str, data: dict[str, Any], head: str | None = None) -> None:
        record = {
            "at": f"2026-11-30T08:00:{len(self.lines):02d}Z",
            "data": data,
            "event": event,
            "head": proc.head(self.repo) if head is None else head,
            "phase": self.phase,
            "prev": hashlib.sha256(self.lines[-1]).hexdigest(),
            "round": self.round,
            "seq": len(self.lines),
        }
        self.lines.append(encode(record))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.journal.write_bytes(b"\n".join(self.lines) + b"\n")

    def setup(self) -> Loop:
        head = proc.head(self.repo)
        facts = {"loop": self.folder.name, "max": 84, "plan": "p.md", "plan_sha256": "0" * 64, "branch": "main"}
        more = {"base_commit": head, "base_branch": "main", "reviewer": "evidence-only", "session_sha256": "1" * 64}
        self.add("setup", {**facts, **more, "evidence": {}})
        return self

    def stop(
        self, *, passed: bool = True, findings: Sequence[str] = (), outcome: str = "block", phase: str = "BUILD"
    ) -> Loop:
        """A Stop of the current round; a block begins the next one."""
        before = self.round
        self.phase, self.round = phase, before + (outcome == "block")
        gate = {"pass": passed, "done": False, "findings": list(findings), "exit": 0 if passed else 1}
        cause = {"kind": "stop", "round": before}
        self.add("intent", {"id": f"{before}-1", "cause": cause, "outcome": outcome, "reason": "", "gate": gate})
        self.add("done", {"id": f"{before}-1"})
        return self
