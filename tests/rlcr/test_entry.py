"""The ways into and out of a loop: skip-impl, stop, cancel by name, UNEXPECTED, the shell function, links."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rlcr.options import DROPPED, IDLE
from tests.rlcr.real import CANCEL, PLAN, RLCR, ROOT, SETUP, Real

SESSION_CANCEL = ROOT / "scripts" / "cancel-rlcr-session.sh"


def on_a_branch(real: Real) -> str:
    """Work on a branch of its own and a reviewer; the commit at which the branch began."""
    real.reviewer()
    base = real.git("rev-parse", "HEAD")
    real.git("switch", "-q", "-c", "side")
    real.commit("b.txt", "new")
    return base


def skip(real: Real, *more: str, plan: str = "") -> subprocess.CompletedProcess[str]:
    return real.setup("--skip-impl", "--reviewer", "codex", *more, plan=plan)


def parked(worked: Real) -> None:
    worked.answer(passed=False)
    for n in range(3):
        worked.stop(f"m{n}")
    assert worked.at == ("PARKED", 0)


def broken_line(real: Real) -> None:
    path = real.loop / "journal.jsonl"
    path.write_text(path.read_text().replace('"max":84', '"max":85'))


def test_skip_impl_needs_no_plan_and_begins_with_the_code_review(real: Real) -> None:
    base = on_a_branch(real)
    real.answer(met=True)
    done = skip(real)
    assert done.returncode == 0, done.stderr
    assert "SKIP-IMPL MODE" in done.stdout and "\nPlan: none\n" in done.stdout
    first = real.lines()[0]
    head = real.git("rev-parse", "HEAD")
    assert (first["phase"], first["head"]) == ("CODE_REVIEW", head) and head != base
    data = first["data"]
    assert (data["skip_impl"], data["start_commit"], data["base_commit"]) == (True, head, base)
    assert (data["base_branch"], data["plan"], data["plan_sha256"]) == ("main", "", "")
    real.reviews("continue", "Off by one.")
    said = real.stop()
    assert "Off by one." in said["reason"] and real.at == ("CODE_REVIEW", 1), "no summary, no commit was asked for"
    real.work(1)
    real.reviews("complete")
    real.stop("fixed")
    assert real.at == ("FINALIZE", 1)
    (real.loop / "finalize-summary.md").write_text("# Finalize summary\n\nall made\n")
    assert "COMPLETE" in real.stop("final")["systemMessage"]


def test_skip_impl_with_a_plan_holds_the_work_to_it(real: Real) -> None:
    on_a_branch(real)
    assert skip(real, plan=PLAN).returncode == 0
    (real.repo / PLAN).write_text("# Other\n")
    assert "the plan was changed" in real.stop()["reason"]


def test_skip_impl_refuses_what_cannot_be_reviewed(real: Real) -> None:
    def refused(words: str, *more: str) -> None:
        done = skip(real, *more)
        assert (done.returncode, done.stdout) == (1, "") and words in done.stderr, done.stderr
        assert not real.registered

    real.reviewer()
    refused("--skip-impl: nothing lies between the base branch main and HEAD")
    refused("--reviewer evidence-only has none", "--reviewer", "evidence-only")
    refused("No plan file provided, which --track-plan-file is about", "--track-plan-file")
    real.git("switch", "-q", "-c", "side")
    real.git("commit", "-q", "--allow-empty", "-m", "nothing")
    refused("nothing lies between the base branch main and HEAD")
    real.commit("b.txt", "new")
    refused("there is no local branch other", "--base-branch", "other")
    refused("nothing lies between the base branch side and HEAD", "--base-branch", "side")
    real.git("switch", "-q", "--orphan", "lone")
    real.commit(".gitignore", ".humanize*\n")
    refused("no commit in common", "--base-branch", "main")
    # Without a client the command that is offered instead is whole as it stands.
    real.git("switch", "-q", "side")
    done = real.run(SETUP, "--skip-impl", "--session-id", "x")
    assert done.returncode == 1 and " PLAN" not in done.stderr


def test_every_flag_of_the_reference_is_known(real: Real) -> None:
    assert set(DROPPED) == {
        "--agent-teams", "--privacy", "--push-every-round", "--allow-empty-bitlesson-none",
        "--require-bitlesson-entry-for-none",
    }  # fmt: skip
    for flag, why in DROPPED.items():
        done = real.setup(flag)
        assert (done.returncode, done.stdout) == (1, "") and done.stderr == f"Error: {flag} is not supported: {why}\n"
    assert set(IDLE) == {"--yolo", "--skip-quiz", "--claude-answer-codex"}
    done = real.setup("--skip-quiz", "--claude-answer-codex")
    assert done.returncode == 0
    for flag in IDLE:
        assert f"Note: {flag} has no meaning here" in done.stdout


def test_a_configuration_file_is_not_ignored_in_silence(real: Real) -> None:
    (real.repo / ".humanize" / "config.json").write_text('{"codex_model": "m"}')
    (real.home / ".config" / "humanize").mkdir(parents=True)
    (real.home / ".config" / "humanize" / "config.json").write_text("{}")
    done = real.setup()
    assert done.returncode == 0
    for path in (real.repo / ".humanize/config.json", real.home / ".config/humanize/config.json"):
        assert f"Note: {path} is not read: model, effort and timeout are flags here\n" in done.stdout
    assert "config.json" not in real.run(SETUP, "--help").stdout.partition("Not supported")[0]


def test_set_up_says_what_it_could_not_see(real: Real, elsewhere: Path) -> None:
    bin_dir = elsewhere / "tools"
    bin_dir.mkdir()
    said = real.setup().stdout
    assert "trusted was not verified here" in said and "rlcr-stop-gate.sh" in said
    assert ("(kernelpilot doctor)" in said) == bool(shutil.which("kernelpilot", path=real.env["PATH"]))
    assert real.run(CANCEL).returncode == 0
    (bin_dir / "kernelpilot").write_text("#!/bin/sh\n")
    (bin_dir / "kernelpilot").chmod(0o755)
    real.reviewer()
    real.env["PATH"] = f"{bin_dir}:{real.env['PATH']}"
    said = real.setup("--reviewer", "codex").stdout
    assert "(kernelpilot doctor)" in said and "whether the reviewer codex answers" in said


@pytest.mark.parametrize("words", [(), ("--why", ""), ("--why", " - "), ("--why", "<reason>"), ("--why", "TEXT")])
def test_stop_wants_a_reason(looped: Real, words: tuple[str, ...]) -> None:
    done = looped.run(RLCR, "stop", *words)
    assert done.returncode == 3 and "say why" in done.stderr and looped.at == ("BUILD", 0)


def test_stop_ends_the_loop_and_keeps_what_it_reached(worked: Real) -> None:
    done = worked.run(RLCR, "stop", "--why", "good enough: 1.8 x")
    assert (done.returncode, done.stdout) == (0, f"STOPPED\n{worked.loop}\n"), done.stderr
    assert worked.at == ("STOP", 0) and not worked.registered
    (state,) = worked.loop.glob("*state.md")
    assert state.name == "stop-state.md" and 'exit_reason: "user: good enough: 1.8 x"' in state.read_text()
    assert "was stopped: good enough: 1.8 x" in worked.stop()["systemMessage"] and worked.stop("m") == {}
    done = worked.run(RLCR, "stop", "--why", "once more")
    assert (done.returncode, done.stdout.split("\n")[0]) == (1, "NO_ACTIVE_LOOP")


def test_stop_of_a_parked_loop_and_of_a_broken_one(worked: Real) -> None:
    parked(worked)
    assert worked.run(RLCR, "stop", "--why", "enough").returncode == 0
    assert worked.at == ("STOP", 0) and (worked.loop / "stop-state.md").exists()
    shutil.rmtree(worked.loop)
    assert worked.setup().returncode == 0
    broken_line(worked)
    done = worked.run(RLCR, "stop", "--why", "enough")
    assert done.returncode == 3 and "cancel it" in done.stderr and worked.registered


def test_cancel_by_the_name_of_the_folder(looped: Real, elsewhere: Path) -> None:
    name = looped.loop.name

    def go(*words: str | Path) -> tuple[int, str]:
        done = looped.run(SESSION_CANCEL, *words)
        return done.returncode, done.stdout.split("\n")[0] or done.stderr

    assert go()[0] == go("--session-id")[0] == go("--session-id", "../x")[0] == 3
    assert go("--session-id", "2020-01-01_00-00-00") == (1, "NO_ACTIVE_LOOP")
    assert go("--session-id", name, "--project", elsewhere) == (1, "NO_ACTIVE_LOOP")
    repo, looped.repo = looped.repo, elsewhere
    assert go("--session-id", name) == (1, "NO_ACTIVE_LOOP")
    assert go("--session-id", name, "--project", repo) == (0, "CANCELLED")
    looped.repo = repo
    assert looped.at == ("CANCEL", 0) and not looped.registered
    assert go("--session-id", name) == (1, "NO_ACTIVE_LOOP")
    assert looped.run(SESSION_CANCEL, "--help").stdout.startswith("USAGE: cancel-rlcr-session.sh --session-id NAME")


def test_cancel_by_name_in_finalize(worked: Real) -> None:
    worked.answer(met=True)
    worked.stop()
    words = (SESSION_CANCEL, "--session-id", worked.loop.name)
    done = worked.run(*words)
    assert (done.returncode, done.stdout.split("\n")[0]) == (2, "FINALIZE_NEEDS_CONFIRM")
    done = worked.run(*words, "--force")
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, "CANCELLED_FINALIZE")


@pytest.mark.parametrize("point", ["", "bury.state", "bury.registry"])
def test_a_loop_that_cannot_be_continued_is_laid_down_as_unexpected(worked: Real, point: str) -> None:
    edited = (worked.loop / "journal.jsonl").read_text().splitlines()
    edited[2] = edited[2].replace('"round":0', '"round":1')
    (worked.loop / "journal.jsonl").write_text("\n".join(edited) + "\n")
    broken = (worked.loop / "journal.jsonl").read_bytes()
    if point:
        assert worked.run(CANCEL, crash=point).returncode == -9
    done = worked.run(CANCEL)
    first, second, third = done.stdout.splitlines()
    kept = worked.loop / "journal.jsonl.broken"
    assert (done.returncode, first, third) == (0, "CANCELLED", str(worked.loop)), done.stderr
    assert second.startswith("UNEXPECTED: journal.jsonl:3: ") and second.endswith(f"is kept as {kept}")
    assert kept.read_bytes() == broken and not worked.registered
    (state,) = worked.loop.glob("*state.md")
    text = state.read_text()
    assert state.name == "unexpected-state.md" and "phase: UNEXPECTED\n" in text
    assert 'exit_reason: "unexpected: journal.jsonl:3: ' in text and "max_iterations: 84\n" in text
    assert "was laid down, unexpected: " in worked.stop()["systemMessage"]
    assert worked.stop("m") == {} and worked.run(CANCEL).returncode == 1
    assert worked.setup().returncode == 0


@pytest.mark.parametrize("point", ["", "bury.state", "bury.registry"])
def test_a_loop_of_which_nothing_can_be_read_is_laid_down_too(looped: Real, point: str) -> None:
    (looped.loop / "journal.jsonl").write_text("{}\n")
    if point:
        assert looped.run(CANCEL, crash=point).returncode == -9
    done = looped.run(CANCEL)
    assert (done.returncode, done.stdout.split("\n")[0]) == (0, "CANCELLED"), done.stdout + done.stderr
    (state,) = looped.loop.glob("*state.md")
    assert state.name == "unexpected-state.md" and "phase: UNEXPECTED\n" in state.read_text()
    assert not looped.registered and looped.run(CANCEL).returncode == 1


def test_the_driver_is_loaded_only_when_it_is_asked_for(real: Real) -> None:
    done = real.run(RLCR, "drive", "--help")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("USAGE: rlcr drive")
    clone = real.base / "clone"
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns("__pycache__", "drive*.py"))
    assert real.run(clone / "scripts" / "rlcr", "status").returncode == 1
    done = real.run(clone / "scripts" / "rlcr", "drive", "--agent", "codex")
    assert done.returncode == 3 and "the driver is missing from this copy" in done.stderr
