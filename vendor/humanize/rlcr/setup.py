"""Begin a loop: look at everything that could end it later, pin what it will be judged by, write round 0."""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlcr import evidence, loop, plan_file, registry, repo, reviewer, tracker, views
from rlcr.files import Locked, locked, replace_file, sync_folder
from rlcr.journal import crash
from rlcr.loop import Loop
from rlcr.model import Cancel, Setup, sha256
from rlcr.options import CANCEL, HOOK_S, USAGE, Options, Refused, parse
from rlcr.unseen import told

BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")


def main(argv: Sequence[str]) -> int:
    """Set a loop up; 0, or 1 with the reason on stderr."""
    try:
        options = parse(argv, os.environ)
        if options.help:
            print(USAGE, end="")
            return 0
        root = _root(options)
        with locked(root / loop.ROOT / loop.LOCK, 30):
            made, notes = _begin(root, options)
    except (Refused, evidence.BadEvidence, repo.GitError) as error:
        return _fail(str(error))
    except Locked:
        return _fail("another set-up or Stop is at work in this worktree; try again")
    except OSError as error:
        return _fail(f"{error.strerror or error}: {error.filename or ''}")
    crash("setup.print")
    _announce(root, made, notes)
    return 0


def _fail(text: str) -> int:
    print(f"Error: {text}", file=sys.stderr)
    return 1


def _root(options: Options) -> Path:
    missing = [name for name in ("git", *_reviewer_program(options)) if shutil.which(name) is None]
    if missing:
        raise Refused(f"Missing required dependencies: {', '.join(missing)} (not found on PATH)")
    root = repo.toplevel(Path.cwd())
    if root is None:
        raise Refused("not inside a git repository: run git init here, or go where the work is")
    if str(root).encode(errors="replace") != os.fsencode(root):
        raise Refused(f"the repository's path is not UTF-8 text: {str(root)!a}; rename the folder")
    if not any((os.environ.get(name) or "").startswith("/") for name in ("XDG_STATE_HOME", "HOME")):
        raise Refused("neither HOME nor XDG_STATE_HOME is an absolute path, so the Stop hook could not find the loop")
    return root


def _reviewer_program(options: Options) -> tuple[str, ...]:
    return () if options.reviewer == "evidence-only" else (options.reviewer,)


def _begin(root: Path, options: Options) -> tuple[Loop, list[str]]:
    session = sha256(options.session)
    sweep(root)
    loop.finish(root)
    old = loop.active(root)
    if old is not None and not _interrupted(old, session, options):
        raise Refused(f"a loop is already active here: {old.folder}; go on with its newest prompt, or end it: {CANCEL}")
    other_worktree(session, root)
    made, notes = _checked(root, options, session)
    if old is not None and old.state.begun == _like(made, old.state.begun):
        old.mend()
        return _finish(old, root, session), [*notes, "an interrupted set-up was completed"]
    if old is not None:
        old.mend()
        old.put(Cancel(why="an interrupted set-up was given up"), made.start_commit or made.base_commit)
        old.settle()
    folder = _folder(root)
    made = Setup(**{**made.__dict__, "loop": folder.name})
    crash("setup.folder")
    new = Loop(folder)
    new.put(made, made.start_commit or made.base_commit)
    return _finish(new, root, session), notes


def _like(made: Setup, old: Setup) -> Setup:
    return Setup(**{**made.__dict__, "loop": old.loop, "at": old.at})


def _interrupted(old: Loop, session: str, options: Options) -> bool:
    """Whether a set-up died here before it could say so."""
    if old.journal.faults or old.state.pending != "setup" or len(old.journal.entries) != 1:
        return False
    return old.state.session_sha256 == session and old.state.begun.max == options.max


def sweep(root: Path) -> None:
    """Remove folders of set-ups that died before their first line, and nothing else."""
    for folder in loop.folders(root):
        found = Loop(folder)
        empty = not found.path.exists() or found.journal.torn or found.path.stat().st_size == 0
        if empty and not found.journal.entries and {path.name for path in folder.iterdir()} <= {"journal.jsonl"}:
            shutil.rmtree(folder)


