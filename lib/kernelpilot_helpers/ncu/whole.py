"""A range or a graph: several kernels measured as one, of which nothing can be said kernel by kernel."""

from __future__ import annotations

import msgspec

from kernelpilot_helpers.ncu.decide import Decision
from kernelpilot_helpers.ncu.model import NextStep, Target
from kernelpilot_helpers.ncu.report import Launch

_APART = {"graph": "--graph-profiling node", "range": "--replay-mode kernel", "cmdlist": "--replay-mode kernel"}
_AGAIN = {"graph": "--graph-profiling graph", "range": "--replay-mode app-range", "cmdlist": ""}


def again(launch: Launch, step: NextStep) -> NextStep:
    """A step about the workload as a whole: it has no function to name, and is profiled as a whole again."""
    how = " ".join(part for part in ("ncu --set full", _AGAIN.get(launch.kind, "")) if part)
    command = f"{how} -f -o next PROGRAM && kernelpilot ncu digest next.ncu-rep"
    return msgspec.structs.replace(step, command=command, target=Target())


def apart(launch: Launch, decision: Decision) -> NextStep:
    """The capture that measures each kernel alone."""
    how = _APART.get(launch.kind, "--replay-mode kernel")
    return NextStep(
        kind="capture",
        family="kernels-apart",
        what="Profile the kernels of this workload one by one.",
        why=decision.hit.why,
        command=f"ncu --set full --import-source yes {how} -o next PROGRAM && kernelpilot ncu digest next.ncu-rep",
        expect="one group for each kernel, by time",
        guard="the same program, case, GPU and clocks as this file",
        refute="one kernel alone takes all of the time",
        risk=0,
    )
