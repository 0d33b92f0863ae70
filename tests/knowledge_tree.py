"""A small made-up knowledge tree: facts as the miner writes them, lessons, pages."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HEAD = {"format": "kernelpilot.lessons", "version": 1}
LESSON = (
    "The kernel loads sixteen bytes a thread instead of two and keeps a scalar tail for rows that do not divide. It "
    "applies where rows are aligned; check sectors per request and the long scoreboard share. Odd rows break it."
)
TECHNIQUE = """# Wide loads

| Field | Value |
| --- | --- |
| Kind | technique |
| Mechanisms | `vectorized` |
| Families | gemm |
| Architectures | sm80 and newer |
| Types | fp16 |
| Classes | `mem.uncoalesced` |
| Evidence | a/b#1, a/b#2, c/d#1 |
| Read at | 2026-11-30 |

Load sixteen bytes a thread.

## When it helps
Sectors per request stay above 4.
## How it is done
One vector type.
## Needs
Aligned rows.
## Against it
Short rows.
## Check in the profile
Sectors fall.
## Pitfalls
Tails.
## Where to read
- `a/b@000000000001:csrc/x.cu#load`
- `a/b@000000000001:csrc/y.cu`
- `c/d@000000000001:z.py`
"""


def row(name: str, **changes: Any) -> dict[str, Any]:
    """One mined row; ``name`` is its id, of which repository, number and sha are made."""
    repo, _, number = name.partition("#")
    out: dict[str, Any] = {
        "id": name,
        "repo": repo or name,
        "pr": int(number),
        "sha": f"{int(number):040x}",
        "merged_at": "2026-01-02T03:04:05Z",
        "how": "squash",
        "tier": "A",
        "why": "",
        "score": 5.0,
        "label": f"cuda gemm: vectorized 3; in kernel_{number}",
        "archs": ["sm90"],
        "dtypes": ["fp16"],
        "families": ["gemm"],
        "kinds": ["cuda"],
        "evidence": {},
        "n_files": 1,
        "files": [{"path": "csrc/x.cu", "add": 9, "del": 1}],
        "kernel_files": ["csrc/x.cu"],
        "test_files": [],
        "bench_files": [],
        "config_files": 0,
        "kadd": 9,
        "kdel": 1,
        "knet": 8,
        "kernel_lines": 8,
        "symbols": ["kernel"],
        "context": [],
        "diff_terms": {"vectorized": 3},
        "claims": [],
        "words": ["faster", "kernel"],
    }
    return {**out, **changes}


def lesson(name: str, **changes: Any) -> dict[str, Any]:
    """A sound lesson about ``row(name)``."""
    out = {
        "id": name,
        "sha": f"{int(name.partition('#')[2]):040x}",
        "label": "sixteen-byte loads in the made-up kernel",
        "lesson": LESSON,
        "read": ["csrc/x.cu"],
        "techniques": ["wide-loads"],
    }
    return {**out, **changes}


def write_facts(folder: Path, rows: list[dict[str, Any]]) -> None:
    """One file of facts a repository."""
    folder.mkdir(parents=True, exist_ok=True)
    header = {"format": "kernelpilot.knowledge-facts", "version": 1}
    for repo in sorted({r["repo"] for r in rows}):
        lines = [header, *(r for r in rows if r["repo"] == repo)]
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        (folder / f"{repo.replace('/', '+')}.jsonl.gz").write_bytes(gzip.compress(data, mtime=0))


def write_lessons(path: Path, lessons: list[dict[str, Any]]) -> None:
    """A file of lessons with its header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in [HEAD, *lessons]))


def _told(rows: list[dict[str, Any]]) -> dict[str, Any]:
    tiers = Counter(r["tier"] or "background" for r in rows if r["how"] != "open")
    selected = sum(r["tier"] in tuple("ABCDE") and r["how"] in ("squash", "merge", "api") for r in rows)
    return {
        "heads": {"HEAD": "f" * 40},
        "records": len(rows),
        "how": Counter(r["how"] for r in rows),
        "tiers": tiers,
        "selected_prs": selected,
        "source_only": selected < 10,
    }


def make(
    folder: Path,
    rows: list[dict[str, Any]] | None = None,
    lessons: list[dict[str, Any]] | None = None,
    pages: dict[str, str] | None = None,
) -> Path:
    """A sound tree of three records, one lesson and one technique, or what is given in its place."""
    rows = [row("a/b#1"), row("a/b#2"), row("c/d#1")] if rows is None else rows
    facts = folder / "data" / "facts"
    write_facts(facts, rows)
    told = {repo: _told([r for r in rows if r["repo"] == repo]) for repo in {r["repo"] for r in rows}}
    (facts / "repos.json").write_text(json.dumps(told))
    shutil.copy(ROOT / "knowledge" / "data" / "vocabulary.json", folder / "data")
    write_lessons(folder / "data" / "lessons" / "made.jsonl", [lesson("a/b#1")] if lessons is None else lessons)
    for path, text in ({"techniques/wide-loads.md": TECHNIQUE} if pages is None else pages).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder
