"""Failure classes, told apart by who must act. Every message ends in the command or edit that fixes it."""

from __future__ import annotations


class KernelPilotError(Exception):
    """A fault that the user can mend: what is wrong, where, and the command or edit that fixes it (exit 1)."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        """Keep the three parts apart, so that ``--json`` and the terminal can each show them their way."""
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(str(self))

    def __str__(self) -> str:
        """One message: ``where: what; fix``."""
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  fix: {self.fix}" if self.fix else head


class BadRecord(KernelPilotError):
    """A file of ours or of the user's does not hold what its format promises: the file must change."""


class NewerFormat(BadRecord):
    """A file was written by a newer KernelPilot: the tool must be upgraded, the file stays as it is."""


class ToolMissing(KernelPilotError):
    """A program, package or device is absent: the machine must change."""


class NotComparable(KernelPilotError):
    """Two measurements may not be compared: the measurement must be repeated."""


class Refused(KernelPilotError):
    """The request asks for something that the evidence rules forbid or that is not supported yet."""


class Busy(KernelPilotError):
    """Another process holds a lock; the message names its pid."""


class Interrupted(KernelPilotError):
    """The user pressed Ctrl-C; what had been acknowledged stays on disk (exit 130)."""

    exit_code = 130
