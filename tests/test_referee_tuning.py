"""``tune`` and ``dispatch`` as transactions: rows, files, commits, crashes, hand edits, and rules 24 to 26."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import autotune, ledger, policy, proc, records
from kernelpilot_helpers.autotune import MAP_PATH
from kernelpilot_helpers.errors import BadRecord, NotComparable, Refused
from kernelpilot_helpers.evidence.model import Evidence, GitFacts, TuningFacts
from kernelpilot_helpers.evidence.tuning import collect_tuning
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.gate.model import NotEvaluated
from kernelpilot_helpers.gate.tuning_rules import TUNING_RULES
from kernelpilot_helpers.ledger import Row
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import derived, ledgers, locking, tuning, workspace
from tests import taskpy, tuning_sim
from tests.referee_sim import TASK, attempt, clock, quiet, write_variant
from tests.tuning_sim import dispatch, speeds, tune

ROOT = Path(__file__).resolve().parents[1]
DECISIONS = "artifacts/tuning-decisions.md"


@pytest.fixture(scope="session")
def tried_template(locked_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repo with two versions that complement each other."""
    target = tmp_path_factory.mktemp("tried") / "repo"
    shutil.copytree(locked_template, target)
    tuning_sim.two_versions(target)
    return target


@pytest.fixture(scope="session")
def mapped_template(tried_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, tuned."""
    target = tmp_path_factory.mktemp("mapped") / "repo"
    shutil.copytree(tried_template, target)
    tune(target)
    return target


@pytest.fixture(scope="session")
def tuned_template(mapped_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, tuned and dispatched."""
    target = tmp_path_factory.mktemp("tuned") / "repo"
    shutil.copytree(mapped_template, target)
    dispatch(target)
    return target


@pytest.fixture
def mapped(mapped_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(mapped_template, tmp_path / "repo"))


@pytest.fixture
def tried(tried_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tried_template, tmp_path / "repo"))


@pytest.fixture
def tuned(tuned_template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tuned_template, tmp_path / "repo"))


def test_an_amendment_leaves_the_older_map_alone_until_there_is_something_to_tune(tuned: Path) -> None:
    """Breaks when an honest amendment turns the gate red, and the remedy, `kernelpilot tune`, has nothing to tune."""
    (tuned / "reference.py").write_text((tuned / "reference.py").read_text() + "# clearer\n")
    locking.lock(tuned, amend=True, why="words", lab=FakeLab(), clock=clock, say=quiet)
    assert (facts(tuned).map_faults, facts(tuned).dispatch_faults) == ((), ())
    write_variant(tuned, "fused", tuning_sim.CODE.replace("its name", "its new name"))
    attempt(tuned, FakeLab(speedup=1.5), "fused", max_pairs=6)
    assert "epoch" in facts(tuned).map_faults[0].what
    path = tuned / MAP_PATH
    path.write_bytes(path.read_bytes().replace(b"1.5", b"9.5"))
    assert any("not the bytes" in f.what for f in facts(tuned).map_faults)


def facts(repo: Path) -> TuningFacts:
    ws = workspace.open_repo(repo, need_lock=False)
    assert ws.lock is not None
    return collect_tuning(repo, contract=ws.contract, lock=ws.lock, rows=ws.rows, cases=ws.cases)


def rules(repo: Path, given: TuningFacts | None = None) -> dict[str, list[str]]:
    """``id phase`` -> what the rule says, or ``not evaluated``."""
    ws = workspace.open_repo(repo, need_lock=False)
    lock = ws.lock or Fault(where="", what="", fix="")
    read = given or facts(repo)
    e = Evidence(root=str(repo), contract=ws.contract, lock=lock, rows=ws.rows, git=GitFacts(head=""), tuning=read)
    out: dict[str, list[str]] = {}
    for rule in TUNING_RULES:
        try:
            out[f"{rule.id} {rule.phase}"] = [f"{where}: {what}" for where, what, _ in rule.check(e, policy.POLICY)]
        except NotEvaluated as why:
            out[f"{rule.id} {rule.phase}"] = [f"not evaluated: {why}"]
    return out


def last(repo: Path) -> Row:
    return workspace.open_repo(repo).rows[-1]


