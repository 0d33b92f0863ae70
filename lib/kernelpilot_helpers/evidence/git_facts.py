"""What git says of a repo, in a dozen quick calls; an answer that git refuses is a fault, never a default."""

from __future__ import annotations

import re
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelpilot_helpers import proc
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.evidence import files
from kernelpilot_helpers.evidence.model import CommitFacts, GitFacts, row_key
from kernelpilot_helpers.ledger import IDEAS_PATH, Row
from kernelpilot_helpers.records import Fault

ARTIFACTS = "artifacts/"
LOG = (
    "log", "--topo-order", "--reverse", "--root", "-m", "-r", "-t", "--raw", "--no-abbrev", "--no-renames", "-z",
    "--no-show-signature", "--format=%x01%H%x02%s",
)  # fmt: skip
_ZEROS = re.compile(r"0{40,64}")


@dataclass(kw_only=True)
class Asked:
    """Git answers of one repo, and what it refused to answer."""

    root: Path
    faults: list[Fault] = field(default_factory=list)

    def out(
        self,
        *args: str,
        data: bytes | None = None,
        index: Path | None = None,
        objects: Path | None = None,
        quiet: bool = False,
    ) -> str:
        """Standard output; empty with a fault (none when ``quiet``) where git fails."""
        try:
            result = proc.git(self.root, *args, check=False, data=data, index=index, objects=objects)
        except (KernelPilotError, ValueError) as error:
            self._fault(args, str(error))
            return ""
        if result.code != 0:
            if not quiet:
                self._fault(args, (result.err or result.out).strip()[-300:] or f"exit {result.code}")
            return ""
        return result.out

    def _fault(self, args: Sequence[str], what: str) -> None:
        where = f".git: git {args[0]}"
        self.faults.append(Fault(where=where, what=what, fix="git fsck  # is this a sound repository?"))


def split(text: str) -> list[str]:
    """The parts of a ``-z`` listing."""
    return [part for part in text.split("\0") if part]


def commits(log: str, variants: str) -> Iterator[CommitFacts]:
    """``git log`` of ``LOG`` as facts; a merge comes once for each parent and is joined to one."""
    found: dict[str, CommitFacts] = {}
    commit, subject = "", ""
    paths: list[str] = []
    trees: dict[str, str] = {}
    tokens = iter([*log.split("\0"), "\x01"])
    for token in tokens:
        bare = token.lstrip("\n")
        if bare.startswith("\x01"):
            if commit:
                before = found.get(commit, CommitFacts(commit=commit, paths=()))
                found[commit] = CommitFacts(
                    commit=commit,
                    paths=tuple(dict.fromkeys((*before.paths, *paths))),
                    trees={**before.trees, **trees},
                    subject=subject,
                )
            commit, _, subject = bare[1:].partition("\x02")
            paths, trees = [], {}
        elif bare.startswith(":"):
            _note(bare, next(tokens, ""), variants, paths, trees)
    yield from found.values()


def _note(entry: str, path: str, variants: str, paths: list[str], trees: dict[str, str]) -> None:
    _, mode, _, new, *_ = entry.split(" ")
    if mode == "040000":
        folder, _, name = path.rpartition("/")
        if folder == variants and not _ZEROS.fullmatch(new):
            trees[name] = new
    elif not _ZEROS.fullmatch(new):
        paths.append(path)


def tree_names(listing: str) -> dict[str, str]:
    """Name -> tree id of every folder in a ``git ls-tree -z``."""
    out: dict[str, str] = {}
    for entry in split(listing):
        meta, _, name = entry.partition("\t")
        parts = meta.split(" ")
        if len(parts) == 3 and parts[1] == "tree":
            out[name] = parts[2]
    return out


def _worktree(asked: Asked, variants: str) -> dict[str, str]:
    """Tree ids of the variant folders as they are now; neither the index nor the store of the repo is touched."""
    folder = asked.root / variants
    if not folder.is_dir() or folder.is_symlink():
        return {}
    with tempfile.TemporaryDirectory() as tmp:
        index, objects = Path(tmp) / "index", Path(tmp) / "objects"
        objects.mkdir()
        asked.out("add", "-A", "--", variants, index=index, objects=objects)
        tree = asked.out("write-tree", f"--prefix={variants}/", index=index, objects=objects, quiet=True).strip()
        return tree_names(asked.out("ls-tree", "-z", tree, objects=objects)) if tree else {}


def _row_trees(asked: Asked, rows: Iterable[Row], variants: str) -> dict[str, str]:
    every = {row_key(row): f"{row.commit}:{_folder(row, variants)}" for row in rows if row.commit}
    wanted = [(key, spec) for key, spec in every.items() if "\n" not in spec]
    if not wanted:
        return {}
    lines = asked.out("cat-file", "--batch-check", data="".join(f"{s}\n" for _, s in wanted).encode()).splitlines()
    if len(lines) != len(wanted):
        return {}
    out: dict[str, str] = {}
    for (key, _), line in zip(wanted, lines, strict=True):
        parts = line.split(" ")
        out[key] = parts[0] if len(parts) == 3 and parts[1] == "tree" else ""
    return out


def _folder(row: Row, variants: str) -> str:
    return "baseline" if row.variant == "baseline" else f"{variants}/{row.variant}"


