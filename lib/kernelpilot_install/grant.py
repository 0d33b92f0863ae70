"""``--trust-hook``: record in Codex that our own Stop hook is trusted, through Codex itself, and nothing else.

The user asked for it by name; no other way through the installer leads here. What is written is what Codex's own
/hooks screen writes: the digest of the definition that Codex lists.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping

from kernelpilot_install import hooks, trust
from kernelpilot_install.doctor import codex_says
from kernelpilot_install.doctor.codex_rpc import Server, Unanswered
from kernelpilot_install.places import Places
from kernelpilot_install.problems import InstallError
from kernelpilot_install.splice import groups

BY_HAND = "open /hooks in Codex and look at the Stop hook there"


def possible(at: Places, served: tuple[str, ...]) -> None:
    """Raise InstallError where the wish cannot be granted, before anything is touched."""
    if "codex" not in served:
        raise InstallError(
            "--trust-hook is about Codex, and Codex is not served here",
            fix="./install.sh --client codex --trust-hook; nothing was changed",
        )
    if shutil.which("codex", path=at.path) is None:
        raise InstallError(
            "--trust-hook asks Codex itself, and there is no `codex` on PATH",
            fix="install Codex or put its folder on PATH, then run this again; nothing was changed",
        )


def grant(at: Places, env: Mapping[str, str]) -> list[str]:
    """Trust our handler of the user's hooks.json, and say what was written.

    Raises InstallError when Codex does not answer, does not list exactly our handler at its place, or ends up with
    anything else changed.
    """
    found = _ours(at)
    asking = codex_says.Asking(at=at, env=env, folder=at.codex)
    try:
        with asking.server() as server:
            before = codex_says.hooks(server, at.codex)
            listed = _listed(at, found, before)
            if listed.trust == "trusted":
                return ["Codex trusts the Stop hook already: nothing was recorded"]
            _write(server, listed)
            _only_ours(listed.key, before, codex_says.hooks(server, at.codex))
    except Unanswered as e:
        again = f"{shlex.quote(str(at.clone / 'install.sh'))} --client codex --trust-hook"
        raise InstallError(
            f"the Stop hook is installed and not trusted: {e}", fix=f"{again}  # once that is mended, or {BY_HAND}"
        ) from None
    config = at.codex / "config.toml"
    return [
        f"recorded in {config}, as --trust-hook asked: Codex trusts the Stop hook {found.data['command']}",
        f"to undo: switch it off in /hooks of Codex, or remove the table {table(listed.key)} from that file",
    ]


def table(key: str) -> str:
    """Heading of a hook's record in config.toml."""
    return f"[hooks.state.{json.dumps(key, ensure_ascii=False)}]"


def _ours(at: Places) -> hooks.Standing:
    path = at.codex / hooks.FILES["codex"]
    launch = at.clone / hooks.LAUNCHER
    standing = hooks.standing(groups(hooks.read(path) or b"", where=str(path)))
    found = [s for s in standing if s.program == launch]
    if len(found) != 1 or len(standing) != 1:
        raise InstallError(
            f"want this clone's Stop hook once and no other clone's, found {len(standing)}; nothing was trusted",
            where=str(path),
            fix="kernelpilot doctor --client codex  # names what stands there",
        )
    return found[0]


def _listed(at: Places, found: hooks.Standing, listed: list[codex_says.Hook]) -> codex_says.Hook:
    """Codex's entry for our handler, which must be the very definition that stands in the file."""
    key = trust.key(at, found)
    hook = next((h for h in listed if h.key == key), None)
    if hook is None:
        raise InstallError(
            f"Codex does not list our Stop hook (it lists {len(listed)} other hooks); nothing was trusted",
            where=str(at.codex / hooks.FILES["codex"]),
            fix="kernelpilot doctor --client codex  # says whether hooks are off or the file is dropped",
        )
    if (hook.event, hook.command, hook.digest) != ("stop", found.data.get("command"), trust.digest(found.data)):
        raise InstallError(
            f"what Codex lists there is not our Stop hook: {hook.command} ({hook.digest}); nothing was trusted",
            where=key,
            fix=BY_HAND,
        )
    if not hook.enabled:
        raise InstallError("the Stop hook was switched off in Codex; nothing was trusted", where=key, fix=BY_HAND)
    return hook


def _write(server: Server, hook: codex_says.Hook) -> None:
    value = {hook.key: {"trusted_hash": hook.digest}}
    edit = {"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": value}
    server.call("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})


def _only_ours(key: str, before: list[codex_says.Hook], after: list[codex_says.Hook]) -> None:
    """Ours is trusted now, and every other hook is as it was. Raises InstallError."""
    ours = next((h for h in after if h.key == key), None)
    if ours is None or ours.trust != "trusted":
        said = "does not list it any more" if ours is None else f"calls it {ours.trust}"
        raise InstallError(f"Codex took the record and {said}", where=key, fix=BY_HAND)
    if [h for h in before if h.key != key] != [h for h in after if h.key != key]:
        raise InstallError("the state of another hook changed meanwhile", where=key, fix="look at /hooks in Codex")
