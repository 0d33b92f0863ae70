"""A digest's folder: made beside its place, then put there by one rename; what a killed command left is mended."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers.attempt import profile
from kernelpilot_helpers.attempt.profile import DIGEST, FACTS, NAME, PAGE, Compared, Profile, ReportFile
from kernelpilot_helpers.evidence import digests
from kernelpilot_helpers.gate.rules_profile import unlike
from kernelpilot_helpers.ncu.model import Digest, Given
from kernelpilot_helpers.ncu.report import Report
from kernelpilot_helpers.referee import ceilings
from kernelpilot_helpers.referee.subject import Subject
from kernelpilot_helpers.referee.workspace import LOCAL

DRAFT = f"{LOCAL}/profile-draft"
ASIDE = f"{LOCAL}/profile-aside"
"""Where the folder that is replaced waits until the new one stands: ``<version>/<case>`` below it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A whole folder that is not in place yet."""

    profile: Profile
    digest: Digest
    path: Path


def given(what: Subject, *, one_kernel: bool) -> Given:
    """What is known of the case. The least traffic is that of a call: it is said of a kernel that is the whole call."""
    return Given(
        case=what.case.case_id,
        min_bytes=what.min_bytes if one_kernel else None,
        floor_us=what.floor_us if one_kernel else None,
        ceilings=ceilings.best_here("gpu"),
    )


def draft(
    root: Path,
    made: Profile,
    report: Report,
    *,
    given: Given,
    report_path: Path | None,
    roots: Mapping[str, str] | None = None,
) -> Draft:
    """Digest a report and write the folder's files; ``roots`` say which folder of the repo a scratch folder was.

    Raises RefusedInput for a report that cannot be digested.
    """
    from kernelpilot_helpers.ncu import canonical, examine, facts_file, render_page  # noqa: PLC0415 - large

    before, compared = _baseline(root, made)
    found = examine.digest_of(report, given=given, parent=before)
    redactor = examine.redactor_of(report, roots=roots)
    facts = canonical.dump(msgspec.to_builtins(facts_file.record(report, found.derived, redactor=redactor)))
    # made again from the facts: what is filed is what anybody can make of what is committed
    again = examine.digest_of(facts_file.parse(facts), given=given, parent=before).digest
    digest = digests.commanded(again, made.subject, made.case_id)
    data, page = examine.dump(digest), render_page.markdown(digest)
    path = root / DRAFT
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    kept = None
    if report_path is not None:
        name = report_path.name
        kept = ReportFile(name=name, bytes=report_path.stat().st_size, sha256=records.file_sha256(report_path))
        at = f"{profile.folder(made.subject, made.case_id)}/{name}"
        if proc.git(root, "check-ignore", "-q", at, check=False).code == 0:  # else it would come into the history
            report_path.replace(path / name)
    records.write_bytes(path / FACTS, facts)
    records.write_bytes(path / DIGEST, data)
    records.write_text(path / PAGE, page)
    whole = msgspec.structs.replace(
        made,
        facts_sha256=records.sha256(facts),
        digest_sha256=records.sha256(data),
        page_sha256=records.sha256(page.encode()),
        report=kept,
        compared=compared,
    )
    records.save(path / NAME, whole)
    return Draft(profile=whole, digest=digest, path=path)


def _baseline(root: Path, made: Profile) -> tuple[Report | None, Compared | None]:
    """The baseline's facts of the same case, where they may be compared."""
    from kernelpilot_helpers.ncu import facts_file  # noqa: PLC0415

    if made.subject == ledger.BASELINE or made.source != "ncu":
        return None, None
    found = next((d for d in digests.collect(root) if (d.subject, d.case_id) == (ledger.BASELINE, made.case_id)), None)
    if found is None or found.profile is None or found.faults or unlike(found.profile, made):
        return None, None
    data = (root / found.path / FACTS).read_bytes()
    compared = Compared(subject=ledger.BASELINE, facts_sha256=found.profile.facts_sha256)
    return facts_file.parse(data, at=f"{found.path}/{FACTS}"), compared


def place(root: Path, made: Draft) -> None:
    """Put the folder in place: one rename where there was none, else the old one is put aside first."""
    target = root / profile.folder(made.profile.subject, made.profile.case_id)
    aside = root / ASIDE / made.profile.subject / made.profile.case_id
    target.parent.mkdir(parents=True, exist_ok=True)
    records.crash_point("profile.drafted")
    if target.exists():
        shutil.rmtree(aside, ignore_errors=True)
        aside.parent.mkdir(parents=True, exist_ok=True)
        target.rename(aside)
        records.crash_point("profile.aside")
    made.path.rename(target)
    records.disk.sync_dir(target.parent)
    records.crash_point("profile.placed")
    shutil.rmtree(root / ASIDE, ignore_errors=True)


def recover(root: Path) -> None:
    """Bring back what a killed command had put aside; drop what it had only drafted."""
    base = root / ASIDE
    for old in sorted(base.glob("*/*")) if base.is_dir() else ():
        target = root / profile.FOLDER / old.parent.name / old.name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            old.rename(target)
    shutil.rmtree(base, ignore_errors=True)
    shutil.rmtree(root / DRAFT, ignore_errors=True)
