"""Skills as a client sees them: the links are ours, and no second skill of the same name hides them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_install import skills, trust
from kernelpilot_install.doctor.check import Check, Here, edit
from kernelpilot_install.files import tree_hash

DEPTH = 6
FOLDERS = 2000
"""How deep and how far Codex looks below one root."""
HEAD_BYTES = 4096
_NAME = re.compile(r"^name:[ \t]*[\"']?([^\"'\r\n]+?)[\"']?[ \t]*\r?$", re.MULTILINE)


def links(here: Here, client: str, root: Path) -> Iterator[Check]:
    """Each folder of the bundle below ``root``/skills."""
    name = f"skills-{client}"
    fix = f"{shlex.quote(str(here.at.clone / 'install.sh'))} --client {client}"
    wrong = []
    for w in skills.wanted(here.at.clone, {client: root}):
        if not w.path.exists():
            wrong.append(f"{w.path} is absent")
        elif w.path.resolve() != w.target.resolve() and (
            w.path.is_symlink() or tree_hash(w.path) != tree_hash(w.target)
        ):
            wrong.append(f"{w.path} is not this clone's")
    if wrong:
        yield Check(name=name, status="fail", what="; ".join(wrong), fix=fix)
    else:
        found = sorted(skills.bundle_folders(here.at.clone))
        yield Check(name=name, status="ok", what=f"{root / 'skills'}: {', '.join(found)}")


def codex_doubles(here: Here) -> Iterator[Check]:
    """Two different skills of one name: Codex then injects nothing for ``$name``."""
    home = here.at.codex.parent if "HOME" not in here.env else Path(here.env["HOME"])
    roots = [here.at.codex / "skills", home / ".agents" / "skills"]
    roots += [p / kind / "skills" for p in _upward(here) for kind in (".codex", ".agents")]
    ours = set(skills.bundle_folders(here.at.clone)) - {"humanize"}
    places: dict[str, set[Path]] = {}
    for root in dict.fromkeys(roots):
        for folder in skill_folders(root):
            label = _label(folder)
            if label in ours:
                places.setdefault(label, set()).add(folder.resolve())
    for label, found in sorted(places.items()):
        if len(found) > 1:
            listed = ", ".join(str(p) for p in sorted(found))
            fix = f"ls -l {shlex.join(str(p) for p in sorted(found))}  # keep one, move the others out of there"
            what = f"${label} names {len(found)} different skills, so Codex injects none of them: {listed}"
            yield Check(name="skills-codex", status="fail", what=what, fix=fix)


def codex_switched_off(here: Here) -> Iterator[Check]:
    """A skill of ours that config.toml turns off."""
    table = trust.config(here.at.codex).get("skills", {})
    entries = table.get("config", []) if isinstance(table, dict) else []
    ours = {p.resolve() / "SKILL.md" for n, p in skills.bundle_folders(here.at.clone).items() if n != "humanize"}
    for entry in entries if isinstance(entries, list) else []:
        path = entry.get("path") if isinstance(entry, dict) else None
        if isinstance(path, str) and entry.get("enabled") is False and Path(path).resolve() in ours:
            where = here.at.codex / "config.toml"
            what = f"{where} turns {path} off"
            yield Check(
                name="skills-codex", status="fail", what=what, fix=edit(where, "remove that [[skills.config]] entry")
            )


def claude_doubles(here: Here) -> Iterator[Check]:
    """A project's own skill of that name; the user's copy wins over it."""
    for above in _upward(here):
        for name, target in skills.bundle_folders(here.at.clone).items():
            path = above / ".claude" / "skills" / name
            if path.is_dir() and path.resolve() != target.resolve() and path.parent != here.at.claude / "skills":
                fix = f"mv {shlex.quote(str(path))} {shlex.quote(str(path) + '-project')}"
                what = f"{path} has the same name as a skill of this bundle; Claude Code uses the user's"
                yield Check(name="skills-claude", status="warn", what=what, fix=fix)


def skill_folders(root: Path) -> list[Path]:
    """Folders with a SKILL.md below ``root``, hidden ones left out, as far as Codex looks."""
    found: list[Path] = []
    level, seen = [root], 0
    for _ in range(DEPTH):
        deeper = []
        for folder in level:
            try:
                children = sorted(p for p in folder.iterdir() if not p.name.startswith(".") and p.is_dir())
            except OSError:
                continue
            for child in children:
                seen += 1
                if seen > FOLDERS:
                    return found
                if (child / "SKILL.md").is_file():
                    found.append(child)
                deeper.append(child)
        level = deeper
    return found


def _label(folder: Path) -> str:
    fd = os.open(folder / "SKILL.md", os.O_RDONLY)
    try:
        head = os.read(fd, HEAD_BYTES).decode("utf-8", "replace")
    finally:
        os.close(fd)
    match = _NAME.search(head.split("\n---", 1)[0])
    return match[1] if match else folder.name


def _upward(here: Here) -> list[Path]:
    """The folder and those above it up to the git root; the folder alone outside a repository."""
    root = here.root
    if root is None:
        return [here.folder]
    return [p for p in (here.folder, *here.folder.parents) if p.is_relative_to(root)]
