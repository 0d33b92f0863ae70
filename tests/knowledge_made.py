"""Made-up mined facts and pages, written as the miner and a writer write them, and the lessons that are committed."""

from __future__ import annotations

import functools
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHA = "{:040x}"
LESSONS = "data/lessons/general.jsonl"
OURS = ROOT / "tests" / "knowledge_facts.jsonl.gz"
"""Mined rows of the records that the twenty lessons of ``general.jsonl`` are about."""


@functools.lru_cache(maxsize=1)
def ours() -> tuple[dict[str, Any], ...]:
    """The rows of ``OURS``."""
    return tuple(json.loads(line) for line in gzip.decompress(OURS.read_bytes()).splitlines())


def fact(number: int, **changes: Any) -> dict[str, Any]:
    """One merged pull request of tier A of the repository a/b; ``pr`` a text makes it a direct commit."""
    row: dict[str, Any] = {
        "repo": "a/b",
        "pr": number,
        "merged_at": "2025-06-01T23:30:00-07:00",
        "sha": SHA.format(number),
        "how": "squash",
        "n_files": 1,
        "files": [{"path": "csrc/x.cu", "add": 9, "del": 1}],
        "kernel_files": ["csrc/x.cu"],
        "test_files": [],
        "bench_files": [],
        "kinds": ["cuda"],
        "knet": 9,
        "symbols": [],
        "context": [],
        "diff_terms": {},
        "archs": [],
        "families": ["gemm"],
        "claims": [],
        "select": {"keep": True, "tier": "A", "score": 1, "why": "perf-title"},
        "words": ["plain"],
    }
    row.update(changes)
    row["id"] = f"{row['repo']}#{row['pr']}" if isinstance(row["pr"], int) else f"{row['repo']}@{row['pr']}"
    return row


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A folder of facts."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "made.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    return folder


def index(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """An index of the committed vocabulary, twenty committed lessons and their facts, and made-up facts."""
    own = {row["id"] for row in rows if "id" in row}
    written(folder)
    write(folder / "data/facts", [*rows, *(row for row in ours() if row["id"] not in own)])
    return folder


def only(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """An index of the committed vocabulary and made-up facts, without lessons."""
    (folder / "data").mkdir(parents=True)
    shutil.copy(ROOT / "knowledge/data/vocabulary.json", folder / "data")
    write(folder / "data/facts", rows)
    return folder


def written(folder: Path) -> None:
    """The committed vocabulary and general lessons."""
    (folder / LESSONS).parent.mkdir(parents=True)
    shutil.copy(ROOT / "knowledge/data/vocabulary.json", folder / "data")
    shutil.copy(ROOT / "knowledge" / LESSONS, folder / LESSONS)


def page(folder: Path, name: str, title: str, body: str = "Body.", **lead: str) -> Path:
    """A page below an index's folder; ``lead`` are fields of its first table, ``Read_at`` for ``Read at``."""
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"| {field.replace('_', ' ')} | {value} |\n" for field, value in lead.items())
    path.write_text(f"# {title}\n\n| Field | Value |\n| --- | --- |\n{rows}\n{body}\n")
    return path
