"""From a report to one digest: groups of launches, one class a group, the headline, exactly one next step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kernelpilot_helpers import __version__
from kernelpilot_helpers.ncu import canonical, facts_file, limits, sections, sniff, steps, validity, weigh
from kernelpilot_helpers.ncu.change import Diff
from kernelpilot_helpers.ncu.group import grouping
from kernelpilot_helpers.ncu.model import (
    REFUSED,
    Digest,
    Given,
    Group,
    Input,
    NextStep,
    RefusedInput,
)
from kernelpilot_helpers.ncu.parts import Other, Reader
from kernelpilot_helpers.ncu.quantity import rounded
from kernelpilot_helpers.ncu.redact import Redactor
from kernelpilot_helpers.ncu.report import File, Report


@dataclass(frozen=True, kw_only=True, slots=True)
class Examined:
    """A digest and what of it cannot be had from the report's aggregates."""

    digest: Digest
    derived: Mapping[str, facts_file.Derived]
    """For facts.json."""
    redactor: Redactor = field(default_factory=Redactor)


def digest(data: bytes, *, source: Input, path: str, min_bytes: int | None = None) -> Digest:
    """One digest of the bytes of a raw page. A file of another kind gives a digest that says so and how to mend it."""
    from kernelpilot_helpers.ncu import raw  # noqa: PLC0415 - a binary report does not need it

    try:
        report = raw.parse(data, name=source.name, sha256=source.sha256)
    except RefusedInput as fault:
        return refuse(fault, source=source, path=path)
    return digest_of(report, given=Given(min_bytes=min_bytes)).digest


def digest_of(
    report: Report,
    *,
    given: Given | None = None,
    parent: Report | None = None,
    keep_paths: bool = False,
    disassembler: Path | None = None,
) -> Examined:
    """The digest of a report, against its parent's where that is given. The same input gives the same digest.

    Names of people and machines are hidden unless ``keep_paths``. ``disassembler`` gives hotspots their instructions;
    it takes a second. Raises RefusedInput for a report without launches.
    """
    report = sniff.launched(report)
    given = given or Given()
    redactor = redactor_of(report, keep=keep_paths)
    found = grouping(report)
    weighed = [weigh.group(report, workload, given) for workload in found.shown]
    best = _headline([w.group for w in weighed], [w.step for w in weighed])
    weighed[best] = weigh.pointed(report, weighed[best], given, disassembler=disassembler)
    step = weighed[best].step
    step = msgspec.structs.replace(step, command=sections.as_captured(step.command, report.session))
    groups = tuple(
        msgspec.structs.replace(w.group, next_step=step if ix == best else None) for ix, w in enumerate(weighed)
    )
    whole = Digest(
        tool=__version__,
        thresholds=thresholds(),
        name=groups[best].name,
        confidence=groups[best].confidence,
        next_step=step,
        groups=groups,
        other=_other(found.other),
        refused=None,
        headline=best,
        input=_input(report.files[0]),
        inputs=tuple(_input(file) for file in report.files),
        session=report.session,
        given=given,
        parent=None if parent is None else _against(parent, report),
        locale=report.locale,
        flags=_flags(report),
        reader=Reader(
            unknown_fields={k: tuple(v) for k, v in sorted(report.unknown_fields.items())},
            ignored_lines=report.ignored_lines,
            notes=report.notes,
        ),
    )
    derived = {facts_file.at(w.launch): w.derived for w in weighed}
    return Examined(digest=_plain(whole, redactor), derived=derived, redactor=redactor)


COLD = (
    "ncu flushed the caches before each pass: these are cold-cache figures, and a benchmark that runs hot needs "
    "--cache-control none"
)


def _flags(report: Report) -> tuple[str, ...]:
    """What holds for the whole report; a report that tells its settings is not told that they are unknown."""
    found = validity.of_file(report.launches, report.locale, report.ignored_lines, report.session)
    told = bool(report.session.clocks and report.session.cache)
    kept = tuple(flag for flag in found if not (told and flag == validity.SETTINGS))
    return (COLD, *kept) if report.session.cache == "all" else kept


def _against(parent: Report, report: Report) -> Diff:
    from kernelpilot_helpers.ncu import diff  # noqa: PLC0415 - start-up time

    return diff.compare(parent, report)


def refuse(fault: RefusedInput, *, source: Input, path: str, keep_paths: bool = False) -> Digest:
    """The digest of a file that is no report."""
    refused = sniff.refusal(fault, path=path)
    step: NextStep = steps.for_refusal(refused)
    whole = Digest(
        tool=__version__, name=REFUSED, confidence="none", next_step=step, groups=(), refused=refused, headline=None,
        input=source,
    )  # fmt: skip
    return _plain(whole, Redactor(keep=keep_paths))


def redactor_of(report: Report, *, keep: bool = False, roots: Mapping[str, str] | None = None) -> Redactor:
    """Knows the host and the users that the report names, and the folders that others stand for."""
    session = report.session
    processes = {launch.process for launch in report.launches}
    return Redactor(keep=keep, hosts=[session.host], texts=[session.command, *processes], roots=roots)


def thresholds() -> str:
    """Hash of the thresholds' names and values."""
    named = {k: v for k, v in sorted(vars(limits).items()) if k.isupper() and isinstance(v, (int, float, str))}
    return hashlib.sha256(repr(named).encode()).hexdigest()[:12]


def dump(found: Digest) -> bytes:
    """Bytes of ``digest.json``."""
    return canonical.dump(msgspec.to_builtins(found))


def _plain(whole: Digest, redactor: Redactor) -> Digest:
    """Names hidden, and every float at six significant digits."""
    return canonical.settled(whole, redactor.text)


def _headline(groups: Sequence[Group], todo: Sequence[NextStep]) -> int:
    """Most to win: share of time times bound; ties go to the surer class, then to the lower risk.

    A group at its roof has nothing to win; it is the headline where no other group is worth an edit.
    """

    def weight(ix: int) -> tuple[bool, float, int, int, int]:
        won = weigh.worth(groups[ix])
        worthy = todo[ix].kind != "stop" and won >= weigh.WORTH
        share = groups[ix].time_share
        size = won if worthy else (1.0 if share is None else share)
        return worthy, rounded(size), weigh.RANK[groups[ix].confidence], -todo[ix].risk, -ix

    return max(range(len(groups)), key=weight)


def _other(rest: Sequence[weigh.Workload]) -> Other | None:
    if not rest:
        return None
    shares = [g.share for g in rest if g.share is not None]
    return Other(
        groups=len(rest),
        launches=sum(len(g.launches) for g in rest),
        time_share=rounded(sum(shares)) if len(shares) == len(rest) else None,
    )


def _input(file: File) -> Input:
    return Input(name=file.name, bytes=file.bytes, sha256=file.sha256, form=file.form)
