"""``kernelpilot ncu``: imports nothing heavy before it knows that it is needed."""

from __future__ import annotations

import functools
import math
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.ncu.examine import Examined
    from kernelpilot_helpers.ncu.model import Given, Input
    from kernelpilot_helpers.ncu.report import Report


class Finite(click.FloatRange):
    """A number within bounds; ``nan`` passes every comparison of click's own type."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Raises click.BadParameter."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a number that can be compared.", param, ctx)
        return number


ONE = click.Path(path_type=Path)
force_option = click.option("--force", is_flag=True, help="read a binary report of a version that is not known")
keep_option = click.option("--keep-paths", is_flag=True, help="keep names of people, machines and home folders")


def out_option(files: str) -> Callable[..., Any]:
    """Where a command writes its files, which the help names."""
    return click.option(
        "--out", type=click.Path(path_type=Path, file_okay=False), help=f"write {files} into this folder"
    )


@click.group("ncu")
def command() -> None:
    """Turn Nsight Compute reports into one bottleneck and one next step."""


def given_options(function: Callable[..., int]) -> Callable[..., int]:
    """What the caller says of the case, as one ``given``."""

    @click.option(
        "--min-bytes",
        type=click.IntRange(min=1, max=1 << 60),
        help="least bytes that the case must move through DRAM: each input and output once",
    )
    @click.option(
        "--floor-us",
        type=Finite(min=0, max=1e12, min_open=True),
        help="least time of any kernel that moves as much, us: launch, one trip to memory, drain",
    )
    @click.option("--case", default="", metavar="ID", help="the contract's case that was profiled, to be shown")
    @click.option("--measured-ceilings", "ceilings", type=ONE, help="file of `kernelpilot bench --ceilings`")
    @functools.wraps(function)
    def wrapped(
        *, min_bytes: int | None, floor_us: float | None, case: str, ceilings: Path | None, **rest: Any
    ) -> int:  # fmt: skip
        from kernelpilot_helpers.ncu.model import Given

        given = Given(case=case, min_bytes=min_bytes, floor_us=floor_us, ceilings=_ceilings(ceilings))
        return function(given=given, **rest)

    return wrapped


@command.command("digest")
@click.argument("files", type=ONE, nargs=-1, required=True, metavar="FILE...")
@out_option("digest.md, digest.json and facts.json")
@given_options
@click.option("--parent", type=ONE, help="report or facts.json of the version before this one")
@click.option("--sass", is_flag=True, help="disassemble the headline kernel; needs the extra `sass` or nvdisasm")
@keep_option
@force_option
@common.json_option
def digest_command(
    *,
    files: tuple[Path, ...],
    out: Path | None,
    given: Given,
    parent: Path | None,
    sass: bool,
    keep_paths: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Name one bottleneck and one next step of a report.

    FILE is a .ncu-rep, a .ncu-repz, pages exported with --csv (several of one report together), or the facts.json
    that --out wrote. docs/formats/ncu-digest.md says what each line of the answer means.

    Exit 0 with a digest (also when it says that more must be captured), 1 when the file is refused.
    """
    from kernelpilot_helpers.ncu import examine, render
    from kernelpilot_helpers.ncu.model import RefusedInput

    tool = _disassembler() if sass else None
    before = None if parent is None else _load([parent], force=force)
    try:
        report = _read(files, force=force)
    except RefusedInput as fault:
        refused = examine.refuse(fault, source=_source(files[0]), path=str(files[0]), keep_paths=keep_paths)
        _print(lambda: examine.dump(refused), render.text(refused), as_json=as_json)
        return 1
    found = examine.digest_of(report, given=given, parent=before, keep_paths=keep_paths, disassembler=tool)
    words = render.text(found.digest)
    if out is not None:
        _write(out, report, found)
    _print(lambda: examine.dump(found.digest), words, as_json=as_json)
    return 0


def _write(out: Path, report: Report, found: Examined) -> None:
    """Facts first and the digest last: a digest.json that stands has what it was made from beside it."""
    import msgspec

    from kernelpilot_helpers import records
    from kernelpilot_helpers.ncu import canonical, examine, facts_file, render_page

    facts = facts_file.record(report, found.derived, redactor=found.redactor)
    page = render_page.markdown(found.digest)
    records.write_bytes(out / "facts.json", canonical.dump(msgspec.to_builtins(facts)))
    records.write_text(out / "digest.md", page)
    records.write_bytes(out / "digest.json", examine.dump(found.digest))


def _print(data: Callable[[], bytes], words: str, *, as_json: bool) -> None:
    click.echo(data().decode().rstrip("\n") if as_json else words)


