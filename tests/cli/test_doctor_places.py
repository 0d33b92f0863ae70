"""``kernelpilot doctor`` on worktree, bundle and machine: commits, placeholders, nested skills, counters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kernelpilot_helpers.cli import doctor_command
from kernelpilot_install.doctor import Spot, commits, leftover, machine
from tests.doctor_sim import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = make_world(tmp_path)
    made.install()
    return made


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    (folder / name).chmod(0o755)


def test_the_doctor_asks_all(world: World) -> None:
    """Breaks if a check is written and never called."""
    found = {c.name: c.status for c in world.look()}
    assert found["nested-skills"] == found["placeholders"] == found["commit"] == "ok"


def test_a_skill_inside_a_skill_fails(world: World) -> None:
    """Breaks when a SKILL.md that Codex lists as a skill of its own goes unseen, in the clone or in a copy."""
    assert world.ask(leftover.nested).status == "ok"
    inner = world.clone / "skills" / "alpha" / "vendor" / "beta"
    inner.mkdir(parents=True)
    (inner / "SKILL.md").write_text("", encoding="utf-8")
    (world.clone / "vendor" / "humanize" / "SKILL.md").write_text("", encoding="utf-8")
    copy = world.home / ".codex" / "skills" / "alpha"
    copy.unlink()
    (copy / "old").mkdir(parents=True)
    for path in (copy / "SKILL.md", copy / "old" / "SKILL.md"):
        path.write_text("", encoding="utf-8")
    hidden = world.clone / "skills" / "alpha" / ".git" / "SKILL.md"
    hidden.parent.mkdir()
    hidden.write_text("", encoding="utf-8")
    said = world.ask(leftover.nested)
    assert said.status == "fail"
    for path in (inner, world.clone / "vendor" / "humanize", copy / "old"):
        assert str(path / "SKILL.md") in said.what
    assert str(hidden) not in said.what and f"{copy / 'SKILL.md'}" not in said.what.split(", ")
    subprocess.run(["sh", "-c", said.fix], check=True)
    assert world.ask(leftover.nested).status == "ok"
    assert (copy / "SKILL.md").is_file() and (world.clone / "skills" / "alpha" / "SKILL.md").is_file()


def test_a_worktree_that_cannot_be_committed_to_fails(world: World, tmp_path: Path) -> None:
    """Breaks when a sandbox's read-only .git is found out only after the first round's work."""
    assert "not in a repository" in world.ask(commits.possible).what
    subprocess.run(["git", "init", "-q", str(world.folder)], check=True)
    before = world.tree()
    assert world.ask(commits.possible).status == "ok"
    assert world.tree() == before
    lock = world.folder / ".git" / "index.lock"
    lock.write_text("", encoding="utf-8")
    said = world.ask(commits.possible)
    assert said.status == "fail" and str(lock) in said.what and said.fix.startswith("rm ")
    lock.unlink()
    program(tmp_path / "bin", "git", '#!/bin/sh\necho .git\necho "/proc"\n')
    world.env["PATH"] = f"{tmp_path / 'bin'}:{world.env['PATH']}"
    said = world.ask(commits.possible)
    assert said.status == "fail" and "/proc cannot be written" in said.what
    assert "Codex" not in said.what
    world.env["CODEX_THREAD_ID"] = "t"
    said = world.ask(commits.possible)
    assert "workspace-write" in said.what
    assert f"codex -C {world.folder.parent}" in said.fix.replace("'", "")
    assert "danger-full-access" in said.fix


def test_placeholders_of_repo_and_bundle(world: World) -> None:
    """Breaks when an unwritten part is called done; before the lock it is work ahead, no fault."""
    assert world.ask(leftover.placeholders).status == "ok"
    spot = Spot(where="reference.py", what="still a stub", fix="F")
    said = world.ask(leftover.placeholders, placeholders=(spot,))
    assert (said.status, said.what, said.fix) == ("warn", "reference.py: still a stub", "F")
    late = Spot(where="reference.py", what="still a stub", fix="F", grave=True)
    assert world.ask(leftover.placeholders, placeholders=(late,)).status == "fail"
    skill = world.clone / "skills" / "alpha" / "SKILL.md"
    skill.write_text("---\nname: alpha\n---\nrun {{ROOT}}/x\n", encoding="utf-8")
    said = world.ask(leftover.placeholders)
    assert said.status == "fail" and f"{skill} still holds {{{{ROOT}}}}" in said.what


CONTRACT = """\
format = "kernelpilot.contract"
version = 1
task = {name = "t", op = "norm", summary = "%s"}
target = {gpu = "cpu", speedup = 1.10}
axes = {M = {var = [1, 4096]}}
reference = {fn = "reference.py:ref"}
baseline = [{id = "eager", fn = "baseline/candidate.py:entry"}]
[tensors]
x = {role = "in", dtype = "float32", shape = ["M"]}
out = {role = "out", dtype = "float32", shape = ["M"]}
"""


def asked(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HOME", str(home))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = CliRunner().invoke(doctor_command.command, ["--repo", str(folder), "--json"], standalone_mode=False)
    (found,) = [c for c in json.loads(done.output)["checks"] if c["name"] == "placeholders"]
    assert set(found) == {"name", "status", "what", "fix"}
    return dict(found)


def test_the_command_finds_them_in_contract_stub_plan_and_report(tmp_path: Path, monkeypatch: Any) -> None:
    """Breaks when the doctor and the gate disagree on what was never written."""
    home, repo = tmp_path / "home", tmp_path / "repo"
    for folder in (home, repo / "baseline", repo / ".humanize" / "kernel-agent", repo / "artifacts"):
        folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    assert asked(repo, home, monkeypatch)["status"] == "ok"
    (repo / "contract.toml").write_text(CONTRACT % "<what it computes>", encoding="utf-8")
    said = asked(repo, home, monkeypatch)
    assert said["status"] == "warn"
    assert said["what"] == 'contract.toml: placeholder task.summary = "<what it computes>"'
    (repo / "contract.toml").write_text(CONTRACT % "a sum", encoding="utf-8")
    assert asked(repo, home, monkeypatch)["status"] == "ok"
    stub = 'def ref(*, x):\n    raise NotImplementedError("write the reference: what is correct")\n'
    (repo / "reference.py").write_text(stub, encoding="utf-8")
    plan, final = repo / ".humanize" / "kernel-agent" / "refined-plan.md", repo / "artifacts" / "FINAL.md"
    plan.write_text("# Plan\n\nTBD\n", encoding="utf-8")
    final.write_text("# {{TITLE}}\n", encoding="utf-8")
    (repo / "artifacts" / "contract.lock.json").write_text("{}", encoding="utf-8")
    said = asked(repo, home, monkeypatch)
    assert said["status"] == "fail"
    assert "reference.py: still a stub" in said["what"]
    assert ".humanize/kernel-agent/refined-plan.md:3: still holds TBD" in said["what"]
    assert "artifacts/FINAL.md:1: still holds {{TITLE}}" in said["what"]


@pytest.mark.parametrize(
    ("driver", "status", "want"),
    [
        ("RmProfilingAdminOnly: 1\n", "CapEff:\t00000000a80425fb\n", "warn"),
        ("RmProfilingAdminOnly: 1\n", "CapEff:\t000001ffffffffff\n", "ok"),
        ("RmProfilingAdminOnly: 0\n", "CapEff:\t0000000000000000\n", "ok"),
    ],
)
def test_counters_that_the_driver_keeps_closed(
    world: World, tmp_path: Path, monkeypatch: Any, driver: str, status: str, want: str
) -> None:
    """Breaks when root in a container, who has no right to the counters, is sent into ERR_NVGPUCTRPERM."""
    for name, text in (("DRIVER", driver), ("STATUS", status)):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        monkeypatch.setattr(machine, name, path)
    program(tmp_path / "bin", "ncu", "#!/bin/sh\necho Version 2026.1.0.0\n")
    world.env["PATH"] = f"{tmp_path / 'bin'}:{world.env['PATH']}"
    said = world.ask(machine.ncu)
    assert said.status == want
    if want == "warn":
        for word in ("ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers", "can still be digested"):
            assert word in said.what
        assert "sudo tee /etc/modprobe.d/" in said.fix and "--cap-add=SYS_ADMIN" in said.fix
        assert subprocess.run(["sh", "-n", "-c", said.fix], check=False).returncode == 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("/x|2.1|2.13.0", "has numpy 2.1 and torch 2.13.0"),
        ("/x|2.1|", "has numpy 2.1, no torch: tasks on numpy arrays only"),
        ("/x||2.13.0", "has torch 2.13.0"),
    ],
)
def test_the_tasks_frameworks(world: World, tmp_path: Path, answer: str, words: str) -> None:
    """Breaks when a Python without torch is not told from one with it."""
    program(tmp_path / "bin", "python", f"#!/bin/sh\necho '{answer}'\n")
    said = world.ask(machine.task_python, task_argv=(str(tmp_path / "bin" / "python"),))
    assert said.status == "ok" and said.what.endswith(words)


def test_the_probe_reads_a_version_without_importing_torch(tmp_path: Path) -> None:
    """Breaks when the doctor waits for torch's import, or misses a torch beside numpy."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    (tmp_path / "torch-2.13.0.dist-info").mkdir()
    (tmp_path / "torch-2.13.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.13.0\n", encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.modules['numpy'] = None\n{machine.PROBE}"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().split("|")[1:] == ["", "2.13.0"]
