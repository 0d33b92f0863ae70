"""Many questions to a few clones, each in one pass: commits, files, changed paths."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import git
import msgspec
from git.exc import GitError

from kernelpilot_helpers.errors import BadRecord

LARGEST = 4_000_000
"""Bytes of a file that is searched for a name."""
FORMS = ("{repo}/repo", "{repo}", "{name}.git", "{name}")


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that a clone holds."""

    sha: str
    message: str


class Clone:
    """A local repository, bare or not; nothing is fetched. Raises BadRecord when the folder is none."""

    def __init__(self, folder: Path) -> None:
        fix = f"git clone --bare URL {folder}"
        try:
            repo = git.Repo(folder)
        except GitError:
            raise BadRecord("not a git repository", where=str(folder), fix=fix) from None
        self.folder = folder
        self._git: Any = repo.git
        self._head = ["git", f"--git-dir={repo.git_dir}", "-c", "core.attributesFile=/dev/null"]
        self._git.update_environment(GIT_NO_LAZY_FETCH="1", GIT_OPTIONAL_LOCKS="0", GIT_TERMINAL_PROMPT="0", LC_ALL="C")

    def commits(self, shas: Iterable[str]) -> dict[str, Commit]:
        """Asked name (12 or 40 digits) -> commit, of those that are here."""
        asked = sorted(set(shas))
        out = {}
        for name, (kind, sha, data) in zip(asked, self._objects([f"{s}^{{commit}}" for s in asked]), strict=True):
            if kind == "commit":
                _, _, message = data.decode("utf-8", "replace").partition("\n\n")
                out[name] = Commit(sha=sha, message=message)
        return out

    def files(self, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str | None]:
        """(sha, path) -> its text, of those that exist; None where the clone has only its name, or it is too large."""
        asked = sorted(set(places))
        out: dict[tuple[str, str], str | None] = {}
        absent = []
        for place, (kind, _, data) in zip(asked, self._objects([f"{s}:{p}" for s, p in asked]), strict=True):
            if kind == "blob":
                out[place] = data.decode("utf-8", "replace") if len(data) <= LARGEST else None
            elif kind == "tree":
                out[place] = ""  # a folder exists, and holds no word itself
            else:
                absent.append(place)
        return {**out, **{place: None for place in absent if self._named(*place)}}

    def changed(self, shas: Iterable[str]) -> dict[str, frozenset[str]]:
        """Full sha -> paths that differ from its first parent."""
        options = ["diff-tree", "--stdin", "--root", "-r", "-z", "--name-only", "--no-renames", "--always"]
        data = b"".join(
            self._stream([*options, "--diff-merges=first-parent", "--format=%x01%H%x02"], sorted(set(shas)))
        )
        out = {}
        for part in data.decode("utf-8", "replace").split("\x01")[1:]:
            sha, _, names = part.partition("\x02")
            out[sha] = frozenset(filter(None, (name.strip("\n") for name in names.split("\0"))))
        return out

    def _named(self, sha: str, path: str) -> bool:
        """True where the tree holds the path, though its blob may be absent."""
        try:
            return bool(self._git.execute([*self._head, "rev-parse", "--verify", "--quiet", f"{sha}:{path}"]))
        except GitError:
            return False

    def _objects(self, names: list[str]) -> Iterator[tuple[str, str, bytes]]:
        """(type, sha, bytes) of each; type and bytes empty for what is not here."""
        stream = self._stream(["cat-file", "--batch"], names) if names else iter(())
        for _ in names:
            header = next(stream, b"").decode("utf-8", "replace").rstrip("\n")
            found = re.fullmatch(r"([0-9a-f]{40}) (\w+) (\d+)", header)
            if not found:
                yield "", "", b""
                continue
            size, data = int(found[3]) + 1, bytearray()
            for line in stream:
                data += line
                if len(data) >= size:
                    break
            yield found[2], found[1], bytes(data[:-1])
        for _ in stream:  # to its end, where a git that died is noticed
            pass

    def _stream(self, arguments: list[str], lines: Iterable[str]) -> Iterator[bytes]:
        """Output lines of one git process fed from a file."""
        with tempfile.TemporaryFile() as feed:
            feed.write("".join(f"{line}\n" for line in lines).encode())
            feed.seek(0)
            process = self._git.execute([*self._head, *arguments], istream=feed, as_process=True)
            yield from process.stdout
            try:
                process.wait()
            except GitError:
                fix = f"git --git-dir={self.folder} fsck"
                raise BadRecord(f"git {arguments[0]} failed", where=str(self.folder), fix=fix) from None


def found(folder: Path, repo: str, aliases: Iterable[str]) -> list[Clone]:
    """Clones of a repository: its own, then those that stand in for it. Raises BadRecord for an alias that is none."""
    out = []
    forms = [form.format(repo=repo.replace("/", "+"), name=repo.split("/")[1]) for form in FORMS]
    for at in (folder / form for form in forms):
        if _is_clone(at):
            out.append(Clone(at))
            break
    for alias in aliases:
        places = [folder / alias / "repo", folder / alias]
        out.append(Clone(next((at for at in places if _is_clone(at)), places[-1])))
    return out


def _is_clone(at: Path) -> bool:
    return (at / "HEAD").exists() or (at / ".git").exists()
