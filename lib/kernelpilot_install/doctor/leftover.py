"""Words that were to be replaced and were not, and a SKILL.md where Codex takes it for a skill of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_install import skills
from kernelpilot_install.doctor.check import Check, Here, Status
from kernelpilot_install.doctor.seen import skill_folders

_BRACES = re.compile(r"\{\{[^{}\n]{0,80}\}\}")
SHOWN = 5


def placeholders(here: Here) -> Iterator[Check]:
    """Those of this repo, which the caller found, and braces in an installed SKILL.md."""
    found = [f"{spot.where}: {spot.what}" for spot in here.placeholders]
    grave = any(spot.grave for spot in here.placeholders)
    fix = here.placeholders[0].fix if here.placeholders else ""
    for path, mark in _braces(here):
        found.append(f"{path} still holds {mark}")
        grave = True
        fix = fix or f"git -C {shlex.quote(str(here.at.clone))} checkout -- skills"
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        status: Status = "fail" if grave else "warn"
        yield Check(name="placeholders", status=status, what="; ".join(found[:SHOWN]) + more, fix=fix)
    else:
        yield Check(name="placeholders", status="ok", what="none is left")


def _braces(here: Here) -> Iterator[tuple[Path, str]]:
    for folder in _installed(here):
        path = folder / "SKILL.md"
        match = _BRACES.search(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else None
        if match is not None:
            yield path, match[0]


def nested(here: Here) -> Iterator[Check]:
    """Codex lists each SKILL.md down to a depth, also one inside another skill's folder."""
    clone = here.at.clone
    own = {p.resolve() for n, p in skills.bundle_folders(clone).items() if n != "humanize"}
    found = {
        inner.resolve() / "SKILL.md"
        for folder in _installed(here)
        for inner in [folder, *skill_folders(folder)]
        if (inner / "SKILL.md").is_file() and inner.resolve() not in own and not _copy(here, inner)
    }
    if found:
        listed = ", ".join(str(p) for p in sorted(found))
        what = f"Codex takes each of these for a skill of its own: {listed}"
        fix = "rm " + " ".join(shlex.quote(str(p)) for p in sorted(found))
        yield Check(name="nested-skills", status="fail", what=what, fix=fix)
    else:
        yield Check(name="nested-skills", status="ok", what="no SKILL.md lies below another skill")


def _copy(here: Here, folder: Path) -> bool:
    """Whether ``folder`` is one of the places where a skill of ours is installed."""
    names = set(skills.bundle_folders(here.at.clone)) - {"humanize"}
    roots = {here.at.codex / "skills", here.at.claude / "skills"}
    return folder.parent in roots and folder.name in names


def _installed(here: Here) -> list[Path]:
    """The bundle's folders in the clone, and where the clients have them."""
    bundle = skills.bundle_folders(here.at.clone)
    found = list(bundle.values())
    for root in (here.at.codex, here.at.claude):
        found += [p for p in (root / "skills" / name for name in bundle) if p.is_dir()]
    return list(dict.fromkeys(found))
