"""What to do now, in one line; and the commands that print it: one JSON object and no traceback at any wall."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kernelpilot_helpers import gate
from kernelpilot_helpers.cli import gate_command, group
from kernelpilot_helpers.evidence.model import MISSING, CommitFacts, Evidence, TuningFacts
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.final_facts import FINAL_PATH
from kernelpilot_helpers.gate.final_rules import final_facts
from kernelpilot_helpers.gate.final_text import final_text
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.records import Fault
from tests.evidence_sim import BASELINE, GIT, GOOD, LOOP, TASK, decision, evidence, gain, git, row
from tests.tuning_sim import built, tuned

MAP = built(tuned("v001_fused"))
TABLE: Any = object()
HOLDS = TuningFacts(map=MAP, table=TABLE)

AT_BASELINE = {**GOOD.files, f"src/{TASK}/current": "baseline\n"}
UNTRIED = replace(
    GIT,
    commits=tuple(replace(c, trees={}) for c in GIT.commits),
    head_variants={},
    variants={},
    current_tree=BASELINE.tree,
)

NEXT: list[tuple[Evidence, str]] = [
    (evidence(tuning=HOLDS), "kernelpilot report --final"),
    (GOOD, "kernelpilot tune"),
    (evidence(tuning=TuningFacts(map=MAP)), "kernelpilot dispatch"),
    (evidence(rows=(BASELINE, row(vs_baseline=gain(1.05)))), "kernelpilot attempt"),
    (evidence(loop=None, files={k: v for k, v in GOOD.files.items() if "plan" not in k}), "kernelpilot plan"),
    (evidence(loop=None), '"$(kernelpilot root)/vendor/humanize/scripts/setup-rlcr-loop.sh"'),
    (git(nested=("x",)), "rm -rf x/.git  # rule 2, x: a repository inside"),
    (evidence(tuning=HOLDS, loop=replace(LOOP, phase="COMPLETE")), "kernelpilot report --final"),
    (evidence(tuning=HOLDS, loop=replace(LOOP, phase="FINALIZE")), "kernelpilot report --final"),
    (
        evidence(loop=replace(LOOP, phase="CANCEL"), rows=(BASELINE,), git=UNTRIED, files=AT_BASELINE),
        f"{facts.SETUP}  # the loop ended as CANCEL",
    ),
]


@pytest.mark.parametrize(("at", "says"), NEXT)
def test_next_is_one_line_that_says_what_to_do_now(at: Evidence, says: str) -> None:
    """Breaks when the order of the work changes, or the line is not one."""
    line = gate.next_step(at, gate.decide(at, POLICY, final=False))
    assert line.startswith(says) and "\n" not in line


def ended(phase: str) -> Evidence:
    """A task that nobody made faster, its stop decision and its inventory, in a loop of this phase."""
    wrong = row(verdict="WRONG", gain=None, vs_baseline=None, confirmed_by=None, status="rejected", reason="wrong.tail")
    base = {"version": "v000_baseline", "variant": "baseline", "tree": BASELINE.tree, "commit": BASELINE.commit}
    tried = tuple(msgspec.structs.replace(wrong, version=f"v00{n}_fused", round=n) for n in (1, 2))
    stop = decision("select: stop: the roof", **base)
    commit = CommitFacts(commit="d" * 40, paths=(FINAL_PATH,))
    history = replace(GIT, current_tree=BASELINE.tree, commits=(*GIT.commits, commit))
    e = evidence(rows=(BASELINE, *tried, stop), files=AT_BASELINE, loop=replace(LOOP, phase=phase), git=history)
    return replace(e, files={**AT_BASELINE, FINAL_PATH: final_text(final_facts(e, POLICY))})


def test_the_end_is_judged_by_the_rules_of_the_end() -> None:
    """Breaks when next says finished where gate --final blocks, or sends FINALIZE back to a round's summary."""

    def says(at: Evidence) -> str:
        return gate.next_step(at, gate.decide(at, POLICY, final=False))

    for phase, line in (
        ("COMPLETE", "finished: the loop is COMPLETE"),
        ("CANCEL", "finished: the loop is CANCEL"),
        ("BUILD", "write the round's summary, then stop"),
        ("FINALIZE", "write .humanize/rlcr/x/finalize-summary.md, then stop"),
    ):
        at = ended(phase)
        assert says(at).startswith(line)
        done = replace(at, loop=replace(at.loop or LOOP, finalized=True))
        assert phase != "FINALIZE" or says(done).startswith(f"{facts.ASK}  # .humanize/rlcr/x/finalize-summary.md is")
        stale = replace(at, files={**at.files, FINAL_PATH: at.files[FINAL_PATH] + "more\n"})
        assert says(stale).startswith("kernelpilot report --final  # rule 31, artifacts/FINAL.md")


