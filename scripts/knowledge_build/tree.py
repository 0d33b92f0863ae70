"""What the lists are made from: mined rows with our words laid over them, heads, and the pages that people wrote."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord, ToolMissing
from kernelpilot_helpers.knowledge import check_facts, page_parts
from kernelpilot_helpers.knowledge.lessons import parsed
from kernelpilot_helpers.knowledge.model import FIX, Lesson
from kernelpilot_helpers.knowledge.page_parts import Parts

SELECTED = "ABCDE"
"""Tiers that are evidence of an optimization, strongest first."""
PULLS = ("squash", "merge", "api")


class Changed(msgspec.Struct, frozen=True):
    """A file of a change."""

    path: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Of a mined row, what the lists show or sort by."""

    id: str
    repo: str
    pr: int | None
    sha: str
    merged_at: str
    how: str
    tier: str
    score: float
    label: str
    archs: tuple[str, ...]
    dtypes: tuple[str, ...]
    families: tuple[str, ...]
    kernel_files: tuple[str, ...]
    diff_terms: dict[str, int]
    n_files: int
    evidence: dict[str, dict[str, int]] = {}
    """``family:gemm`` -> how many paths, symbols, title words and added lines say so."""
    lesson: bool = False
    """We read the diff and wrote about it; the label is ours then."""

    @property
    def strength(self) -> tuple[bool, int, float, str]:
        """Sorts the strongest last: read ones, then by tier, then by the miner's score."""
        tier = len(SELECTED) - SELECTED.index(self.tier) if self.tier and self.tier in SELECTED else 0
        return self.lesson, tier, self.score, self.id

    @property
    def link(self) -> str:
        """Its short id as a Markdown link."""
        base = f"https://github.com/{self.repo}"
        if self.pr:
            return f"[#{self.pr}]({base}/pull/{self.pr})"
        return f"[{self.sha[:12]}]({base}/commit/{self.sha[:12]})"

    @property
    def day(self) -> str:
        """UTC date."""
        return self.merged_at[:10]


class Told(msgspec.Struct, frozen=True):
    """What the miner says of a repository."""

    heads: dict[str, str]
    selected_prs: int
    source_only: bool


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """Everything, in a stable order."""

    rows: tuple[Row, ...]
    repos: dict[str, Told]
    lessons: int
    pages: tuple[Parts, ...]
    """Those that people wrote, by path."""

    def of(self, repo: str) -> list[Row]:
        """Rows of one repository that are landed, strongest first."""
        found = [row for row in self.rows if row.repo == repo and row.how != "open"]
        return sorted(found, key=lambda row: row.strength, reverse=True)


def read(folder: Path) -> Tree:
    """The tree below ``folder``. Raises ToolMissing without facts, BadRecord for a file that cannot be read."""
    mined = sorted((folder / "data" / "facts").glob("*.jsonl.gz"))
    if not mined:
        fix = "python scripts/refresh_pr_knowledge.py --help, or git checkout -- knowledge/data"
        raise ToolMissing("no mined facts (*.jsonl.gz)", where=str(folder / "data" / "facts"), fix=fix)
    files = tuple(
        (str(path), records.read_bytes(path, fix=FIX)) for path in sorted(folder.glob("data/lessons/*.jsonl"))
    )
    ours = {lesson.id: lesson for _, lesson in parsed(files)}
    rows = [_with(row, ours.get(row.id)) for path in mined for row in _rows(path)]
    at = folder / "data" / "facts" / "repos.json"
    document = records.parse_json(records.read_bytes(at, fix=FIX), at=str(at), fix=FIX)
    return Tree(
        rows=tuple(sorted(rows, key=lambda row: row.id)),
        repos=records.convert(document, dict[str, Told], at=str(at), fix=FIX),
        lessons=sum(row.lesson for row in rows),
        pages=tuple(page for page in pages(folder) if not page.generated),
    )


def _rows(path: Path) -> list[Row]:
    decoder = msgspec.json.Decoder(Row)
    out = []
    for number, line in enumerate(check_facts.lines_of(records.read_bytes(path, fix=FIX), at=str(path)), start=2):
        try:
            out.append(decoder.decode(line))
        except (msgspec.MsgspecError, ValueError) as error:
            raise BadRecord(str(error), where=f"{path}:{number}", fix=FIX) from None
    return out


def _with(row: Row, ours: Lesson | None) -> Row:
    if ours is None or ours.sha != row.sha:
        return row
    return msgspec.structs.replace(row, label=ours.label, lesson=True)


def pages(folder: Path) -> list[Parts]:
    """Every page below the folder. Raises BadRecord for one that cannot be read."""
    found = sorted(folder.rglob("*.md"))
    return [page_parts.parse(path.relative_to(folder).as_posix(), text_of(path)) for path in found]


def text_of(path: Path) -> str:
    """A page as text. Raises BadRecord for one that is no file, or not UTF-8."""
    fix = f"git checkout -- {path}, or mend it"
    try:
        return records.read_bytes(path, fix=fix).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRecord(f"not UTF-8: {error}", where=str(path), fix=fix) from None
