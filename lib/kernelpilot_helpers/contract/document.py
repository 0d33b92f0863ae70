"""``contract.toml``: bytes to a Contract that means something, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import tomli_w

from kernelpilot_helpers.contract import dtypes, rules
from kernelpilot_helpers.contract.model import (
    Axis,
    Baseline,
    Call,
    Contract,
    Framework,
    NumericsSpec,
    Objective,
    Reference,
    Target,
    Task,
    Tensor,
    Timing,
)
from kernelpilot_helpers.contract.owners import CONTRACT
from kernelpilot_helpers.contract.tensors import tensors_faults
from kernelpilot_helpers.contract.walk import Walk
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.records import convert, parse_toml, upgrade

T = TypeVar("T")


def read_toml(data: bytes, *, at: str, fix: str) -> dict[str, Any]:
    """TOML as plain values. Raises BadRecord with the line of the fault."""
    return parse_toml(data, at=at, fix=fix)


def refuse(faults: list[str], *, at: str, fix: str) -> None:
    """Raise BadRecord listing every fault on its own line, if there is any."""
    if faults:
        head = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise BadRecord("\n  ".join([head, *faults]), where=at, fix=fix)


def parse(data: bytes, *, at: str) -> Contract:
    """Strict parsing of ``contract.toml``.

    Raises BadRecord naming every fault with its dotted path and value, and NewerFormat for a later version.
    """
    return from_document(read_toml(data, at=at, fix=CONTRACT.fix), at=at)


def from_document(raw: dict[str, Any], *, at: str) -> Contract:
    """The same for plain values."""
    doc = upgrade(raw, CONTRACT, at=at)
    walk = Walk(_device(doc))
    good = walk.struct(doc, Contract)
    faults = [*walk.faults, *_meaning(good)]
    refuse(list(dict.fromkeys(faults)), at=at, fix=CONTRACT.fix)
    contract = convert(good, Contract, at=at, fix=CONTRACT.fix)
    named = {n: msgspec.structs.replace(t, dtype=dtypes.normalise(t.dtype)) for n, t in contract.tensors.items()}
    return msgspec.structs.replace(contract, tensors=named)


def _device(doc: dict[str, Any]) -> str:
    # Before anything is known to be well-formed: a target that cannot be read is reported, and stops nothing else.
    target = doc.get("target")
    gpu = target.get("gpu") if isinstance(target, dict) else None
    return rules.device(Target(gpu=gpu)) if isinstance(gpu, str) else "gpu"


def _part(good: dict[str, Any], key: str, kind: type[T]) -> T | None:
    # A part whose own fields are at fault has been reported; its meaning cannot be judged as well.
    try:
        return msgspec.convert(good[key], kind, strict=True)
    except (KeyError, msgspec.ValidationError):
        return None


def _each(good: dict[str, Any], key: str, kind: type[T]) -> dict[str, T]:
    items = good.get(key, {})
    parts = {name: _part(items, name, kind) for name in items}
    return {name: part for name, part in parts.items() if part is not None}


def _meaning(good: dict[str, Any]) -> Iterator[str]:
    target = _part(good, "target", Target)
    checks: tuple[tuple[str, Any, Any], ...] = (
        ("task", Task, rules.task_faults),
        ("target", Target, rules.target_faults),
        ("call", Call, lambda c: rules.call_faults(c, target)),
        ("reference", Reference, rules.reference_faults),
        ("baseline", tuple[Baseline, ...], lambda b: rules.baseline_faults(b, target)),
        ("numerics", NumericsSpec, rules.numerics_faults),
        ("timing", Timing, lambda t: rules.timing_faults(t, _part(good, "call", Call))),
        ("framework", tuple[Framework, ...], rules.framework_faults),
        ("objective", Objective, lambda o: rules.objective_faults(o, target)),
    )
    for key, kind, check in checks:
        part = _part(good, key, kind)
        if part is not None:
            yield from check(part)
    axes = _part(good, "axes", dict[str, Axis])
    if axes is not None:
        yield from rules.axes_faults(axes)
        yield from rules.constraints_faults(tuple(good.get("constraints", ())), axes)
    tensors = _each(good, "tensors", Tensor)
    if "tensors" in good:
        yield from tensors_faults(tensors, axes, complete=len(tensors) == len(good["tensors"]))


def _lean(record: msgspec.Struct) -> dict[str, object]:
    plain = msgspec.to_builtins(record)
    defaults = {f.encode_name: f.default for f in msgspec.structs.fields(type(record)) if not f.required}
    return {
        key: value
        for key, value in plain.items()
        if value is not None and not (key in defaults and _same(value, defaults[key]))
    }


def _same(value: object, default: object) -> bool:
    return list(default) == value if isinstance(default, tuple) else default == value


def dump(contract: Contract) -> bytes:
    """Canonical TOML; ``parse(dump(c)) == c``. Axes and tensors keep their order and drop defaults."""
    doc: dict[str, object] = {}
    for field in msgspec.structs.fields(Contract):
        value = getattr(contract, field.name)
        if field.name == "framework" and not value:
            continue  # a contract of before there was such a table keeps its bytes
        if field.name in ("axes", "tensors"):
            doc[field.name] = {name: _lean(item) for name, item in value.items()}
        elif isinstance(value, msgspec.Struct):
            doc[field.name] = rules.builtins_of(value)
        else:
            doc[field.name] = msgspec.to_builtins(value)
    return tomli_w.dumps(doc).encode()
