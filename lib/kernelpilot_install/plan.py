"""What a plain install has to change here: reads the machine, writes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernelpilot_install import hooks, skills, trust
from kernelpilot_install.changes import SHIM_MARK, Change, Hook, Shim, Skill, Venv, folders
from kernelpilot_install.files import tree_hash
from kernelpilot_install.manifest import Entry, Manifest
from kernelpilot_install.options import Options
from kernelpilot_install.places import Places, clients_found
from kernelpilot_install.problems import InstallError
from kernelpilot_install.undo import judge
from kernelpilot_install.venvs import Pip, Recipe, outdated

CLIENT_FOLDERS = {"codex": ".codex", "claude": ".claude"}


@dataclass
class Plan:
    """Changes in order; findings are faults the user must look at; notes are said at the end."""

    changes: list[Change] = field(default_factory=list)
    stale: list[Entry] = field(default_factory=list)
    """Links of ours whose skill this version no longer has."""
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hooked: tuple[str, ...] = ()
    """Clients whose settings hold the Stop hook once the plan is carried out."""


def tool_recipe(at: Places, *, dev: bool) -> Recipe:
    """The tool's venv: the clone itself, in place, on the locked requirements."""
    lock = at.clone / ("requirements-dev.lock" if dev else "requirements.lock")
    return Recipe(path=at.venv(dev=dev), title="the tool", requirements=(lock,), clone=at.clone)


def clients(o: Options, at: Places, env: Mapping[str, str]) -> tuple[str, ...]:
    """The clients to serve."""
    if o.client is None:
        return clients_found(at, env)
    return {"both": ("codex", "claude"), "none": ()}.get(o.client, (o.client,))


def plan_install(o: Options, at: Places, env: Mapping[str, str], known: Manifest, pip: Pip) -> Plan:
    """The changes that are left to make. Raises InstallError for anything that must stop the whole install."""
    _one_clone(o, at, known)
    _shim_is_ours(at.shim)
    if o.project is not None and not o.project.is_dir():
        raise InstallError("no such folder", where=str(o.project), fix="create it, or name another --project")
    plan = Plan()
    served = clients(o, at, env)
    registrations = _hooks(o, at, served, known, plan)
    recipe = tool_recipe(at, dev=o.dev)
    why = outdated(recipe, pip)
    shim = Shim(path=at.shim, venv=recipe.path)
    links = _links(o, at, served, known, plan)
    parents = [] if shim.current() else [at.shim.parent]
    parents += [w.path.parent for w in links] + [r.path.parent for r in registrations]
    plan.changes += folders(parents)
    if why:
        plan.changes.append(Venv(recipe=recipe, why=why))
    if not shim.current():
        plan.changes.append(shim)
    plan.changes += [Skill(link=w) for w in links]
    plan.changes += [Hook(registration=r) for r in registrations]
    moved = {str(w.path) for w in links}
    plan.stale = [
        e for e in known.entries if e.kind in {"link", "copy"} and e.path not in moved and not Path(e.target).is_dir()
    ]
    if not served and o.client is None:
        plan.notes.append("no client found: no skills installed; name one with --client codex or --client claude")
    return plan


def _one_clone(o: Options, at: Places, known: Manifest) -> None:
    if known.clone not in {"", str(at.clone)} and not o.replace:
        gone = "" if Path(known.clone).is_dir() else " (which is gone)"
        raise InstallError(
            f"the command and the skills belong to another clone, {known.clone}{gone}; this one is {at.clone}",
            fix=f"run {at.clone}/install.sh --replace to point them here; nothing was changed",
        )


def _shim_is_ours(shim: Path) -> None:
    if not shim.exists() and not shim.is_symlink():
        return
    marked = shim.is_file() and not shim.is_symlink() and SHIM_MARK.encode() in shim.read_bytes()[:4096]
    if not marked:
        raise InstallError(
            "belongs to something else and is not overwritten",
            where=str(shim),
            fix="move it away, then run ./install.sh again; nothing was changed",
        )


def _roots(o: Options, at: Places, served: tuple[str, ...]) -> dict[str, Path]:
    user = {"codex": at.codex, "claude": at.claude}
    if o.project is None:
        return {c: user[c] for c in served}
    return {c: o.project / CLIENT_FOLDERS[c] for c in served}


def _links(o: Options, at: Places, served: tuple[str, ...], known: Manifest, plan: Plan) -> list[skills.Wanted]:
    """The links still to make; a foreign folder of that name becomes a finding."""
    todo = []
    for w in skills.wanted(at.clone, _roots(o, at, served)):
        if w.path.is_symlink() and w.path.readlink() == w.target:
            continue
        old = known.entry(w.path)
        if old is not None and old.kind == "copy" and _same_copy(w, old):
            continue
        if (w.path.exists() or w.path.is_symlink()) and (old is None or judge(old).act != "remove"):
            plan.findings.append(f"{w.path}: exists and is not ours; left as it is, so {w.client} keeps that one")
            continue
        todo.append(w)
    return todo


def _same_copy(w: skills.Wanted, old: Entry) -> bool:
    return w.path.is_dir() and old.sha256 == tree_hash(w.path) == tree_hash(w.target)


def _hooks(o: Options, at: Places, served: tuple[str, ...], known: Manifest, plan: Plan) -> list[hooks.Registration]:
    launch = hooks.launcher(at.clone)
    if launch is None:
        plan.notes.append("no Stop hook in this version: nothing registered")
        return []
    if o.project is not None:
        plan.notes.append("--project: no Stop hook registered; a plain ./install.sh registers it for the user")
        return []
    found = [hooks.register(c, root, launch, known) for c, root in _roots(o, at, served).items()]
    plan.hooked = served
    return [r for r in found if r is not None]


def closing(plan: Plan, at: Places) -> list[str]:
    """The last lines of an install: only what is so. What still keeps the Stop hook from running comes last."""
    lines = list(plan.notes)
    folder = at.shim.parent
    first = shutil.which("kernelpilot", path=at.path)
    if str(folder) not in at.path.split(os.pathsep):
        lines.append(f'{folder} is not on PATH: add  export PATH="{folder}:$PATH"  to your shell\'s profile')
    elif first != str(at.shim):
        lines.append(f"{first} comes before {at.shim} on PATH: `kernelpilot` starts that one")
    lines.append("next: `kernelpilot doctor` checks what was set up; ./install.sh --demo plays the main job on the CPU")
    told = trust.notice(at) if "codex" in plan.hooked else ""
    lines += [told] if told else []
    if any(_of_codex(c) for c in plan.changes):
        lines.append("restart Codex: a running one does not see the change")
    return lines


def _of_codex(change: Change) -> bool:
    if isinstance(change, Skill):
        return change.link.client == "codex"
    return isinstance(change, Hook) and change.registration.client == "codex"
