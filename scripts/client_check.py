"""The real Stop hook in the real clients, without a model: install, trust, block, go on, end.

python scripts/client_check.py [--out FILE]

Everything happens in a temporary folder with a HOME of its own; a scripted model answers on loopback. The clients are
those of CODEX_BIN and CLAUDE_BIN, else the pinned ones from npm. KERNELPILOT_PYTHON has numpy. The plays are those of
tests/clients, and some more.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

CLONE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CLONE)]

from client_lab import Lab  # noqa: E402 (tests.clients is found by the line above)
from tests.clients import drive_play, fetch, kernel_play, plays, review_play  # noqa: E402

COMMAND = (
    "KERNELPILOT_PYTHON=PYTHON python scripts/client_check.py --out FILE "
    "(the real clients in a private HOME; a scripted model server answers /v1/responses and /v1/messages on loopback)"
)
CANDIDATES = {"codex": kernel_play.FASTER, "claude": kernel_play.RENAMED}


def both(lab: Lab) -> None:
    """Everything that is asked of either client."""
    for name, words in plays.TALK.items():
        plays.idle(lab, name, words)
    plays.strangers(lab)
    plays.places(lab)
    drive_play.drive_play(lab)
    for reviewer in ("codex", "claude"):
        review_play.reviewed_loop(lab, reviewer)
        review_play.rerouted(lab, reviewer)
    for mention in kernel_play.MENTION[lab.client]:
        kernel_play.kernel_loop(lab, mention, CANDIDATES[lab.client])


def codex(lab: Lab) -> None:
    """Everything that holds for Codex."""
    plays.untrusted(lab)
    plays.trusted(lab)
    both(lab)


def claude(lab: Lab) -> None:
    """Everything that holds for Claude Code."""
    plays.mid_session(lab)
    both(lab)


PLAYS: dict[str, Callable[[Lab], None]] = {"codex": codex, "claude": claude}


def main() -> int:
    """Run every play; 0 when nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the checks to this file as well")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    options = parser.parse_args()
    top = Path(tempfile.mkdtemp(prefix="kernelpilot-clients-")).resolve()
    try:
        lab = Lab(top, os.environ.get("KERNELPILOT_PYTHON", sys.executable), fetch.clients())
        plays.installed(lab, lend=False)
        versions = {name: lab.must(program, "--version").splitlines()[0] for name, program in lab.bins.items()}
        for name, play in PLAYS.items():
            lab.client = name
            play(lab)
    except fetch.NotHere as why:
        print(f"nothing was checked: {why}")
        return 1
    finally:
        print(f"kept {top}") if options.keep else shutil.rmtree(top, ignore_errors=True)
    if options.out:
        record = {
            "command": COMMAND,
            "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
            "os": platform.platform(),
            "python": platform.python_version(),
            "clients": versions,
            "passed": len(lab.checks) - len(lab.failed()),
            "failed": len(lab.failed()),
            "notes": lab.notes,
            "checks": lab.checks,
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(f"note {note}" for note in lab.notes))
    print(f"{len(lab.checks) - len(lab.failed())} passed, {len(lab.failed())} failed")
    return 1 if lab.failed() else 0


if __name__ == "__main__":
    sys.exit(main())
