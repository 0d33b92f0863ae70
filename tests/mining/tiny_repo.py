"""A git history made by one ``fast-import`` process."""

from __future__ import annotations

import subprocess
from pathlib import Path

SECRET_NAME, SECRET_MAIL = "Zyx Qwertz", "zyx@private.example"
DAY = 86_400
START = 1_735_689_600
"""2025-01-01T00:00:00Z."""


class Tiny:
    """Commits on branches of a bare repository; marks are their order, from 1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stream: list[str] = []
        self.marks = 0
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)

    def commit(
        self,
        message: str,
        files: dict[str, str | None],
        *,
        branch: str = "refs/heads/main",
        zone: str = "+0000",
        at: int | None = None,
        parents: tuple[int, ...] | None = None,
    ) -> int:
        """One commit; ``None`` deletes a file. Without ``parents`` it follows the branch."""
        self.marks += 1
        stamp = at if at is not None else START + self.marks * DAY
        data = message.encode()
        lines = [f"commit {branch}", f"mark :{self.marks}", f"committer {SECRET_NAME} <{SECRET_MAIL}> {stamp} {zone}"]
        lines += [f"data {len(data)}", message]
        if parents:
            lines += [f"from :{parents[0]}", *(f"merge :{mark}" for mark in parents[1:])]
        for path, text in files.items():
            if text is None:
                lines.append(f"D {path}")
            else:
                lines += [f"M 100644 inline {path}", f"data {len(text.encode())}", text]
        self.stream.append("\n".join(lines) + "\n")
        return self.marks

    def ref(self, name: str, mark: int) -> None:
        """Point a ref at a commit."""
        self.stream.append(f"reset {name}\nfrom :{mark}\n")

    def write(self) -> Path:
        """Import what was described; return the git directory."""
        kept = self.folder / "marks"
        marks = [f"--import-marks-if-exists={kept}", f"--export-marks={kept}"]
        subprocess.run(
            ["git", "--git-dir", str(self.folder), "fast-import", "--quiet", "--force", *marks],
            input="\n".join(self.stream).encode(),
            check=True,
        )
        return self.folder

    def git(self, *arguments: str) -> str:
        """Output of a git command there."""
        done = subprocess.run(["git", "--git-dir", str(self.folder), *arguments], check=True, capture_output=True)
        return done.stdout.decode().strip()
