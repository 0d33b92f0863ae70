"""The ordinary commands on the real runtime, as a user types them: one small repo from scaffold to report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_helpers import demo
from tests.taskpy import NUMPY, TORCH, needs_numpy, needs_torch

KEYS = {"version", "verdict", "partial", "reason", "geomean", "vs_baseline", "cases", "run_ids"}
CASE_KEYS = {"case_id", "speedup", "ci_low", "ci_high"}
SMALL = """
[task]
name = "add_rmsnorm"
op = "norm"
summary = "residual += x; out = residual / rms(residual) * weight"
[target]
gpu = "cpu"
[axes]
M = {var = [1, 512]}
N = {var = [8, 4096]}
[policy]
library_calls = true
[tensors]
x = {role = "in", dtype = "float32", shape = ["M", "N"]}
residual = {role = "inout", dtype = "float32", shape = ["M", "N"]}
weight = {role = "static", dtype = "float32", shape = ["N"], gen = "uniform(0.5,1.5)"}
out = {role = "out", dtype = "float32", shape = ["M", "N"]}
eps = {role = "scalar", dtype = "float32", gen = "const(1e-6)"}
"""
CASES = '[[cases]]\ncase_id = "m{m}_n{n}"\naxes = {{M = {m}, N = {n}}}\n'
HOLE = "kernelpilot_runtime"
TRIES = 3
"""AMBIGUOUS says that the machine was too busy to tell, and nothing of what is tested: it is asked again."""


def kernelpilot(*argv: str, cwd: Path, python: str = NUMPY, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """One command; fails the test when it ends otherwise than with ``code``."""
    done = subprocess.run(
        [sys.executable, "-m", "kernelpilot_helpers", *argv],
        cwd=cwd, env={**os.environ, "KERNELPILOT_PYTHON": python}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert code is None or done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


def answer(*argv: str, cwd: Path, python: str = NUMPY, code: int | None = 0) -> dict[str, Any]:
    """The object of one command with --json."""
    data = json.loads(kernelpilot(*argv, "--json", cwd=cwd, python=python, code=code).stdout)
    assert isinstance(data, dict)
    return data


def add_variant(repo: Path, slug: str) -> None:
    target = repo / "src" / "add_rmsnorm" / "variants" / slug
    shutil.copytree(demo.VARIANTS / slug, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small repo locked once by the real runtime."""
    folder = tmp_path_factory.mktemp("end to end")
    (folder / "baseline").mkdir()
    template = Path(demo.__file__).parents[1] / "scaffold" / "templates"
    shutil.copyfile(template / "baseline" / "candidate.py", folder / "baseline" / "candidate.py")
    shutil.copyfile(template / "reference.py", folder / "reference.py")
    cases = "".join(CASES.format(m=m, n=n) for m, n in ((16, 4000), (64, 1000), (256, 250)))
    (folder / "request.toml").write_text(SMALL + cases)
    answer("scaffold", "repo", "--request", "request.toml", cwd=folder)
    repo = folder / "repo"
    (repo / ".humanize/evidence.json").unlink()  # as in a fresh clone: the plan brings it back
    assert answer("plan", cwd=repo)["findings"] == []
    assert json.loads((repo / ".humanize/evidence.json").read_text())["commands"][0]["argv"][1:] == ["gate", "--json"]
    lock = answer("lock", cwd=repo)
    killed, applicable = lock["mutation_score"].split("/")
    assert killed == applicable and int(applicable) >= 20 and lock["floor"]["fit"]
    return repo


