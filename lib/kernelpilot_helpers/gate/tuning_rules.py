"""Rules 24 to 26: the performance map covers W, the dispatcher is what the map says, one regime needs no table."""

from __future__ import annotations

from collections.abc import Iterator

from kernelpilot_helpers import autotune
from kernelpilot_helpers.autotune import MAP_PATH
from kernelpilot_helpers.contract.model import Lock
from kernelpilot_helpers.dispatcher import TABLE_PATH
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate.model import NotEvaluated, Rule
from kernelpilot_helpers.policy import Policy

Found = Iterator[tuple[str, str, str]]


def _improved(e: Evidence) -> bool:
    return isinstance(e.lock, Lock) and bool(autotune.selected(e.rows, e.lock.epoch))


def _map(e: Evidence, _policy: Policy) -> Found:
    if e.tuning.map is None and not e.tuning.map_faults:
        raise NotEvaluated("no performance map yet" if _improved(e) else "no version is IMPROVED, so none to tune")
    return ((f.where, f.what, f.fix) for f in e.tuning.map_faults)


def _map_at_the_end(e: Evidence, _policy: Policy) -> Found:
    if not _improved(e):
        raise NotEvaluated("no version is IMPROVED, so none to tune")
    if e.tuning.map is None and not e.tuning.map_faults:
        yield MAP_PATH, "missing, while a version is IMPROVED", "kernelpilot tune"


def _dispatcher(e: Evidence, _policy: Policy) -> Found:
    if e.tuning.table is None and not e.tuning.dispatch_faults:
        raise NotEvaluated("no dispatcher yet")
    return ((f.where, f.what, f.fix) for f in e.tuning.dispatch_faults)


def _dispatcher_at_the_end(e: Evidence, _policy: Policy) -> Found:
    if e.tuning.map is None:
        raise NotEvaluated("no performance map, so no dispatcher")
    if e.tuning.table is None and not e.tuning.dispatch_faults:
        yield TABLE_PATH, "missing, while there is a performance map", "kernelpilot dispatch"


def _trivial(e: Evidence, _policy: Policy) -> Found:
    if e.tuning.table is None:
        raise NotEvaluated("no dispatcher yet")
    if len(e.tuning.regimes) == 1 and e.tuning.table.kind != "trivial":
        what = f"W has one regime ({e.tuning.regimes[0]}), and the dispatcher is not recorded as trivial"
        yield TABLE_PATH, what, "kernelpilot dispatch"


TUNING_RULES: tuple[Rule, ...] = (
    Rule(id="24", title="Performance map covers W", severity="block", phase="always", check=_map),
    Rule(id="24", title="A performance map at the end", severity="block", phase="final", check=_map_at_the_end),
    Rule(id="25", title="Dispatcher consistent", severity="block", phase="always", check=_dispatcher),
    Rule(id="25", title="A dispatcher at the end", severity="block", phase="final", check=_dispatcher_at_the_end),
    Rule(id="26", title="One regime, a trivial dispatcher", severity="repair", phase="always", check=_trivial),
)
