"""Whether a launch's numbers hang together: what caps confidence, and what a raw page cannot say."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.model import Launch

SETTINGS = (
    "a raw page does not say how clocks, caches and replay were set: profile in the benchmark's residency "
    "(--cache-control none for a hot-cache benchmark) and keep the command line"
)


def doubts(facts: Facts) -> tuple[str, ...]:
    """What lowers confidence by one step: figures that contradict each other, or a run too short to count in."""
    out = []
    beyond = sorted(r for r, reading in facts.readings.found.items() if reading.unit == "%" and reading.value > 105)
    if beyond:
        out.append(f"above 105 % of peak: {', '.join(beyond)}")
    issue = facts.get("issue")
    if facts.sm is not None and facts.sm == 0 and issue is not None and issue > limits.MARGIN:
        out.append("compute 0 % while instructions are issued")
    duration, cycles, clock = facts.get("duration"), facts.get("cycles"), facts.get("clock")
    if duration and cycles and clock:
        expected = cycles / clock * 1e9
        if abs(expected / duration - 1) > limits.CLOCKS_AGREE:
            out.append(f"duration {duration:.0f} ns, but cycles over clock give {expected:.0f} ns")
    if duration is None:
        out.append("the duration is missing: whether this kernel is long enough to count in cannot be seen")
    elif duration < limits.SHORT_NS:
        out.append("shorter than 10 us: counters are noisy; compare with the size-matched floor of the benchmark")
    if facts.estimated:
        out.append(f"taken from their parts: {', '.join(facts.estimated)}")
    return tuple(out)


def of_file(launches: Sequence[Launch], locale: str, ignored: int) -> tuple[str, ...]:
    """What holds for the file as a whole; nothing of it lowers confidence."""
    out = [SETTINGS]
    if len({(launch.process, launch.stream) for launch in launches}) > 1:
        out.append("several streams or processes: replay runs kernels one by one, so overlap cannot be seen")
    if locale == "C assumed":
        out.append("no cell tells decimal points from commas: 1,234.5 was assumed")
    if ignored:
        out.append(f"{ignored} lines that are no part of the table were passed over")
    return tuple(out)
