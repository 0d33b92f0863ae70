"""Entry of ``python3 -I lib/kernelpilot_install``: puts the package's parent on the path and starts it."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path[:] = [str(here.parent), *(p for p in sys.path if Path(p).resolve() != here)]
    from kernelpilot_install.app import main

    sys.exit(main(sys.argv[1:]))
