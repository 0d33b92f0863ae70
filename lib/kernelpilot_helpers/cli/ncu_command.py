"""``kernelpilot ncu``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import common


@click.group("ncu")
def command() -> None:
    """Turn an Nsight Compute export into one bottleneck and one next step."""


@command.command("digest")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="write digest.json and digest.md here")
@click.option("--min-bytes", type=click.IntRange(min=1), help="least DRAM bytes that the case needs")
@common.json_option
def digest_command(file: Path, out: Path | None, min_bytes: int | None, as_json: bool) -> int:
    """Digest FILE, made by `ncu --import REPORT.ncu-rep --page raw --csv > FILE`.

    Exit 0 with a digest (also when it says that more must be captured), 1 when the file is refused.
    """
    import msgspec

    from kernelpilot_helpers import ncu, records

    source = ncu.read(file)
    given = ncu.Input(name=source.name, bytes=source.size, sha256=source.sha256)
    if source.refused is not None:
        found = ncu.refuse(source.refused, source=given, path=str(file))
    else:
        found = ncu.digest(source.data, source=given, path=str(file), min_bytes=min_bytes)
    if out is not None and found.refused is None:
        records.save(out / "digest.json", found)
        records.write_text(out / "digest.md", ncu.markdown(found))
    common.emit(msgspec.to_builtins(found), as_json=as_json, text=ncu.text(found))
    return 0 if found.refused is None else 1
