"""Profile digests as facts: what was profiled, whether the files are those filed, and the digest made again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernelpilot_helpers import ncu, records
from kernelpilot_helpers.attempt import profile
from kernelpilot_helpers.attempt.profile import DIGEST, FACTS, NAME, PAGE, Profile
from kernelpilot_helpers.errors import KernelPilotError
from kernelpilot_helpers.evidence import digest_origin, files
from kernelpilot_helpers.evidence.digest_facts import DigestFacts
from kernelpilot_helpers.policy import POLICY

if TYPE_CHECKING:
    from kernelpilot_helpers.ncu.facts_file import Recorded
    from kernelpilot_helpers.ncu.model import Digest

PARTS = (FACTS, DIGEST, PAGE)
LARGEST, REPORT_LARGEST = POLICY.evidence_file_bytes_max, 64 << 20
"""Bytes: a larger report is compared by its hash alone."""
PLACEHOLDER = re.compile(r"\b(?:TODO|TBD|FIXME|XXX)\b|<(?:fill|placeholder|your)[^>]*>", re.IGNORECASE)


def collect(root: Path) -> tuple[DigestFacts, ...]:
    """Every digest folder, by name. Never raises for what lies there."""
    held: dict[tuple[str, str], set[str]] = {}
    for path, _ in files.walk(root, profile.FOLDER):
        parts = path.removeprefix(f"{profile.FOLDER}/").split("/")
        if len(parts) == 3:
            held.setdefault((parts[0], parts[1]), set()).add(parts[2])
    found = []
    for (subject, case_id), names in sorted(held.items()):
        if names & {NAME, *PARTS}:
            found.append(_guarded(root, subject, case_id))
    return tuple(found)


def _guarded(root: Path, subject: str, case_id: str) -> DigestFacts:
    path = profile.folder(subject, case_id)
    try:
        return load(root, subject, case_id)
    except (KernelPilotError, OSError, ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as fault:
        what = fault.what if isinstance(fault, KernelPilotError) else f"{type(fault).__name__}: {fault}"
        return DigestFacts(path=path, subject=subject, case_id=case_id, faults=(f"cannot be read: {what}",))


def load(root: Path, subject: str, case_id: str) -> DigestFacts:
    """One folder. Raises KernelPilotError or ValueError for files that cannot be read at all."""
    from kernelpilot_helpers.ncu import render_page  # noqa: PLC0415 - only a repo with digests pays for the reader

    path = profile.folder(subject, case_id)
    folder = root / path
    data = {name: (folder / name).read_bytes() for name in (NAME, *PARTS) if files.plain(folder / name, most=LARGEST)}
    faults = [f"{name} is {_absent(folder / name)}" for name in (NAME, *PARTS) if name not in data]
    made = records.parse(data[NAME], profile.OWNER, at=f"{path}/{NAME}") if NAME in data else None
    digest = records.parse(data[DIGEST], ncu.OWNER, at=f"{path}/{DIGEST}") if DIGEST in data else None
    if made is not None:
        faults += _filed(made, subject, case_id, data, folder)
    if digest is not None and digest.given.case != case_id and made is not None:
        faults.append(f"{DIGEST} is of case {digest.given.case or '(none)'}")
    if digest is not None and FACTS in data:
        faults += _again(root, made, digest, data, path)
    if digest is not None and PAGE in data and not faults and data[PAGE].decode() != render_page.markdown(digest):
        faults.append(f"{PAGE} does not say what {DIGEST} says")
    if PAGE in data and (mark := PLACEHOLDER.search(data[PAGE].decode())):
        faults.append(f"{PAGE} holds a placeholder ({mark[0]})")
    step = digest.next_step if digest is not None else None
    return DigestFacts(
        path=path,
        subject=subject,
        case_id=case_id,
        profile=made,
        name=digest.name if digest else "",
        kind=step.kind if step else "",
        target=step.target.file if step else "",
        min_bytes=digest.given.min_bytes if digest else None,
        floor_us=digest.given.floor_us if digest else None,
        faults=tuple(dict.fromkeys(faults)),
    )


def _filed(made: Profile, subject: str, case_id: str, data: Mapping[str, bytes], folder: Path) -> Iterator[str]:
    if (made.subject, made.case_id) != (subject, case_id):
        yield f"{NAME} is of {made.id}"
    sums = {FACTS: made.facts_sha256, DIGEST: made.digest_sha256, PAGE: made.page_sha256}
    for name, want in sums.items():
        if name in data and records.sha256(data[name]) != want:
            yield f"{name} is not the file that was filed"
    if made.source == "fallback" and (wrong := profile.waives(made)):
        yield f"{NAME} {wrong}"
    report = made.report
    if made.source == "ncu" and report is None:
        yield f"{NAME} names no report"
    if report is not None:
        held = folder / report.name
        if "/" in report.name or (files.plain(held) and records.file_sha256(held) != report.sha256):
            yield f"{report.name} is not the report that was digested"
        elif files.plain(held, most=REPORT_LARGEST) and FACTS in data:
            yield from digest_origin.of_report(data[FACTS], held)


def _absent(path: Path) -> str:
    return f"larger than {LARGEST} bytes" if files.plain(path) else "missing"


def _again(root: Path, made: Profile | None, digest: Digest, data: Mapping[str, bytes], path: str) -> Iterator[str]:
    """Numbers and class made again from the facts that are committed."""
    from kernelpilot_helpers.ncu import canonical, examine, facts_file  # noqa: PLC0415

    report = facts_file.parse(data[FACTS], at=FACTS)
    if made is not None:
        yield from digest_origin.of_profile(made, report)
    parent, lost = _parent(root, made)
    if lost:
        yield lost
        return
    again = examine.digest_of(report, given=digest.given, parent=parent).digest
    if made is not None or not digest.next_step.command.startswith("ncu "):
        again = commanded(again, *path.rsplit("/", 2)[1:])
    old, new = (canonical.numbers(msgspec.to_builtins(d)) for d in (digest, again))
    differ = sorted(key for key in new if key not in ("tool", "thresholds") and old.get(key) != new[key])
    same = (digest.tool, digest.thresholds) == (again.tool, again.thresholds)
    if not differ:
        return
    if same:
        yield f"{DIGEST} is not what {FACTS} gives ({', '.join(differ[:4])} differ)"
        return
    wrong = sorted(_readings(old) - _held(data[FACTS]))  # another version of ours: its class may differ, no number may
    if wrong:
        yield f"{DIGEST} cites what {FACTS} does not hold ({', '.join(f'{m} {v:g}' for m, v in wrong[:3])})"


def _parent(root: Path, made: Profile | None) -> tuple[Recorded | None, str]:
    """(facts of the digest that it was compared with, what is wrong with them)."""
    from kernelpilot_helpers.ncu import facts_file  # noqa: PLC0415

    if made is None or made.compared is None:
        return None, ""
    path = f"{profile.folder(made.compared.subject, made.case_id)}/{FACTS}"
    if not files.plain(root / path) or records.file_sha256(root / path) != made.compared.facts_sha256:
        return None, f"it was compared with a digest of {made.compared.subject} that is no longer there"
    return facts_file.parse((root / path).read_bytes(), at=path), ""


def commanded(digest: Digest, subject: str, case_id: str) -> Digest:
    """A digest whose next step names this loop's own command where ncu's would stand."""
    step = digest.next_step
    if step.kind == "stop" or not step.command.startswith("ncu "):
        return digest
    command = f"{profile.command(subject, case_id)}{' --set full' if step.kind == 'capture' else ''}"
    if step.kind == "edit":
        cited = shlex.quote(f"{subject}/{case_id}")
        command = f'kernelpilot attempt VARIANT --digest {cited} --motivation "{step.family}"'
    fresh = msgspec.structs.replace(step, command=command)
    groups = tuple(msgspec.structs.replace(g, next_step=fresh) if g.next_step is not None else g for g in digest.groups)
    return msgspec.structs.replace(digest, next_step=fresh, groups=groups)


def _readings(plain: Any) -> set[tuple[str, float]]:
    """(metric, value) of every reading that was read, not derived."""
    found = (r for g in plain["groups"] for r in g["evidence"].values())
    return {(r["metric"], float(r["value"])) for r in found if r.get("alias") is not None}


def _held(data: bytes) -> set[tuple[str, float]]:
    from kernelpilot_helpers.ncu import facts_file  # noqa: PLC0415

    launches = facts_file.parse(data).launches
    return {pair for launch in launches for pair in digest_origin.numbers(launch)}
