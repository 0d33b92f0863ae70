"""The standalone repo: made whole or not at all, and seen when it is no longer whole."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelpilot_helpers import contract, ledger, proc, scaffold
from kernelpilot_helpers.attempt.resolve import resolve
from kernelpilot_helpers.errors import BadRecord, KernelPilotError, Refused, ToolMissing

TOOL = Path("/opt/kp/bin/kernelpilot")


@pytest.fixture(autouse=True)
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No identity, no configuration: what a fresh machine has."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in [k for k in os.environ if k.startswith("GIT_")]:
        monkeypatch.delenv(name)
    return home


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return scaffold.make(scaffold.example(task="addnorm"), tmp_path / "repo", kernelpilot=TOOL).path


def function(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"made_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_the_repo_is_whole_committed_and_clean(repo: Path) -> None:
    """Breaks if a file is missing from the commit, or the first thing a user sees is a dirty tree."""
    assert scaffold.check(repo) == []
    assert proc.dirty(repo) == []
    assert proc.git_out(repo, "log", "--format=%s") == "scaffold addnorm"
    assert proc.git_out(repo, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    listed = set(proc.git_out(repo, "ls-files").splitlines())
    made = contract.parse((repo / "contract.toml").read_bytes(), at="c")
    assert set(scaffold.required_files(made)) <= listed
    assert "src/addnorm/current" in listed
    assert not [path for path in listed if path.startswith(".humanize")]
    assert (repo / "src/addnorm/current").read_text() == "baseline\n"


def test_the_evidence_command_is_absolute_and_stays_out_of_git(repo: Path) -> None:
    """Breaks if a client's hook, which has another PATH, cannot find the referee."""
    facts = json.loads((repo / ".humanize/evidence.json").read_text())
    assert facts["format"] == "humanize.evidence"
    assert [c["argv"] for c in facts["commands"]] == [["/opt/kp/bin/kernelpilot", "gate", "--json"]]
    assert proc.git(repo, "check-ignore", "-q", ".humanize/evidence.json", check=False).code == 0


def test_the_empty_ledgers_are_what_the_ledger_renders(repo: Path) -> None:
    """Breaks if a new repo already differs from its own views."""
    rows, faults = ledger.load((repo / ledger.LINEAGE_PATH).read_bytes())
    assert (rows, faults) == ((), ())
    for path, text in ledger.views((), {}, ()).items():
        assert (repo / path).read_text() == text
    assert ledger.load_ideas(repo) == ()


def test_the_example_resolves_and_its_sizes_are_what_a_cpu_can_time(repo: Path) -> None:
    """Breaks if the built-in cases leave the contract, or a case takes too long or too short on one core."""
    made = contract.parse((repo / "contract.toml").read_bytes(), at="c")
    cases = contract.parse_cases((repo / "workloads/cases.jsonl").read_bytes(), made, at="w")
    jobs = [resolve(made, c) for c in (*cases, *contract.edges(made, cases))]
    timed = [j for j in jobs if j.timed]
    assert len(timed) == 6
    assert all(128 * 1024 <= j.axes["M"] * j.axes["N"] <= 400 * 1024 for j in timed)
    assert [t.role for t in jobs[0].tensors] == ["in", "inout", "static", "out", "scalar"]
    assert sum(j.held_out for j in jobs) == 2


def test_reference_and_baseline_agree_and_are_right(repo: Path) -> None:
    """Breaks if the built-in baseline computes something else than the reference, or either forgets eps or weight."""
    ref, entry = function(repo / "reference.py", "ref"), function(repo / "baseline/candidate.py", "entry")
    x, residual = np.array([[1.0, 2.0]]), np.array([[2.0, 2.0]])
    weight = np.array([1.0, 10.0])
    total, want = ref(x=x, residual=residual, weight=weight, eps=0.5)
    # total = (3, 4); mean square 12.5; with eps 13; y = total / sqrt(13) * weight
    np.testing.assert_allclose(total, [[3.0, 4.0]])
    np.testing.assert_allclose(want, [[0.8320502943378437, 11.094003924504583]], rtol=1e-15)
    out = np.full((1, 2), np.nan)
    assert entry(x=x, residual=residual, weight=weight, out=out, eps=0.5) is None
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(residual, [[3.0, 4.0]])


def test_research_headings_are_the_ones_that_are_checked(repo: Path) -> None:
    """Breaks if the file asks for other sections than the gate looks for."""
    text = (repo / "artifacts/research-digest.md").read_text()
    assert tuple(line[3:] for line in text.splitlines() if line.startswith("## ")) == scaffold.RESEARCH_SECTIONS