def test_tune_writes_one_row_with_every_run_and_the_map(tried: Path) -> None:
    """Breaks when a tuning leaves no evidence, times held-out cases to choose by, or touches the incumbent."""
    before = workspace.open_repo(tried)
    done = tune(tried)
    row = last(tried)
    assert (row.kind, row.reason, row.verdict) == ("decision", "tune: 2 versions x 8 cases", None)
    assert row.version == before.best().version == "v001_fused" and len(row.runs) == 2
    assert row.evidence[MAP_PATH] == records.file_sha256(tried / MAP_PATH)
    assert [v.version for v in done.map.variants] == ["v001_fused", "v002_tiled"]
    held = [c for c in done.map.cells if c.case_id == "held_m72_n1920"]
    assert [round(c.vs_baseline.speedup, 1) for c in held] == [1.5, 1.3]
    assert ledgers.check(tried) == [] and proc.dirty(tried) == []
    assert (tried / "src" / TASK / "current").read_text() == "fused\n"
    assert rules(tried)["24 always"] == [] and rules(tried)["25 final"][0].startswith("dispatch/table.json: missing")


def test_dispatch_chooses_by_regime_and_is_recorded(tuned: Path) -> None:
    """Breaks when the dispatcher is not what the map says, not committed, or not behind a row."""
    row = last(tuned)
    assert (row.kind, row.reason, row.runs) == ("decision", "dispatch: table, 2 rules", ())
    found = facts(tuned)
    assert found.map_faults == () and found.dispatch_faults == ()
    assert found.regimes == ("wide", "tall")
    assert found.table is not None and {r.regime: r.version for r in found.table.rules} == {
        "wide": "v001_fused",
        "tall": "v002_tiled",
    }
    assert all(said == [] for said in rules(tuned).values())
    assert ledgers.check(tuned) == [] and proc.dirty(tuned) == []
    assert (tuned / "dispatch/variants/v002_tiled/candidate.py").read_bytes() == (
        tuned / f"src/{TASK}/variants/tiled/candidate.py"
    ).read_bytes()
    text = (tuned / DECISIONS).read_text()
    assert "held_m192_n768 (M 192, N 768): `v002_tiled` 3.0" in text and "| 1 | tall |" in text
    again = dispatch(tuned)
    assert not again.changed and again.row.at == row.at


def files_of(repo: Path) -> list[str]:
    out = proc.git_out(repo, "ls-files", "dispatch", DECISIONS, MAP_PATH).splitlines()
    assert len(out) >= 9
    return out


@pytest.mark.parametrize("how", ["edit", "delete"])
def test_every_byte_is_watched(tuned: Path, how: str) -> None:
    """Breaks when one file of the dispatcher, the page or the map can be changed and nobody says which."""
    for path in files_of(tuned):
        target = tuned / path
        before = target.read_bytes()
        if how == "delete":
            if path == "dispatch/.gitkeep":
                continue  # the skeleton's own check wants it
            target.unlink()
        else:
            at = len(before) // 2
            target.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :] if before else b"x")
        found = facts(tuned)
        gate = [f.where for f in (*found.map_faults, *found.dispatch_faults)]
        if (path, how) == (MAP_PATH, "delete"):
            assert "dispatch/table.json" in gate
        else:
            assert any(where.startswith(path) for where in gate), (path, gate)
        stored = derived.stored_faults(workspace.open_repo(tuned))
        assert any(path in f.where for f in stored), path
        target.write_bytes(before)
    assert facts(tuned).dispatch_faults == ()
    (tuned / DECISIONS).unlink()
    assert [f.where for f in ledgers.check(tuned)] == [DECISIONS]


def test_an_added_file_is_named(tuned: Path) -> None:
    """Breaks when code can be slipped beside a version and be imported by it."""
    (tuned / "dispatch/variants/v001_fused/numpy.py").write_text("")
    assert [f.where for f in facts(tuned).dispatch_faults] == ["dispatch/variants/v001_fused/numpy.py"]
    (tuned / "dispatch/__pycache__").mkdir()
    (tuned / "dispatch/__pycache__/dispatch.cpython-311.pyc").write_bytes(b"")
    assert len(facts(tuned).dispatch_faults) == 1


@pytest.mark.parametrize("name", ["bench.json", "raw.json", "intent.json"])
def test_a_tune_runs_file_is_evidence(tuned: Path, name: str) -> None:
    """Breaks when the figures behind a map can be gutted without a word."""
    run = next(r for r in workspace.open_repo(tuned).rows if r.reason.startswith("tune:")).runs[1]
    path = tuned / "artifacts/runs" / run / name
    path.write_bytes(path.read_bytes() + b" ")
    assert any(run in f.where for f in ledgers.check(tuned))
    path.unlink()
    assert any(run in f.where for f in ledgers.check(tuned))
    if name != "raw.json":
        assert facts(tuned).map_faults != ()