@pytest.fixture(scope="module")
def attempted(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A copy of it with one attempt on record, and what that attempt said."""
    repo = tmp_path_factory.mktemp("attempted") / "a repo"
    shutil.copytree(locked, repo)
    add_variant(repo, "fused")
    return repo, answer("attempt", "fused", "-m", "one pass", "--max-pairs", "6", cwd=repo)


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """A repo that exported a job, the bundle with its results, and a copy of the repo that has judged them."""

    repo: Path
    bundle: Path
    judged: Path
    said: dict[str, Any]


def measured(locked: Path, folder: Path, python: str, tries: int = TRIES) -> Elsewhere:
    """Export, run where nothing is of ours, judge."""
    for n in range(tries):
        at = folder / str(n)
        repo, judged = at / "a repo", at / "judged"
        shutil.copytree(locked, repo)
        bundle = _exported(repo, at)
        _run_bare(bundle, python)
        shutil.copytree(repo, judged)
        said = answer("job", "import", str(bundle), cwd=judged)
        if said["verdict"] != "AMBIGUOUS":
            break
    return Elsewhere(repo=repo, bundle=bundle, judged=judged, said=said)


@pytest.fixture(scope="module")
def elsewhere(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    """Measured with numpy, once for all tests."""
    return measured(locked, tmp_path_factory.mktemp("elsewhere"), NUMPY)


def copied(folder: Path, tmp_path: Path) -> Path:
    """A copy of what the module shares, for one test to write into; in a path with a space."""
    return Path(shutil.copytree(folder, tmp_path / f"a {folder.name}"))


@pytest.fixture
def repo(locked: Path, tmp_path: Path) -> Path:
    """A copy of it, in a path with a space."""
    target = tmp_path / "a repo"
    shutil.copytree(locked, target)
    return target


@needs_numpy
def test_an_attempt_prints_the_promised_object(attempted: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Breaks when a key that others script against is absent, or the row and the object disagree."""
    repo, said = copied(attempted[0], tmp_path), attempted[1]
    assert set(said) >= KEYS
    assert said["verdict"] == "IMPROVED" and said["partial"] is False
    assert said["geomean"]["ci_low"] <= said["geomean"]["speedup"] <= said["geomean"]["ci_high"]
    assert said["vs_baseline"] == said["geomean"]
    assert [set(c) for c in said["cases"]] == [CASE_KEYS] * 3
    assert all((repo / "artifacts/runs" / run / "raw.json").exists() for run in said["run_ids"])
    again = answer("attempt", "fused", "-m", "one pass", cwd=repo)
    assert set(again) >= KEYS and again["measured_now"] is False and again["version"] == said["version"]
    assert kernelpilot("ledger", "check", cwd=repo).stdout.strip() == "the ledgers agree with the lineage"
    report = Path(answer("report", cwd=repo)["report"]).read_text()
    assert "v001_fused" in report and "http:" not in report and "https:" not in report
    status = subprocess.run(["git", "status", "--porcelain"], cwd=repo, capture_output=True, text=True, check=True)
    assert status.stdout == ""


@needs_numpy
def test_an_identical_program_is_same_without_timing(attempted: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Breaks when renamed variables are timed: the demo's retold kernel must build to the same program."""
    repo = copied(attempted[0], tmp_path)
    add_variant(repo, "fused_again")
    said = answer("attempt", "fused_again", "-m", "tidier", cwd=repo)
    assert (said["verdict"], said["geomean"], said["cases"]) == ("SAME", None, [])
    raw = json.loads((repo / "artifacts/runs" / said["run_ids"][0] / "raw.json").read_text())
    assert raw.get("samples", []) == [] and raw.get("checks", []) == []


@needs_numpy
def test_tries_leave_no_trace_in_the_lineage(repo: Path) -> None:
    """Breaks when a look becomes evidence, or a wrong kernel's try exits 0."""
    before = (repo / "artifacts/lineage.jsonl").read_bytes()
    add_variant(repo, "fused_tail")
    wrong = answer("verify", "fused_tail", cwd=repo, code=1)
    assert wrong["correct"] is False and any("columns >=" in f for f in wrong["findings"])
    add_variant(repo, "fused")
    assert answer("build", "fused", cwd=repo)["build"]["ok"] is True
    tried = answer("try", "fused", cwd=repo)
    assert tried["evidence"] is False and tried["correct"] is True and tried["cases"]
    assert (repo / "artifacts/lineage.jsonl").read_bytes() == before
    said = answer("attempt", "--from-try", tried["id"], "-m", "as tried", "--tier", "screen", cwd=repo)
    assert said["version"] == "v001_fused" and said["verdict"] == "AMBIGUOUS"


@needs_numpy
def test_a_compile_error_is_shown_and_recorded_as_broken(repo: Path) -> None:
    """Breaks when the compiler's words are lost, or a build failure raises."""
    add_variant(repo, "fused")
    kernel = repo / "src/add_rmsnorm/variants/fused/kernel.c"
    kernel.write_text(kernel.read_text().replace("float scale", "flaot scale"))
    built = answer("build", "fused", cwd=repo, code=1)
    assert "flaot" in built["build"]["log"]
    said = answer("attempt", "fused", "-m", "typo", cwd=repo)
    assert said["verdict"] == "BROKEN" and said["reason"].startswith("build.failed")


def _exported(repo: Path, tmp_path: Path) -> Path:
    add_variant(repo, "fused_wide")  # a gain that is large against numpy and torch alike
    argv = ("job", "export", "fused_wide", "--out", str(tmp_path / "b.tar.gz"), "-m", "one pass", "--max-pairs", "6")
    assert answer(*argv, cwd=repo)["command"] == f"python3 -I {HOLE} jobs/*"
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        tar.extractall(tmp_path / "elsewhere")
    return next((tmp_path / "elsewhere").iterdir())


def _run_bare(bundle: Path, python: str) -> None:
    """As the README of the bundle says, with an empty environment and nothing of ours on any path."""
    jobs = sorted(str(p.relative_to(bundle)) for p in (bundle / "jobs").iterdir())
    env = {"PATH": os.environ["PATH"], "HOME": str(bundle)}
    subprocess.run([python, "-I", HOLE, *jobs], cwd=bundle, env=env, check=True, capture_output=True, timeout=300)


def _on_record(run: Elsewhere) -> None:
    assert set(run.said) >= KEYS and all((run.judged / "artifacts/runs" / r).is_dir() for r in run.said["run_ids"])
    agreed = "the ledgers agree with the lineage"
    assert kernelpilot("ledger", "check", cwd=run.judged).stdout.strip() == agreed
    twice = kernelpilot("job", "import", str(run.bundle), cwd=run.judged, code=1)
    assert "its results are in this repo already" in twice.stderr
    assert kernelpilot("ledger", "check", cwd=run.judged).stdout.strip() == agreed


@needs_numpy
def test_a_job_that_ran_elsewhere_gives_the_same_verdict(elsewhere: Elsewhere) -> None:
    """Breaks when another machine needs something of ours, or its raw results are judged differently."""
    assert elsewhere.said["verdict"] == "IMPROVED" and len(elsewhere.said["run_ids"]) == 3, elsewhere.said["reason"]
    _on_record(elsewhere)


@needs_numpy
@needs_torch
def test_a_job_that_ran_beside_torch_gives_the_same_verdict(locked: Path, tmp_path: Path) -> None:
    """The same where the other machine's Python has torch; too busy a machine says so beside the gain it has seen."""
    run = measured(locked, tmp_path, TORCH, tries=2)
    said = run.said
    refused = said["verdict"] == "AMBIGUOUS" and said["reason"].startswith(("machine.unfit: floor.", "suspect."))
    assert said["verdict"] == "IMPROVED" or refused, said["reason"]
    assert said["geomean"]["ci_low"] > 1.05, said["geomean"]  # whatever the machine, the gain is there
    _on_record(run)


@needs_numpy
def test_what_a_bundle_claims_of_itself_is_not_believed(elsewhere: Elsewhere, tmp_path: Path) -> None:
    """Breaks when a path in a bundle's intent reaches the disk, two machines are mixed, or a refusal leaves a trace."""
    repo, bundle = copied(elsewhere.repo, tmp_path), copied(elsewhere.bundle, tmp_path)
    before = sorted(p.name for p in (repo / "artifacts/runs").iterdir())
    meta = bundle / "bundle.json"
    good = meta.read_text()
    fields = {"variant": "../../../artifacts", "commit": "deadbeef", "epoch": 7, "tier": "nope", "kind": "lock"}
    for field, value in fields.items():
        doc = json.loads(good)
        doc["intent"][field] = value
        meta.write_text(json.dumps(doc))
        assert kernelpilot("job", "import", str(bundle), cwd=repo, code=1).stderr
    meta.write_text(good)
    raw = bundle / "jobs/02-confirm/raw.json"
    honest = raw.read_text()
    doc = json.loads(honest)
    for change in (
        lambda d: d["env"].update(boot_id="other"),
        lambda d: d["samples"][0]["ns"].__setitem__(0, 10**400),
        lambda d: d["samples"][0]["ns"].__setitem__(0, -5),
        lambda d: d.update(samples=json.loads((bundle / "jobs/01-main/raw.json").read_text())["samples"]),
    ):
        doc = json.loads(honest)
        change(doc)
        raw.write_text(json.dumps(doc))
        kernelpilot("job", "import", str(bundle), cwd=repo, code=1)
    assert sorted(p.name for p in (repo / "artifacts/runs").iterdir()) == before
    assert kernelpilot("ledger", "render", cwd=repo).stdout.strip() == "nothing to render"
    raw.write_text(honest)
    said = answer("job", "import", str(bundle), cwd=repo)
    assert {key: said[key] for key in ("verdict", "geomean", "cases")} == {
        key: elsewhere.said[key] for key in ("verdict", "geomean", "cases")
    }


@needs_numpy
def test_a_bundle_that_is_not_ours_is_refused(repo: Path, tmp_path: Path) -> None:
    """Breaks when results of an edited job, a missing result or a garbled one become a row."""
    bundle = _exported(repo, tmp_path)
    assert "no such file" in kernelpilot("job", "import", str(bundle), cwd=repo, code=1).stderr
    assert "done" in kernelpilot("job", "run", str(bundle), cwd=repo).stdout
    job = bundle / "jobs/01-main/job.json"
    text = job.read_text()
    job.write_text(text.replace('"blocks": 20', '"blocks": 1'))
    assert "not the one" in kernelpilot("job", "import", str(bundle), cwd=repo, code=1).stderr
    job.write_text(text)
    raw = bundle / "jobs/02-confirm/raw.json"
    good = raw.read_bytes()
    raw.write_bytes(good[: len(good) // 2])
    assert "not valid JSON" in kernelpilot("job", "import", str(bundle), cwd=repo, code=1).stderr
    shutil.copyfile(bundle / "jobs/01-main/raw.json", raw)
    assert "another job" in kernelpilot("job", "import", str(bundle), cwd=repo, code=1).stderr
    raw.write_bytes(good)
    assert answer("job", "import", str(bundle), cwd=repo)["verdict"] == "IMPROVED"


@needs_numpy
def test_errors_name_the_command_that_helps(tmp_path: Path, repo: Path) -> None:
    """Breaks when a newcomer's first mistakes end in a traceback or a dead end."""
    assert "kernelpilot scaffold" in kernelpilot("attempt", "x", "-m", "y", cwd=tmp_path, code=1).stderr
    assert "candidate.py" in kernelpilot("attempt", "nothing", "-m", "y", cwd=repo, code=1).stderr
    assert "--motivation" in kernelpilot("attempt", "nothing", cwd=repo, code=2).stderr
    add_variant(repo, "fused")
    missing = kernelpilot("attempt", "fused", "-m", "y", cwd=repo, python="/nonexistent/python", code=1)
    assert "KERNELPILOT_PYTHON" in missing.stderr
    assert "already locked" in kernelpilot("lock", cwd=repo).stdout
    (repo / "contract.toml").write_text("[task\n")
    assert "not valid TOML" in kernelpilot("plan", cwd=repo, code=1).stderr
