"""``python -m kernelpilot_helpers.knowledge search ...`` is ``kernelpilot knowledge search ...``."""

from __future__ import annotations

import sys

from kernelpilot_helpers.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["knowledge", *sys.argv[1:]]))
