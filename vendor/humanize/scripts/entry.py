"""Entry of the loop's commands: ``entry.py COMMAND ARGUMENTS``."""

import os
import sys
from pathlib import Path

# Bytecode goes where the loop's other state is, so that the clone stays as git made it.
if (base := os.environ.get("HOME", "")).startswith("/"):
    sys.pycache_prefix = f"{base}/.local/state/humanize/pycache"
if (base := os.environ.get("XDG_STATE_HOME", "")).startswith("/"):
    sys.pycache_prefix = f"{base}/humanize/pycache"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rlcr import cli

if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
