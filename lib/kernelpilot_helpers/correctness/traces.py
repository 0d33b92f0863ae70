"""A traceback of the measuring process, cut down to the frames of the user's own files."""

from __future__ import annotations

import re

_FRAME = re.compile(r'  File "(?P<path>[^"]+)", line (?P<line>\d+)')
_OURS = re.compile(r"(^|/)kernelpilot_runtime/|^<frozen ")
_PLACE = re.compile(r"^.*/(?:arms/[A-Z]|oracle)/")


def own(log: str) -> str:
    """The log without the runtime's and the interpreter's frames; paths begin at the variant's folder."""
    kept: list[str] = []
    skipping = False
    for line in log.strip().splitlines():
        frame = _FRAME.match(line)
        if frame is not None:
            skipping = _OURS.search(frame["path"]) is not None
            line = line.replace(frame["path"], _PLACE.sub("", frame["path"]), 1)  # noqa: PLW2901
        elif not line.startswith("    "):
            skipping = False
        if not skipping:
            kept.append(line)
    return "\n".join(kept)


def last_words(log: str) -> str:
    """The last line of a log, and where the user's code was when it ended: one line, at most 300 characters."""
    lines = [line.strip() for line in own(log).splitlines() if line.strip()]
    frames = [line for line in lines if line.startswith('File "')]
    said = lines[-1][:240] if lines else "no message"
    at = re.sub(r'File "([^"]+)"', r"\1", frames[-1]) if frames else ""
    return f"{said} ({at})"[:300] if at else said
