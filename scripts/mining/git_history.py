"""A clone's commits and diffs. GitPython opens, fetches and resolves; two streams of ``diff-tree`` give the rest.

Bare clones without a configuration and partial snapshots (blobs absent) are read too; nothing is fetched on the way.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any

import git
import msgspec
from git.exc import GitError

from kernelpilot_helpers.errors import BadRecord
from mining import patch

RAW = re.compile(r"^:\d+ (\d+) [0-9a-f]{40} ([0-9a-f]{40}) ([A-Z])\d*\t(.*)$")
PLAIN = ("-r", "--no-renames", "--no-ext-diff", "--no-textconv")
"""Nothing of the user's or the clone's settings may change a diff."""
TREE = ("diff-tree", "--stdin", "--root", *PLAIN, "--diff-merges=first-parent")
"""``-m --first-parent`` would print a merge twice."""
GONE = "0" * 40
NO_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git's empty tree: what a first commit is compared with."""
LARGEST = 2_000_000
"""Bytes of a text that is still read: larger ones are tables and machine code in disguise."""
SUBMODULE = "160000"


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One path of a commit: blob after the change (zeros when deleted), and git's status letter."""

    path: str
    blob: str
    status: str


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit against its first parent."""

    sha: str
    date: str
    """Committer's date in UTC."""
    message: str
    changed: tuple[Changed, ...]


