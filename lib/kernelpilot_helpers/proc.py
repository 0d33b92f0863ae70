"""Subprocesses, git and file locks: every call out of the tool goes through here."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelpilot_helpers.errors import Busy, KernelPilotError, Refused, ToolMissing

IDENTITY = ("-c", "user.name=KernelPilot", "-c", "user.email=kernelpilot@localhost")
"""Used only where the user has set no identity: an empty HOME must still be able to commit."""
LOOK = ("-c", "core.fsmonitor=false", "-c", "core.trustctime=true", "-c", "core.checkStat=default")
"""git looks at the files themselves, whatever the repo's settings say about believing a helper or a time stamp."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a finished program left behind."""

    code: int
    out: str
    err: str


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    data: bytes | None = None,
) -> Result:
    """Run a program to its end.

    Raises ToolMissing when it is absent or cannot be started, KernelPilotError on a time-out or when ``cwd`` is no
    directory.
    """
    done = _run_bytes(argv, cwd=cwd, env=env, timeout=timeout, data=data)
    return Result(
        code=done.returncode,
        out=done.stdout.decode(errors="replace"),
        err=done.stderr.decode(errors="replace"),
    )


def _run_bytes(
    argv: Sequence[str], *, cwd: Path | None, env: Mapping[str, str] | None, timeout: float, data: bytes | None
) -> subprocess.CompletedProcess[bytes]:
    if cwd is not None and not cwd.is_dir():
        raise KernelPilotError("no such directory", where=str(cwd), fix=f"check the path: ls {cwd.parent}")
    try:
        return subprocess.run(
            list(argv),
            cwd=cwd,
            env=dict(env) if env is not None else None,
            input=data if data is not None else b"",
            capture_output=True,
            timeout=timeout,
            check=False,  # the caller looks at the code
        )
    except FileNotFoundError:
        fix = f"install {argv[0]} and put it on PATH"
        raise ToolMissing(f"{argv[0]} was not found", fix=fix) from None
    except OSError as error:
        raise ToolMissing(f"{argv[0]} cannot be started: {error.strerror}", fix=f"check it: ls -l {argv[0]}") from None
    except subprocess.TimeoutExpired:
        raise KernelPilotError(
            f"{argv[0]} did not finish within {timeout:.0f} s", fix="run it by hand to see why"
        ) from None


def _git_env() -> dict[str, str]:
    # Hooks and an outer GIT_DIR would make "the repository here" mean another one.
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith("GIT_CONFIG")}
    env.update(LC_ALL="C", GIT_TERMINAL_PROMPT="0", GIT_OPTIONAL_LOCKS="0", GIT_LITERAL_PATHSPECS="1")
    env["GIT_NO_REPLACE_OBJECTS"] = "1"  # a replacement shows another history than a clone gets
    return env


def git(
    repo: Path,
    *args: str,
    check: bool = True,
    timeout: float = 120.0,
    index: Path | None = None,
    objects: Path | None = None,
    data: bytes | None = None,
) -> Result:
    """Run git in ``repo``, with another index file or bytes on its standard input where they are given.

    New objects go to the folder ``objects`` where it is given, and those of the repo are still found.

    Raises KernelPilotError with git's own words when ``check`` and it fails.
    """
    env = _git_env()
    if args[0] == "check-ignore":
        del env["GIT_LITERAL_PATHSPECS"]  # the one command used here that knows no magic
    if index is not None:
        env["GIT_INDEX_FILE"] = str(index)
    if objects is not None:
        found = run(["git", "rev-parse", "--git-path", "objects"], cwd=repo, env=env, timeout=timeout).out.strip()
        env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(repo / found)
        env["GIT_OBJECT_DIRECTORY"] = str(objects)
    result = run(["git", *LOOK, *args], cwd=repo, env=env, timeout=timeout, data=data)
    if check and result.code != 0:
        words = (result.err or result.out).strip().splitlines()
        raise KernelPilotError(
            f"git {args[0]} failed: {words[-1] if words else result.code}",
            where=str(repo),
            fix=f"cd {repo} && git {' '.join(args)}",
        )
    return result


