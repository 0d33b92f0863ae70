"""What an attempt may cite: a source idea on record, a profile digest in the repo; anything else before measuring."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers.cli import ledger_command
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.ledger import Idea, Motivation, citations
from kernelpilot_helpers.referee import attempt as attempts
from kernelpilot_helpers.referee import importing, ledgers, portable, sources, workspace
from tests.contract.test_docs import parses
from tests.referee_sim import clock, quiet
from tests.test_referee_recheck import Watching

DIGEST = "artifacts/profile-digests/v000_baseline/m64_k4096/digest.md"


def request(**cites: object) -> attempts.Request:
    return attempts.Request(
        variant="fused", motivation=msgspec.convert({"kind": "research", "text": "t", **cites}, Motivation)
    )


def refused(repo: Path, asked: attempts.Request) -> Refused:
    before = proc.head(repo), proc.dirty(repo)
    with pytest.raises(Refused) as caught:
        attempts.attempt(repo, asked, lab=Watching(), clock=clock, say=quiet)
    assert (proc.head(repo), proc.dirty(repo)) == before, "nothing is committed by a refusal"
    assert parses(caught.value.fix.partition("  # ")[0]) == ""
    return caught.value


def noted(repo: Path) -> str:
    idea = Idea(repo="a/b", commit="1" * 40, path="p.cu", hypothesis="h", at="2026-11-30T08:00:00Z")
    return ledgers.add_idea(repo, idea, clock).key


def test_a_hash_is_recorded_and_not_typed(repo: Path) -> None:
    """Breaks when `ledger idea` takes a sha256 that only the tool may write, which rule 19 would count."""
    said = [
        "idea", "--source-repo", "a/b", "--commit", "1" * 40, "--path", "p.cu", "--hypothesis", "x",
        "--opened", f"p.cu sha256:{'0' * 64}", "--repo", str(repo),
    ]  # fmt: skip
    done = CliRunner().invoke(ledger_command.command, said)
    assert done.exit_code == 2 and "mark-read" in done.output
    assert not (repo / ledger.IDEAS_PATH).exists() or "sha256:" not in (repo / ledger.IDEAS_PATH).read_text()


def test_a_source_that_nobody_noted_is_refused_before_measuring(repo: Path) -> None:
    """Breaks when an invented key is recorded for ever, or a key on record is refused."""
    said = refused(repo, request(source_keys=("feedfacefeedface",)))
    assert said.what == "no source feedfacefeedface: no such source idea was noted"
    assert (said.where, said.fix.split()[:3]) == (ledger.SOURCE_IDEAS_PATH, ["kernelpilot", "ledger", "idea"])
    key = noted(repo)
    assert refused(repo, request(source_keys=(key, "feedfacefeedface"))).fix.endswith(f"there is: {key}")
    asked = request(source_keys=(key,))
    row = attempts.attempt(repo, asked, lab=FakeLab(), clock=clock, say=quiet).row
    assert row.motivation.source_keys == (key,)


def test_a_digest_that_does_not_exist_is_refused_before_measuring(repo: Path) -> None:
    """Breaks when a profile that nobody made motivates an attempt, or a digest's folder is not found."""
    assert refused(repo, request(digest="v000_baseline")).what == "no digest v000_baseline: no such file or folder"
    (repo / DIGEST).parent.mkdir(parents=True)
    (repo / DIGEST).write_text("# Digest\n")
    proc.commit(repo, "digest", ["artifacts"])
    for name in ("README", "README.md", "digest.md", "../runs", "v000"):
        refused(repo, request(digest=name))
    for name in ("v000_baseline", "m64_k4096", "v000_baseline/m64_k4096"):
        sources.require_cited(workspace.open_repo(repo), request(digest=name).motivation)
    assert attempts.attempt(repo, request(digest="m64_k4096"), lab=FakeLab(), clock=clock, say=quiet).row.verdict


def test_a_bundle_cannot_bring_in_a_source_that_is_not_here(repo: Path, tmp_path: Path) -> None:
    """Breaks when the way around over another machine records what an attempt refuses."""
    bad = request(source_keys=("feedfacefeedface",))
    with pytest.raises(Refused, match="feedfacefeedface"):
        portable.export(repo, bad, tmp_path / "no", clock=clock)
    out = portable.export(repo, request(), tmp_path / "out", clock=clock).path
    portable.run_bundle(out, FakeLab(speedup=1.5), quiet)
    bundle = portable.load(out)
    forged = msgspec.structs.replace(bundle.intent, motivation=bad.motivation)
    records.save(out / "bundle.json", msgspec.structs.replace(bundle, intent=forged))
    before = (repo / ledger.LINEAGE_PATH).read_bytes()
    with pytest.raises(Refused, match="feedfacefeedface"):
        importing.import_bundle(repo, out, clock=clock)
    assert (repo / ledger.LINEAGE_PATH).read_bytes() == before


def test_names_that_every_digest_has_name_none() -> None:
    """Breaks when ``--digest digest`` cites whatever lies there."""
    assert citations.digest_ids([DIGEST, "artifacts/profile-digests/README.md", "artifacts/FINAL.md"]) == {
        "v000_baseline", "m64_k4096", "v000_baseline/m64_k4096", "v000_baseline/m64_k4096/digest.md",
    }  # fmt: skip