class OpenRef(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request that a merge ref still exists for: its number, merge commit and head."""

    number: int
    merge: str
    head: str
    date: str


def utc(seconds: int) -> str:
    """Unix time as ``2025-01-21T14:21:54Z``, whatever zone the committer lives in."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Clone:
    """A local clone, bare or not. Raises BadRecord when the folder is none."""

    def __init__(self, folder: Path) -> None:
        fix = f"git clone --bare URL {folder}"
        try:
            self.repo = git.Repo(folder)
        except GitError:
            raise BadRecord("not a git repository", where=str(folder), fix=fix) from None
        self.git: Any = self.repo.git
        self.git.set_persistent_git_options(git_dir=str(self.repo.git_dir))
        self.git.update_environment(GIT_NO_LAZY_FETCH="1", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", LC_ALL="C")
        self.text = lru_cache(maxsize=128)(self._text)

    def close(self) -> None:
        """End the git processes that it holds."""
        self.repo.close()

    def fetch(self, branches: Iterable[str], *, pulls: bool) -> None:
        """Bring heads (and the refs of pull requests) from ``origin``. Raises BadRecord when that fails."""
        refs = ["+HEAD:refs/remotes/origin/HEAD", *(f"+refs/heads/{b}:refs/heads/{b}" for b in branches)]
        refs += ["+refs/pull/*/head:refs/pull/*/head", "+refs/pull/*/merge:refs/pull/*/merge"] if pulls else []
        try:
            self.git.fetch("--no-tags", "--quiet", "origin", *refs)
        except GitError as error:
            fix = f"git --git-dir={self.repo.git_dir} remote -v"
            raise BadRecord(
                f"fetch failed: {str(error).splitlines()[0]}", where=str(self.repo.git_dir), fix=fix
            ) from None

    def tips(self, patterns: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """(name, sha) of HEAD, then of branches that match the patterns, by name."""
        out = [("HEAD", self.resolve("HEAD"))]
        listed = self.git.for_each_ref("--format=%(objectname) %(refname)", "refs/heads", "refs/remotes").splitlines()
        refs = sorted((name, sha) for sha, name in (line.split(" ", 1) for line in listed))
        for pattern in patterns:
            shape = re.compile(r"refs/(?:heads|remotes/[^/]+)/" + re.escape(pattern).replace(r"\*", ".*"))
            out += [(name.split("/", 2)[2], sha) for name, sha in refs if shape.fullmatch(name)]
        return tuple(out)

    def resolve(self, name: str) -> str:
        """A name's commit. Raises BadRecord when the clone has none of that name."""
        try:
            return str(self.git.rev_parse("--verify", "--quiet", f"{name}^{{commit}}"))
        except GitError:
            fix = f"git --git-dir={self.repo.git_dir} for-each-ref"
            raise BadRecord(f"no commit is called {name}", where=str(self.repo.git_dir), fix=fix) from None

    def shas(self, tip: str, since: str, *, linear: bool, excluding: str = "") -> list[str]:
        """Commits of a branch since a UTC date, newest first: first parents, or everything but merges."""
        walk = "--first-parent" if linear else "--no-merges"
        ends = [tip, *([f"^{excluding}"] if excluding else []), "--"]
        earliest = int(datetime.fromisoformat(since).replace(tzinfo=timezone.utc).timestamp())
        out = []
        for line in self.git.rev_list("--timestamp", walk, *ends).splitlines():
            stamp, sha = line.split(" ")
            if int(stamp) >= earliest:
                out.append(sha)
        return out

    def subjects(self, tip: str, *, linear: bool) -> list[str]:
        """First lines of all commits of a branch."""
        walk = "--first-parent" if linear else "--no-merges"
        return str(self.git.log("--format=%s", walk, tip, "--")).split("\n")

    def commits(self, shas: Iterable[str]) -> Iterator[Commit]:
        """Messages and changed paths; reads trees only, so an absent blob does no harm.

        Without ``--always`` a commit that changes nothing would not be printed at all.
        """
        arguments = [*TREE, "--always", "--raw", "--abbrev=40", "--format=%x01%H%x00%ct%x00%B%x02"]
        data = b"".join(self._stream(arguments, shas)).decode("utf-8", "replace")
        for block in data.split("\x01")[1:]:
            head, _, rows = block.partition("\x02")
            sha, stamp, message = head.split("\0", 2)
            changed = [
                Changed(path=found[4], blob=found[2], status=found[3])
                for row in rows.split("\n")
                if (found := RAW.match(row)) and found[1] != SUBMODULE and not found[4].startswith('"')
            ]
            yield Commit(sha=sha, date=utc(int(stamp)), message=message, changed=tuple(changed))

    def diffs(
        self, commits: Iterable[Commit], want: Callable[[str], bool]
    ) -> Iterator[tuple[str, list[patch.FileDiff], set[str]]]:
        """(sha, files, paths that could not be read). One stream; where it dies of an absent blob, that commit is
        read again without the file and the stream goes on behind it."""
        waiting = list(commits)
        while waiting:
            done = 0
            stream = self._stream([*TREE, "-p", "-U0", "--format=%x01%H"], [commit.sha for commit in waiting])
            held: tuple[str, list[patch.FileDiff]] | None = None
            for sha, files in patch.parse(stream, want):
                if held is not None:
                    yield held[0], held[1], set()
                    done += 1
                held = sha, files
            if held is not None and not self.died:
                yield held[0], held[1], set()
                done += 1
            if done < len(waiting) and not self.died:
                raise BadRecord(
                    "diff-tree left commits out", where=waiting[done].sha, fix=f"git --git-dir={self.repo.git_dir} fsck"
                )
            if done < len(waiting):
                yield self._partly(waiting[done], want)
                done += 1
            waiting = waiting[done:]

    def _partly(self, commit: Commit, want: Callable[[str], bool]) -> tuple[str, list[patch.FileDiff], set[str]]:
        """One commit, file by file; a file whose blob is absent on either side is named instead."""
        parents = self.git.rev_list("--parents", "-1", commit.sha, "--").split()[1:]
        parent = parents[0] if parents else NO_TREE
        files, unread = [], set()
        for changed in commit.changed:
            arguments = ["diff-tree", "-p", "-U0", *PLAIN, parent, commit.sha, "--", f":(literal){changed.path}"]
            stream = [b"\x01" + commit.sha.encode() + b"\n", *self._stream(arguments, [])]
            if self.died:
                unread.add(changed.path)
                continue
            files += [diff for _, found in patch.parse(stream, want) for diff in found]
        return commit.sha, files, unread

    def _stream(self, arguments: list[str], shas: Iterable[str]) -> Iterator[bytes]:
        """Output lines of one git process fed with shas from a file; ``self.died`` says afterwards how it ended."""
        self.died = False
        with tempfile.TemporaryFile() as feed:
            feed.write("".join(f"{sha}\n" for sha in shas).encode())
            feed.seek(0)
            options = ["-c", "core.quotepath=off", "-c", "core.attributesFile=/dev/null"]
            command = ["git", f"--git-dir={self.repo.git_dir}", *options, *arguments]
            process = self.git.execute(command, istream=feed, as_process=True)
            yield from process.stdout
            try:
                process.wait()
            except GitError:
                self.died = True

    def _text(self, blob: str) -> str | None:
        """A blob's text, None where the snapshot lacks it or it is no text."""
        if blob == GONE:
            return None
        try:
            data: bytes = self.git.get_object_data(blob)[3]
        except (ValueError, GitError):
            return None
        return None if b"\0" in data[:8000] or len(data) > LARGEST else data.decode("utf-8", "replace")

    def open_refs(self, since: str, merged: set[int], tip: str) -> list[OpenRef]:
        """Pull requests with a merge ref that are not merged: the number is unknown to the main line and the head no
        ancestor of it. Closed ones whose ref stayed are among them."""
        lines = self.git.for_each_ref("--format=%(objectname) %(refname)", "refs/pull").splitlines()
        heads: dict[int, str] = {}
        merges: dict[int, str] = {}
        for line in lines:
            sha, _, name = line.partition(" ")
            found = re.fullmatch(r"refs/pull/(\d+)/(head|merge)", name)
            if found:
                (heads if found[2] == "head" else merges)[int(found[1])] = sha
        inside = set(self.git.rev_list(tip, "--").split())
        out = []
        for number in sorted(set(merges) - merged):
            head = heads.get(number) or self.resolve(f"{merges[number]}^2")
            date = utc(int(self.git.log("-1", "--format=%ct", head, "--")))
            if head not in inside and date >= since:
                out.append(OpenRef(number=number, merge=merges[number], head=head, date=date))
        return out
