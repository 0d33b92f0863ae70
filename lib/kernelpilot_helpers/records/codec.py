"""Bytes and strict records, without a disk: encode, parse, upgrade. Refused: NaN, duplicate keys, newer versions."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from kernelpilot_helpers.errors import BadRecord, NewerFormat

T = TypeVar("T")
Json = dict[str, Any]
Upgrade = Callable[[Json], Json]


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner(Generic[T]):
    """A file format: who may read it, and the command that mends it."""

    format: str
    version: int
    type: type[T]
    fix: str
    upgrades: Mapping[int, Upgrade] = field(default_factory=dict)
    """Step from version n to n + 1, one pure function each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Something wrong with a stored record that must be shown and never guessed away."""

    where: str
    what: str
    fix: str


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()


def _finite(value: object, at: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise BadRecord(f"{value!r} is not a number that a file may hold", where=at, fix="report this as a bug")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _finite(item, f"{at}.{key}")
    elif isinstance(value, (list, tuple)):
        for ix, item in enumerate(value):
            _finite(item, f"{at}[{ix}]")


def encode(record: object, *, at: str = "record") -> bytes:
    """Canonical one-line JSON without a newline; field order is the owner's.

    Raises BadRecord for NaN and infinities, which msgspec would silently write as null.
    """
    plain = msgspec.to_builtins(record)
    _finite(plain, at)
    return _utf8(json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")), at)


def _utf8(text: str, at: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        # A command line that is not UTF-8 reaches Python as lone surrogates.
        raise BadRecord(f"text that is not UTF-8: {error.reason}", where=at, fix="write the text in UTF-8") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> Json:
    out: Json = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"duplicate key {key!r}")
        out[key] = value
    return out


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond a double")
    return value


def parse_json(data: bytes, *, at: str, fix: str) -> Any:
    """Plain JSON values; duplicate keys, NaN and infinities refused. Raises BadRecord."""
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
            parse_float=_finite_float,
        )
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not valid JSON: {error}", where=at, fix=fix) from None


def parse_toml(data: bytes, *, at: str, fix: str = "mend the TOML at the place named") -> Json:
    """A TOML document as plain values. Raises BadRecord with the parser's line and column."""
    import sys  # noqa: PLC0415

    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415
    else:
        import tomli as tomllib  # noqa: PLC0415
    try:
        return dict(tomllib.loads(data.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not valid TOML: {error}", where=at, fix=fix) from None


def upgrade(doc: Json, owner: Owner[Any], *, at: str) -> Json:
    """Bring a document to the owner's version, one step at a time. Raises NewerFormat or BadRecord."""
    name, version = doc.get("format"), doc.get("version")
    if name != owner.format:
        raise BadRecord(f"format: want {owner.format!r}, got {name!r}", where=at, fix=owner.fix)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadRecord(f"version: want a whole number from 1, got {version!r}", where=at, fix=owner.fix)
    if version > owner.version:
        raise NewerFormat(
            f"{owner.format} version {version} is newer than this tool reads (up to {owner.version})",
            where=at,
            fix="update KernelPilot: git pull && ./install.sh",
        )
    for step in range(version, owner.version):
        doc = {**owner.upgrades[step](doc), "version": step + 1}
    return doc


def convert(doc: object, kind: type[T], *, at: str, fix: str) -> T:
    """Plain values to a strict record; the error names the path inside the file. Raises BadRecord."""
    try:
        return msgspec.convert(doc, kind, strict=True)
    except msgspec.ValidationError as error:
        raise BadRecord(str(error), where=at, fix=fix) from None


def parse(data: bytes, owner: Owner[T], *, at: str) -> T:
    """Bytes of one document to the owner's record. Raises BadRecord or NewerFormat."""
    doc = parse_json(data, at=at, fix=owner.fix)
    if not isinstance(doc, dict):
        raise BadRecord(f"want a JSON object, got {type(doc).__name__}", where=at, fix=owner.fix)
    return convert(upgrade(doc, owner, at=at), owner.type, at=at, fix=owner.fix)


def dump(record: object) -> bytes:
    """Readable JSON with a final newline."""
    plain = msgspec.to_builtins(record)
    at = type(record).__name__
    _finite(plain, at)
    return _utf8(json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=1) + "\n", at)
