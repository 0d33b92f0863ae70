"""What a refresh has done so far, in one SQLite file: records and cursor move in the same transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import BadRecord
from mining.facts import RULES, Facts

LAYOUT = 1
OPEN_RANK = 1000
"""Of an open candidate: any merged record of the same id stands before it."""
TABLES = """
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS record(repo TEXT, id TEXT, rank INTEGER, sha TEXT, date TEXT, row TEXT NOT NULL,
  PRIMARY KEY(repo, id, sha));
CREATE TABLE IF NOT EXISTS done(repo TEXT, sha TEXT, PRIMARY KEY(repo, sha)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS place(repo TEXT, branch TEXT, value TEXT NOT NULL, PRIMARY KEY(repo, branch));
CREATE TABLE IF NOT EXISTS page(url TEXT, token TEXT, etag TEXT NOT NULL, kept TEXT NOT NULL, next TEXT NOT NULL,
  PRIMARY KEY(url, token));
"""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A record on its way in; of two with one id the smaller rank wins, then the earlier date, then the smaller sha."""

    facts: Facts
    rank: int


class Cursor:
    """The file. Opened by one process; ``with`` closes it. Raises BadRecord when the file is something else."""

    def __init__(self, path: Path | None) -> None:
        self.at = str(path) if path else ":memory:"
        try:
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
            self.db = sqlite3.connect(self.at, isolation_level=None)
            self.db.executescript(TABLES)
            self._meet({"layout": str(LAYOUT), "rules": str(RULES)})
        except (sqlite3.Error, OSError) as error:
            raise BadRecord(f"cannot be used as a cursor: {error}", where=self.at, fix=f"rm {self.at}") from None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def _meet(self, want: dict[str, str]) -> None:
        """Other rules would mix two kinds of facts: everything but the pages starts anew."""
        if dict(self.db.execute("SELECT key, value FROM meta")) == want:
            return
        self.db.execute("BEGIN IMMEDIATE")
        for table in ("record", "done", "place", "page", "meta"):
            self.db.execute(f"DELETE FROM {table}")  # noqa: S608
        self.db.executemany("INSERT INTO meta VALUES(?, ?)", sorted(want.items()))
        self.db.execute("COMMIT")

    def settle(
        self, repo: str, rows: Iterable[Row], done: Iterable[str], places: Iterable[tuple[str, Any]] = ()
    ) -> None:
        """Records, the commits they came from, and where to go on: all of it or nothing."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.executemany(
                "INSERT OR REPLACE INTO record VALUES(?, ?, ?, ?, ?, ?)",
                [
                    (repo, r.facts.id, r.rank, r.facts.sha, r.facts.merged_at, records.encode(r.facts).decode())
                    for r in rows
                ],
            )
            self.db.executemany("INSERT OR IGNORE INTO done VALUES(?, ?)", [(repo, sha) for sha in done])
            self.db.executemany(
                "INSERT OR REPLACE INTO place VALUES(?, ?, ?)",
                [(repo, branch, json.dumps(value)) for branch, value in places],
            )
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise

    def done(self, repo: str) -> set[str]:
        """Commits that need no second look."""
        return {sha for (sha,) in self.db.execute("SELECT sha FROM done WHERE repo = ?", (repo,))}

    def place(self, repo: str, branch: str) -> Any:
        """What ``settle`` last noted there, None at first."""
        found = self.db.execute("SELECT value FROM place WHERE repo = ? AND branch = ?", (repo, branch)).fetchone()
        return json.loads(found[0]) if found else None

    def rows(self, repo: str, since: str = "") -> list[bytes]:
        """One line for each id, numbers first; the same whatever order they came in."""
        query = "SELECT id, row FROM record WHERE repo = ? AND date >= ? ORDER BY id, rank, date, sha"
        first: dict[str, str] = {}
        for key, row in self.db.execute(query, (repo, since)):
            first.setdefault(key, row)
        return [first[key].encode() for key in sorted(first, key=_order)]

    def forget_open(self, repo: str, keep: Iterable[tuple[str, str]]) -> None:
        """Drop open candidates but these (id, sha): merged, closed and moved ones are no candidates any more."""
        kept = set(keep)
        query = "SELECT id, sha FROM record WHERE repo = ? AND rank = ?"
        old = [key for key in self.db.execute(query, (repo, OPEN_RANK)) if key not in kept]
        self.db.execute("BEGIN IMMEDIATE")
        for key, sha in old:
            self.db.execute("DELETE FROM record WHERE repo = ? AND id = ? AND sha = ?", (repo, key, sha))
            self.db.execute("DELETE FROM done WHERE repo = ? AND sha = ?", (repo, f"open {sha}"))
        self.db.execute("COMMIT")

    def page(self, url: str, token: str) -> tuple[str, Any, str] | None:
        """(etag, what was kept of the page, next url) as this token saw it."""
        found = self.db.execute(
            "SELECT etag, kept, next FROM page WHERE url = ? AND token = ?", (url, token)
        ).fetchone()
        return (found[0], json.loads(found[1]), found[2]) if found else None

    def keep_page(self, url: str, token: str, etag: str, kept: Any, following: str) -> None:
        """Remember a page by its tag; ``kept`` must hold facts only."""
        self.db.execute(
            "INSERT OR REPLACE INTO page VALUES(?, ?, ?, ?, ?)", (url, token, etag, json.dumps(kept), following)
        )


def _order(key: str) -> tuple[int, int, str]:
    number = key.rpartition("#")[2]
    return (0, int(number), key) if number.isdigit() else (1, 0, key)