def forged(repo: Path, change: Any) -> None:
    """Map edited and everything that speaks of it made to agree: row, seal, chain."""
    ws = workspace.open_repo(repo)
    found = records.load(repo / MAP_PATH, autotune.OWNER)
    records.save(repo / MAP_PATH, change(found))
    row = next(r for r in ws.rows if r.reason.startswith("tune:"))
    sealed = {**row.evidence, MAP_PATH: records.file_sha256(repo / MAP_PATH)}
    other = msgspec.structs.replace(row, evidence={MAP_PATH: sealed[MAP_PATH]}, runs=())
    records.append(repo / ledger.LINEAGE_PATH, other, ledger.LINEAGE, chained=True)


def test_a_forged_map_is_held_against_its_runs(tuned: Path) -> None:
    """Breaks when a map with better figures, a fitting row and a fitting hash is believed."""

    def better(found: autotune.PerformanceMap) -> autotune.PerformanceMap:
        first = found.cells[0]
        ten = msgspec.structs.replace(first.vs_baseline, speedup=9.0, ci_high=9.5)
        return msgspec.structs.replace(found, cells=(msgspec.structs.replace(first, vs_baseline=ten), *found.cells[1:]))

    forged(tuned, better)
    said = rules(tuned)
    assert any("does not cite run" in what for what in said["24 always"]), said
    assert any("made from another map" in what for what in said["25 always"])
    with pytest.raises(BadRecord):
        ledgers.render(tuned, clock)
    assert any("tune:" in f.where + f.what for f in ledgers.check(tuned))


def test_a_new_version_makes_the_map_stale(tuned: Path) -> None:
    """Breaks when a version that was accepted after the tuning is not missed."""
    write_variant(tuned, "third", tuning_sim.CODE + "\n# third\n")
    assert attempt(tuned, FakeLab(speedup=1.3), "third", max_pairs=6).row.verdict == "IMPROVED"
    assert any("v003_third is selected and was not tuned" in what for what in rules(tuned)["24 always"])
    with pytest.raises(Refused, match="v003_third"):
        dispatch(tuned)
    tune(tuned, third=FakeLab(speedup=speeds(2.0, 2.0)))
    assert any("made from another map" in what for what in rules(tuned)["25 always"])
    assert {r.version for r in dispatch(tuned).table.rules} == {"v003_third", "v002_tiled"}
    assert not (tuned / "dispatch/variants/v001_fused").exists()
    assert ledgers.check(tuned) == [] and proc.dirty(tuned) == [] and all(said == [] for said in rules(tuned).values())


def test_a_wrong_version_is_left_out_and_named(tried: Path) -> None:
    """Breaks when a version that verifies wrong in the tune job may serve shapes, or vanishes without a word."""
    done = tune(tried, tiled=FakeLab(speedup=9.0, wrong="tail"))
    assert [v.version for v in done.map.variants] == ["v001_fused"]
    assert [(o.version, o.why.partition(":")[0].split(".")[0]) for o in done.map.left_out] == [("v002_tiled", "wrong")]
    assert {r.version for r in dispatch(tried).table.rules} == {"v001_fused"}
    assert "`v002_tiled` was left out of the map: wrong" in (tried / DECISIONS).read_text()
    assert ledgers.check(tried) == [] and all(said == [] for said in rules(tried).values())
    with pytest.raises(Refused, match="nothing to map"):
        tune(tried, tiled=FakeLab(wrong="tail"), fused=FakeLab(wrong="all"))
    assert ledgers.check(tried) == [] and proc.dirty(tried) == []


def test_a_held_out_case_refuses_its_rule(tried: Path) -> None:
    """Breaks when a dispatcher is written that is slower than the baseline between the measured shapes."""
    done = tune(tried, tiled=FakeLab(speedup={**speeds(1.2, 3.0), "held_m192_n768": 0.5}))
    assert done.map.left_out == ()
    table = dispatch(tried).table
    assert [(r.regime, r.version) for r in table.rules] == [("wide", "v001_fused")]
    assert [(r.regime, r.version) for r in table.refused] == [("tall", "v002_tiled")]
    assert "held-out case held_m192_n768 is worse" in (tried / DECISIONS).read_text()
    assert all(said == [] for said in rules(tried).values())


