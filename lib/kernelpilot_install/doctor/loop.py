"""The loop in this worktree: did its hook ever fire, and can its evidence command run?"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelpilot_install.doctor.ask import ask
from kernelpilot_install.doctor.check import Check, Here

EVIDENCE = Path(".humanize", "evidence.json")
LOOPS = Path(".humanize", "rlcr")
TERMINAL = ("complete", "cancel", "maxiter", "stop", "unexpected")
ENTRY_BYTES_MAX = 65536


def heartbeat(here: Here) -> Iterator[Check]:
    """Every client lets go when a hook fails, so a loop must be able to tell that its gate never ran."""
    root = here.root
    if root is None:
        yield Check(name="heartbeat", status="ok", what="not in a repository: no loop to look for")
        return
    scripts = here.at.clone / "vendor" / "humanize" / "scripts"
    gate, rlcr = (shlex.quote(str(scripts / name)) for name in ("rlcr-stop-gate.sh", "rlcr"))
    entries = [e for e in _entries(here) if _same(e.get("worktree"), root)]
    for e in entries:
        if e.get("parked"):
            what = f"the hook lets go of {e.get('loop_dir', root)}: {e['parked']}"
            fix = f"{rlcr} resume  # once that is mended"
            yield Check(name="heartbeat", status="warn", what=what, fix=fix)
        elif e.get("last_fired"):
            times, last = e.get("fired", "?"), e.get("last_outcome") or "?"
            by_hand = f"; judged without it {e['asked']} times" if e.get("asked") else ""
            what = f"the hook last fired {e['last_fired']} ({times} times, last: {last}){by_hand}"
            yield Check(name="heartbeat", status="ok", what=what)
        elif e.get("last_asked"):
            yield _asked(e, gate)
        else:
            what = f"the gate never ran in {e.get('loop_dir', root)}: right in the first round, wrong after a stop"
            fix = f"{gate}  # instead of stopping, until hook and trust above are mended and the client is restarted"
            yield Check(name="heartbeat", status="warn", what=what, fix=fix)
    active = [] if entries else _active(root)
    for loop in active:
        what = f"{loop} is active, but no session is registered for it: no Stop hook will serve it"
        fix = f"{rlcr} adopt --session-id ID  # inside the client, in the session that works on it"
        yield Check(name="heartbeat", status="warn", what=what, fix=fix)
    if not entries and not active:
        yield Check(name="heartbeat", status="ok", what="no loop is active in this worktree")


def _asked(e: dict[str, Any], gate: str) -> Check:
    """A loop that is judged although its hook never fired: by the driver, or by hand."""
    counted = f"{e.get('asked', '?')} times, last {e['last_asked']}: {e.get('last_outcome') or '?'}"
    if e.get("asked_by") == "drive":
        what = f"{e.get('loop_dir')} is driven by rlcr drive, which needs no hook (judged {counted})"
        return Check(name="heartbeat", status="ok", what=what)
    what = f"the hook never fired in {e.get('loop_dir')}; its Stops were judged by hand ({counted})"
    fix = f"{gate}  # after each round, until hook and trust above are mended and the client is restarted"
    return Check(name="heartbeat", status="warn", what=what, fix=fix)


def _entries(here: Here) -> Iterator[dict[str, Any]]:
    base = here.env.get("XDG_STATE_HOME") or str(Path(here.env.get("HOME", "/")) / ".local" / "state")
    for path in sorted((Path(base) / "humanize" / "sessions").glob("*.json")):
        try:
            value = json.loads(path.read_bytes()[:ENTRY_BYTES_MAX])
        except (OSError, ValueError):
            continue
        if isinstance(value, dict):
            yield value


def _same(value: object, root: Path) -> bool:
    return isinstance(value, str) and value != "" and Path(value).resolve() == root.resolve()


def _active(root: Path) -> list[Path]:
    """Loop folders with a journal and no terminal state file."""
    found = sorted(p.parent for p in (root / LOOPS).glob("*/journal.jsonl"))
    return [p for p in found if not any((p / f"{t}-state.md").exists() for t in TERMINAL)]


def evidence(here: Here) -> Iterator[Check]:
    """Each command of .humanize/evidence.json is there and answers."""
    root = here.root
    if root is None or not ((root / "contract.toml").is_file() or (root / EVIDENCE).is_file()):
        yield Check(name="evidence", status="ok", what="not in a repo made by `kernelpilot scaffold`: nothing to run")
        return
    path = root / EVIDENCE
    if not path.is_file():
        yield Check(name="evidence", status="fail", what=f"{path} is absent: no gate would run", fix=_write(here, path))
        return
    try:
        commands = json.loads(path.read_bytes())["commands"]
        argvs = [[str(word) for word in c["argv"]] for c in commands]
    except (ValueError, KeyError, TypeError) as e:
        what = f"{path} is not as the loop reads it ({type(e).__name__}: {e})"
        yield Check(name="evidence", status="fail", what=what, fix=_write(here, path))
        return
    if not argvs or not all(argvs):
        yield Check(name="evidence", status="fail", what=f"{path} names no command", fix=_write(here, path))
        return
    for argv in argvs:
        yield _runs(here, argv, path)


def _runs(here: Here, argv: list[str], path: Path) -> Check:
    program = argv[0]
    if not os.path.isabs(program):  # noqa: PTH117  # as the text stands, not as a path of this folder
        what = f"{program} is not an absolute path: a client's hook has another PATH"
    elif not os.access(program, os.X_OK) or Path(program).is_dir():
        what = f"{program} is absent or not executable"
    else:
        answer = ask([program, "--version"], env=here.env, cwd=here.folder)
        if answer.code == 0:
            return Check(name="evidence", status="ok", what=f"{shlex.join(argv)} ({answer.first})")
        what = f"{program} --version {answer.why or f'exits {answer.code}'}"
    return Check(name="evidence", status="fail", what=f"{path}: {what}", fix=_write(here, path))


def _write(here: Here, path: Path) -> str:
    gone = f"rm {shlex.quote(str(path))} && " if path.exists() else ""
    return f"{gone}{shlex.quote(str(here.at.shim))} plan  # before the loop is set up; it writes that file"
