"""Mined facts as records: one line of JSON a pull request or commit, of which we keep what a search can use."""

from __future__ import annotations

import functools
import gzip
import re
import zlib
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import msgspec

from kernelpilot_helpers.errors import BadRecord, NewerFormat
from kernelpilot_helpers.knowledge import text
from kernelpilot_helpers.knowledge.model import FIX, Record

FORMAT = "kernelpilot.knowledge-facts"
VERSION = 1
NEWER = "update KernelPilot: git pull && ./install.sh"
MOST_FILES = 12
MOST_NAMES = 16

Names = tuple[str, ...] | dict[str, Any]
"""A list of names, or each name with its evidence."""


class _File(msgspec.Struct, frozen=True):
    path: str
    add: int | None = 0


class _Select(msgspec.Struct, frozen=True):
    tier: str | None = None


class _Header(msgspec.Struct, frozen=True):
    format: str
    version: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What a search takes from a row, and of any miner: older facts lack keys, newer ones may have more.

    ``mined.Facts`` is the whole row, as strict as its format; to decode one costs the same.
    """

    id: str
    repo: str
    pr: int | str | None = None
    sha: str
    merged_at: str
    how: str = ""
    n_files: int = 0
    knet: int = 0
    files: tuple[_File, ...] = ()
    kernel_files: tuple[str, ...] = ()
    test_files: tuple[str, ...] = ()
    bench_files: tuple[str, ...] = ()
    kinds: Names = ()
    symbols: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    diff_terms: dict[str, int] = {}
    archs: Names = ()
    families: Names = ()
    dtypes: Names = ()
    claims: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    label: str = ""
    tier: str = ""
    select: _Select = _Select()
    """Where the tier of older facts stands."""


_ROW = msgspec.json.Decoder(Row)
_DTYPE = re.compile(
    r"(?<![a-z0-9])(?:(nvfp4|mxfp4|mxfp8|fp4|fp8|fp16|bf16|fp32|fp64|tf32|int8|int4)(?![0-9])|(e2m1)|(e4m3|e5m2|float8)"
    r"|(bfloat16)|(half|float16)(?![a-z0-9])|(w4a16|w4a8|uint4|u4)(?![0-9])|(w8a8)(?![0-9]))"
)
_OTHER = (None, "fp4", "fp8", "bf16", "fp16", "int4", "int8")
_WIDER = {"nvfp4": "fp4", "mxfp4": "fp4", "mxfp8": "fp8"}


def raw(data: bytes, *, at: str) -> Iterator[Row]:
    """The lines of one gzip file of JSON lines. Raises BadRecord that names the file and the line."""
    try:
        lines = gzip.decompress(data).splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise BadRecord(f"is no gzip file: {error}", where=at, fix=FIX) from None
    for number, line in enumerate(lines, start=1):
        if number == 1 and _is_header(line, at=at):
            continue
        if line.strip():
            try:
                yield _ROW.decode(line)
            except (msgspec.MsgspecError, ValueError) as error:
                raise BadRecord(str(error), where=f"{at}:{number}", fix=FIX) from None


def _is_header(line: bytes, *, at: str) -> bool:
    """True for the header of a format that is known; older facts begin with a row. Raises NewerFormat, BadRecord."""
    try:
        header = msgspec.json.decode(line, type=_Header)
    except msgspec.MsgspecError:
        return False
    if header.format != FORMAT:
        raise BadRecord(f"format: want {FORMAT!r}, got {header.format[:60]!r}", where=f"{at}:1", fix=FIX)
    if header.version > VERSION:
        raise NewerFormat(f"version {header.version} is newer than this tool's {VERSION}", where=f"{at}:1", fix=NEWER)
    return True


def rows(data: bytes, *, at: str) -> Iterator[Record]:
    """The records of one gzip file of JSON lines. Raises BadRecord that names the file, and line or record."""
    for row in raw(data, at=at):
        try:
            yield record_of(row)
        except ValueError as error:
            raise BadRecord(str(error), where=f"{at} ({row.id})", fix=FIX) from None


def record_of(row: Row) -> Record:
    """One mined line as a record, with a label generated from its facts where it has none."""
    added = {file.path: file.add or 0 for file in row.files}
    terms = dict(sorted(row.diff_terms.items(), key=lambda item: (-item[1], item[0])))
    words = bag(row.words)
    families, archs, kinds = (tuple(sorted(names)) for names in (row.families, row.archs, row.kinds))
    kernels = _by_lines(row.kernel_files, added)
    symbols = row.symbols[:MOST_NAMES]
    number = row.pr if isinstance(row.pr, int) else 0
    return Record(
        id=row.id,
        repo=row.repo,
        pr=number,
        sha=row.sha,
        merged_at=utc(row.merged_at),
        tier=row.tier or row.select.tier or "",
        label=row.label or label_of(symbols, kernels, tuple(terms), families, archs),
        lesson="",
        archs=archs,
        families=families,
        kinds=kinds,
        kernel_files=kernels,
        test_files=_by_lines(row.test_files, added),
        bench_files=_by_lines(row.bench_files, added),
        symbols=symbols,
        diff_terms=terms,
        claims=row.claims,
        words=words,
        dtypes=tuple(sorted(row.dtypes)) or dtypes_of((*words, *symbols, *kernels), tuple(terms)),
        context=row.context[:MOST_NAMES],
        state="open" if row.how == "open" else "direct" if not number else "merged",
        n_files=row.n_files or len(row.files),
        knet=row.knet,
    )


def label_of(
    symbols: tuple[str, ...],
    kernels: tuple[str, ...],
    terms: tuple[str, ...],
    families: tuple[str, ...],
    archs: tuple[str, ...],
) -> str:
    """One line from facts: what was touched, the mechanisms most added, family and architecture."""
    name = symbols[0] if symbols else kernels[0].rsplit("/", 1)[-1] if kernels else "kernels"
    about = ", ".join((*families[:3], *archs[:3]))
    return f"{name}: {', '.join(terms[:4]) or 'no mechanism counted'}" + (f" ({about})" if about else "")


def bag(words: tuple[str, ...]) -> tuple[str, ...]:
    """Lower-case title words without punctuation around them, sorted and deduplicated: no sentence is left.

    Case is kept where it parts an identifier (``SwapAB`` is ``swap_ab``), so that its pieces are still found.
    """
    bare = (re.sub(r"^[^A-Za-z0-9_]+|[^A-Za-z0-9_]+$", "", word) for word in words)
    return tuple(sorted({_parted(word) for word in bare if word}))


def _parted(word: str) -> str:
    mixed = re.search(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}", word)
    return "_".join(text.surfaces(word)) if mixed and re.fullmatch("[A-Za-z0-9]+", word) else word.lower()


def utc(stamp: str) -> str:
    """A committer's local time as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(stamp.replace("Z", "+00:00"))
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def dtypes_of(names: tuple[str, ...], terms: tuple[str, ...]) -> tuple[str, ...]:
    """Data types that words, symbols, paths or mechanisms name; the narrow formats also under their plain name."""
    found: set[str] = {t for t in terms if t in ("fp8", "fp4", "int8", "int4", "mxfp8")}
    for name in names:
        found.update(_dtypes_in(name))
    return tuple(sorted(found | {_WIDER[name] for name in found if name in _WIDER}))


@functools.lru_cache(maxsize=16384)
def _dtypes_in(name: str) -> tuple[str, ...]:
    matches = _DTYPE.finditer(name.lower().replace("_", " "))
    return tuple(m[1] or _OTHER[(m.lastindex or 1) - 1] or "" for m in matches)


def _by_lines(paths: tuple[str, ...], added: dict[str, int]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=lambda path: (-added.get(path, 0), path))[:MOST_FILES])