def test_a_parked_loop_is_resumed_by_its_command_once_what_parked_it_is_mended() -> None:
    """Breaks when whoever asks what to do in a parked loop is sent on as if it ran, or does not learn why it waits."""
    stop = replace(LOOP.stops[1], outcome="PARKED", reason="five red gates over one tree")
    parked = evidence(
        rows=(BASELINE, row(vs_baseline=gain(1.05))), loop=replace(LOOP, phase="PARKED", stops=(LOOP.stops[0], stop))
    )
    resume = (
        '"$(kernelpilot root)/vendor/humanize/scripts/rlcr" resume  # once this is mended: five red gates over one tree'
    )
    for at in (parked, replace(ended("PARKED"), loop=parked.loop)):
        assert gate.next_step(at, gate.decide(at, POLICY, final=False)) == resume
    red = replace(parked, git=replace(GIT, nested=("x",)))
    assert gate.next_step(red, gate.decide(red, POLICY, final=False)).startswith("rm -rf x/.git  # rule 2")


def test_outside_a_client_the_set_up_names_a_reviewer_and_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the line that next prints in a plain shell is refused there, or a client's own is changed."""
    e = evidence(loop=None)
    report = gate.decide(e, POLICY, final=False)
    for name in ("CODEX_THREAD_ID", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    bare = f"{facts.SETUP} --reviewer evidence-only --session-id NAME"
    assert gate_command.next_line(e, report) == bare and f"fix: {bare}" in gate_command.text_of(e, report)
    for name in ("CODEX_THREAD_ID", "CLAUDE_CODE_SESSION_ID"):
        with monkeypatch.context() as inside:
            inside.setenv(name, "x")
            assert gate_command.next_line(e, report) == facts.SETUP


def test_next_before_the_lock_goes_plan_stubs_lock() -> None:
    """Breaks when a newcomer with a fresh repo is sent to lock what is not written."""
    fresh = evidence(lock=Fault(where="l", what=MISSING, fix=""), rows=(), git=replace(GIT, commits=GIT.commits[1:]))
    plan = ".humanize/kernel-agent/refined-plan.md"
    for files, says in (
        ({}, "kernelpilot plan"),
        ({plan: "x", "reference.py": 'raise NotImplementedError("x")'}, "write reference.py, still a stub"),
        ({plan: "x", "reference.py": "x"}, "kernelpilot lock"),
    ):
        at = replace(fresh, files=files)
        assert gate.next_step(at, gate.decide(at, POLICY, final=False)).startswith(says)


def test_the_command_prints_one_object_even_at_a_wall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when whoever parses the JSON gets nothing, a traceback or another exit code."""
    for place in (tmp_path, tmp_path / "nowhere"):
        result = CliRunner().invoke(group, ["gate", "--json", "--repo", str(place)], standalone_mode=False)
        data = json.loads(result.output)
        assert set(data) == {"pass", "done", "findings", "not_evaluated", "course"} and data["pass"] is False
        assert data["course"] == {
            "kind": "on", "weak": 0, "why": data["course"]["why"], "lines": [], "have": 0, "want": 0,
        } and data["course"]["why"]  # fmt: skip
        assert set(data["done"]) == {"met", "why", "missing"}
        assert set(data["findings"][0]) == {"rule", "severity", "where", "what", "fix"}
        assert result.return_value == 1
    monkeypatch.setenv("PATH", "/nowhere")
    result = CliRunner().invoke(group, ["gate", "--json", "--repo", str(tmp_path)], standalone_mode=False)
    assert json.loads(result.output)["findings"][0]["severity"] == "block" and result.return_value == 1
    line = CliRunner().invoke(group, ["next", "--repo", str(tmp_path)], standalone_mode=False)
    assert len(line.output.splitlines()) == 1 and line.return_value == 0


def test_printed_text_is_capped_and_the_json_is_not() -> None:
    """Breaks when hundreds of findings drown the line that says what to do, or are lost from the JSON."""
    many = git(removed=tuple(f"artifacts/{n}" for n in range(300)))
    report = gate.decide(many, POLICY, final=False)
    text = gate_command.text_of(many, report)
    assert len(text.splitlines()) < 50 and text.startswith("now: git checkout") and "280 more" in text
    assert len(gate_command.data_of(report)["findings"]) == 300
