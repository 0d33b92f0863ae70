"""``python -m kernelpilot_helpers.ncu digest FILE``: the same command as ``kernelpilot ncu digest FILE``."""

from __future__ import annotations

import sys

from kernelpilot_helpers.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["ncu", *sys.argv[1:]]))
