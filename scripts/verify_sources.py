"""Look up in clones what the knowledge tree says of others' code: commits, paths, names, read files, borrowed words.

python scripts/verify_sources.py --clones DIR [--alias owner/name=FOLDER ...] [--out FILE]

Clones are folders of DIR called OWNER+NAME (or OWNER+NAME/repo, NAME.git, NAME), bare or not; an alias names a fork
that holds the same commits, and is tried after them; give several for one repository where each holds a part. What has
no clone is counted as unchecked, never as passed. Nothing is fetched. Exit codes: 0 something was looked up and nothing
failed, 1 something failed, or nothing could be looked up (no claim, no clone; --allow-unchecked takes the latter), 2
wrong usage. Needs GitPython (python -m pip install GitPython).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import KernelPilotError, Refused
from source_check import claims as claimed
from source_check import clones, verdicts
from source_check.verdicts import FAILED, PASSED, UNCHECKED, Verdict

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("ref", "lesson", "read", "words")
OUTCOMES = (PASSED, FAILED, UNCHECKED)
SHOWN = 60
"""Failures printed; the file holds all."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--clones", type=Path, required=True, metavar="DIR")
    out.add_argument("--alias", type=alias, action="append", default=[], metavar="OWNER/NAME=FOLDER")
    out.add_argument("--knowledge", type=Path, default=ROOT / "knowledge", metavar="DIR")
    out.add_argument("--facts", type=Path, metavar="DIR", help="mined facts (DIR/data/facts of the tree)")
    out.add_argument("--only", default="", metavar="TEXT", help="claims whose place holds TEXT, such as gemm.jsonl")
    out.add_argument("--allow-unchecked", action="store_true", help="exit 0 though no claim could be looked up")
    out.add_argument("--out", type=Path, metavar="FILE", help="write every finding as JSON")
    return out


def alias(text: str) -> tuple[str, str]:
    """``owner/name=folder``. Raises ValueError for anything else."""
    repo, _, folder = text.partition("=")
    if "/" not in repo or not folder:
        raise ValueError(text)
    return repo, folder


def run(options: argparse.Namespace) -> list[Verdict]:
    """Look everything up. Raises KernelPilotError."""
    if not options.clones.is_dir():
        raise Refused("no such folder of clones", where=str(options.clones), fix="mkdir DIR, git clone --bare into it")
    facts = options.facts or options.knowledge / "data" / "facts"
    found = claimed.read(options.knowledge, facts)
    others = defaultdict(list)
    for repo, folder in options.alias:
        others[repo].append(folder)
    at = {repo: clones.found(options.clones, repo, others[repo]) for repo in verdicts.repos_of(found)}
    out = [v for v in verdicts.judge(found, at) if options.only in v.where]
    if not out:
        fix = "name a part of a place, such as cards/ or gemm.jsonl"
        raise Refused("no claim stands in such a place", where=f"--only {options.only}", fix=fix)
    return out


def document(judged: list[Verdict]) -> dict[str, object]:
    """What ``--out`` holds: counts by kind and outcome, every failure, and what could not be looked up."""
    counts = Counter((v.kind, v.outcome) for v in judged)
    reasons = Counter((v.kind, v.why) for v in judged if v.outcome == UNCHECKED)
    return {
        "format": "kernelpilot.knowledge-sources",
        "version": 1,
        "counts": {kind: {outcome: counts[kind, outcome] for outcome in OUTCOMES} for kind in KINDS},
        "failures": [
            {"kind": v.kind, "where": v.where, "what": v.what, "why": v.why} for v in judged if v.outcome == FAILED
        ],
        "unchecked": [{"kind": kind, "why": why, "count": count} for (kind, why), count in sorted(reasons.items())],
    }


def show(judged: list[Verdict]) -> None:
    """The table, then the failures."""
    counts = Counter((v.kind, v.outcome) for v in judged)
    print(f"{'':8}" + "".join(f"{outcome:>11}" for outcome in OUTCOMES))
    for kind in KINDS:
        print(f"{kind:8}" + "".join(f"{counts[kind, outcome]:>11}" for outcome in OUTCOMES))
    failed = [v for v in judged if v.outcome == FAILED]
    for verdict in failed[:SHOWN]:
        print(f"FAILED {verdict.where}: {verdict.what}: {verdict.why}")
    if len(failed) > SHOWN:
        print(f"... and {len(failed) - SHOWN} more; --out FILE holds all")
    for (kind, why), count in sorted(Counter((v.kind, v.why) for v in judged if v.outcome == UNCHECKED).items()):
        print(f"unchecked {count} {kind}: {why}")


def main(arguments: list[str] | None = None) -> int:
    """Exit code of one run."""
    options = parser().parse_args(arguments)
    started = time.monotonic()
    try:
        judged = run(options)
        if options.out:
            records.write_bytes(options.out, records.dump(document(judged)))
    except KernelPilotError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    show(judged)
    print(f"{len(judged)} claims in {time.monotonic() - started:.1f} s")
    if any(v.outcome == FAILED for v in judged):
        return 1
    if all(v.outcome == UNCHECKED for v in judged) and not options.allow_unchecked:
        print("nothing could be looked up: clone the repositories, or pass --allow-unchecked", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
