"""From recorded digests to techniques, and from a record to its code in a clone and into the ledger."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import knowledge, ledger, proc
from kernelpilot_helpers.__main__ import main
from kernelpilot_helpers.cli import common
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.knowledge.route import _parts, judged, stop_of
from kernelpilot_helpers.ncu import limits
from kernelpilot_helpers.referee import workspace
from tests.knowledge_made import ROOT, fact, index

DIGESTS: dict[str, Any] = json.loads((ROOT / "tests/test_knowledge_digests.json").read_text())
ROWS = [
    fact(1, words=["swizzle"], diff_terms={"swizzle": 9}, symbols=["gemm_kernel"]),
    fact(2, words=["fix", "swizzle"], select={"tier": "P"}),
    fact(5, words=["fix", "mask"], select={"tier": "P"}, merged_at="2025-09-01T00:00:00Z"),
    fact(6, words=["fix", "tail"], select={"tier": "P"}, diff_terms={"fast-math": 9, "swizzle": 2}),
    fact(3, words=["persistent"], diff_terms={"persistent": 9, "tile-scheduler": 4}),
    fact(4, words=["clc"], diff_terms={"clc": 9}, archs=["sm100"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index(tmp_path_factory.mktemp("made") / "index", ROWS)


def led(folder: Path, name: str, **changes: Any) -> tuple[knowledge.Case, knowledge.Routes]:
    data = json.dumps({**DIGESTS[name], **changes}).encode()
    with knowledge.opened(knowledge.read(folder), folder.parent / "cache") as tables:
        case = knowledge.case_of(data, knowledge.listing.lexicon(tables), at="digest.json")
        return case, knowledge.route(tables, case, 5)


LOW_STALL = limits.STALL / 2
"""The share of the stalls that names a reason with low confidence."""
CLASSES_OWN: dict[str, tuple[float, ...]] = {
    "atomic_share": (limits.ATOMIC_SHARE,),
    "busiest_pipe": (limits.PIPE_LOW, limits.BUSY),
    "bytes_per_sector_store": (limits.BYTES_PER_SECTOR,),
    "conflict_share": (limits.CONFLICT,),
    "dram_sol": (limits.BUSY,),
    "excess_share": (limits.EXCESS_SECTORS,),
    "imbalance": (limits.IMBALANCE,),
    "issue": (limits.ISSUE, limits.BUSY),
    "l2_sol": (limits.BUSY,),
    "local_share": (limits.LOCAL_SHARE,),
    "occ.theoretical": (limits.THEORETICAL,),
    "stall.barrier": (LOW_STALL,),
    "stall.long_scoreboard": (LOW_STALL, limits.STALL),
    "stall.membar": (LOW_STALL,),
    "tensor": (limits.TENSOR_USED, limits.NEAR),
    "waves": (limits.WAVES_SHORT,),
}
"""Role -> bounds that a digest's class has too: where one moves there, the table has to follow."""
ROUTES_OWN: dict[str, tuple[float, ...]] = {
    "dram_sol": (10,),
    "duration_us": (1, 2, 4, 5, 10, 20, 50),
    "issue": (40,),
    "l2_hits": (60,),
    "l2_sol": (50,),
    "local_share": (0.2,),
    "memory_sol": (30,),
    "occ.theoretical": (12,),
    "registers": (168,),
    "shared_wavefronts": (1000,),
    "spill_share": (1,),
    "stall.no_instruction": (0.2,),
    "tensor": (1, 20, 30),
    "tma": (5,),
    "waves": (0.5, 0.7, 1, 2, 4, 16),
}
"""Role -> bounds that only a technique has."""


def test_a_bound_that_a_class_has_too_is_the_same_in_both() -> None:
    """Breaks when a limit of the digest moves and the table keeps the old one, or a bound of the table drifts."""
    found = {_parts(test)[::2] for rule in knowledge.rules() for test in (*rule.when, *rule.guard, *rule.unless)}
    shared = {(role, bound) for role, bounds in CLASSES_OWN.items() for bound in bounds}
    assert found == shared | {(role, float(bound)) for role, bounds in ROUTES_OWN.items() for bound in bounds}