def git_out(repo: Path, *args: str) -> str:
    """Standard output of a git command, stripped."""
    return git(repo, *args).out.strip()


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """``${XDG_CACHE_HOME:-~/.cache}/kernelpilot``; it need not exist.

    Raises ToolMissing where neither variable is set and the machine knows no home of this user.
    """
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if base else Path(environ.get("HOME") or Path.home()) / ".cache") / "kernelpilot"
    except RuntimeError:
        fix = "export XDG_CACHE_HOME=DIR  # a folder that you may write"
        raise ToolMissing("no home directory is known for this user", fix=fix) from None


def head(repo: Path) -> str | None:
    """Commit id of HEAD, or None before the first commit or outside a repository."""
    result = git(repo, "rev-parse", "--verify", "-q", "HEAD", check=False)
    return result.out.strip() if result.code == 0 else None


def _identity(repo: Path) -> tuple[str, ...]:
    return () if git(repo, "var", "GIT_COMMITTER_IDENT", check=False).code == 0 else IDENTITY


def commit(repo: Path, message: str, paths: Sequence[str]) -> str | None:
    """Commit exactly ``paths`` as they are in the worktree; None when nothing changed there.

    Other staged or dirty files are left as they are. Sets an identity only where the user has none.
    """
    git(repo, "add", "-A", "--", *paths)
    staged = git(repo, "diff", "--cached", "--quiet", "--", *paths, check=False)
    if staged.code == 0:
        return None
    git(repo, *_identity(repo), "commit", "-q", "--no-verify", "-m", message, "--", *paths)
    return head(repo)


def snapshot(repo: Path, path: str) -> str:
    """Tree id of a directory as it is in the worktree now, ignored files left out; the real index is untouched.

    Raises Refused when the directory is absent or holds nothing that git would keep.
    """
    if not (repo / path).is_dir() or not any((repo / path).iterdir()):
        raise Refused("no such variant directory, or it is empty", where=path, fix=f"write {path}/candidate.py")
    with tempfile.TemporaryDirectory() as tmp:
        index = Path(tmp) / "index"
        git(repo, "add", "-A", "--", path, index=index)
        result = git(repo, "write-tree", f"--prefix={path}/", check=False, index=index)
    if result.code != 0:
        raise Refused("every file in it is ignored by git", where=path, fix="git check-ignore -v PATH")
    return result.out.strip()


def commit_tree(repo: Path, path: str, tree_id: str, message: str) -> str:
    """Commit ``tree_id`` as the content of ``path``, whatever the worktree holds by now; the new HEAD.

    What is judged is what stood there when the command was given, so it is this tree that history must hold.
    """
    old = head(repo)
    if old is not None and tree(repo, old, path) == tree_id:
        return old
    with tempfile.TemporaryDirectory() as tmp:
        index = Path(tmp) / "index"
        if old is not None:
            git(repo, "read-tree", old, index=index)
            git(repo, "rm", "-r", "-q", "--cached", "--ignore-unmatch", "--", path, index=index)
        git(repo, "read-tree", f"--prefix={path}/", tree_id, index=index)
        new_tree = git(repo, "write-tree", index=index).out.strip()
    parent = ("-p", old) if old is not None else ()
    new = git(repo, *_identity(repo), "commit-tree", new_tree, *parent, "-m", message).out.strip()
    git(repo, "update-ref", "-m", message, "HEAD", new, *((old,) if old is not None else ()))
    git(repo, "reset", "-q", "--", path)
    return new


def tree(repo: Path, commit_id: str, path: str) -> str | None:
    """Tree (or blob) id of ``path`` in a commit, None when it is not there."""
    result = git(repo, "rev-parse", "--verify", "-q", f"{commit_id}:{path}", check=False)
    return result.out.strip() if result.code == 0 else None


