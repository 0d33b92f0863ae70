"""A stand-in for a GPU: three files laid over a copy of the runtime, so that its whole GPU path runs on CPU torch.

Memory that two processes share is a file in memory, a captured graph is the body itself, run again at each replay, and
time is the host's. What only a GPU can show (streams, captures, caches) is tested on one, with the marker ``gpu``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from kernelpilot_helpers.executors import deploy

OVERLAY = ("cuda.py", "graphs.py", "nvml.py")


def runtime(folder: Path) -> Path:
    """A source folder of the runtime with the stand-ins in place, for ``deploy.deploy(source=...)``."""
    target = folder / "fake-runtime"
    if not target.exists():
        target.mkdir(parents=True)
        for path in deploy.source_dir().glob("*.py"):
            shutil.copyfile(path, target / path.name)
        for name in OVERLAY:
            shutil.copyfile(Path(__file__).parent / name, target / name)
    return target
