"""Whether Codex will run our Stop hook: as Codex itself says, and as its record recomputed says."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kernelpilot_install import hooks, trust
from kernelpilot_install.doctor import codex_says
from kernelpilot_install.doctor.check import Check, Here
from kernelpilot_install.doctor.codex_rpc import Unanswered
from kernelpilot_install.problems import InstallError
from kernelpilot_install.splice import groups

_MEANS: dict[str, trust.Trust] = {
    "trusted": "trusted",
    "managed": "trusted",
    "untrusted": "pending",
    "modified": "changed",
}
_WORDS = {
    "trusted": "was reviewed and is trusted",
    "pending": "is pending review, and Codex passes it over without a word",
    "changed": "was changed since it was reviewed, and Codex passes it over",
    "disabled": "was switched off in /hooks",
    "absent": "is not listed by Codex at all, so it does not run",
}


def codex_trust(here: Here) -> Iterator[Check]:
    """One answer for our handler of the user's hooks.json; nothing is said where it does not stand."""
    path = here.at.codex / hooks.FILES["codex"]
    launch = here.at.clone / hooks.LAUNCHER
    for found in hooks.standing(groups(hooks.read(path) or b"", where=str(path))):
        if found.program == launch:
            yield _judged(here, found)


def _judged(here: Here, found: hooks.Standing) -> Check:
    try:
        said = _asked(here, found)
    except Unanswered as e:
        recorded = trust.state(here.at, found)
        source = f"by its record in config.toml (Codex itself was not asked: {e})"
        return _check(here, recorded, f"{_WORDS[recorded]}, {source}")
    source = "as Codex itself says (hooks/list)"
    try:
        recorded = trust.state(here.at, found)
    except InstallError:
        return _check(here, said, f"{_WORDS[said]}, {source}; config.toml cannot be read here")
    if said in (recorded, "absent"):
        return _check(here, said, f"{_WORDS[said]}, {source}")
    what = f"{_WORDS[said]}, {source}; by its record in config.toml, recomputed, it {_WORDS[recorded]}"
    return _check(here, said, f"{what}: start a new session and look at /hooks", agreed=False)


def _asked(here: Here, found: hooks.Standing) -> str:
    asking = codex_says.Asking(at=here.at, env=here.env, folder=here.folder)
    with asking.server() as server:
        listed = codex_says.hooks(server, here.folder)
    key = trust.key(here.at, found)
    hook = next((h for h in listed if h.key == key), None)
    if hook is None:
        return "absent"
    if hook.trust not in _MEANS:
        raise Unanswered(f"hooks/list answers {hook.trust!r}")
    said = _MEANS[hook.trust]
    return "disabled" if said == "trusted" and not hook.enabled else said


def _check(here: Here, said: str, words: str, *, agreed: bool = True) -> Check:
    what = f"the Stop hook {words}"
    install = shlex.quote(str(here.at.clone / "install.sh"))
    review = "type /hooks, look at the Stop hook, trust it, and start a new session"
    fix = f"codex  # {review}. To trust it unseen: {install} --client codex --trust-hook"
    if said == "trusted":
        return Check(name="trust-codex", status="ok" if agreed else "warn", what=what, fix="" if agreed else fix)
    if said == "absent":
        fix = "codex features enable hooks  # and open /hooks in a new session: it names what is wrong with the file"
        return Check(name="trust-codex", status="fail", what=what, fix=fix)
    return Check(name="trust-codex", status="warn", what=what, fix=fix)