def blob(repo: Path, spec: str) -> bytes | None:
    """Bytes of ``commit:path`` as git holds them, None when there is no such blob."""
    kind = git(repo, "cat-file", "-t", spec, check=False)
    return _git_bytes(repo, "cat-file", "blob", spec) if kind.out.strip() == "blob" else None


def dirty(repo: Path, *paths: str) -> list[str]:
    """Paths with uncommitted changes (git status --porcelain), untracked files included."""
    out = git(repo, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", *paths).out
    return [entry[3:] for entry in out.split("\0") if len(entry) > 3]


def archive(repo: Path, treeish: str, into: Path) -> None:
    """Write a tree's files, byte for byte as git stores them, into a new directory.

    Read from the objects themselves: ``git archive`` and a checkout follow .gitattributes (a tree could then hide
    or rewrite a file on the way to the judge) and the user's line-end settings. Raises Refused for links,
    submodules and names that leave the directory, KernelPilotError when there is no such tree.
    """
    listed = _git_bytes(repo, "ls-tree", "-r", "-z", "--full-tree", treeish)
    entries = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
    for meta, _, name in entries:
        _refuse_entry(meta.split()[0], os.fsdecode(name), treeish)
    oids = b"".join(meta.split()[2] + b"\n" for meta, _, _ in entries)
    blobs = _git_bytes(repo, "cat-file", "--batch", data=oids)
    into.mkdir(parents=True, exist_ok=False)
    at = 0
    for meta, _, name in entries:
        end = blobs.index(b"\n", at)
        size = int(blobs[at:end].split()[2])
        path = into / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(blobs[end + 1 : end + 1 + size])
        path.chmod(0o755 if meta.startswith(b"100755") else 0o644)
        at = end + size + 2


def _git_bytes(repo: Path, *args: str, data: bytes | None = None) -> bytes:
    done = _run_bytes(["git", *LOOK, *args], cwd=repo, env=_git_env(), timeout=120.0, data=data)
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip()
        raise KernelPilotError(f"git {args[0]} failed: {words}", where=str(repo), fix=f"git -C {repo} fsck")
    return done.stdout


def _refuse_entry(mode: bytes, name: str, treeish: str) -> None:
    kind = {b"120000": "a symbolic link", b"160000": "a submodule"}.get(mode)
    if kind is None and not {"", ".", "..", ".git"} & set(name.split("/")):
        return
    raise Refused(
        f"{name!r} is {kind or 'not a name that may be judged'}: its content lies outside the judged tree",
        where=treeish,
        fix=f"put a plain file there and commit: {name}",
    )


def toplevel(start: Path) -> Path:
    """Root of the git repository around ``start``. Raises Refused outside one."""
    result = git(start, "rev-parse", "--show-toplevel", check=False)
    if result.code != 0:
        raise Refused(
            "not inside a git repository",
            where=str(start),
            fix="cd into the standalone repo, or make one: kernelpilot scaffold DIR --task NAME ...",
        )
    return Path(result.out.strip())


def _owner_pid(owner: Path) -> str:
    try:
        return owner.read_text().strip() or "unknown"
    except OSError:
        return "unknown"  # let go of just now


@contextmanager
def file_lock(path: Path, *, timeout_s: float, what: str) -> Iterator[None]:
    """Hold an exclusive lock; the owner's pid stands in ``<path>.owner``. Raises Busy after ``timeout_s``."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - 20 ms that --help must not pay

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(str(path))
    owner = path.with_name(path.name + ".owner")
    try:
        lock.acquire(timeout=timeout_s)
    except Timeout:
        pid = _owner_pid(owner)
        raise Busy(
            f"{what} is held by process {pid}", where=str(path), fix=f"wait for it, or end it: kill {pid}"
        ) from None
    try:
        owner.write_text(f"{os.getpid()}\n")
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()
