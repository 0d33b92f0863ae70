"""From files to one report: the reader by content, the bounds, and several files of one report together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelpilot_helpers.ncu import reader, sniff
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Report

# Readers are imported when met: what a digest does not need would cost it a tenth of a second at its start.
MAX_FILES = 64


def load(paths: Sequence[Path], *, force: bool = False) -> Report:
    """The report that the files hold together. ``force`` reads a binary report of an unknown version.

    Source and session pages alone give a report without launches.

    Raises RefusedInput for a file that holds no report, or files that do not belong together; BadRecord for a path
    that cannot be read, and for a damaged facts.json.
    """
    if not paths or len(paths) > MAX_FILES:
        raise RefusedInput("file.too_many", f"{len(paths)} files; 1 to {MAX_FILES} are read together")
    reports = []
    for path in paths:
        try:
            reports.append(_one(path, force=force))
        except RefusedInput as fault:
            if len(paths) == 1:
                raise
            raise RefusedInput(fault.code, f"{path.name}: {fault.what}") from None
    if len(reports) == 1:
        return reports[0]
    from kernelpilot_helpers.ncu import merge  # noqa: PLC0415

    return merge.merge(reports)


def _one(path: Path, *, force: bool) -> Report:
    source = reader.read(path)
    if source.refused is not None:
        raise source.refused
    return read(source.data, name=source.name, sha256=source.sha256, force=force)


def read(data: bytes, *, name: str, sha256: str, force: bool = False) -> Report:
    """The report that the bytes of one file hold. Raises RefusedInput, BadRecord as ``load`` does."""
    form = sniff.form(data)
    if form == "report":
        from kernelpilot_helpers.ncu import rep  # noqa: PLC0415

        return rep.parse(data, name=name, sha256=sha256, force=force)
    if form == "facts":
        from kernelpilot_helpers.ncu import facts_file  # noqa: PLC0415

        return facts_file.parse(data, at=name)
    from kernelpilot_helpers.ncu import pages  # noqa: PLC0415

    return pages.READERS[form](data, name=name, sha256=sha256)
