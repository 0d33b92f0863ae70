"""Whether a launch's numbers hang together: what caps confidence, and what the settings of the capture mean."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.ncu.facts import Facts
from kernelpilot_helpers.ncu.report import Launch, Session

SETTINGS = (
    "a raw page does not say how clocks, caches and replay were set: profile in the benchmark's residency "
    "(--cache-control none for a hot-cache benchmark) and keep the command line"
)
_FIRST_NCU = {"8.0": (2020, 1), "8.6": (2020, 2), "8.7": (2022, 1), "8.9": (2022, 3), "9.0": (2022, 3),
              "10.0": (2025, 1), "10.3": (2025, 2), "12.0": (2025, 1)}  # fmt: skip
"""Compute capability to the first ncu that knows it."""
_LOCAL_OF_DEBUG = 0.2
"""ours: share of local accesses in all instructions that only code without optimisation has."""


def doubts(facts: Facts, session: Session | None = None) -> tuple[str, ...]:
    """What lowers confidence by one step: figures that contradict each other, or a capture that does not fit them."""
    out = [*_figures(facts), *_time(facts)]
    dropped = facts.get("pm_dropped")
    facts.readings.asked.pop("pm_dropped", None)
    if dropped:
        out.append(f"{dropped:.0f} samples over time were dropped: phases of this launch have holes")
    if session is not None:
        out += _capture(facts, session)
    if _debug(facts):
        out.append("looks like a debug build: nearly every value lives in local memory; profile the optimised build")
    return tuple(out)


def _figures(facts: Facts) -> list[str]:
    out = []
    beyond = sorted(r for r, reading in facts.readings.found.items() if reading.unit == "%" and reading.value > 105)
    if beyond:
        out.append(f"above 105 % of peak: {', '.join(beyond)}")
    issue = facts.get("issue")
    if facts.sm is not None and facts.sm == 0 and issue is not None and issue > limits.MARGIN:
        out.append("compute 0 % while instructions are issued")
    return out


def _time(facts: Facts) -> list[str]:
    out = []
    duration, cycles, clock = facts.get("duration"), facts.get("cycles"), facts.get("clock")
    if duration and cycles and clock and facts.readings.launch.kind == "kernel":
        expected = cycles / clock * 1e9
        # The cycles of a short kernel include some microseconds before and after it.
        if abs(expected - duration) > limits.CLOCKS_AGREE * duration + 500:
            out.append(f"duration {duration:.0f} ns, but cycles over clock give {expected:.0f} ns")
    if duration is None:
        out.append("the duration is missing: whether this kernel is long enough to count in cannot be seen")
    elif duration < limits.SHORT_NS:
        out.append("shorter than 10 us: counters are noisy; compare with the size-matched floor of the benchmark")
    return out


def _capture(facts: Facts, session: Session) -> list[str]:
    out = []
    version = re.match(r"(\d{4})\.(\d+)", session.ncu)
    first = _FIRST_NCU.get(facts.readings.launch.cc)
    if version is not None and first is not None and (int(version[1]), int(version[2])) < first:
        out.append(f"ncu {session.ncu} is older than this GPU (first supported by {first[0]}.{first[1]})")
    if session.replay in ("range", "app-range", "application-range") and facts.readings.launch.kind == "kernel":
        out.append("range replay: the figures are those of the whole range")
    return out


def _debug(facts: Facts) -> bool:
    part, whole = facts.readings.total("local_loads", "local_stores"), facts.get("instructions")
    spills = facts.get("spill_requests")
    for role in ("local_loads", "local_stores"):
        facts.readings.asked.pop(role, None)
    return bool(part and whole and spills == 0 and part / whole > _LOCAL_OF_DEBUG)


def of_file(launches: Sequence[Launch], locale: str, ignored: int, session: Session | None = None) -> tuple[str, ...]:
    """What holds for the file as a whole; nothing of it lowers confidence."""
    out = [SETTINGS] if session is None or not (session.cache or session.clocks) else list(_settings(session))
    if len({(launch.process, launch.stream) for launch in launches}) > 1:
        out.append("several streams or processes: replay runs kernels one by one, so overlap cannot be seen")
    if locale == "C assumed":
        out.append("no cell tells decimal points from commas: 1,234.5 was assumed")
    if ignored:
        out.append(f"{ignored} lines that are no part of the table were passed over")
    return tuple(out)


def _settings(session: Session) -> tuple[str, ...]:
    out = []
    if session.clocks == "none":
        out.append("clocks were not held: durations compare with those of the benchmark, cycles between captures")
    elif session.clocks:
        out.append(
            f"clocks were held at {session.clocks}: percent of peak compares between captures, durations do not "
            "compare with the benchmark's"
        )
    if session.cache == "all":
        out.append("caches were flushed before each pass: a cold start; a benchmark with hot caches is another case")
    elif session.cache == "none":
        out.append("caches were not flushed: each pass starts with what the pass before it left")
    if session.replay == "kernel":
        out.append("kernels were replayed one by one: overlap of streams or dependent launches cannot be seen")
    return tuple(out)
