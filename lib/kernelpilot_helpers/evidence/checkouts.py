"""The checkouts of frameworks that a contract names: where this machine has them, and in which state. Only reads.

What counts: HEAD; every path that ``git status`` lists with the bytes that lie there (changed, staged, removed and
untracked files); files whose changes git was told not to show; what its own store says to hide or to rewrite; of a
submodule or a repository inside, its own HEAD and the same list. What git ignores there does not count: building and
importing write such files.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelpilot_helpers import proc, records
from kernelpilot_helpers.contract.model import Checkout, Contract, Framework, Lock
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.evidence.files import TEXT_MAX
from kernelpilot_helpers.evidence.model import CheckoutFacts
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.records import Fault

LOCAL_FILE = ".kernelpilot/local.toml"
"""Facts of this machine; git ignores it, so nobody else learns where things lie."""
STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none")
PLAIN = ("-c", f"core.attributesFile={os.devnull}")
"""A filter named outside the checkout could show an edited file as it was."""
INFO = ("info/exclude", "info/attributes")
"""Of the checkout's own store: what hides new files, and what rewrites edited ones."""
HASHED_MAX = 64 * 1024 * 1024
"""Bytes: of a larger edited file size and time stand for its content."""
SHOWN = 6


class _Unreadable(Exception):
    """Why a checkout cannot be looked at, in words, and what helps."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def collect(root: Path, contract: Contract, lock: Lock | None) -> dict[str, CheckoutFacts]:
    """Framework -> its checkout as it is now; sources are read at the locked HEAD, without a lock at that of now."""
    if not contract.framework:
        return {}
    places = _places(root)
    out: dict[str, CheckoutFacts] = {}
    for one in contract.framework:
        locked = lock.frameworks.get(one.name) if lock else None
        out[one.name] = _facts(root, one, places, locked.head if locked else "")
    return out


def _facts(root: Path, one: Framework, places: Mapping[str, object] | Fault, head: str) -> CheckoutFacts:
    where = f"framework {one.name}"
    try:
        path = _place(root, one.name, places)
        found, edits = state(path)
    except _Unreadable as why:
        return CheckoutFacts(now=Fault(where=where, what=why.what, fix=why.fix))
    except (KernelPilotError, OSError, ValueError) as error:
        what = f"the checkout cannot be read: {getattr(error, 'what', '') or error}"
        return CheckoutFacts(now=Fault(where=where, what=what, fix=_edit(one.name)))
    placed = Checkout(
        head=found.head,
        status=found.status,
        edited=found.edited,
        place=records.sha256(str(path).encode()),
    )
    try:
        texts, faults = _sources(path, one, head or found.head)
    except (KernelPilotError, ValueError) as error:
        texts, faults = {}, (Fault(where=where, what=f"its sources cannot be read: {error}", fix=_edit(one.name)),)
    return CheckoutFacts(path=str(path), now=placed, edits=edits, sources=texts, source_faults=faults)


def _edit(name: str) -> str:
    return f'"${{EDITOR:-vi}}" {LOCAL_FILE}  # [framework.{name}], path: the top folder of its git checkout'


def _places(root: Path) -> Mapping[str, object] | Fault:
    """``[framework.NAME]`` tables of the local file; a fault where it cannot be read."""
    path = root / LOCAL_FILE
    if not path.is_file():
        return {}
    fix = f'"${{EDITOR:-vi}}" {LOCAL_FILE}'
    try:
        found = records.parse_toml(path.read_bytes(), at=LOCAL_FILE).get("framework", {})
    except KernelPilotError as error:
        return Fault(where=LOCAL_FILE, what=error.what, fix=fix)
    except OSError as error:
        return Fault(where=LOCAL_FILE, what=f"cannot be read: {error.strerror}", fix=fix)
    return found if isinstance(found, dict) else Fault(where=LOCAL_FILE, what="framework: want tables", fix=fix)


def _place(root: Path, name: str, places: Mapping[str, object] | Fault) -> Path:
    if isinstance(places, Fault):
        raise _Unreadable(f"{places.where}: {places.what}", places.fix)
    table = places.get(name)
    if table is None:
        line = f"printf '\\n[framework.{name}]\\npath = \"%s\"\\n' DIR >> {LOCAL_FILE}"
        what = f"where its checkout lies on this machine is not known: {LOCAL_FILE} does not say"
        raise _Unreadable(what, f"mkdir -p .kernelpilot && {line}  # DIR: the top folder of its git checkout")
    said = table.get("path") if isinstance(table, dict) else None
    if not isinstance(said, str) or not said:
        raise _Unreadable(f'{LOCAL_FILE}: framework.{name}: want path = "DIR"', _edit(name))
    path = Path(os.path.realpath(root / Path(said).expanduser()))
    if not path.is_dir():
        raise _Unreadable("its checkout is gone: no such folder", _edit(name))
    if path == Path(os.path.realpath(root)):
        raise _Unreadable("its checkout is this repo itself: name the framework's own", _edit(name))
    top = proc.git(path, "rev-parse", "--show-toplevel", check=False)
    if top.code != 0:
        raise _Unreadable(f"no git checkout: {(top.err or top.out).strip()[-200:]}", _edit(name))
    if Path(os.path.realpath(top.out.rstrip("\n"))) != path:
        raise _Unreadable("is a folder inside a checkout: name the top folder", _edit(name))
    return path


def state(path: Path) -> tuple[Checkout, tuple[str, ...]]:
    """A checkout, without its place, and the first paths that are not as committed.

    Raises KernelPilotError when git refuses, ValueError without a commit or for a name that is not UTF-8.
    """
    head = proc.head(path)
    if head is None:
        raise ValueError("it has no commit")
    listed = [(e[:2], e[3:]) for e in proc.git(path, *PLAIN, *STATUS).out.split("\0") if len(e) > 3]
    hidden = [(e[:1], e[2:]) for e in proc.git(path, "ls-files", "-v", "-z").out.split("\0") if e]
    seen = {name for _, name in listed}
    listed += [("--", name) for tag, name in hidden if (tag == "S" or tag.islower()) and name not in seen]
    if odd := [name for _, name in listed if "\ufffd" in name]:
        raise ValueError(f"a changed file's name is not UTF-8: {odd[0]}")
    kept = [(mark, name, _content(path / name)) for mark, name in sorted(listed, key=lambda entry: entry[1])]
    kept = [entry for entry in kept if entry[0] != "--" or entry[2] != "absent"]  # a sparse checkout's files
    info = [(name, _content(path / proc.git_out(path, "rev-parse", "--git-path", name))) for name in INFO]
    status = records.sha256(json.dumps([kept, info]).encode())
    return Checkout(head=head, status=status, edited=len(kept)), tuple(name for _, name, _ in kept[:SHOWN])


def _content(path: Path) -> str:
    """What stands for the bytes of one path."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return "absent"
    if stat.S_ISLNK(info.st_mode):
        return f"link {path.readlink()}"
    if stat.S_ISDIR(info.st_mode):
        if not (path / ".git").exists():
            return "folder"
        inner, _ = state(path)
        return f"{inner.head} {inner.status}"
    if not stat.S_ISREG(info.st_mode):
        return f"mode {info.st_mode:o}"
    if info.st_size > HASHED_MAX:
        return f"{info.st_size} {info.st_mtime_ns}"
    return f"{info.st_mode & 0o111:o} {records.file_sha256(path)}"


