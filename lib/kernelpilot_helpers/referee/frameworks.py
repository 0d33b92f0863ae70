"""The checkouts of frameworks at ``kernelpilot lock``: each must be there and readable, and is recorded as it is."""

from __future__ import annotations

from collections.abc import Mapping

from kernelpilot_helpers.contract import checkouts
from kernelpilot_helpers.contract.model import Checkout
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.evidence import checkouts as reader
from kernelpilot_helpers.evidence.model import CheckoutFacts
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee.workspace import AMEND, LOCK, Workspace

Found = Mapping[str, CheckoutFacts]


def read(ws: Workspace) -> Found:
    """Every checkout of the contract. Raises Refused naming each that is not known, gone, or no git checkout."""
    found = reader.collect(ws.root, ws.contract, None)
    _refuse([one.now for one in found.values() if isinstance(one.now, Fault)])
    return found


def require_sources(found: Found) -> Found:
    """The same. Raises Refused where a file that the contract names as the baseline's code cannot be read."""
    _refuse([fault for one in found.values() for fault in one.source_faults])
    return found


def _refuse(faults: list[Fault]) -> None:
    if faults:
        what = "; ".join(f"{fault.where}: {fault.what}" for fault in faults)
        raise Refused(what, where="contract.toml: framework", fix=faults[0].fix)


def recorded(found: Found) -> dict[str, Checkout]:
    """What the lock keeps of them."""
    return {name: one.now for name, one in found.items() if isinstance(one.now, Checkout)}


def moved(ws: Workspace, found: Found) -> list[Fault]:
    """What differs from the lock; nothing without one. A framework that may be edited in place moves freely."""
    if ws.lock is None:
        return []
    out = [
        Fault(where=f"framework {name}", what="the lock says nothing of it", fix=AMEND)
        for name in checkouts.unrecorded(ws.contract, ws.lock)
    ]
    for name in checkouts.pinned(ws.contract):
        locked, now = ws.lock.frameworks.get(name), found[name].now
        if locked is not None and isinstance(now, Checkout):
            said = checkouts.changes(locked, now)
            out += [Fault(where=f"framework {name}", what=what, fix=AMEND) for _, what in said]
    return out


def require_unmoved(faults: list[Fault]) -> None:
    """Raises Refused where a checkout is not as it was locked."""
    if faults:
        what = "; ".join(f"{fault.where}: {fault.what}" for fault in faults)
        raise Refused(f"a framework changed since the lock: {what}", where=LOCK, fix=AMEND)


def notes(found: Found) -> tuple[str, ...]:
    """What a person should know of the checkouts that are locked just now."""
    return tuple(
        f"framework {name} is locked with {one.now.edited} edited or new files: {', '.join(one.edits)}"
        for name, one in found.items()
        if isinstance(one.now, Checkout) and one.now.edited
    )
