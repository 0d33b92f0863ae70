"""What was locked of a framework's checkout against what is there now. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kernelpilot_helpers.contract.model import Checkout, Contract, Lock


def pinned(contract: Contract) -> tuple[str, ...]:
    """Names of the frameworks that nobody may edit."""
    return tuple(one.name for one in contract.framework if not one.in_place)


def changes(locked: Checkout, now: Checkout) -> Iterator[tuple[str, str]]:
    """(``head`` or ``status``, in words) for what differs; where it lies on the machine is no difference."""
    if now.head != locked.head:
        yield "head", f"HEAD is {now.head[:12]}; the lock recorded {locked.head[:12]}"
    elif now.status != locked.status:
        before = f"{locked.edited} then, {now.edited} now" if locked.edited else f"none then, {now.edited} now"
        yield "status", f"its files are not as they were when it was locked (edited or new: {before})"


def unrecorded(contract: Contract, lock: Lock) -> tuple[str, ...]:
    """Frameworks of the contract of which the lock says nothing."""
    return tuple(one.name for one in contract.framework if one.name not in lock.frameworks)
