"""Made-up mined facts, written as the miner writes them."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHA = "{:040x}"


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
    """An index of the committed records and vocabulary over made-up facts."""
    data = folder / "data"
    data.mkdir(parents=True)
    for name in ("records.jsonl", "vocabulary.json"):
        shutil.copy(ROOT / "knowledge" / "data" / name, data)
    write(data / "facts", rows)
    return folder
