"""Put the runtime into a directory named by its content, so that a task's Python sees that and nothing else."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

import kernelpilot_helpers
from kernelpilot_helpers import proc

NAME = "kernelpilot_runtime"


def source_dir() -> Path:
    """Where this installation keeps the runtime's files."""
    return Path(kernelpilot_helpers.__file__).resolve().parent / "runtime"


def content_sha256(folder: Path) -> str:
    """Hex sha256 over names and bytes of the Python files of ``folder``; nothing else belongs to the runtime."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        data = path.read_bytes()
        digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def deploy(cache: Path | None = None, source: Path | None = None) -> Path:
    """The runtime's directory ``<cache>/runtime/<hash>/kernelpilot_runtime``, made or repaired where needed.

    The copy appears by rename. A copy whose content no longer matches its name is replaced.
    """
    source = source_dir() if source is None else source
    cache = proc.cache_dir() if cache is None else cache
    digest = content_sha256(source)
    home = cache / "runtime" / digest
    target = home / NAME
    if target.is_dir() and content_sha256(target) == digest:
        return target
    home.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=home.parent))
    try:
        made = fresh / "made"
        (made / NAME).mkdir(parents=True)
        for path in sorted(source.glob("*.py")):
            shutil.copyfile(path, made / NAME / path.name)
        if home.exists():
            home.rename(fresh / "old")
        try:
            made.rename(home)
        except OSError:
            if not target.is_dir() or content_sha256(target) != digest:  # else another process was faster
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target
