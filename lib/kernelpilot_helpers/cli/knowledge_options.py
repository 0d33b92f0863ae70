"""Options that the knowledge commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kernelpilot_helpers.knowledge import Filters

F = TypeVar("F", bound=Callable[..., Any])

index_option = click.option(
    "--index",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="another index: a folder like the bundle's knowledge, with data/ and pages",
)
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="another folder of mined facts (*.jsonl.gz)",
)
clone_option = click.option(
    "--clone",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="a clone of the record's repository (default: OWNER+NAME/repo, OWNER+NAME, OWNER/NAME, NAME or NAME.git below"
    " a folder of KERNELPILOT_CLONES)",
)
_FILTERS = (
    click.option("--repo", default="", metavar="OWNER/NAME", help="only this repository"),
    click.option("--arch", default="", metavar="ARCH", help="records that name it, such as sm_90, or name none"),
    click.option("--dtype", default="", metavar="TYPE", help="records that name it, such as fp8, or name none"),
    click.option("--family", default="", metavar="NAME", help="only this family, such as gemm"),
    click.option("--dsl", default="", metavar="NAME", help="only kernels in this language, such as triton"),
    click.option("--tier", default="", metavar="A|B|C|D|E|P|none", help="only this tier; P: fixes in device code"),
    click.option("--state", default="", metavar="merged|direct|open", help="only these"),
    click.option("--since", default="", metavar="YYYY-MM-DD", help="from this day on"),
    click.option("--until", default="", metavar="YYYY-MM-DD", help="up to this day"),
    click.option("--has-test", is_flag=True, help="only with a test"),
    click.option("--has-bench", is_flag=True, help="only with a benchmark"),
    click.option("--symbol", default="", metavar="PART", help="a part of a kernel's or function's name"),
    click.option("--path", default="", metavar="GLOB", help="paths of kernels"),
    click.option("--token", "tokens", multiple=True, metavar="NAME[>=LINES]", help="adds this mechanism (repeatable)"),
)


def filter_options(function: F) -> F:
    """Every filter of a search."""
    for option in reversed(_FILTERS):
        function = option(function)
    return function


def filters_of(said: dict[str, Any], seen: frozenset[str] = frozenset()) -> Filters:
    """What the filter options say. Raises UsageError for a day that is none, or a stretch that holds none."""
    from kernelpilot_helpers import knowledge

    for name in ("since", "until"):
        if said[name] and not _is_day(said[name]):
            raise click.UsageError(f"--{name}: want a day like 2025-01-31, got {said[name][:60]!r}")
    if said["since"] and said["until"] and said["since"] > said["until"]:
        raise click.UsageError(f"--since {said['since']} is after --until {said['until']}: no day is between them")
    return knowledge.Filters(**said, seen=seen)


def _is_day(said: str) -> bool:
    import datetime as dt
    import re

    try:
        return bool(re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", said) and dt.date.fromisoformat(said))
    except ValueError:
        return False


@contextmanager
def refusing() -> Iterator[None]:
    """An unknown filter value is bad usage."""
    from kernelpilot_helpers.errors import Refused

    try:
        yield
    except Refused as refusal:
        if not refusal.where.startswith("--"):
            raise
        raise click.UsageError(f"{refusal.where}: {refusal.what}; {refusal.fix}") from None
