"""Whether the facts of a digest are of its profile, and what its report holds where that is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kernelpilot_helpers.attempt.profile import FACTS, NAME, Profile
from kernelpilot_helpers.errors import KernelPilotError

if TYPE_CHECKING:
    from kernelpilot_helpers.ncu.report import Launch, Report

LARGEST = 1e300
"""A count beyond this is damage, which facts.json leaves out as well."""
FALLBACK = "fallback"
"""Form of the file that a fallback's facts stand for."""


def of_profile(made: Profile, facts: Report) -> Iterator[str]:
    """What of the facts cannot be of this profile."""
    forms = {file.form for file in facts.files}
    if (FALLBACK in forms) != (made.source == "fallback"):
        yield f"{FACTS} is of a {'/'.join(sorted(forms))}, and {NAME} says {made.source}"
    if made.report is not None and made.report.sha256 not in [file.sha256 for file in facts.files]:
        yield f"{FACTS} is of another report than {NAME} names"
    if made.why is not None and not any(note.startswith(f"fallback, no report of ncu: {made.why.code}:")
                                        for note in facts.notes):  # fmt: skip
        yield f"{FACTS} does not give the reason that {NAME} gives ({made.why.code})"
    if made.source != "ncu":
        return
    said = facts.session.ncu.partition(".")[0]
    if not made.major or (said and said != made.major):
        yield f"{FACTS} is of ncu {said or '(unknown)'}, and {NAME} names {made.tool or 'none'}"
    seen = {launch.function for launch in facts.launches}
    if made.launches.kernels and not seen & set(made.launches.kernels):
        yield f"{FACTS} holds no launch of {', '.join(made.launches.kernels)}"


def of_report(facts: bytes, report: Path) -> Iterator[str]:
    """What the facts hold and the report does not: every kept number is looked up again."""
    from kernelpilot_helpers.ncu import facts_file, load  # noqa: PLC0415 - the reader is large
    from kernelpilot_helpers.ncu.model import RefusedInput  # noqa: PLC0415

    try:
        there = load.load([report]).launches
    except (KernelPilotError, RefusedInput) as fault:
        yield f"{report.name} cannot be read again: {fault.what}"
        return
    kept = facts_file.parse(facts, at=FACTS).launches
    if len(kept) != len(there):
        yield f"{FACTS} does not hold the launches that {report.name} holds"
        return
    for mine, theirs in zip(kept, there, strict=True):
        wrong = sorted(numbers(mine) - numbers(theirs))
        if wrong:
            words = ", ".join(f"{name} {value:g}" for name, value in wrong[:3])
            yield f"{FACTS} is not what {report.name} holds ({mine.place}: {words})"


def numbers(launch: Launch) -> set[tuple[str, float]]:
    """(metric, value) of a launch, at the digits that a digest keeps."""
    from kernelpilot_helpers.ncu import canonical  # noqa: PLC0415

    return {
        (name, float(canonical.numbers(float(value.number))))
        for name, value in launch.metrics.items()
        if value.number is not None and abs(value.number) < LARGEST
    }