def test_a_disturbed_machine_is_measured_again_and_then_given_up(tried: Path) -> None:
    """Breaks when a broken oracle leaves a version out, or half a tuning lies in the tree."""
    from kernelpilot_helpers.attempt.raw import Died

    died = FakeLab(died=Died(arm="A", stage="call", signal="SIGSEGV"))
    with pytest.raises(NotComparable, match="v002_tiled could not be measured: incumbent"):
        tune(tried, tiled=died)
    assert len(died.jobs) == 2
    assert ledgers.check(tried) == [] and proc.dirty(tried) == [] and not (tried / MAP_PATH).exists()


def test_nothing_selected_is_refused_before_anything_runs(repo: Path) -> None:
    """Breaks when tuning writes a map of nothing."""
    with pytest.raises(Refused, match="no version is IMPROVED"):
        tune(repo) if attempt(repo, FakeLab(speedup=1.0), "fused", max_pairs=6) and _tiled(repo) else None
    with pytest.raises(Refused, match="no performance map"):
        dispatch(repo)
    assert rules(repo)["24 always"] == ["not evaluated: no version is IMPROVED, so none to tune"]
    assert rules(repo)["24 final"] == ["not evaluated: no version is IMPROVED, so none to tune"]


def _tiled(repo: Path) -> bool:
    """The second folder that the sim's lab asks for."""
    shutil.copytree(repo / f"src/{TASK}/variants/fused", repo / f"src/{TASK}/variants/tiled")
    return proc.commit(repo, "a folder", [f"src/{TASK}/variants/tiled"]) is not None


def test_an_improved_version_without_a_map_blocks_at_the_end(tried: Path) -> None:
    """Breaks when the work may end untuned."""
    said = rules(tried)
    assert said["24 always"] == ["not evaluated: no performance map yet"]
    assert said["24 final"] == [f"{MAP_PATH}: missing, while a version is IMPROVED"]


def test_one_regime_wants_a_trivial_dispatcher(tuned: Path) -> None:
    """Breaks when rule 26 cannot fail."""
    found = facts(tuned)
    one = TuningFacts(map=found.map, table=found.table, regimes=("wide",))
    assert rules(tuned, one)["26 always"][0].startswith("dispatch/table.json: W has one regime (wide)")
    assert found.table is not None
    trivial = msgspec.structs.replace(found.table, kind="trivial")
    assert rules(tuned, TuningFacts(map=found.map, table=trivial, regimes=("wide",)))["26 always"] == []


def test_evidence_never_raises(tuned: Path) -> None:
    """Breaks when garbage in the tree ends the gate in a traceback."""
    ws = workspace.open_repo(tuned)
    assert ws.lock is not None
    fault = Fault(where="contract.toml", what="garbled", fix="")
    assert len(collect_tuning(tuned, contract=fault, lock=fault, rows=(), cases=()).map_faults) == 1
    (tuned / "dispatch/table.json").write_bytes(b"\xff{")
    (tuned / MAP_PATH).write_bytes(b"[]")
    found = collect_tuning(tuned, contract=ws.contract, lock=ws.lock, rows=ws.rows, cases=ws.resolved)
    assert found.map is None and found.table is None and found.map_faults and found.dispatch_faults
    assert found.regimes == ("wide", "tall"), "resolved cases carry no regime, so W is read from its file"


TUNE_STEPS = (
    "attempt.intent",
    "attempt.raw",
    "attempt.bench",
    "append.torn",
    "append.done",
    "derived.row",
    "derived.file",
    "derived.files",
    "attempt.evidence",
)
DISPATCH_STEPS = (
    "append.torn", "derived.row", "derived.file", "derived.files", "attempt.evidence",
)  # fmt: skip