def other_worktree(session: str, root: Path) -> None:
    """Raises Refused when a session drives an active loop in another worktree."""
    entry = registry.load(session)
    if entry is None or entry.damaged or not entry.loop_dir:
        return
    folder = Path(entry.loop_dir)
    if (folder / "journal.jsonl").exists() and Loop(folder).state.active and Path(entry.worktree) != root:
        raise Refused(
            f"this session has a loop that is already active in {entry.worktree}: finish it or cancel it there, or, "
            "in a plain shell, begin with another --session-id"
        )


def _checked(root: Path, options: Options, session: str) -> tuple[Setup, list[str]]:
    if not options.plan and not options.skip_impl:
        raise Refused("No plan file provided")
    head = repo.git(root, "rev-parse", "--verify", "-q", "HEAD", check=False).strip()
    if not head:
        raise Refused("the repository has no commit yet: make the first one")
    plan = plan_file.read(root, options.plan, track=options.track) if options.plan else b""
    branch = _sound(root)
    base = _base_branch(root, options.base_branch, branch)
    start = _before(root, base, head) if options.skip_impl else head
    _can_commit(root)
    pinned = {**evidence.pin(root), **reviewer.pin(options.reviewer)}
    limit = evidence.fits(pinned, options.reviewer)
    review = options.reviewer != "evidence-only"
    notes = [f"{flag} has no meaning here: nothing is asked" for flag in options.idle]
    notes += _unread(root)
    if review and options.timeout_s > limit:
        notes.append(f"--codex-timeout {options.timeout_s} is cut to {limit}: hook {HOOK_S} s, less the evidence")
    made = Setup(
        loop="", max=options.max, plan=options.plan, plan_sha256=sha256(plan) if options.plan else "", branch=branch,
        base_commit=start, skip_impl=options.skip_impl, start_commit=head if options.skip_impl else "",
        base_branch=base, reviewer=options.reviewer, session_sha256=session, evidence=pinned, model=options.model,
        effort=options.effort, timeout_s=min(options.timeout_s, limit) if review else options.timeout_s,
        full_review_round=options.full, plan_tracked=options.track,
    )  # fmt: skip
    return made, notes


def _sound(root: Path) -> str:
    """The branch, of a repository whose rounds can be told apart. Raises Refused."""
    branch = repo.branch(root)
    if not BRANCH.fullmatch(branch):
        what = f"branch name {branch!r} is YAML-unsafe" if branch else "HEAD is detached"
        raise Refused(f"{what}: switch to a plainly named branch")
    tracked = repo.git(root, "ls-files", "--", ".humanize*").split("\n")[0]
    if tracked:
        raise Refused(f"Tracked Humanize State Blocked: {tracked} is tracked; git rm -r --cached .humanize, and commit")
    dirty = repo.untracked_or_dirty(root)
    if dirty:
        raise Refused(f"Git working tree is not clean: {', '.join(dirty[:10])}; commit, ignore or remove these")
    hidden = told(repo.hidden(root))
    if hidden:
        raise Refused("; ".join(f"{where}: {what}: {fix}" for where, what, fix in hidden))
    return branch


def _base_branch(root: Path, given: str, branch: str) -> str:
    if given and not BRANCH.fullmatch(given):
        raise Refused(f"--base-branch: {given!r} is YAML-unsafe")
    remote = repo.git(root, "symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD", check=False).strip()
    names = [given] if given else [remote.partition("/")[2], "main", "master", branch]
    for name in names:
        if name and repo.git(root, "rev-parse", "--verify", "-q", f"refs/heads/{name}", check=False):
            return name
    raise Refused(f"--base-branch: there is no local branch {given}" if given else "no base branch found")


def _before(root: Path, base: str, head: str) -> str:
    """Where the work began that ``--skip-impl`` has reviewed: the merge base. Raises Refused where nothing follows."""
    start = repo.git(root, "merge-base", f"refs/heads/{base}", head, check=False).strip()
    if not start:
        raise Refused(f"--skip-impl: HEAD and the base branch {base} have no commit in common; see --base-branch")
    if not repo.changed(root, start, head):
        raise Refused(
            f"--skip-impl: nothing lies between the base branch {base} and HEAD that could be reviewed; "
            "commit the work on a branch of its own, or name another --base-branch"
        )
    return start