def _sources(path: Path, one: Framework, head: str) -> tuple[dict[str, str], tuple[Fault, ...]]:
    """Texts of the named sources in that commit, and what cannot be read of them."""
    texts: dict[str, str] = {}
    faults: list[Fault] = []
    total = 0
    for said in one.sources:
        entries = list(_blobs(path, head, said))
        if not entries:
            faults.append(_source_fault(one.name, said, f"no such file in {head[:12]}"))
        for oid, size, name in entries:
            total += size
            if total > POLICY.framework_source_bytes_max:
                most = POLICY.framework_source_bytes_max // 1024
                return texts, (*faults, _source_fault(one.name, said, f"more than {most} KiB together: name fewer"))
            data = proc.blob(path, oid) or b""
            try:
                texts[name] = data.decode() if len(data) <= TEXT_MAX else ""
            except UnicodeDecodeError:
                texts[name] = ""
            if not texts[name] and data:
                faults.append(_source_fault(one.name, name, f"no UTF-8 text of at most {TEXT_MAX // 1024} KiB"))
    return texts, tuple(faults)


def _source_fault(name: str, path: str, what: str) -> Fault:
    fix = '"${EDITOR:-vi}" contract.toml  # framework.sources, then: kernelpilot lock'
    return Fault(where=f"framework {name}: {path}", what=what, fix=fix)


def _blobs(path: Path, head: str, said: str) -> Iterator[tuple[str, int, str]]:
    """(object, bytes, path) of a file, or of every file below a folder, in a commit."""
    for entry in proc.git(path, "ls-tree", "-r", "-l", "-z", "--full-tree", head, "--", said).out.split("\0"):
        meta, _, name = entry.partition("\t")
        parts = meta.split()
        if len(parts) == 4 and parts[1] == "blob" and parts[0] != "120000":
            yield parts[2], int(parts[3]), name
