"""Entry of the Stop hook: a session without a loop is let go here, before the runtime is imported."""

from __future__ import annotations  # an old python, too, must come as far as saying that it is too old

import contextlib
import hashlib
import json
import os
import select
import sys

CAP = 8 << 20
BLOCKS = 2
PATIENCE_S = 60
STATES = ("", "finalize-", "complete-", "cancel-", "maxiter-", "stop-", "unexpected-")
KEPT = ("journal.jsonl", "journal.jsonl.broken", *(f"{state}state.md" for state in STATES))
"""Files of a loop that name its session."""


def main() -> None:
    """Read the client's JSON; anything that is not a Stop of a registered session ends in silence."""
    if sys.stdin is None or sys.stdout is None:
        return  # nobody asks, or nobody hears the answer
    try:
        os.fstat(2)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # so that no file of ours gets the number of stderr
    payload = read()
    if not isinstance(payload, dict) or payload.get("hook_event_name", "Stop") != "Stop":
        return
    session = payload.get("session_id")
    if not isinstance(session, str) or not session or os.environ.get("RLCR_REVIEWER") == "1":
        return
    base = os.environ.get("XDG_STATE_HOME") or ""
    if not base.startswith("/"):
        base = (os.environ.get("HOME") or "/") + "/.local/state"
    digest = hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()
    name = digest + ".json"
    if not os.path.lexists(f"{base}/humanize/sessions/{name}"):
        payload["cwd"] = standing(payload.get("cwd"))
        if not os.path.lexists(f"{base}/humanize/notes/{name}") and not orphaned(digest, payload["cwd"]):
            return
    payload.pop("rlcr_by", None)  # only our own commands say that it is not the hook who asks
    broken = f"{base}/humanize/sessions/{name}.broken"
    try:
        from pathlib import Path  # noqa: PLC0415 (not before it is needed)

        sys.pycache_prefix = f"{base}/humanize/pycache"  # so that the clone stays as git made it
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        from rlcr import stop_hook  # noqa: PLC0415 (the point of this file)
    except Exception as error:  # noqa: BLE001 (a traceback would end the turn in silence)
        what = f"RLCR's runtime cannot be loaded, so this Stop was not judged: {error}"[:400]
        sys.stdout.write(json.dumps(unloadable(broken, what)))
        return
    Path(broken).unlink(missing_ok=True)
    stop_hook.main(payload)


def read() -> object:
    """The client's JSON, None for what is none; a client that does not close its end is not waited for."""
    raw = bytearray()
    for _ in range(PATIENCE_S):
        while len(raw) <= CAP and select.select([0], [], [], 1)[0]:
            chunk = os.read(0, 1 << 16)
            raw += chunk
            if not chunk:
                return parsed(raw)
        found = parsed(raw)
        if found is not None or len(raw) > CAP:
            return found
    return None


def parsed(raw: bytearray) -> object:
    """What the bytes say, None when they are no whole JSON."""
    try:
        return json.loads(raw) if len(raw) <= CAP else None
    except (ValueError, RecursionError):
        return None


def standing(said: object) -> str:
    """The folder in which the session stopped, links resolved: above a link there is another tree."""
    where = said if isinstance(said, str) and said.startswith("/") and "\0" not in said else os.getcwd()  # noqa: PTH109
    return os.path.realpath(where)


def orphaned(digest: str, at: str) -> bool:
    """Whether a loop in this folder or above it names the session, which the registry does not know."""
    while at:
        base = f"{at}/.humanize/rlcr"
        for name in os.listdir(base) if os.path.isdir(base) else ():  # noqa: PTH112, PTH208 (as in unloadable)
            for kept in KEPT:
                path = f"{base}/{name}/{kept}"
                if os.path.isfile(path) and names(path, digest):  # noqa: PTH113
                    return True
        at = at.rpartition("/")[0]
    return False


def names(path: str, digest: str) -> bool:
    """Whether a file names the session; what cannot be read does not, and its neighbours are asked all the same."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return digest.encode() in file.read(CAP)
    except OSError:
        return False


def unloadable(count: str, what: str) -> dict[str, str]:
    """Block twice, so that a broken upgrade does not end a loop unseen; then let go, so that nobody is held."""
    try:
        with open(count, "a+b") as log:  # noqa: PTH123 (pathlib costs a hook a third of its time)
            log.seek(0)
            seen = len(log.read())
            log.write(b"x")
    except OSError:
        seen = BLOCKS
    if seen < BLOCKS:
        reason = f"{what}. Mend it (git status in the KernelPilot clone, or ./install.sh there) and stop again."
        return {"decision": "block", "reason": reason, "systemMessage": what}
    return {"systemMessage": f"{what}. The loop still stands: mend it, then run rlcr-stop-gate.sh"}


if __name__ == "__main__":
    with contextlib.suppress(Exception):  # what the runtime itself meets, it says; this is before or after it
        main()
        sys.stdout.flush()
    os._exit(0)
