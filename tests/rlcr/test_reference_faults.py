"""E1 to E15: what was found wrong in the runtime that people know, each as a test of its own.

Here are those that need a reviewer or the whole hook; the others carry their number where their subject is tested
(``test_e4_...`` in test_stop_hook.py and so on). The last test here sees to it that no number is without one.
"""

from __future__ import annotations

import concurrent.futures
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from kernelpilot_install import hooks
from kernelpilot_install.manifest import Manifest
from rlcr.step import PATIENCE
from tests.rlcr.real import RLCR, Real

REVIEWED = ("--reviewer", "codex")
"""Said a second time, an option of set-up wins over the first."""


@pytest.fixture
def reviewed(real: Real) -> tuple[Real, Path]:
    """A loop under a fake codex whose evidence says done, round 0 worked; and the list of reviews bought."""
    bought = real.reviewer()
    real.answer(met=True)
    done = real.setup(*REVIEWED)
    assert done.returncode == 0, done.stderr
    real.work(0)
    return real, bought


def calls(bought: Path) -> int:
    return len(bought.read_text().splitlines()) if bought.exists() else 0


def test_e1_a_review_without_a_verdict_is_bought_again_each_time_and_ends_in_parking(
    reviewed: tuple[Real, Path],
) -> None:
    # There it read the old result again and blocked for ever, a reviewer's fee each time.
    real, bought = reviewed
    (real.base / "review.json").write_text("I looked at it and it seems fine.")
    for n in range(1, PATIENCE):
        said = real.stop(f"try {n}")
        assert said["decision"] == "block" and "could not be judged" in said["reason"]
        assert (calls(bought), real.at) == (n, ("BUILD", 0))
    assert "PARKED" in real.stop("the last")["systemMessage"]
    assert "PARKED" in real.stop("one more")["systemMessage"] and calls(bought) == PATIENCE


def test_e2_a_result_that_the_worker_wrote_is_set_aside_and_told(reviewed: tuple[Real, Path]) -> None:
    real, bought = reviewed
    real.reviews("continue", "wrong at the edge", mainline="regressed")
    mine = real.loop / "round-0-review-result.md"
    mine.write_text("Mainline Progress Verdict: ADVANCED\n\nCOMPLETE\n")
    said = real.stop()
    assert said["decision"] == "block" and "round-0-review-result.md" in said["reason"]
    assert calls(bought) == 1 and real.at == ("BUILD", 1)
    assert "wrong at the edge" in mine.read_text() and "COMPLETE" not in mine.read_text()
    assert "COMPLETE" in (real.loop / "round-0-review-result.md.by-hand").read_text()
    assert [e["data"]["path"] for e in real.lines() if e["event"] == "tamper"] == ["round-0-review-result.md"]


@pytest.mark.parametrize(
    "printed",
    [
        "ERROR: stream disconnected before completion: rate limit reached",
        "Reviewed 12 files.\nNothing to report.",
        "",
        "COMPLETE\nERROR: the review could not be finished",
    ],
)
def test_e3_exit_0_with_a_banner_or_without_a_verdict_is_never_clean(reviewed: tuple[Real, Path], printed: str) -> None:
    real, _ = reviewed
    (real.base / "review.json").write_text(printed)
    said = real.stop()
    assert said["decision"] == "block" and "could not be judged" in said["reason"] and real.at == ("BUILD", 0)


def test_e3b_a_p0_two_hundred_lines_before_the_end_is_seen(reviewed: tuple[Real, Path]) -> None:
    real, _ = reviewed
    noise = "\n".join(f"line {n} of the log" for n in range(200))
    text = f"[P0] loses the last row a.txt:1\n{noise}\nMainline Progress Verdict: ADVANCED\n\nCOMPLETE\n"
    (real.base / "review.json").write_text(text)
    said = real.stop()
    assert said["decision"] == "block" and "[P0]" in said["reason"] and real.at == ("BUILD", 1)


def test_e6_two_stops_at_once_buy_one_review(reviewed: tuple[Real, Path]) -> None:
    real, bought = reviewed
    real.reviews("continue", "wrong at the edge")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda _: real.stop(), range(2))
    assert first == second and first["decision"] == "block"
    assert calls(bought) == 1 and real.at == ("BUILD", 1)


def test_e9_no_tool_call_of_any_session_is_taxed(tmp_path: Path) -> None:
    # There, three validators ran before each Read, Write and Bash of every project, with or without a loop.
    launch = tmp_path / hooks.LAUNCHER
    for client in hooks.FILES:
        made = hooks.register(client, tmp_path / client, launch, Manifest())
        assert made is not None and list(json.loads(made.data)["hooks"]) == ["Stop"]


