"""Can this worktree be committed to? A client's sandbox may hold ``.git`` read-only."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_install.doctor.ask import ask
from kernelpilot_install.doctor.check import Check, Here

IN_CODEX = ("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED")


def possible(here: Here) -> Iterator[Check]:
    """A file without a name is made in git's folders, as the loop's set-up does; nothing is left behind."""
    root = here.root
    if root is None:
        yield Check(name="commit", status="ok", what="not in a repository: nothing to commit to")
        return
    answer = ask(["git", "rev-parse", "--absolute-git-dir", "--git-common-dir"], env=here.env, cwd=root)
    if answer.code != 0:
        what = f"git does not know {root} as a repository: {answer.why or answer.first}"
        yield Check(name="commit", status="fail", what=what, fix=f"git -C {shlex.quote(str(root))} status")
        return
    folders = [root / line for line in answer.out.splitlines()]
    shut = next((folder for folder in folders if not _writable(folder)), None)
    lock = folders[0] / "index.lock"
    if shut is not None:
        yield _shut(here, root, shut)
    elif lock.exists():
        what = f"{lock} exists: a git is at work, or one was killed; until it is gone no commit is possible"
        yield Check(name="commit", status="fail", what=what, fix=f"rm {shlex.quote(str(lock))}  # if no git is running")
    else:
        yield Check(name="commit", status="ok", what=f"{folders[0]} can be written")


def _shut(here: Here, root: Path, folder: Path) -> Check:
    what = f"{folder} cannot be written: no commit is possible"
    if any(here.env.get(name) for name in IN_CODEX):
        what += "; Codex's workspace-write mode holds the .git of the folder it was started in read-only"
        above = shlex.quote(str(root.parent))
        fix = f"codex -C {above}  # one below the start folder can be; or: codex --sandbox danger-full-access"
    else:
        fix = f"ls -ld {shlex.quote(str(folder))}  # whose is it? or run the client with access to it"
    return Check(name="commit", status="fail", what=what, fix=fix)


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
