"""Speed, measured by the referee: this file only asks, and passes its arguments on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def kernelpilot() -> str:
    """The referee this repo was made with, else the one on PATH."""
    facts = ROOT / ".humanize" / "evidence.json"
    if facts.exists():
        return str(json.loads(facts.read_text(encoding="utf-8"))["commands"][0]["argv"][0])
    return shutil.which("kernelpilot") or "kernelpilot"


if __name__ == "__main__":
    sys.exit(subprocess.run([kernelpilot(), "bench", *sys.argv[1:]], cwd=ROOT, check=False).returncode)
