"""Make knowledge/data/records.jsonl: facts from a mined facts file, words of our own from knowledge_notes.json.

python scripts/pick_knowledge.py facts-prs.jsonl.gz [--candidates]

The facts file is not part of a clone: it is mined from the histories of public repositories. --candidates prints, for
each family, where the picking began: kept records of tiers A and B, best score first.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kernelpilot_helpers import knowledge, records
from kernelpilot_helpers.errors import BadRecord, KernelPilotError

ROOT = Path(__file__).resolve().parents[1]
NOTES = ROOT / "scripts" / "knowledge_notes.json"
MOST_FILES = 12
MOST_NAMES = 16

Facts = dict[str, Any]


def facts_of(path: Path) -> dict[str, Facts]:
    """The mined facts by id. Raises BadRecord when the file is absent or not what the miner writes."""
    fix = "give the path of a mined facts file (JSON Lines, gzip); a clone does not hold one"
    if not path.is_file():
        raise BadRecord("no such facts file", where=str(path), fix=fix)
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        return {row["id"]: row for row in rows}
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise BadRecord(f"cannot be read as facts: {error}", where=str(path), fix=fix) from None


def bag(words: list[str]) -> tuple[str, ...]:
    """Lower-case title words without punctuation around them, sorted and deduplicated: no sentence is left."""
    bare = (re.sub(r"^[^a-z0-9]+|[^a-z0-9]+$", "", word.lower()) for word in words)
    return tuple(sorted({word for word in bare if word}))


def utc(stamp: str) -> str:
    """A committer's local time as UTC."""
    return datetime.fromisoformat(stamp).astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def by_lines(facts: Facts, kind: str) -> tuple[str, ...]:
    """Paths of one kind, the most added lines first, so that the first one is the one to open."""
    added = {f["path"]: f["add"] or 0 for f in facts["files"]}
    return tuple(sorted(facts[kind], key=lambda path: (-added.get(path, 0), path))[:MOST_FILES])


def record_of(facts: Facts, note: Facts) -> knowledge.Record:
    """One record: facts, with label and lesson laid over them."""
    terms = sorted(facts["diff_terms"].items(), key=lambda item: (-item[1], item[0]))
    return knowledge.Record(
        id=facts["id"],
        repo=facts["repo"],
        pr=facts["pr"],
        sha=facts["sha"],
        merged_at=utc(facts["merged_at"]),
        tier=facts["select"]["tier"],
        label=note["label"],
        lesson=note["lesson"],
        archs=tuple(sorted(note["archs"] if "archs" in note else facts["archs"])),
        families=tuple(sorted(note["families"] if "families" in note else facts["families"])),
        kinds=tuple(sorted(facts["kinds"])),
        kernel_files=by_lines(facts, "kernel_files"),
        test_files=by_lines(facts, "test_files"),
        bench_files=by_lines(facts, "bench_files"),
        symbols=tuple(dict.fromkeys([*facts["symbols"], *facts["context"]]))[:MOST_NAMES],
        diff_terms=dict(terms),
        claims=tuple(facts["claims"]),
        words=bag(facts["words"]),
    )


def candidates(facts: dict[str, Facts], each: int = 12) -> None:
    """The best-scored records of each family."""
    groups: dict[str, list[Facts]] = collections.defaultdict(list)
    for row in facts.values():
        if row["select"]["keep"] and row["select"]["tier"] in ("A", "B"):
            for family in row["families"]:
                groups[family].append(row)
    for family in sorted(groups):
        print(family)
        for row in sorted(groups[family], key=lambda r: (-r["select"]["score"], r["id"]))[:each]:
            print(f"  {row['id']} {row['select']['tier']} {row['select']['score']} {' '.join(row['symbols'][:2])}")


def main() -> int:
    """Print the candidates, or write the index."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("facts", type=Path)
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "knowledge" / "data" / "records.jsonl")
    options = parser.parse_args()
    try:
        facts = facts_of(options.facts)
        if options.candidates:
            candidates(facts)
            return 0
        notes = json.loads(NOTES.read_text())["records"]
        missing = [note["id"] for note in notes if note["id"] not in facts]
        if missing:
            raise BadRecord(f"not in the facts: {', '.join(missing)}", where=str(options.facts), fix=f"edit {NOTES}")
        rows = sorted((record_of(facts[note["id"]], note) for note in notes), key=lambda record: record.id)
        lines = [records.header(knowledge.RECORDS), *(records.encode(row) for row in rows)]
        records.write_bytes(options.out, b"\n".join(lines) + b"\n")
    except KernelPilotError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(rows)} records written to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
