"""``python -m kernelpilot_helpers.ncu ...`` is ``kernelpilot ncu ...``; it needs the tool's own venv."""

from __future__ import annotations

import sys

from kernelpilot_helpers.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["ncu", *sys.argv[1:]]))
