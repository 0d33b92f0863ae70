"""Reading a repo for its report: whatever is missing or damaged is told, never fatal."""

from __future__ import annotations

from pathlib import Path

from kernelpilot_helpers.report import collect, render
from tests.report_sim import seven, write_repo


def test_collect_reads_what_the_referee_wrote(tmp_path: Path) -> None:
    """Breaks if a file's place, a run's record or the contract's words are not found again."""
    want = seven()
    got = collect(write_repo(tmp_path, want))
    assert got.task == "rmsnorm"
    assert (got.target, got.gpu, got.epoch, got.mutation_score) == (1.5, "cpu", 1, "19/19")
    assert [r.version for r in got.rows] == [r.version for r in want.rows]
    assert got.runs["v004_try4.2"].bench == want.runs["v004_try4.2"].bench
    assert got.runs["v002_try2.1"].verification == want.runs["v002_try2.1"].verification
    assert got.runs["v000_baseline.1"].env["cores"] == 2
    assert [f.where for f in got.faults] == ["artifacts/runs/v005_try5.1"]  # never written: said, not skipped


def test_garbled_files_are_findings_never_a_crash(tmp_path: Path) -> None:
    """Breaks if a damaged file raises, or is silently left out of the page."""
    repo = write_repo(tmp_path, seven())
    runs = repo / "artifacts" / "runs"
    (runs / "v004_try4.2" / "bench.json").write_bytes(b'{"format":"kernelpilot.bench","version":1,"geomean":')
    (runs / "v002_try2.1" / "verify.json").write_bytes(b"\xff\xfe")
    (runs / "v001_try1.1" / "raw.json").write_bytes(b"[" * 100_000)
    (repo / "contract.toml").write_text("task = ")
    (repo / "artifacts" / "contract.lock.json").unlink()
    with (repo / "artifacts" / "lineage.jsonl").open("ab") as log:
        log.write(b'{"half": ')
    data = collect(repo)
    where = {fault.where for fault in data.faults}
    assert {"contract.toml", "artifacts/contract.lock.json", "artifacts/lineage.jsonl:10"} <= where
    runs_named = {"v004_try4.2", "v002_try2.1", "v001_try1.1", "v005_try5.1"}
    assert {f"artifacts/runs/{name}" for name in runs_named} <= where
    assert "What could not be trusted" in render(data)


def test_an_empty_folder_has_a_page_too(tmp_path: Path) -> None:
    """Breaks if the report needs anything to exist."""
    data = collect(tmp_path)
    assert data.rows == ()
    assert len(data.faults) == 3
    assert "Nothing was attempted yet." in render(data)
