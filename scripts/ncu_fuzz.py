"""Damages captures at random and asks for a digest of each: a digest or a named refusal, and nothing else.

    python scripts/ncu_fuzz.py --count 10000 --seed 1

Every survivor is also rendered, written as facts.json, and read back. Prints how often each outcome came and the
longest time; exits 1 when anything else than a refusal was raised, or a digest of the facts differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.ncu import canonical, examine, facts_file, load, render, render_page, show, sniff
from kernelpilot_helpers.ncu.model import RefusedInput
from tests import ncu_files as files
from tests import ncu_rep_build as build
from tests.test_ncu_fuzz import ALL, damaged

REPORTS = ("two-processes", "app-range")


def outcome(data: bytes, *, force: bool) -> str:
    """What a file gives. Raises whatever is neither a digest nor a refusal."""
    try:
        report = sniff.launched(load.read(data, name="x", sha256="0" * 64, force=force))
    except RefusedInput as fault:
        return f"refused {fault.code}"
    except KernelPilotError as fault:
        return f"refused {type(fault).__name__}"
    found = examine.digest_of(report)
    if render.text(found.digest).count("\n") >= render.LINES:
        raise ValueError("a first screen of more than twelve lines")
    render_page.markdown(found.digest)
    show.as_csv(show.rows(report))
    facts = canonical.dump(msgspec.to_builtins(facts_file.record(report, found.derived, redactor=found.redactor)))
    again = examine.digest_of(facts_file.parse(facts))
    if examine.dump(again.digest) != examine.dump(found.digest):
        return "FACTS DIFFER"
    return f"digest {found.digest.name}"


def mutations(count: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """Seed and bytes of each damaged file, half of them binary."""
    binary = [build.capture(name) for name in REPORTS]
    edges = [build.edges(data)[:-1] for data in binary]
    texts = [files.capture(name) for name in ALL]
    for at in range(seed, seed + count):
        rng = random.Random(at)  # noqa: S311 - damage, no secret
        if at % 2:
            yield at, damaged(rng.choice(texts), rng)
            continue
        pick = rng.randrange(len(binary))
        data = binary[pick]
        for _ in range(rng.choice((1, 1, 1, 3, 8))):
            data = build.damage(rng, data, edges[pick]) if len(data) > 100 else data
        yield at, data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    seen: Counter[str] = Counter()
    longest = 0.0
    for at, data in mutations(args.count, args.seed):
        start = time.process_time()
        try:
            what = outcome(data, force=at % 3 == 0)
        except Exception as error:  # noqa: BLE001 - what this is here to find
            what = f"ESCAPED {type(error).__name__}"
        longest = max(longest, time.process_time() - start)
        seen[what] += 1
        if what.isupper() or what.startswith("ESCAPED"):
            print(f"seed {at}: {what}")
    for what, times in seen.most_common():
        print(f"{times:6} {what}")
    print(f"longest {longest:.2f} s of processor time")
    return int(any(what.isupper() or what.startswith("ESCAPED") for what in seen))


if __name__ == "__main__":
    sys.exit(main())