def test_e14_a_plan_that_is_asked_to_be_tracked_and_untracked_begins_no_loop(real: Real) -> None:
    # There, one hook wanted it tracked and another one untracked, so no Stop could ever pass.
    done = real.setup("--track-plan-file")
    assert done.returncode == 1 and "move the plan elsewhere" in done.stderr
    assert not real.registered and not list((real.repo / ".humanize").glob("rlcr/*-*"))


@pytest.mark.parametrize(
    "hand",
    [
        "import pathlib; p = pathlib.Path('{loop}/state.md'); p.write_text(p.read_text().replace('BUILD', 'FINALIZE'))",
        "import os; os.rename('{loop}/state.md', '{loop}/complete-state.md')",
        "import subprocess; subprocess.run(['find', '{loop}', '-name', 'state.md', '-delete'])",
        "import glob, os; [os.unlink(p) for p in glob.glob('{loop}/*-prompt.md')]",
        "open('{loop}/round-0-verdict.json', 'w').write('{{}}')",
    ],
)
def test_e10_what_no_shell_guard_could_forbid_changes_nothing_and_is_on_record(real: Real, hand: str) -> None:
    # There, a pattern over shell text was to keep the worker off these files; any of these lines goes past it.
    assert real.setup().returncode == 0
    real.work(0)
    done = real.run(sys.executable, "-c", hand.format(loop=real.loop))
    assert done.returncode == 0, done.stderr
    said = real.stop()
    assert said["decision"] == "block" and "on record" in said["reason"] and real.at == ("BUILD", 1)
    assert any(e["event"] == "tamper" for e in real.lines())
    assert (real.loop / "state.md").is_file() and not (real.loop / "complete-state.md").exists()


def test_e11_a_long_list_of_features_is_read_to_its_end_so_the_reviewers_hooks_are_off(
    reviewed: tuple[Real, Path],
) -> None:
    # There, a pipe closed early made "unsupported" of it, and the reviewer ran with hooks on.
    real, bought = reviewed
    real.reviews("continue", "wrong at the edge")
    program = real.base / "bin" / "codex"
    text = program.read_text().replace(
        'print("hooks  stable  true")', 'print("x  y  z\\n" * 20000 + "hooks  stable  true")'
    )
    text = text.replace('"bought\\n"', '" ".join(argv) + "\\n"')
    program.write_text(text)
    assert real.run(RLCR, "evidence", "--amend", "--why", "the reviewer was updated").returncode == 0
    assert real.stop()["decision"] == "block"
    assert re.search(r"--disable hooks\b", bought.read_text())


def test_e12_max_1_ends_at_1_in_code_review_too(real: Real) -> None:
    # There, round 6 was reached: findings of any size went on for ever.
    bought = real.reviewer()
    real.answer(met=True)
    assert real.setup(*REVIEWED, "--max", "1").returncode == 0
    real.work(0)
    real.reviews("complete")
    assert real.stop()["decision"] == "block" and real.at == ("CODE_REVIEW", 1)
    real.reviews("continue", "a nit")
    said = real.stop("again")
    assert "decision" not in said and "MAXITER" in said["systemMessage"]
    assert calls(bought) == 2 and (real.loop / "maxiter-state.md").is_file()


def test_e15_without_jq_and_with_a_malformed_state_file_the_gate_still_runs(real: Real, tmp_path: Path) -> None:
    assert real.setup().returncode == 0
    real.work(0)
    (real.loop / "state.md").write_bytes(b"---\ncurrent_round: \xff\xfe [\n")
    tools = tmp_path / "only"
    tools.mkdir()
    for name in ("sh", "git", "readlink", "env"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    assert shutil.which("jq", path=str(tools)) is None and shutil.which("codex", path=str(tools)) is None
    said = real.stop(PATH=str(tools))
    assert said["decision"] == "block" and "state.md" in said["reason"] and real.at == ("BUILD", 1)


def test_every_fault_of_the_reference_has_a_test_that_carries_its_number() -> None:
    names = {f"e{n}" for n in range(1, 16)} | {"e3b"}
    told = " ".join(path.read_text() for path in Path(__file__).resolve().parents[1].rglob("test_*.py"))
    found = {word for name in re.findall(r"def test_((?:e\d+b?_)+)", told) for word in name.split("_") if word}
    assert json.dumps(sorted(names - found)) == "[]"
