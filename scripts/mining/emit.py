"""The output: one compressed file a repository, the same bytes for the same records on every machine."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from kernelpilot_helpers import records
from mining.facts import FACTS
from mining.repos import FEWEST


def pack(rows: list[bytes]) -> bytes:
    """Header and rows, gzip without a name or a time in it."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=9, mtime=0) as packed:
        packed.write(b"\n".join([records.header(FACTS), *rows]) + b"\n")
    return out.getvalue()


def unpack(data: bytes) -> list[bytes]:
    """The rows of ``pack``, without the header."""
    return gzip.decompress(data).rstrip(b"\n").split(b"\n")[1:]


def file_of(out: Path, repo: str) -> Path:
    """Where a repository's facts are written."""
    return out / f"{repo.replace('/', '+')}.jsonl.gz"


def summary(rows: list[bytes], heads: Mapping[str, str]) -> dict[str, object]:
    """Counts by tier and kind; ``source_only`` where too few pull requests are evidence."""
    plain = [json.loads(row) for row in rows]
    tiers = Counter(row["tier"] for row in plain if row["how"] != "open")
    selected = sum(
        row["tier"] in "ABCDE" and row["tier"] != "" and row["how"] in ("squash", "merge", "api") for row in plain
    )
    return {
        "heads": dict(heads),
        "records": len(plain),
        "how": dict(sorted(Counter(row["how"] for row in plain).items())),
        "tiers": {tier or "background": tiers[tier] for tier in sorted(tiers)},
        "selected_prs": selected,
        "source_only": selected < FEWEST,
    }


def write(out: Path, repo: str, rows: list[bytes], heads: Mapping[str, str]) -> dict[str, object]:
    """Write facts and their summary; return the summary."""
    out.mkdir(parents=True, exist_ok=True)
    records.write_bytes(file_of(out, repo), pack(rows))
    told = summary(rows, heads)
    index = out / "repos.json"
    known = json.loads(index.read_text()) if index.is_file() else {}
    known[repo] = told
    records.write_bytes(index, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())
    return told