def test_the_thin_scripts_call_the_referee(repo: Path, tmp_path: Path) -> None:
    """Breaks if tests or benchmarks in the repo decide anything themselves, or swallow the referee's answer."""
    fake = tmp_path / "kernelpilot"
    fake.write_text('#!/bin/sh\necho "$@" >> "$PWD/called.txt"\n[ "$1" != verify ]\n')
    fake.chmod(0o755)
    scaffold.write_evidence(repo, fake)
    asked = subprocess.run([sys.executable, "benchmarks/bench.py", "--tier", "screen"], cwd=repo, check=False)
    assert asked.returncode == 0
    test = subprocess.run(
        [sys.executable, "tests/test_correctness.py"], cwd=repo, check=False, capture_output=True, text=True
    )
    assert test.returncode == 1
    assert "AssertionError" in test.stderr
    assert (repo / "called.txt").read_text() == "bench --tier screen\nverify\n"


@pytest.mark.parametrize(
    "path", ["bindings/README.md", "reference.py", "baseline/candidate.py", "artifacts/lineage.jsonl"]
)
def test_a_missing_file_is_named(repo: Path, path: str) -> None:
    """Breaks if the repo passes for whole without one of its files."""
    (repo / path).unlink()
    assert [(f.where, f.what) for f in scaffold.check(repo)] == [(path, "missing")]


