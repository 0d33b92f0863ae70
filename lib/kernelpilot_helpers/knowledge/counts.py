"""How many documents of a full-text table hold a search word."""

from __future__ import annotations

import sqlite3


class Counts:
    """Of one table of documents and the vocabulary table (fts5vocab, row) of its index; each word is asked for once."""

    def __init__(self, tables: sqlite3.Connection, documents: str, vocabulary: str) -> None:
        self._tables, self._vocabulary = tables, vocabulary
        self.total: int = tables.execute(f"SELECT count(*) FROM {documents}").fetchone()[0]  # noqa: S608 - names of ours
        self._found: dict[str, int] = {}

    def of(self, token: str) -> int:
        """Documents that hold it; 0 for an unknown word."""
        if token not in self._found:
            sql = f"SELECT doc FROM {self._vocabulary} WHERE term = ?"  # noqa: S608 - a name of ours
            row = self._tables.execute(sql, (token,)).fetchone()
            self._found[token] = row[0] if row else 0
        return self._found[token]
