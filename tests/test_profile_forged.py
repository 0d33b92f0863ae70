"""Digest folders made or mended by hand: every hash fits, and what was changed shows all the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import records
from kernelpilot_helpers.attempt import profile as formats
from kernelpilot_helpers.attempt.profile import DIGEST, FACTS, NAME, PAGE, Profile
from kernelpilot_helpers.evidence import digests
from kernelpilot_helpers.ncu import canonical, examine, facts_file, render_page
from kernelpilot_helpers.ncu.model import Given
from tests.profile_sim import CASE, ncu, profile, repo

PLACE = f"artifacts/profile-digests/v000_baseline/{CASE}"
Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def filed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(folder as filed, the same after ncu refused); both of the baseline."""
    top = tmp_path_factory.mktemp("filed")
    made = repo(top / "repo")
    profile(made, ncu(top / "tools"), "baseline")
    real = Path(shutil.copytree(made / PLACE, top / "real"))
    profile(made, ncu(top / "tools", "permission"), "baseline")
    return real, Path(shutil.copytree(made / PLACE, top / "fallback"))


def lay(root: Path, folder: Path, path: str = PLACE) -> Path:
    return Path(shutil.copytree(folder, root / path))


def forge(folder: Path, facts: Edit = bool, told: Edit = bool, record: Edit = bool) -> None:
    """Edit the facts, what the digest was told, and the record; make digest, page and every hash fit."""
    doc = json.loads((folder / FACTS).read_bytes())
    facts(doc)
    data = canonical.dump(doc)
    old = json.loads((folder / DIGEST).read_bytes())["given"]
    told(old)
    kept = records.load(folder / NAME, formats.OWNER)
    digest = examine.digest_of(facts_file.parse(data), given=msgspec.convert(old, Given)).digest
    digest = digests.commanded(digest, kept.subject, kept.case_id)
    page = render_page.markdown(digest)
    (folder / FACTS).write_bytes(data)
    (folder / DIGEST).write_bytes(examine.dump(digest))
    (folder / PAGE).write_text(page)
    plain = msgspec.to_builtins(kept) | {
        "facts_sha256": records.sha256(data), "digest_sha256": records.sha256(examine.dump(digest)),
        "page_sha256": records.sha256(page.encode()),
    }  # fmt: skip
    record(plain)
    records.save(folder / NAME, msgspec.convert(plain, Profile))


def faults(root: Path) -> list[str]:
    return [fault for found in digests.collect(root) for fault in found.faults]


def move(doc: dict[str, Any]) -> None:
    cell = doc["launches"][0]["metrics"]["gpu__time_duration.sum"]
    cell[0] = cell[0] * 2


def test_what_nobody_touched_holds_also_when_it_is_made_again(filed: tuple[Path, Path], tmp_path: Path) -> None:
    """Breaks when the forger of these tests leaves a trace of its own."""
    for ix, folder in enumerate(filed):
        forge(lay(tmp_path / str(ix), folder))
        assert faults(tmp_path / str(ix)) == []


def test_a_moved_number_shows_where_the_report_is_there(filed: tuple[Path, Path], tmp_path: Path) -> None:
    """Breaks when the report is only hashed and its numbers are never looked up again."""
    folder = lay(tmp_path, filed[0])
    forge(folder, facts=move)
    (said,) = faults(tmp_path)
    assert said.startswith("facts.json is not what report.ncu-rep holds") and "gpu__time_duration.sum" in said
    (folder / "report.ncu-rep").unlink()
    assert faults(tmp_path) == []  # the report is optional: nobody can tell without it


def test_a_folder_of_another_case_or_version_shows(filed: tuple[Path, Path], tmp_path: Path) -> None:
    """Breaks when one digest answers for every case."""
    lay(tmp_path, filed[0], "artifacts/profile-digests/v000_baseline/decode")
    assert f"profile.json is of v000_baseline/{CASE}" in faults(tmp_path)
    other = tmp_path / "more"
    folder = lay(other, filed[0], "artifacts/profile-digests/v001_fused/decode")
    forge(folder, record=lambda p: p.update(subject="v001_fused", case_id="decode"))
    assert f"digest.json is of case {CASE}" in faults(other)


def words(code: str, text: str, **more: Any) -> Edit:
    return lambda p: p.update(why={"code": code, "words": text}, **more)


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (words("ncu.permission", "we have no ncu"), "without the words in which ncu says so"),
        (words("ncu.permission", " "), "gives no reason why ncu did not run"),
        (words("busy.today", "x"), "a reason that is none of ncu's (busy.today)"),
        (words("ncu.missing", "none"), "gives the reason ncu.missing and names ncu 2025.3.1.0"),
        (words("ncu.timeout", "late"), "gave it less than 240 s"),
        (words("ncu.busy", "the driver resource was unavailable"), "facts.json does not give the reason"),
        (lambda p: p.update(source="ncu", why=None), "facts.json is of a fallback, and profile.json says ncu"),
    ],
)
def test_a_waiver_written_by_hand_shows(filed: tuple[Path, Path], tmp_path: Path, edit: Edit, fault: str) -> None:
    """Breaks when a reason that ncu never gave waives a profile, or a waiver is turned into a profile."""
    forge(lay(tmp_path, filed[1]), record=edit)
    assert any(fault in said for said in faults(tmp_path)), faults(tmp_path)


def test_foreign_huge_and_linked_files_are_faults_and_never_read(filed: tuple[Path, Path], tmp_path: Path) -> None:
    """Breaks when the gate dies of a folder, or reads what lies outside of the history."""
    for ix, name in enumerate((FACTS, DIGEST, PAGE, NAME)):
        for kind in ("empty", "huge", "link", "binary", "cut", "folder"):
            root = tmp_path / f"{ix}{kind}"
            path = lay(root, filed[0]) / name
            whole = path.read_bytes()
            path.unlink()
            if kind == "huge":
                with path.open("wb") as file:
                    file.truncate(1 << 34)
            elif kind == "link":
                path.symlink_to(filed[0] / name)
            elif kind == "folder":
                path.mkdir()
            else:
                path.write_bytes({"empty": b"", "binary": b"\xff\x00" * 9, "cut": whole[: len(whole) // 2]}[kind])
            assert faults(root), (name, kind)