def killed(repo: Path, command: str, step: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.tuning_sim", str(repo), command],
        cwd=ROOT, env={**os.environ, "KP_CRASH_AT": step}, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == -9, (step, done.returncode, done.stderr)


@pytest.mark.parametrize("step", TUNE_STEPS)
def test_a_killed_tune_leaves_nothing_half(tuned: Path, step: str) -> None:
    """Breaks when a kill leaves a map without its row, a row without its map, or runs that no row cites."""
    before = [r for r in workspace.open_repo(tuned).rows if r.reason.startswith("tune:")]
    killed(tuned, "tune", step)
    ledgers.render(tuned, clock)  # any writing command mends
    assert ledgers.check(tuned) == [] and proc.dirty(tuned) == []
    now = [r for r in workspace.open_repo(tuned).rows if r.reason.startswith("tune:")]
    assert len(now) - len(before) == (step in TUNE_STEPS[4:])
    assert facts(tuned).map_faults == ()
    assert now[-1].evidence[MAP_PATH] == records.file_sha256(tuned / MAP_PATH)


@pytest.mark.parametrize("step", DISPATCH_STEPS)
def test_a_killed_dispatch_is_finished_or_forgotten(mapped: Path, step: str) -> None:
    """Breaks when a kill leaves half a dispatcher."""
    killed(mapped, "dispatch", step)
    ledgers.render(mapped, clock)
    assert ledgers.check(mapped) == [] and proc.dirty(mapped) == []
    found = facts(mapped)
    assert found.dispatch_faults == () and (found.table is None) == (step == "append.torn")


PROBE = """\
import json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import dispatch
rng = np.random.default_rng(1)
def aligned(shape):
    size = int(np.prod(shape)) * 4
    raw = np.zeros(size + 64, dtype=np.uint8)
    at = -raw.ctypes.data % 64
    return raw[at:at + size].view(np.float32).reshape(shape)
said = {}
for m, n in json.loads(sys.argv[2]):
    x, res, out = aligned((m, n)), aligned((m, n)), aligned((m, n))
    weight = aligned((n,))
    x[:], res[:], weight[:] = rng.normal(size=(m, n)), rng.normal(size=(m, n)), rng.uniform(.5, 1.5, n)
    total = (x.astype(np.float64) + res)
    want = total / np.sqrt((total * total).mean(-1, keepdims=True) + 1e-6) * weight
    name = dispatch.which(x=x, residual=res, weight=weight, out=out, eps=1e-6)
    dispatch.entry(x=x, residual=res, weight=weight, out=out, eps=1e-6)
    right = [np.allclose(out, want, rtol=1e-4, atol=1e-5), np.allclose(res, total, atol=1e-5)]
    said[f"{m}x{n}"] = [name, *map(bool, right)]
print(json.dumps(said), file=sys.stderr)
"""


@taskpy.needs_numpy
def test_the_dispatcher_runs_elsewhere_without_kernelpilot(tuned: Path, tmp_path: Path) -> None:
    """Breaks when dispatch/ needs its repo or an installation, or gives another result than the reference."""
    away = tmp_path / "elsewhere"
    shutil.copytree(tuned / "dispatch", away)
    shutil.rmtree(tuned)
    done = subprocess.run(
        [taskpy.NUMPY, "-I", "-c", PROBE, str(away), json.dumps([[64, 2048], [192, 768], [8, 8]])],
        capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stderr.splitlines()[-1]) == {
        "64x2048": ["v001_fused", True, True],
        "192x768": ["v002_tiled", True, True],
        "8x8": ["baseline", True, True],
    }
    assert done.stdout.split() == ["v001_fused", "v002_tiled"]


def test_the_commands_print_one_object(tried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a stable key is lost, or the words for people cannot be made."""
    from click.testing import CliRunner

    from kernelpilot_helpers.cli import common, group

    monkeypatch.setattr(common, "local_lab", lambda repo: tuning_sim.lab(tried, tiled=FakeLab(wrong="tail")))

    def said(*argv: str) -> str:
        done = CliRunner().invoke(group, [*argv, "--repo", str(tried)], standalone_mode=False)
        assert done.exception is None, done.exception
        return done.stdout

    one = json.loads(said("tune", "--max-pairs", "6", "--json"))
    assert set(one) == {"map", "version", "reason", "versions", "left_out", "regimes", "cells", "run_ids"}
    assert (one["versions"], one["regimes"]) == (["v001_fused"], ["wide", "tall"])
    assert one["left_out"][0]["version"] == "v002_tiled" and len(one["cells"]) == 8
    two = json.loads(said("dispatch", "--json"))
    assert set(two) == {"kind", "rules", "refused", "fallback", "code", "decisions", "reason", "changed"}
    assert two["rules"][0]["guards"][0] == {"axis": "M", "low": 128, "high": 256}
    assert "nothing had changed" in said("dispatch")
    assert "left out: v002_tiled" in said("tune", "--max-pairs", "6")
    with pytest.raises(Refused, match="an interval for each case needs 6 pairs"):
        tuning.tune(tried, max_pairs=4, lab=FakeLab(), clock=clock, say=print)