def _ideas_held(asked: Asked, found: Iterable[CommitFacts]) -> dict[str, int]:
    """Commit -> ideas that the log held in it. The log only grows, so its size then says where it ended in today's."""
    changed = [commit.commit for commit in found if IDEAS_PATH in commit.paths]
    path = asked.root / IDEAS_PATH
    try:
        data = path.read_bytes() if changed and files.plain(path) else None
    except OSError:
        data = None  # the reader of the log itself makes a fault of it
    if data is None:
        return {}
    ends = [match.start() for match in re.finditer(b"\n", data)][1:]  # the first line is the header
    asking = "".join(f"{commit}:{IDEAS_PATH}\n" for commit in changed).encode()
    lines = asked.out("cat-file", "--batch-check=%(objectsize)", data=asking).splitlines()
    if len(lines) != len(changed):
        return {}
    sizes = zip(changed, lines, strict=True)
    return {commit: bisect_left(ends, int(size)) for commit, size in sizes if size.isdigit()}


def _removed(root: Path, found: Iterable[CommitFacts]) -> tuple[str, ...]:
    held = {path for commit in found for path in commit.paths if path.startswith(ARTIFACTS)}
    held = {
        path for path in held if "\ufffd" not in path
    }  # a name that is not UTF-8 cannot be looked up, and is not ours
    return tuple(sorted(path for path in held if not files.plain(root / path)))


def _index(asked: Asked) -> tuple[frozenset[str], tuple[str, ...]]:
    """Tracked paths, and those whose changes git hides."""
    entries = [(entry[:1], entry[2:]) for entry in split(asked.out("ls-files", "-v", "-z"))]
    hidden = tuple(path for tag, path in entries if tag == "S" or tag.islower())
    return frozenset(path for _, path in entries), hidden


def _cut(asked: Asked) -> str:
    """Why the history that git shows is not the whole one; empty when it is."""
    if asked.out("rev-parse", "--is-shallow-repository", quiet=True).strip() == "true":
        return "a shallow clone: its history is cut off, so rows cannot be compared with their commits"
    grafts = asked.root / asked.out("rev-parse", "--git-path", "info/grafts", quiet=True).strip()
    return "grafts show another history than the one that was committed" if grafts.is_file() else ""


def _filtered(asked: Asked, tracked: Iterable[str]) -> tuple[str, ...]:
    """Tracked paths of evidence and code to which a ``filter`` attribute applies."""
    watched = sorted(path for path in tracked if path.startswith(tuple(f"{name}/" for name in files.FOLDERS)))
    listed = "".join(f"{path}\0" for path in watched).encode(errors="surrogateescape")
    fields = asked.out("check-attr", "-z", "--stdin", "filter", data=listed).split("\0") if watched else []
    return tuple(
        path for path, value in zip(fields[::3], fields[2::3], strict=False) if value not in ("unspecified", "unset")
    )


def _outer(root: Path) -> str:
    """Root of an enclosing repository that tracks this very folder: one repo inside another's history."""
    above = next((p for p in root.parents if (p / ".git").exists()), None)
    if above is None:
        return ""
    held = Asked(root=above).out("ls-files", "-z", "--", str(root.relative_to(above)), quiet=True)
    return str(above) if held else ""


def collect(root: Path, *, task: str, current: str, rows: Sequence[Row]) -> tuple[GitFacts, list[Fault]]:
    """Facts and what git refused to tell; ``current`` is the variant that ``src/<task>/current`` names."""
    asked = Asked(root=root)
    if not asked.out("rev-parse", "--git-dir", quiet=True):
        what = "no git repository (or git is not installed)"
        return GitFacts(head=""), [Fault(where=".git", what=what, fix="kernelpilot scaffold DIR --task NAME")]
    head = asked.out("rev-parse", "--verify", "-q", "HEAD", quiet=True).strip()
    variants = f"src/{task}/variants"
    found = tuple(commits(asked.out(*LOG), variants)) if head else ()
    tracked, hidden = _index(asked)
    held = tree_names(asked.out("ls-tree", "-z", f"HEAD:{variants}", quiet=True)) if head else {}
    facts = GitFacts(
        head=head,
        commits=found,
        dirty=_dirty(asked),
        removed=_removed(root, found),
        nested=files.nested(root),
        above=_outer(root),
        humanize_ignored=_ignored(root),
        humanize_tracked=tuple(sorted(path for path in tracked if path.startswith(".humanize"))),
        current_tree=_current_tree(asked, current, held) if head else "",
        row_trees=_row_trees(asked, rows, variants) if head else {},
        head_variants=held,
        variants=_worktree(asked, variants),
        hidden=hidden,
        tracked=tracked,
        cut=_cut(asked),
        filtered=_filtered(asked, tracked),
        ideas_held=_ideas_held(asked, found),
    )
    return facts, asked.faults


def _dirty(asked: Asked) -> tuple[str, ...]:
    out = asked.out("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
    return tuple(entry[3:] for entry in split(out) if len(entry) > 3)


def _ignored(root: Path) -> bool:
    try:
        return proc.git(root, "check-ignore", "-q", ".humanize/x", check=False).code == 0
    except KernelPilotError:
        return False


def _current_tree(asked: Asked, current: str, held: Mapping[str, str]) -> str:
    if current != "baseline":
        return held.get(current, "")
    return asked.out("rev-parse", "--verify", "-q", "HEAD:baseline", quiet=True).strip()


def listing(root: Path, commit: str) -> tuple[str, ...]:
    """Paths that a commit holds; none when there is no such commit."""
    return tuple(split(Asked(root=root).out("ls-tree", "-r", "-z", "--name-only", commit, quiet=True)))