def test_other_damage_is_named(repo: Path) -> None:
    """Breaks if an untracked file, a tracked loop folder or a broken contract passes."""
    proc.git(repo, "rm", "-q", "--cached", "bindings/README.md")
    proc.git(repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x")
    (repo / ".gitignore").write_text("*.so\n")
    assert [(f.where, f.what) for f in scaffold.check(repo)] == [
        ("bindings/README.md", "not committed"),
        (".gitignore", ".humanize is not ignored"),
    ]
    (repo / "contract.toml").write_text("format = 3\n")
    assert [f.where for f in scaffold.check(repo)] == ["contract.toml"]
    (repo / "contract.toml").unlink()
    assert "kernelpilot scaffold" in scaffold.check(repo)[0].fix


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    """Breaks if a user's file could be overwritten."""
    place = tmp_path / "mine"
    place.mkdir()
    (place / "notes.txt").write_text("keep")
    with pytest.raises(Refused, match="not empty"):
        scaffold.make(scaffold.example(task="t"), place, kernelpilot=TOOL)
    assert [p.name for p in place.iterdir()] == ["notes.txt"]
    with pytest.raises(Refused, match="not a folder"):
        scaffold.make(scaffold.example(task="t"), place / "notes.txt", kernelpilot=TOOL)


def test_an_empty_folder_and_new_parents_are_fine(tmp_path: Path) -> None:
    """Breaks if ``mkdir d && kernelpilot scaffold d`` is refused."""
    (tmp_path / "empty dir").mkdir()
    for place in (tmp_path / "empty dir", tmp_path / "a/b/c"):
        assert scaffold.check(scaffold.make(scaffold.example(task="t"), place, kernelpilot=TOOL).path) == []


def test_the_folder_one_stands_in_stays_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if ``cd d && kernelpilot scaffold .`` leaves the shell in a deleted folder."""
    place = tmp_path / "here"
    place.mkdir()
    before = place.stat().st_ino
    monkeypatch.chdir(place)
    assert scaffold.make(scaffold.example(task="t"), Path(), kernelpilot=TOOL).path == place
    assert place.stat().st_ino == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["here", "home"]
    assert scaffold.check(place) == []


def test_nesting_is_refused_unless_allowed(repo: Path) -> None:
    """Breaks if a repo ends up inside another one by accident."""
    with pytest.raises(Refused, match="inside another git repository"):
        scaffold.make(scaffold.example(task="t"), repo / "inner/deep", kernelpilot=TOOL)
    assert not (repo / "inner").exists()
    made = scaffold.make(scaffold.example(task="t"), repo / "inner/deep", kernelpilot=TOOL, parent_ok=True)
    assert proc.toplevel(made.path) == made.path


def test_without_git_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if a missing program leaves a half-made repo."""
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with pytest.raises(ToolMissing, match="git was not found"):
        scaffold.make(scaffold.example(task="t"), tmp_path / "x/y", kernelpilot=TOOL)
    assert not (tmp_path / "x").exists()


def test_a_failure_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if an interrupted scaffold must be cleaned up by hand."""

    def refuse(*_: object) -> str:
        raise KernelPilotError("disk full")

    monkeypatch.setattr(proc, "commit", refuse)
    with pytest.raises(KernelPilotError, match="disk full"):
        scaffold.make(scaffold.example(task="t"), tmp_path / "p/q", kernelpilot=TOOL)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home"]


def test_a_users_global_ignore_file_does_not_thin_the_repo(tmp_path: Path, bare_home: Path) -> None:
    """Breaks if ``artifacts/`` in a global ignore file silently keeps the ledgers out of the commit."""
    (bare_home / ".config/git").mkdir(parents=True)
    (bare_home / ".config/git/ignore").write_text("artifacts/\n*.md\n")
    made = scaffold.make(scaffold.example(task="t"), tmp_path / "repo", kernelpilot=TOOL)
    assert "artifacts/attempt-ledger.md" in proc.git_out(made.path, "ls-files").splitlines()


REQUEST = """\
task = {name = "scale", op = "act"}
target = {gpu = "cpu", speedup = 1.3}
axes = {N = {var = [1, 100000]}}
reference = "ref_impl.py:truth"
baseline = "slow"
[tensors]
x = {role = "in", dtype = "f32", shape = ["N"]}
y = {role = "out", dtype = "f32", shape = ["N"]}
[[cases]]
case_id = "n4096"
axes = {N = 4096}
"""


def test_a_request_file_brings_its_own_reference_and_baseline(tmp_path: Path) -> None:
    """Breaks if paths are taken relative to the working directory, or a file of the baseline is lost."""
    here = tmp_path / "req"
    (here / "slow/csrc").mkdir(parents=True)
    (here / "ref_impl.py").write_text("def truth(*, x): return x * 2\n")
    (here / "slow/candidate.py").write_text("def entry(*, x, y): y[...] = x * 2\n")
    (here / "slow/csrc/k.c").write_text("int k;\n")
    made = scaffold.parse_request(REQUEST.encode(), str(here / "request.toml"))
    done = scaffold.make(made, tmp_path / "repo", kernelpilot=TOOL)
    assert done.todo == ()
    assert (done.path / "baseline/csrc/k.c").read_text() == "int k;\n"
    assert (done.path / "reference.py").read_text().startswith("def truth")
    kept = contract.parse((done.path / "contract.toml").read_bytes(), at="c")
    assert (kept.reference.fn, kept.baseline[0].fn) == ("reference.py:truth", "baseline/candidate.py:entry")
    assert kept.target.speedup == 1.3


def test_a_request_without_code_gets_stubs_that_say_so(tmp_path: Path) -> None:
    """Breaks if a stub could be measured as if it were a reference."""
    text = REQUEST.replace('reference = "ref_impl.py:truth"\n', "").replace('baseline = "slow"\n', "")
    done = scaffold.make(
        scaffold.parse_request(text.encode(), str(tmp_path / "r.toml")), tmp_path / "repo", kernelpilot=TOOL
    )
    assert done.todo == ("reference.py", "baseline/candidate.py")
    with pytest.raises(NotImplementedError, match="write the reference"):
        function(done.path / "reference.py", "ref")(x=1)
    with pytest.raises(NotImplementedError, match="write the baseline"):
        function(done.path / "baseline/candidate.py", "entry")(x=1, y=2)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"ref_impl.py:truth"', '"gone.py"', "reference = 'gone.py': no such file"),
        ('"slow"', '"gone"', "baseline = 'gone': want a folder that holds candidate.py"),
        ("N = 4096", "N = 0", "n4096: axes.N = 0: the contract allows 1 to 100000"),
        ("case_id", "case", "cases[0]: unknown field: case = "),
        ("[[cases]]", "[cases]", "want [[cases]] tables"),
        ("speedup", "speed", "unknown field: target.speed"),
    ],
)
def test_bad_requests(tmp_path: Path, old: str, new: str, why: str) -> None:
    """Breaks if a request is taken with a part of it ignored."""
    (tmp_path / "ref_impl.py").write_text("")
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/candidate.py").write_text("")
    with pytest.raises(BadRecord) as caught:
        scaffold.parse_request(REQUEST.replace(old, new).encode(), str(tmp_path / "r.toml"))
    assert why in caught.value.what
    file = tmp_path / "r.toml"
    assert caught.value.fix == f'"${{EDITOR:-vi}}" {file}  # then: kernelpilot scaffold DIR --request {file}'


def test_a_baseline_of_almost_that_name_is_no_stub(tmp_path: Path) -> None:
    """Breaks when a misspelt file is passed over and a stub stands where it should."""
    (tmp_path / "baseline").mkdir()
    (tmp_path / "baseline/liger.py").write_text("def entry(*, x, y): pass\n")
    line = '[[baseline]]\nid = "liger"\nfn = "baseline/%s.py:entry"\n'
    text = REQUEST.replace('reference = "ref_impl.py:truth"\n', "").replace('baseline = "slow"\n', "")

    def todo(name: str) -> tuple[str, ...]:
        request = scaffold.parse_request((text + line % name).encode(), str(tmp_path / "r.toml"))
        return scaffold.content.todo(request)

    with pytest.raises(BadRecord) as caught:
        todo("ligr")
    assert 'fn = "baseline/ligr.py": no such file (did you mean baseline/liger.py?)' in caught.value.what
    assert todo("liger") == ("reference.py",)
    assert todo("other_name") == ("reference.py", "baseline/other_name.py")


def test_flags_that_no_contract_may_hold() -> None:
    """Breaks if a bad flag is found only after the repo stands."""
    with pytest.raises(BadRecord, match=r"--task = "):
        scaffold.example(task="two words")
    with pytest.raises(BadRecord, match=r"--speedup = "):
        scaffold.example(task="t", speedup=1.0)
    with pytest.raises(Refused, match="no built-in task for op 'gemm'"):
        scaffold.example(task="t", op="gemm")
