"""Entry of the loop's commands: ``entry.py COMMAND ARGUMENTS``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rlcr import cli

if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
