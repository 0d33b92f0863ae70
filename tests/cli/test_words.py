"""What a newcomer reads first: the verdict, what is wrong and where, what lies ahead, and the next command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import __main__ as boundary
from kernelpilot_helpers import cli
from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Died, Event, Raw
from kernelpilot_helpers.cli import common, lock_command, scratch_output
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.referee import floor, scratch
from kernelpilot_helpers.referee.scratch import Mode
from tests.referee_sim import clock, locked_repo

TRACE = """Traceback (most recent call last):
  File "/c/kernelpilot_runtime/worker.py", line 175, in run
    entry(**kwargs)
  File "/r/.kernelpilot/scratch/try-0001/arms/B/candidate.py", line 2, in entry
    raise ValueError("my bug")
ValueError: my bug
"""


def look(repo: Path, lab: FakeLab, mode: Mode = "try") -> tuple[dict[str, Any], list[str]]:
    """The object and the lines of one look."""
    tried = scratch.run(repo, "fused", mode=mode, lab=lab, clock=clock)
    data = scratch_output.as_object(tried)
    return data, scratch_output.words(tried, data).splitlines()


def test_a_wrong_kernel_is_called_so_first_and_told_in_a_few_lines(repo: Path) -> None:
    """Breaks when a person must find the verdict in a dozen lines, or the cases are not named."""
    data, lines = look(repo, FakeLab(wrong="tail"))
    assert lines[0].startswith("WRONG fused: wrong.") and data["verdict"] == "WRONG"
    told = lines[1:-1]
    assert len(told) == 7 and all(line.startswith("  case ") for line in told[:6])
    hidden = int(told[6].split()[2])
    assert told[6] == f"  ... and {hidden} more: --json lists all" and hidden > 0
    assert all("case " in finding for finding in data["findings"])
    assert "not evidence" in lines[-1]


def test_one_offence_in_many_cases_is_one_line_that_names_the_key(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a library call is told once a case, or the key that allows it is not named."""
    expected = floor.expectation
    strict = {"library_calls": False}  # the built-in task allows them
    monkeypatch.setattr(floor, "expectation", lambda ws: msgspec.structs.replace(expected(ws), **strict))

    class Calls(FakeLab):
        def run(self, job: Job, workdir: Path) -> Raw:
            self.events = tuple(
                Event(arm="B", kind="policy.library_call", detail="multiply", case_id=case.case_id)
                for case in job.cases
            )
            return super().run(job, workdir)

    _, lines = look(repo, Calls())
    assert lines[0].startswith("WRONG fused: policy.library_call: multiply; ")
    told = [line for line in lines[1:] if "policy.library_call" in line]
    assert len(told) == 1 and " more: policy.library_call: multiply; " in told[0]
    assert "policy.library_calls = false in contract.toml" in told[0]


def test_a_crash_is_shown_once_with_the_users_frames(repo: Path) -> None:
    """Breaks when the runtime's frames hide the user's line, or the traceback comes twice."""
    _, lines = look(repo, FakeLab(died=Died(arm="B", stage="call", exit=1, log=TRACE)))
    assert lines[0].startswith("BROKEN fused: crash.exit: ")
    text = "\n".join(lines[1:])
    assert text.count("Traceback") == 1 and "worker.py" not in text and '"candidate.py", line 2' in text
    built, lines = look(repo, FakeLab(died=Died(arm="B", stage="build", log=TRACE)))
    text = "\n".join(lines[1:])
    assert built["verdict"] == "BROKEN" and text.count("Traceback") == 1 and "  the build failed:" in lines


@pytest.mark.parametrize(("mode", "word"), [("try", "CORRECT"), ("verify", "CORRECT"), ("build", "BUILT")])
def test_a_sound_kernel_is_called_so_first(repo: Path, mode: Mode, word: str) -> None:
    """Breaks when the first word of a good look is not its verdict."""
    data, lines = look(repo, FakeLab(speedup=1.2), mode)
    assert lines[0].startswith(f"{word} fused: ") and data["ok"] is True and data["verdict"] == word


