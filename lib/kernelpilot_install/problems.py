"""The installer's one failure class; its words follow the tool's own: where, what, fix."""

from __future__ import annotations


class InstallError(Exception):
    """A fault that the user can mend (exit 1). Every message ends in the command or edit that fixes it."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        """Keep the three parts apart for whoever shows them."""
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(str(self))

    def __str__(self) -> str:
        """``where: what``, then the fix on its own line."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  fix: {self.fix}" if self.fix else head
