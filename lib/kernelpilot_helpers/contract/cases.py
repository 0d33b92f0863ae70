"""W: ``workloads/cases.jsonl``, one case a line below a header line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kernelpilot_helpers.contract import dtypes
from kernelpilot_helpers.contract.document import refuse
from kernelpilot_helpers.contract.model import Case, Contract
from kernelpilot_helpers.contract.owners import CASES
from kernelpilot_helpers.contract.rules import UNCAPTURED, device
from kernelpilot_helpers.contract.sizes import axis_faults, constraint_faults, layout
from kernelpilot_helpers.contract.tensors import flags_of
from kernelpilot_helpers.contract.walk import Walk, show
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.records import convert, encode, header, parse_json, upgrade

EDGE_PREFIX = "edge__"
"""Generated edge cases begin so; a case written by the user may not."""


def timed(case: Case) -> bool:
    """Edge and held-out cases are verified, not timed."""
    return not case.edge and not case.held_out


def parse(data: bytes, contract: Contract, *, at: str) -> tuple[Case, ...]:
    """Cases in file order. Raises BadRecord naming every fault with its line."""
    lines = [(n, line) for n, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    if not lines:
        raise BadRecord("empty: not even a header line", where=at, fix=CASES.fix)
    _header(lines[0][1], at=f"{at}:{lines[0][0]}")
    faults: list[str] = []
    docs: list[dict[str, Any]] = []
    for number, line in lines[1:]:
        try:
            docs.append(parse_json(line, at=f"line {number}", fix=CASES.fix))
        except BadRecord as error:
            faults.append(f"line {number}: {error.what}")
            continue
        faults += [f"line {number}: {fault}" for fault in _shape(docs[-1], contract)]
    refuse(faults, at=at, fix=CASES.fix)
    cases = tuple(convert(_without_later(doc), Case, at=at, fix=CASES.fix) for doc in docs)
    check(cases, contract, at=at)
    return cases


def _header(line: bytes, *, at: str) -> None:
    head = parse_json(line, at=at, fix=CASES.fix)
    if not isinstance(head, dict) or set(head) != {"format", "version"}:
        raise BadRecord(f"the first line must be {header(CASES).decode()}", where=at, fix=CASES.fix)
    upgrade(head, CASES, at=at)


def _shape(doc: object, contract: Contract) -> list[str]:
    walk = Walk(device(contract.target))
    if not isinstance(doc, dict):
        return [f"want an object, got {show(doc)}"]
    walk.struct(doc, Case)
    return walk.faults


def _without_later(doc: dict[str, Any]) -> dict[str, Any]:
    return Walk().struct(doc, Case)


def from_documents(docs: Sequence[object], contract: Contract, *, at: str) -> tuple[Case, ...]:
    """The same for plain values, as a request file holds them."""
    faults = [f"cases[{ix}]: {fault}" for ix, doc in enumerate(docs) for fault in _shape(doc, contract)]
    refuse(faults, at=at, fix=CASES.fix)
    cases = tuple(convert(_without_later(d), Case, at=at, fix=CASES.fix) for d in docs if isinstance(d, dict))
    check(cases, contract, at=at)
    return cases


def check(cases: Sequence[Case], contract: Contract, *, at: str) -> None:
    """Raises BadRecord naming every case that the contract does not allow."""
    faults = [*_whole_faults(cases, contract)]
    for case in cases:
        faults += [f"{case.case_id}: {fault}" for fault in case_faults(case, contract)]
    refuse(faults, at=at, fix=CASES.fix)


def _whole_faults(cases: Sequence[Case], contract: Contract) -> Iterator[str]:
    if not cases:
        yield "no case at all"
        return
    for case_id, count in Counter(c.case_id for c in cases).items():
        if count > 1:
            yield f"duplicate case_id {case_id!r} ({count} times)"
    if not any(timed(c) and c.required for c in cases):
        yield "no required case to time: at least one is neither edge nor held_out nor required = false"
    regimes = {c.regime for c in cases}
    for regime in contract.timing.decide:
        if regime not in regimes:
            yield f"timing.decide.{regime} names no case's regime ({', '.join(sorted(regimes))})"


def case_faults(case: Case, contract: Contract) -> Iterator[str]:
    """What is wrong with one case under this contract."""
    if not case.case_id or any(c.isspace() or c in "/\\" for c in case.case_id):
        yield f"case_id {case.case_id!r}: want a name without spaces and slashes"
    if case.case_id.startswith(EDGE_PREFIX):
        yield f"case_id {case.case_id!r}: {EDGE_PREFIX} is kept for generated edge cases"
    if case.calls < 1:
        yield f"calls = {case.calls}: want launches per model step, at least 1"
    if case.decide == "chained" and contract.call.graph == "never":
        yield f'decide = "chained": {UNCAPTURED}'
    yield from _flag_faults(case, contract)
    yield from _tensor_faults(case, contract)
    sizes, faults = axis_faults(contract.axes, case.axes)
    yield from faults
    if faults:
        return
    yield from constraint_faults(contract.constraints, sizes)
    for name, tensor in contract.tensors.items():
        try:
            layout(name, tensor, case, sizes)
        except BadRecord as error:
            yield f"{error.where}: {error.what}"


def _flag_faults(case: Case, contract: Contract) -> Iterator[str]:
    known = flags_of(contract.tensors)
    for name, value in case.flags.items():
        if name not in known:
            yield f"flags.{name} = {show(value)}: no tensor of the contract uses it ({', '.join(known) or 'none'})"
        elif known[name] == "optional" and not isinstance(value, bool):
            yield f"flags.{name} = {show(value)}: want true or false"
        elif known[name] == "dtype" and (not isinstance(value, str) or dtypes.dtype_fault(value)):
            yield f"flags.{name} = {show(value)}: want a dtype"
    for name, use in known.items():
        if use != "optional" and name not in case.flags:
            yield f"flags.{name} is missing: it picks a {use}"
    for tensor in contract.tensors.values():
        call, args = dtypes.call_of(tensor.gen)
        if tensor.role == "scalar" and call == "flag" and args[0] in case.flags:
            value = case.flags[args[0]]
            fault = scalar_fault(value, tensor.dtype)
            if fault:
                yield f"flags.{args[0]} = {show(value)}: {fault}"


def scalar_fault(value: object, dtype: str) -> str:
    """Why a flag cannot be a scalar of this dtype; empty when it can."""
    if dtype == "bool":
        return "" if isinstance(value, bool) else "want true or false"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "want a number"
    return "want a whole number" if dtype in dtypes.RANGES and not isinstance(value, int) else ""


def _tensor_faults(case: Case, contract: Contract) -> Iterator[str]:
    for key, given in (("strides", case.strides), ("offsets", case.offsets), ("gen", case.gen)):
        for name in given:
            tensor = contract.tensors.get(name)
            if tensor is None or tensor.role == "scalar":
                yield f"{key}.{name}: no such tensor in the contract"
    for name, text in case.gen.items():
        tensor = contract.tensors.get(name)
        if tensor is not None and tensor.role in ("in", "inout", "static"):
            fault = dtypes.gen_fault(text, dtypes.normalise(tensor.dtype))
            if fault:
                yield f"gen.{name} = {show(text)}: {fault}"
        elif tensor is not None and tensor.role == "out":
            yield f"gen.{name}: an output is filled with poison, not with content"


def dump(cases: Sequence[Case]) -> bytes:
    """Header and one line a case, defaults left out."""
    blank = msgspec.to_builtins(Case(case_id="", axes={}))
    lines = [header(CASES)]
    for case in cases:
        plain = msgspec.to_builtins(case)
        lines.append(encode({k: v for k, v in plain.items() if k in ("case_id", "axes") or v != blank[k]}))
    return b"\n".join(lines) + b"\n"
