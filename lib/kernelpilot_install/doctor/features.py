"""Codex's feature key for hooks: on by default, and off by one line that an older guide told people to write."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kernelpilot_install import trust
from kernelpilot_install.doctor import codex_says
from kernelpilot_install.doctor.check import Check, Here
from kernelpilot_install.doctor.codex_rpc import Unanswered

NAME = "feature-codex"
ON = "codex features enable hooks  # then start a new session"
UPGRADE = "npm install -g @openai/codex@latest  # then start a new session"


def codex(here: Here) -> Iterator[Check]:
    """The key in config.toml, then what Codex makes of it."""
    path = here.at.codex / "config.toml"
    table = trust.config(here.at.codex).get("features", {})
    set_here = table if isinstance(table, dict) else {}
    old = set_here.get("codex_hooks")
    if "codex_hooks" in set_here:
        fix = f"sed -i.bak -E '/^[[:space:]]*(features\\.)?codex_hooks[[:space:]]*=/d' {shlex.quote(str(path))}"
        what = f"{path}: [features] codex_hooks is the older name of `hooks`; Codex complains of it and needs no key"
        off = old is False and "hooks" not in set_here
        what += ", and false turns every hook off" if off else ""
        yield Check(name=NAME, status="fail" if off else "warn", what=what, fix=fix)
        if off:
            return
    if set_here.get("hooks") is False:
        what = f"{path}: [features] hooks = false turns every hook off"
        yield Check(name=NAME, status="fail", what=what, fix=ON)
        return
    yield _listed(here)


def _listed(here: Here) -> Check:
    try:
        found = codex_says.features(codex_says.Asking(at=here.at, env=here.env, folder=here.folder))
    except Unanswered as e:
        return Check(name=NAME, status="ok", what=f"config.toml does not turn hooks off (Codex was not asked: {e})")
    if found.get("hooks"):
        return Check(name=NAME, status="ok", what="`codex features list`: hooks is on")
    if "hooks" in found:
        what = "`codex features list`: hooks is off, though the user's config.toml does not say so"
        return Check(name=NAME, status="fail", what=what, fix=ON)
    if found.get("codex_hooks"):
        what = "this Codex is old: it lists `codex_hooks`, not `hooks`; what is said here was tried with newer ones"
        return Check(name=NAME, status="warn", what=what, fix=UPGRADE)
    if "codex_hooks" in found:
        what = "this Codex is old, and its `codex_hooks` is off: no hook runs"
        fix = f"{UPGRADE}; to stay with this one: codex features enable codex_hooks"
        return Check(name=NAME, status="fail", what=what, fix=fix)
    what = "this Codex lists no hooks among its features: no Stop hook runs"
    return Check(name=NAME, status="fail", what=what, fix=UPGRADE)