def _unread(root: Path) -> list[str]:
    """A note for each configuration file of the reference's that somebody may count on."""
    base = os.environ.get("XDG_CONFIG_HOME") or ""
    if not base.startswith("/"):
        base = os.path.join(os.environ.get("HOME") or "/", ".config")  # noqa: PTH118
    known = (root / ".humanize" / "config.json", Path(base, "humanize", "config.json"))
    return [f"{path} is not read: model, effort and timeout are flags here" for path in known if path.exists()]


def _can_commit(root: Path) -> None:
    """A client's sandbox may hold ``.git`` read-only: better known now than after the first round's work."""
    folder = Path(repo.git(root, "rev-parse", "--absolute-git-dir").strip())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        raise Refused(
            f"git commit is not possible: {folder} cannot be written. Run the client with access to it, "
            "or put the repository below a folder that its sandbox may write"
        ) from None
    if (folder / "index.lock").exists():
        raise Refused(f"git commit is not possible: {folder / 'index.lock'} exists; remove it if no git is running")


def _folder(root: Path) -> Path:
    stamp = dt.datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
    for n in range(1, 1000):
        folder = root / loop.ROOT / (stamp if n == 1 else f"{stamp}-{n}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        sync_folder(folder.parent)
        return folder
    raise Refused("a thousand loops in one second")


def _finish(made: Loop, root: Path, session: str) -> Loop:
    """Files, the registry, the interpreter, and the line that says so; safe to do again."""
    state = made.state
    views.publish(made.folder, state, views.pages_of(state, "setup", made.first_plan()))
    python = os.path.realpath(sys.executable)
    replace_file(registry.state_dir() / "python", (python + "\n").encode())
    crash("setup.python")
    entry = registry.Entry(
        loop_dir=str(made.folder), worktree=str(root), created=state.begun.at, seq=len(made.journal.entries),
        sha=made.journal.tip, sure=True,
    )  # fmt: skip
    registry.save(session, entry)
    crash("setup.registry")
    made.settle()
    made.sure()
    return made


def _announce(root: Path, made: Loop, notes: list[str]) -> None:
    s = made.state.begun
    prompt = made.folder / "round-0-prompt.md"
    commands = ", ".join(f"{c['name']} ({c['version'] or c['resolved']})" for c in s.evidence["commands"]) or "none"
    print("=== start-rlcr-loop activated ===")
    if s.skip_impl:
        print(f"SKIP-IMPL MODE: straight to the code review of {s.base_commit[:12]}..{s.start_commit[:12]}")
    for key, value in (
        ("Loop", made.folder), ("Worktree", root), ("Plan", s.plan or "none"), ("Branch", s.branch),
        ("Base", s.base_commit),
        ("Base branch", s.base_branch), ("Max rounds", s.max), ("Reviewer", s.reviewer), ("Evidence", commands),
        ("Session", f"sha256:{s.session_sha256[:16]}"), ("Prompt", prompt),
    ):  # fmt: skip
        print(f"{key}: {value}")
    for line in tracker.told(made.first_plan() or "") if s.plan else ():
        print(line)
    for note in notes:
        print(f"Note: {note}")
    for line in _unverified(s):
        print(line)
    print()
    print(prompt.read_text(encoding="utf-8", errors="replace"), end="")
    print(f"\nThe loop ends when everything is met, at --max rounds, or by {CANCEL}. Follow the prompt above.")


def _unverified(s: Setup) -> Iterator[str]:
    """What only a look at the client could tell, and what to do about it."""
    asked = "" if s.reviewer == "evidence-only" else f", and whether the reviewer {s.reviewer} answers"
    yield f"Note: whether your client has the Stop hook registered, enabled and trusted{asked} was not verified here;"
    doctor = " (kernelpilot doctor)" if shutil.which("kernelpilot") else ""
    yield f"      your bundle's doctor looks at that{doctor}. Where the hook never fires, run rlcr-stop-gate.sh"
    yield "      after each round instead"
