"""Begin a loop: look at everything that could end it later, pin what it will be judged by, write round 0."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rlcr import evidence, loop, registry, repo, views
from rlcr.files import Locked, TooBig, locked, read_regular, replace_file, sync_folder
from rlcr.journal import crash
from rlcr.loop import Loop
from rlcr.model import Cancel, Setup, sha256
from rlcr.options import HOOK_S, MARGIN_S, USAGE, Options, Refused, parse

PLAN_NAME = re.compile(r"[A-Za-z0-9._/+@-]+")
BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
LEAST_REVIEW_S = 60


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
    with contextlib.suppress(BrokenPipeError):
        _announce(root, made, notes)
        sys.stdout.flush()
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
    old = loop.active(root)
    if old is not None and not _interrupted(old, session, options):
        raise Refused(
            f"a loop is already active here: {old.folder}; go on with its newest prompt, or end it with "
            "cancel-rlcr-loop.sh"
        )
    other_worktree(session, root)
    made, notes = _checked(root, options, session)
    if old is not None and old.state.begun == _like(made, old.state.begun):
        old.mend()
        return _finish(old, root, session), [*notes, "an interrupted set-up was completed"]
    if old is not None:
        old.mend()
        old.put(Cancel(why="an interrupted set-up was given up"), made.base_commit)
        old.settle()
    folder = _folder(root)
    made = Setup(**{**made.__dict__, "loop": folder.name})
    crash("setup.folder")
    new = Loop(folder)
    new.put(made, made.base_commit)
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
        raise Refused(f"this session has a loop that is already active in {entry.worktree}")


def _checked(root: Path, options: Options, session: str) -> tuple[Setup, list[str]]:
    if not options.plan:
        raise Refused("No plan file provided")
    head = repo.git(root, "rev-parse", "--verify", "-q", "HEAD", check=False).strip()
    if not head:
        raise Refused("the repository has no commit yet: make the first one")
    plan = _plan(root, options)
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
    hidden = repo.hidden(root)
    if hidden:
        raise Refused(
            f"hidden from git status: {', '.join(hidden[:10])}; a round could not be told clean. Undo it with git "
            "update-index --no-skip-worktree --no-assume-unchanged FILE, or git config --unset-all for a filter"
        )
    base = _base_branch(root, options.base_branch, branch)
    _can_commit(root)
    pinned = evidence.pin(root)
    if options.reviewer == "evidence-only" and not pinned["commands"]:
        raise Refused(f"--reviewer evidence-only needs evidence commands, and {evidence.PATH} has none")
    limit = HOOK_S - MARGIN_S - sum(int(c["timeout_s"]) for c in pinned["commands"])
    review = 0 if options.reviewer == "evidence-only" else LEAST_REVIEW_S
    if limit < review:
        most = HOOK_S - MARGIN_S - review
        raise Refused(
            f"the evidence may take {most + review - limit} s, and the Stop hook leaves it {most} s: "
            f"lower timeout_s in {evidence.PATH} until their sum is at most {most}"
        )
    notes = [f"{flag} has no meaning here: nothing is asked" for flag in options.idle]
    if options.reviewer != "evidence-only" and options.timeout_s > limit:
        notes.append(f"--codex-timeout {options.timeout_s} is cut to {limit}: hook {HOOK_S} s, less the evidence")
    made = Setup(
        loop="", max=options.max, plan=options.plan, plan_sha256=sha256(plan), branch=branch, base_commit=head,
        base_branch=base, reviewer=options.reviewer, session_sha256=session, evidence=pinned, model=options.model,
        effort=options.effort, timeout_s=min(options.timeout_s, limit) if review else options.timeout_s,
        full_review_round=options.full, plan_tracked=options.track,
    )  # fmt: skip
    return made, notes


def _plan(root: Path, options: Options) -> bytes:
    name = options.plan
    path = root / name
    if Path(name).is_absolute():
        raise Refused(f"the plan must be a relative path: {name}")
    if not PLAN_NAME.fullmatch(name):
        raise Refused(f"the plan's path has a blank or a shell character in it: {name!r}")
    for part in [path, *path.parents]:
        if part == root:
            break
        if part.is_symlink():
            raise Refused(f"the plan's path holds a symbolic link: {part}")
    if not path.resolve().is_relative_to(root):
        raise Refused(f"the plan lies outside the repository: {name}")
    if not path.is_file():
        raise Refused(f"Plan file not found: {name}")
    _tracking(root, options)
    try:
        raw = read_regular(path, views.CAP)
    except TooBig as error:
        raise Refused(str(error)) from None
    if raw is None:
        raise Refused(f"the plan cannot be read: {name}")
    _content(raw)
    return raw


def _tracking(root: Path, options: Options) -> None:
    name = options.plan
    if any((parent / ".git").exists() for parent in (root / name).parents if parent != root and root in parent.parents):
        raise Refused(f"the plan lies in a submodule or another repository: {name}")
    tracked = bool(repo.git(root, "ls-files", "--", f":(literal){name}").strip())
    if options.track and name.startswith(".humanize"):
        raise Refused(
            "--track-plan-file wants a committed plan, and nothing below .humanize is ever committed: "
            "move the plan elsewhere, or leave the flag out"
        )
    if options.track and not tracked:
        raise Refused(f"--track-plan-file: {name} is not tracked; commit it first")
    if tracked and not options.track:
        raise Refused(f"the plan is tracked by git: it must be gitignored, or pass --track-plan-file ({name})")
    ignored = repo.git(root, "check-ignore", "--", name, check=False).strip()
    if not options.track and not ignored and not name.startswith(".humanize"):
        raise Refused(f"the plan must be gitignored, or committed with --track-plan-file: {name}")


def _content(raw: bytes) -> None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Refused("the plan is not UTF-8 text") from None
    if len(text.splitlines()) < 5:
        raise Refused("the plan is too simple: it has fewer than 5 lines")
    bare = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    if sum(1 for line in bare.splitlines() if line.strip() and not line.lstrip().startswith("#")) < 3:
        raise Refused("the plan has insufficient content: fewer than 3 lines that are no heading, comment or blank")


def _base_branch(root: Path, given: str, branch: str) -> str:
    if given and not BRANCH.fullmatch(given):
        raise Refused(f"--base-branch: {given!r} is YAML-unsafe")
    remote = repo.git(root, "symbolic-ref", "-q", "--short", "refs/remotes/origin/HEAD", check=False).strip()
    names = [given] if given else [remote.partition("/")[2], "main", "master", branch]
    for name in names:
        if name and repo.git(root, "rev-parse", "--verify", "-q", f"refs/heads/{name}", check=False):
            return name
    raise Refused(f"--base-branch: there is no local branch {given}" if given else "no base branch found")


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
    views.publish(made.folder, state, views.pages_of(state, "setup", made.plan()))
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
    for key, value in (
        ("Loop", made.folder), ("Worktree", root), ("Plan", s.plan), ("Branch", s.branch), ("Base", s.base_commit),
        ("Base branch", s.base_branch), ("Max rounds", s.max), ("Reviewer", s.reviewer), ("Evidence", commands),
        ("Session", f"sha256:{s.session_sha256[:16]}"), ("Prompt", prompt),
    ):  # fmt: skip
        print(f"{key}: {value}")
    for note in notes:
        print(f"Note: {note}")
    print("Note: whether the Stop hook of your client is trusted was not checked; if it never fires, run")
    print("      rlcr-stop-gate.sh after each round instead")
    print()
    print(prompt.read_text(encoding="utf-8", errors="replace"), end="")
    print(
        "\nThe loop ends when everything is met, at --max rounds, or by cancel-rlcr-loop.sh. Follow the prompt above."
    )