def _source(path: Path) -> Input:
    """What can be said of a refused file; its hash where it is small enough to be read whole."""
    from kernelpilot_helpers import records
    from kernelpilot_helpers.ncu import limits
    from kernelpilot_helpers.ncu.model import Input

    size = path.stat().st_size if path.is_file() else 0
    sha256 = records.file_sha256(path) if path.is_file() and size <= limits.MAX_BYTES else ""
    return Input(name=path.name, bytes=size, sha256=sha256)


def _disassembler() -> Path:
    """Raises ToolMissing."""
    from kernelpilot_helpers.errors import ToolMissing
    from kernelpilot_helpers.ncu import sass

    found = sass.tool()
    if found is None:
        raise ToolMissing(
            "no disassembler found",
            where="nvdisasm",
            fix=f"{shlex.quote(sys.executable)} -m pip install nvidia-cuda-nvdisasm",
        )
    return found


def _read(files: Sequence[Path], *, force: bool) -> Report:
    from kernelpilot_helpers.ncu import load, sniff

    return sniff.launched(load.load(files, force=force))


def _load(files: Sequence[Path], *, force: bool) -> Report:
    """A report whose refusal is an error of the command. Raises Refused, BadRecord."""
    from kernelpilot_helpers.errors import Refused
    from kernelpilot_helpers.ncu import sniff
    from kernelpilot_helpers.ncu.model import RefusedInput

    try:
        return _read(files, force=force)
    except RefusedInput as fault:
        said = sniff.refusal(fault, path=str(files[0]))
        raise Refused(f"{said.code}: {said.what}", where=str(files[0]), fix=said.fix) from None


def _ceilings(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    from kernelpilot_helpers import records
    from kernelpilot_helpers.referee import ceilings

    return dict(records.load(path, ceilings.OWNER).values)


@command.command("diff")
@click.argument("base", type=ONE)
@click.argument("candidate", type=ONE)
@click.option("--noise", type=Finite(min=0, max=1000), metavar="PCT", help="changes of time up to this say nothing, %")
@out_option("diff.md and diff.json")
@keep_option
@force_option
@common.json_option
def diff_command(
    base: Path, candidate: Path, noise: float | None, out: Path | None, keep_paths: bool, force: bool, as_json: bool
) -> int:
    """Compare CANDIDATE with BASE: did the time change, and why.

    Each is a report, an export of one, or a facts.json. A negative change of time means that CANDIDATE is faster.

    Exit 0 with a verdict, 1 when the two cannot be compared.
    """
    import msgspec

    from kernelpilot_helpers import records
    from kernelpilot_helpers.ncu import canonical, diff, examine, render_diff

    before, after = (_load([path], force=force) for path in (base, candidate))
    found = diff.compare(before, after, noise=None if noise is None else noise / 100)
    for report in (before, after):
        found = canonical.settled(found, examine.redactor_of(report, keep=keep_paths).text)
    data = canonical.dump(msgspec.to_builtins(found))
    if out is not None:
        records.write_text(out / "diff.md", render_diff.markdown(found))
        records.write_bytes(out / "diff.json", data)
    _print(lambda: data, render_diff.text(found), as_json=as_json)
    return 0 if found.verdict != "not_comparable" else 1


@command.command("show")
@click.argument("files", type=ONE, nargs=-1, required=True, metavar="FILE...")
@click.option("--kernel", default="", metavar="TEXT", help="only kernels whose name holds this")
@click.option("--metric", default="", metavar="GLOB", help="only metrics like this, such as 'dram__*'")
@click.option("--csv", "as_csv", is_flag=True, help="print CSV")
@click.option("--frame", is_flag=True, help="print a pandas table, metrics by launch")
@keep_option
@force_option
@common.json_option
def show_command(
    files: tuple[Path, ...],
    kernel: str,
    metric: str,
    as_csv: bool,
    frame: bool,
    keep_paths: bool,
    force: bool,
    as_json: bool,
) -> int:
    """Print every value of a report with its unit and place.

    The place is FILE:N: of a CSV page its row, of a binary report the number of the metric. No value that matches is
    exit 0; numbers are in base units (ns, byte, hz, %).
    """
    from kernelpilot_helpers.ncu import examine, show

    report = _load(files, force=force)
    redactor = examine.redactor_of(report, keep=keep_paths)
    if frame:
        click.echo(redactor.text(show.frame(report, kernel=kernel, metric=metric).to_string()))
        return 0
    found = show.rows(report, kernel=kernel, metric=metric)
    if as_json:
        import json

        import msgspec

        plain = {"files": [f.name for f in report.files], "values": [msgspec.to_builtins(row) for row in found]}
        click.echo(json.dumps(redactor.all(plain), ensure_ascii=False))
        return 0
    click.echo(redactor.text(show.as_csv(found) if as_csv else show.text(found)).rstrip("\n"))
    return 0