@pytest.mark.parametrize(("speedup", "word"), [(0.88, "slower"), (1.4, "faster"), (1.02, ""), (0.98, "")])
def test_a_big_difference_in_a_try_is_called_a_look(repo: Path, speedup: float, word: str) -> None:
    """Breaks when AMBIGUOUS hides a kernel that is far off, or a look is told as if it were a verdict."""
    _, lines = look(repo, FakeLab(speedup=speedup))
    assert "AMBIGUOUS: " in lines[0]
    assert (f"; looks {word}; not evidence   [" in lines[0]) if word else ("looks" not in lines[0])


def test_a_bench_begins_with_the_word_of_its_figures(repo: Path) -> None:
    """Breaks when the word comes twice or not at all."""
    data, lines = look(repo, FakeLab(speedup=0.5), "bench")
    assert data["verdict"] == "REGRESSED"
    assert lines[0].startswith("REGRESSED fused: ") and lines[0].count("REGRESSED") == 1


def test_a_lock_on_a_busy_machine_warns(tmp_path: Path) -> None:
    """Breaks when a person learns only from the first verdict that none was possible."""

    class Busy(FakeLab):
        def run(self, job: Job, workdir: Path) -> Raw:
            self.noise = 0.4 if "time" in job.phases else 0.002
            return super().run(job, workdir)

    done = locked_repo(tmp_path / "r", Busy(seed=3))
    lines = lock_command.words(done).splitlines()
    (warning,) = [line for line in lines if line.startswith("  WARNING: ")]
    assert "floor.noise" in warning and "the next attempt measures it again" in warning
    data = lock_command.as_object(done)
    assert data["floor"]["fit"] is False and [f"  WARNING: {note}" for note in data["notes"]] == [warning]


def test_a_lock_on_a_quiet_machine_warns_of_nothing(tmp_path: Path) -> None:
    """Breaks when the warning is always there."""
    done = locked_repo(tmp_path / "r")
    assert "WARNING" not in lock_command.words(done) and lock_command.as_object(done)["notes"] == []


def test_scaffold_says_which_task_it_made_and_leads_a_gpu_target_to_its_lock(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when any --task NAME silently becomes the built-in example, or a GPU target is turned away."""
    assert boundary.main(["scaffold", str(tmp_path / "a"), "--task", "gemm", "--gpu", "H100", "--json"]) == 0
    out, err = capsys.readouterr()
    (example,) = json.loads(out)["notes"]
    assert example.startswith("gemm is the built-in example") and "kernelpilot scaffold DIR --request FILE" in example
    assert example in err
    then = json.loads(out)["next"]
    assert then == "kernelpilot plan"
    assert boundary.main(["next", "--repo", str(tmp_path / "a")]) == 0
    assert capsys.readouterr().out == f"{then}\n"


def test_scaffold_and_lock_close_with_what_next_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a command ends in another next step than the one that the evidence asks for."""
    monkeypatch.setattr(common, "local_lab", lambda _: FakeLab())
    repo = tmp_path / "a b"

    def says(*argv: str) -> list[str]:
        assert boundary.main([*argv]) == 0
        return capsys.readouterr().out.splitlines()

    assert says("scaffold", str(repo), "--task", "t")[-1] == f"  next: cd '{repo}' && kernelpilot plan"
    assert says("next", "--repo", str(repo)) == ["kernelpilot plan"]
    for argv in (("lock",), ("plan",), ("lock",)):
        last = says(*argv, "--repo", str(repo))[-1]
        (line,) = says("next", "--repo", str(repo))
        assert argv == ("plan",) or last == f"  next: {line}"
    assert line.endswith("setup-rlcr-loop.sh\" .humanize/kernel-agent/refined-plan.md --yolo --reviewer evidence-only "
                         "--session-id NAME")  # fmt: skip


def test_ctrl_c_names_the_next_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when an interrupted command leaves a person without a next step."""

    def stop(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.group, "main", stop)
    assert boundary.main(["attempt"]) == 130
    assert "kernelpilot ledger render" in capsys.readouterr().err
