"""Which folders of the bundle a client should see under its ``skills`` folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One link: ``path`` in a client's folder to ``target`` in the bundle."""

    client: str
    path: Path
    target: Path


def bundle_folders(clone: Path) -> dict[str, Path]:
    """Name to folder: each ``skills/<name>/`` with a SKILL.md, and the loop's runtime under ``humanize``."""
    found = {p.parent.name: p.parent for p in sorted((clone / "skills").glob("*/SKILL.md"))}
    runtime = clone / "vendor" / "humanize"
    if runtime.is_dir():
        found["humanize"] = runtime
    return found


def wanted(clone: Path, roots: dict[str, Path]) -> list[Wanted]:
    """Every link to make; ``roots`` maps a client to the folder that holds its ``skills``."""
    return [
        Wanted(client=client, path=root / "skills" / name, target=target)
        for client, root in roots.items()
        for name, target in bundle_folders(clone).items()
    ]