def test_the_table_is_sound(folder: Path) -> None:
    """Breaks when a rule names an unknown mechanism, repeats a name, holds no condition, or one nobody can read."""
    table = knowledge.rules()
    vocabulary = knowledge.load(knowledge.read(folder)).vocabulary
    assert len([rule for rule in table if not (rule.family or rule.dtype)]) >= 30
    assert len({rule.name for rule in table}) == len(table)
    silent = knowledge.Case(class_name="", kernel="", capability=0, families=(), dtypes=(), values={}, metrics={})
    for rule in table:
        assert rule.tokens and set(rule.tokens) <= set(vocabulary.mechanisms), rule.name
        assert (rule.when or rule.guard) and rule.refute and rule.classes, rule.name
        assert rule.alone or not rule.not_for, rule.name
        about = {"families": rule.family, "dtypes": rule.dtype, "values": {}}
        case = msgspec.structs.replace(silent, **about)
        spoken = ((), "") if rule.measured else (("class ",), "")
        assert judged(msgspec.structs.replace(rule, classes=("",)), case) == spoken, rule.name


@pytest.mark.parametrize(
    ("digest", "first", "why"),
    [
        ("smem_conflict", "smem-swizzle", "= 0.9687 (>= 0.1)"),
        ("reg_spill", "spill-bound", "= 0.9832 (>= 0.05)"),
        ("low_occupancy", "fit-more-blocks", "occ.theoretical = 1.562 (< 40)"),
        ("tail_wave", "even-tiles", "sm__cycles_active.max / sm__cycles_active.avg = 6.021 (>= 1.2)"),
        ("tiny_launch", "fuse-or-chain-small", "duration_us = 3.296 (< 20)"),
        ("copy_vec4", "fewer-bytes", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed = 82.6 (>= 60)"),
        ("fma_bound", "packed-arithmetic", "class exec.pipe_bound:fma"),
    ],
)
def test_a_recorded_digest_leads_to_its_technique(folder: Path, digest: str, first: str, why: str) -> None:
    """Breaks when a known fault of a real kernel no longer leads to its cure, or the reason names no figure."""
    _, found = led(folder, digest)
    assert found.routes[0].rule == first
    assert why in " ".join(found.routes[0].why)
    assert found.routes[0].refute


def test_records_add_the_mechanism_and_fixes_of_the_same_file_stand_by(folder: Path) -> None:
    """Breaks when a record without the mechanism is shown, or the known fault of its file is not."""
    _, found = led(folder, "smem_conflict")
    best = found.routes[0]
    assert {"a/b#1", "deepseek-ai/DeepGEMM#86"} <= {item.record.id for item in best.evidence}
    assert all(item.lines for item in best.evidence)
    assert best.evidence[0].record.techniques == ("smem-swizzle",)
    assert [record.id for record in best.pitfalls] == ["a/b#2"]


def test_an_older_machine_and_a_counter_sign_turn_a_rule_down(folder: Path) -> None:
    """Breaks when sm_90 is sent to an instruction of sm_100, or a counter-sign is not heard."""
    case, found = led(folder, "tail_wave")
    assert case.capability == 90
    assert dict(found.rejected)["work-stealing"] == "needs sm_100, this is sm_90"
    newer = msgspec.structs.replace(case, capability=100)
    (steal,) = (rule for rule in knowledge.rules() if rule.name == "work-stealing")
    assert judged(steal, newer)[0][0] == "class exec.imbalance"
    (even,) = (rule for rule in knowledge.rules() if rule.name == "even-tiles")
    many = msgspec.structs.replace(case, values={**case.values, "waves": 20.0})
    assert judged(even, many) == ((), "launch__waves_per_multiprocessor = 20 (> 16)")


def test_metrics_alone_speak_only_when_measured() -> None:
    """Breaks when a missing metric counts as one that holds."""
    (rule,) = (rule for rule in knowledge.rules() if rule.name == "wide-loads")
    case = knowledge.Case(
        class_name="lat.barrier", kernel="k", capability=90, families=(), dtypes=(), values={}, metrics={}
    )
    assert judged(rule, case) == ((), "")
    measured = msgspec.structs.replace(case, values={"excess_share": 0.5})
    assert judged(rule, measured) == (("excess_share = 0.5 (>= 0.3)",), "")


def test_what_is_no_digest_is_refused(folder: Path) -> None:
    """Breaks when a route is made up for a report that judges nothing, or rubbish ends in a traceback."""
    with pytest.raises(Refused, match="judges no kernel"):
        led(folder, "tail_wave", **{"class": "none.insufficient"})
    with pytest.raises(BadRecord, match="format"):
        led(folder, "tail_wave", format="other")
    with pytest.raises(BadRecord, match="is no digest"):
        led(folder, "tail_wave", groups=7)


def test_the_route_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when the answer loses a part that the reader acts on."""
    path = tmp_path / "digest.json"
    path.write_text(json.dumps(DIGESTS["smem_conflict"]))
    assert main(["knowledge", "route", str(path), "--index", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["class", "kernel", "arch", "families", "dtypes", "stop", "routes", "pages", "rejected"]
    assert said["stop"] == ""
    assert (said["class"], said["arch"]) == ("mem.smem_conflict", "sm90")
    keys = ["rule", "technique", "page", "why", "mechanisms", "records", "pitfalls", "refute"]
    assert list(said["routes"][0]) == keys
    assert main(["knowledge", "route", str(path), "--index", str(folder)]) == 0
    page = capsys.readouterr().out
    assert "a/b#1  csrc/x.cu:gemm_kernel  adds swizzle 9" in page and "refuted when:" in page
    assert "  page: techniques/smem-swizzle.md" in page
    assert "  fix in the same file: a/b#2  " in page


def test_a_stop_is_said_first(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a kernel at its limit is sent to tuning, or what changes its work is not told apart from that."""
    path = tmp_path / "digest.json"
    step = {**DIGESTS["copy_vec4"]["next_step"], "what": "Stop here."}
    path.write_text(json.dumps({**DIGESTS["copy_vec4"], "next_step": step}))
    assert main(["knowledge", "route", str(path), "--index", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[stop] Stop here."
    assert next(line for line in lines[1:] if not line.startswith("  ")).startswith("beyond the stop: fewer bytes")
    assert main(["knowledge", "route", str(path), "--index", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["stop"], [item["rule"] for item in said["routes"]]) == ("Stop here.", ["fewer-bytes"])


def test_only_a_step_that_stops_is_a_stop() -> None:
    """Breaks when an edit is taken for a stop, or a kernel at its limit for one to tune."""
    assert stop_of(b'{"class": "lat.barrier", "next_step": {"kind": "edit", "what": "Do."}}') == ""
    assert stop_of(b'{"class": "mem.dram_bw", "next_step": {"kind": "stop", "what": "Stop."}}') == "Stop."
    assert stop_of(b'{"class": "none.at_limit"}').startswith("Stop")
    with pytest.raises(BadRecord, match="is no digest"):
        stop_of(b"[]")


def test_a_metric_is_named_once_and_a_guard_not_at_all() -> None:
    """Breaks when a reason repeats a counter, or a condition that only keeps a rule from speaking is told as one."""
    (rule,) = (rule for rule in knowledge.rules() if rule.name == "warp-reduce")
    rule = msgspec.structs.replace(rule, when=("tensor >= 20", "tensor < 80"), guard=("waves < 9",), unless=())
    case = knowledge.Case(
        class_name="lat.barrier",
        kernel="k",
        capability=90,
        families=(),
        dtypes=(),
        values={"tensor": 50.0, "waves": 3.0},
        metrics={},
    )
    assert judged(rule, case) == (("class lat.barrier", "tensor = 50 (>= 20 and < 80)"), "")
    assert judged(rule, msgspec.structs.replace(case, values={"tensor": 50.0, "waves": 9.0})) == ((), "")


def test_a_class_that_a_technique_does_not_help_is_left_alone() -> None:
    """Breaks when metrics alone send a kernel to what the page of its class says does not help."""
    (rule,) = (rule for rule in knowledge.rules() if rule.name == "even-tiles")
    case = knowledge.Case(
        class_name="lat.icache",
        kernel="k",
        capability=90,
        families=(),
        dtypes=(),
        values={"imbalance": 1.4, "waves": 0.4},
        metrics={},
    )
    assert judged(rule, case)[0] == ("imbalance = 1.4 (>= 1.2)",)
    assert judged(rule, msgspec.structs.replace(case, class_name="launch.grid_small")) == ((), "")


@pytest.fixture
def clone(tmp_path: Path) -> tuple[Path, str]:
    """A repository with one change of a kernel, and the change's commit."""
    repo = tmp_path / "clones" / "b"
    (repo / "csrc").mkdir(parents=True)

    def git(*args: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(
            ["git", "-C", str(repo), *who, *args], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    for text in ("int a;\n", "int b;\n"):
        (repo / "csrc/x.cu").write_text(text)
        git("add", ".")
        git("commit", "-qm", "c")
    return repo, git("rev-parse", "HEAD")


def test_open_shows_the_change_or_the_link(
    clone: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a clone at hand is not found, another one is believed, or the reader is left without a link."""
    repo, sha = clone
    where = ["--index", str(index(tmp_path / "i", [fact(7, sha=sha), fact(8)]))]
    monkeypatch.setenv("KERNELPILOT_CLONES", f"/nowhere:{repo.parent}")
    assert main(["knowledge", "open", "b#7", *where]) == 0
    page = capsys.readouterr().out
    assert "-int a;" in page and "+int b;" in page
    assert main(["knowledge", "open", "b#7", "--file", "csrc/x.cu", *where]) == 0
    assert capsys.readouterr().out.strip() == "int b;"
    assert main(["knowledge", "open", "b#7", "--file", "gone.cu", *where]) == 1
    assert "no file 'gone.cu'" in capsys.readouterr().err
    assert main(["knowledge", "open", "b#8", *where]) == 0
    assert "https://github.com/a/b/pull/8.diff" in capsys.readouterr().out
    assert main(["knowledge", "open", "b#8", "--clone", str(repo), *where]) == 1
    assert "does not hold commit" in capsys.readouterr().err


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_what_was_read_in_a_scaffolded_repo_is_not_handed_out_again(
    clone: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a source counts as read without its bytes, is handed out twice, or is noted twice for no reason."""
    source, sha = clone
    where = ["--index", str(index(tmp_path / "i", [fact(7, sha=sha), fact(8)]))]
    monkeypatch.delenv("KERNELPILOT_CLONES", raising=False)
    work = tmp_path / "work"
    assert main(["scaffold", str(work), "--task", "t"]) == 0
    capsys.readouterr()
    unread = ["knowledge", "next", "--repo", "b", "--json", "--seen", str(work / ledger.IDEAS_PATH), *where]
    mark = ["knowledge", "mark-read", "b#7", "--hypothesis", "wider loads", "--into", str(work), *where]
    assert main(mark) == 1
    assert "nothing shows what was read" in capsys.readouterr().err
    mark += ["--clone", str(source)]
    assert main([*mark, "--json"]) == 0
    noted = said(capsys)
    hashed = hashlib.sha256(b"int b;\n").hexdigest()
    assert noted["opened"] == [f"csrc/x.cu sha256:{hashed}"]
    (idea,) = ledger.load_ideas(work)
    assert (idea.key, idea.repo, idea.commit, idea.path, idea.pr) == (noted["key"], "a/b", sha, "csrc/x.cu", "7")
    assert not proc.dirty(work)
    assert noted["key"] in (work / ledger.SOURCE_IDEAS_PATH).read_text()
    assert main(unread) == 0
    left = said(capsys)
    assert ([record["id"] for record in left["records"]], left["seen"]) == (["a/b#8"], 2)
    assert main(mark) == 1
    assert "was read already" in capsys.readouterr().err
    assert main([*mark, "--reread-reason", "the epilogue this time"]) == 0
    assert [again.reread_reason for again in ledger.load_ideas(work)] == ["", "the epilogue this time"]


def test_a_source_that_was_marked_read_may_be_cited(
    clone: tuple[Path, str],
    repo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Breaks when the key that mark-read prints is not the one that an attempt takes."""
    source, sha = clone
    monkeypatch.setattr(common, "local_lab", lambda _: FakeLab())
    mark = ["knowledge", "mark-read", "b#7", "--hypothesis", "wider loads", "--into", str(repo), "--clone", str(source)]
    assert main([*mark, "--index", str(index(tmp_path / "i", [fact(7, sha=sha)]))]) == 0
    key = capsys.readouterr().out.strip()
    assert main(["attempt", "fused", "-m", "wider loads", "--source", key, "--repo", str(repo)]) == 0
    assert workspace.open_repo(repo).rows[-1].motivation.source_keys == (key,)
