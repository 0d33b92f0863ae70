"""The final inventory: written once from the evidence, and any byte that is not the evidence's is named."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kernelpilot_helpers import gate, proc, report
from kernelpilot_helpers.cli import report_command
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.evidence import Evidence
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.gate import NotEvaluated
from kernelpilot_helpers.gate.claims import claims
from kernelpilot_helpers.gate.final_rules import FINAL_RULES
from kernelpilot_helpers.gate.model import Report, Rule
from kernelpilot_helpers.policy import POLICY, Policy
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import finishing, gating
from tests import evidence_sim, referee_sim, report_sim
from tests.contract.test_docs import parses

FINAL = "artifacts/FINAL.md"
RULES = {rule.id: rule for rule in reversed(FINAL_RULES)}
DIGEST_PATH, DIGEST = next(iter(evidence_sim.DIGEST.items()))


def found(rule: str, facts: Evidence) -> list[tuple[str, str, str]]:
    return list(RULES[rule].check(facts, POLICY))


@pytest.fixture(scope="module")
def judged_template(locked_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A locked repo with one selected version, one wrong one and one better one; never written to by a test."""
    target = tmp_path_factory.mktemp("judged") / "repo"
    shutil.copytree(locked_template, target)
    for slug, lab in (("fused", FakeLab(speedup=1.3)), ("odd", FakeLab(wrong="tail")), ("wide", FakeLab(speedup=1.2))):
        referee_sim.write_variant(target, slug, f"def entry(**tensors):\n    {slug!r}\n")
        referee_sim.attempt(target, lab, slug)
    (target / DIGEST_PATH).write_text(DIGEST)
    proc.commit(target, "research digest", [DIGEST_PATH])
    return target


@pytest.fixture
def judged(judged_template: Path, tmp_path: Path) -> Path:
    target = tmp_path / "judged"
    shutil.copytree(judged_template, target)
    return target


def judge(repo: Path, **more: Any) -> tuple[Evidence, Report]:
    return report_sim.evidence_of(repo, **more), report_sim.red()


def finish(repo: Path, **more: Any) -> finishing.Finished:
    return finishing.finish(repo, clock=referee_sim.clock, judge=lambda root: judge(root, **more))


def summary(repo: Path, text: str) -> list[tuple[str, str]]:
    loop = report_sim.loop(repo, summaries={1: text})
    return [(where, what) for where, what, _ in found("33", report_sim.evidence_of(repo, loop=loop))]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("It is 30.0 % faster.", "says no run, version or digest"),
        ("It is 30.0 % faster [v009_gone].", "cites v009_gone, which is not in the lineage"),
        ("v001 takes 12 us [v001_fused.3]; v077 takes 9 us", "cites v077"),
        ("v001_fused is 55.0 % faster [v001_fused.3].", "is no speed-up that v001_fused has on record"),
        ("v002_odd is 2x faster than the baseline", "is no speed-up that v002_odd has on record"),
    ],
)
def test_a_figure_without_a_run_behind_it_is_named_with_its_line(judged: Path, line: str, what: str) -> None:
    """Breaks if a summary may say a number that no run in the lineage says."""
    hits = summary(judged, f"# Round\n\n{line}\n")
    assert hits and all(where == "round-1-summary.md:3" for where, _ in hits)
    assert what in hits[-1][1]


@pytest.mark.parametrize(
    "line",
    [
        "v001_fused is 30.0 % faster at 97.8 % [v001_fused.3], as a ratio 1.30x.",
        "`v001_fused.3`: 30 % faster",
        "m1 takes 12 us (v001)",
        "No figure here, only prose about 4096x4096.",
    ],
)
def test_a_cited_figure_passes(judged: Path, line: str) -> None:
    """Breaks if honest summaries are sent back: cited in code, by number alone, with the interval's confidence."""
    assert summary(judged, line) == []


def test_without_a_summary_the_rule_says_that_it_judged_nothing(judged: Path) -> None:
    """Breaks if a missing loop or summary is taken for a summary without faults."""
    for loop in (None, report_sim.loop(judged, summaries={})):
        with pytest.raises(NotEvaluated):
            found("33", report_sim.evidence_of(judged, loop=loop))


def test_final_text_has_every_section_and_every_claim_cites_what_exists(judged: Path) -> None:
    """Breaks if a section is dropped, or a figure of the page stands on a line without its run or file."""
    loop = report_sim.loop(judged)
    facts = report_sim.evidence_of(judged, loop=loop, tuning=report_sim.tuned())
    text = report.final_text(report.final_facts(facts, POLICY))
    lines = text.split("\n")
    assert [line[3:] for line in lines if line.startswith("## ")] == list(report.HEADINGS)
    known = {*facts.runs, *(row.version for row in facts.rows), "v001_fused.9", "v002_wide.9"}
    known |= {"contract.toml", "workloads/cases.jsonl", "dispatch/table.json", "artifacts/lineage.jsonl"}
    known |= {"artifacts/performance-map.json", "artifacts/contract.lock.json", "artifacts/loop/journal.jsonl"}
    bare = [c.whole for c in claims(text) if not any(f"[{name}]" in c.whole for name in known)]
    assert bare == []


def test_final_text_tells_the_selected_version_by_its_direct_run(judged: Path) -> None:
    """Breaks if gains are chained (1.3 x 1.2 = 1.56) or the figure is not the one that v003 measured directly."""
    facts = report_sim.evidence_of(judged)
    best = facts.rows[-1]
    assert best.version == "v003_wide" and best.vs_baseline is not None
    text = report.final_text(report.final_facts(facts, POLICY))
    assert "- Selected: v003_wide, variant `wide` [v003_wide]" in text
    assert "- Against the baseline: 1.20x, +20.0 % [+19.8 %, +20.1 %] at 97.8 % [v003_wide.4]" in text
    assert "- Target 1.10x: met; the point estimate is 1.200x, the lower bound 1.198x [v003_wide.4]" in text
    assert "3 attempts and rechecks: 2 IMPROVED, 1 WRONG [artifacts/lineage.jsonl]" in text
    assert "- CPU figures show the mechanism, not the kernel." in text
    assert "| v002_odd | 1 |" in text


def test_the_page_is_written_committed_and_then_left_alone(judged: Path) -> None:
    """Breaks if the ignored page is not committed, the tree stays dirty, or a repeat makes another commit."""
    made = finish(judged)
    assert len(made.commits) == 2
    assert proc.dirty(judged) == []
    kept = proc.git_out(judged, "ls-files", "artifacts/report.html", FINAL).split()
    assert kept == [FINAL, "artifacts/report.html"]
    head = proc.head(judged)
    again = finish(judged)
    assert again.commits == ()
    assert proc.head(judged) == head
    assert found("31", report_sim.evidence_of(judged)) == []
    assert finishing.page_target(judged) == judged / ".kernelpilot" / "report.html"


def test_the_loop_is_exported_byte_for_byte_and_followed(judged: Path) -> None:
    """Breaks if the export is parsed and written anew, or an older export outlives a longer journal."""
    loop = report_sim.loop(judged)
    source = judged / loop.directory
    source.mkdir(parents=True)
    (source / "journal.jsonl").write_bytes(b'{"event":"setup"}\n')
    (source / "round-1-summary.md").write_bytes(b"# Round 1\r\n")
    (source / "state.md").write_bytes(b"a view\n")
    exported = judged / "artifacts" / "loop"
    finish(judged, loop=loop)
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == {
        "journal.jsonl": b'{"event":"setup"}\n',
        "round-1-summary.md": b"# Round 1\r\n",
    }
    assert proc.dirty(judged) == []
    (source / "journal.jsonl").write_bytes(b'{"event":"setup"}\n{"event":"done"}\n')
    assert finish(judged, loop=loop).commits
    assert (exported / "journal.jsonl").read_bytes() == b'{"event":"setup"}\n{"event":"done"}\n'
    cloned = dataclasses.replace(loop, directory="artifacts/loop")
    assert found("31", report_sim.evidence_of(judged, loop=cloned)) == []


def test_a_clone_may_lack_inputs_but_the_page_may_not_invent_a_rule_without_any(
    judged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks if a clone, which has no loop folder, is told that its page is stale, or the live repo hides a rule."""

    def no_input(_: Evidence, __: Policy) -> list[tuple[str, str, str]]:
        raise NotEvaluated("no loop folder")

    loop = report_sim.loop(judged)
    monkeypatch.setattr(gate, "RULES", ())
    finish(judged, loop=loop)
    rule = Rule(id="3", title="t", severity="block", phase="always", check=no_input)
    monkeypatch.setattr(gate, "RULES", (rule,))
    cloned = report_sim.evidence_of(judged, loop=dataclasses.replace(loop, directory="artifacts/loop"))
    assert found("31", cloned) == []
    (hit,) = found("31", report_sim.evidence_of(judged, loop=loop))
    assert "- rule 3: no loop folder" in hit[1]
    text = cloned.files[FINAL].replace("## Not verified\n\n", "## Not verified\n\n- rule 4: no loop folder\n")
    assert len(found("31", dataclasses.replace(cloned, files={FINAL: text}))) == 1


def test_one_changed_byte_anywhere_is_named(judged: Path) -> None:
    """Breaks if any byte of the committed inventory can be changed, added or dropped without rule 31 saying so."""
    finish(judged)
    facts = report_sim.evidence_of(judged)
    text = facts.files[FINAL]
    draw = random.Random(31)
    places = sorted({0, len(text) - 1, *draw.sample(range(len(text)), 120)})
    for at in places:
        other = "7" if text[at] != "7" else "8"
        edits = (text[:at] + other + text[at + 1 :], text[:at] + text[at + 1 :], text[:at] + "\r" + text[at:])
        for edited in edits:
            changed = dataclasses.replace(facts, files={FINAL: edited})
            hits = found("31", changed)
            assert hits, (at, edited[max(0, at - 20) : at + 20])
            assert all(where.startswith(FINAL) and fix == "kernelpilot report --final" for where, _, fix in hits)


def test_an_edit_is_named_by_section_line_and_both_texts(judged: Path) -> None:
    """Breaks if the finding does not help to find the edit."""
    finish(judged)
    facts = report_sim.evidence_of(judged)
    text = facts.files[FINAL]
    line = next(ix for ix, t in enumerate(text.split("\n"), 1) if t.startswith("- Against the baseline"))
    (hit,) = found("31", dataclasses.replace(facts, files={FINAL: text.replace("1.20x, +20.0 %", "1.20x, +29.0 %")}))
    assert hit[0] == f"{FINAL}:{line} (Result)"
    assert "+29.0 %" in hit[1] and "the evidence says" in hit[1] and "+20.0 %" in hit[1]
    without = text.replace("## Fallback\n", "")
    (hit,) = found("31", dataclasses.replace(facts, files={FINAL: without}))
    assert hit == (FINAL, "section missing: Fallback (and 1 more difference)", "kernelpilot report --final")


def test_a_row_that_says_more_than_its_run_is_named(judged: Path) -> None:
    """Breaks if page and row agree on a figure that the cited run does not hold."""
    finish(judged)
    facts = report_sim.evidence_of(judged)
    run = "v003_wide.4"
    bench = facts.runs[run].bench
    assert bench is not None
    slower = msgspec.structs.replace(bench, geomean=msgspec.structs.replace(bench.geomean, speedup=1.01))
    runs = {**facts.runs, run: dataclasses.replace(facts.runs[run], bench=slower)}
    hits = found("31", dataclasses.replace(facts, runs=runs))
    assert [hit[0] for hit in hits] == ["artifacts/lineage.jsonl: v003_wide"]
    assert "[v003_wide.4] says 1.010x" in hits[0][1]


def test_an_inventory_that_is_absent_or_not_committed_is_a_finding(judged: Path) -> None:
    """Breaks if a page in the worktree alone counts, or none at all."""
    assert [hit[0] for hit in found("31", report_sim.evidence_of(judged))] == [FINAL]
    facts = report_sim.evidence_of(judged)
    (judged / FINAL).write_text(report.final_text(report.final_facts(facts, POLICY)))
    assert [hit[1] for hit in found("31", report_sim.evidence_of(judged))] == ["not committed as it stands"]


def test_an_attempt_after_the_inventory_makes_it_stale(judged: Path) -> None:
    """Breaks if the inventory of an earlier state still passes."""
    finish(judged)
    referee_sim.write_variant(judged, "late", "def entry(**tensors):\n    'late'\n")
    referee_sim.attempt(judged, FakeLab(speedup=0.8), "late")
    (hit,) = found("31", report_sim.evidence_of(judged))
    assert "4 attempts and rechecks" in hit[1] and hit[2] == "kernelpilot report --final", "one command mends them all"


def test_without_a_contract_the_rule_is_not_evaluated(judged: Path) -> None:
    """Breaks if an unreadable contract crashes the gate or passes."""
    fault = Fault(where="contract.toml", what="not valid TOML", fix="mend contract.toml")
    with pytest.raises(NotEvaluated, match=r"contract\.toml: not valid TOML"):
        found("31", report_sim.evidence_of(judged, contract=fault))


def test_no_attempt_no_stock_taking(locked_template: Path, tmp_path: Path) -> None:
    """Breaks if an empty task gets a final page, or a file is left behind by the refusal."""
    repo = tmp_path / "repo"
    shutil.copytree(locked_template, repo)
    with pytest.raises(Refused, match="no attempt in epoch 1") as caught:
        finish(repo)
    assert parses(caught.value.fix) == ""
    assert not (repo / FINAL).exists()


def test_an_unsound_lineage_is_refused(judged: Path) -> None:
    """Breaks if a stock is taken of rows that were edited by hand."""
    path = judged / "artifacts" / "lineage.jsonl"
    path.write_text(path.read_text().replace("v002_odd", "v002_off"))
    with pytest.raises(BadRecord):
        finish(judged)
    assert not (judged / FINAL).exists()


def test_the_command_commits_once_and_tells_both_times(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if an agent cannot tell from the object whether anything was committed, or what the gate said."""
    monkeypatch.setattr(finishing, "gate_of", judge)
    argv = ["--final", "--json", "--repo", str(judged)]
    first = json.loads(CliRunner().invoke(report_command.command, argv, standalone_mode=False).stdout)
    assert first["files"] == [FINAL, "artifacts/report.html"]
    assert (len(first["commits"]), first["changed"], first["pass"], first["done"]) == (2, True, False, False)
    again = json.loads(CliRunner().invoke(report_command.command, argv, standalone_mode=False).stdout)
    assert (again["commits"], again["changed"]) == ([], False)
    talk = CliRunner().invoke(report_command.command, ["--final", "--repo", str(judged)], standalone_mode=False)
    lines = talk.stdout.splitlines()
    assert lines[:2] == ["nothing has changed: no commit", "the gate is red: kernelpilot gate --final"]
    assert lines[2].startswith("NOT FINISHED: v003_wide is 1.2x the baseline") and len(lines) == 3
    assert f"**{lines[2]}** [artifacts/lineage.jsonl]" in (judged / FINAL).read_text().split("\n")[:6]
    assert CliRunner().invoke(report_command.command, ["--final", "--out", "x"]).exit_code == 2


def test_a_plain_report_after_the_final_one_leaves_git_clean(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if looking at the state makes the tree dirty, or a repo that cannot be judged has no page."""
    monkeypatch.setattr(finishing, "gate_of", judge)
    finish(judged)

    def unreadable(_: Path) -> tuple[Evidence, Report]:
        raise Refused("no gate here", where="contract.toml", fix="kernelpilot lock")

    monkeypatch.setattr(finishing, "gate_of", unreadable)
    argv = ["--json", "--repo", str(judged)]
    said = json.loads(CliRunner().invoke(report_command.command, argv, standalone_mode=False).stdout)
    assert said == {"report": str(judged / ".kernelpilot" / "report.html")}
    assert "not judged: no gate here" in Path(said["report"]).read_text()
    assert proc.dirty(judged) == []


def test_how_to_reproduce_leaves_the_gate_green_when_it_is_followed(judged: Path) -> None:
    """Breaks when a printed command is a usage error, undoes a decision, or leaves a page that is out of date."""
    finishing.finish(judged, clock=referee_sim.clock, judge=finishing.gate_of)
    text = (judged / FINAL).read_text().partition("## How to reproduce")[2].partition("```sh\n")[2].partition("```")[0]
    commands = [line.partition("    #")[0] for line in text.splitlines()]
    assert commands == [
        "kernelpilot ledger check",
        'kernelpilot attempt wide --again --motivation "recheck"',
        "kernelpilot report --final",
        "kernelpilot gate --final",
    ]
    assert [said for line in commands if (said := parses(line))] == []

    def stale() -> list[str]:
        return [f.what for f in gating.gate(judged, final=True).findings if f.rule not in ("3", "24", "25")]

    assert stale() == []
    referee_sim.attempt(judged, FakeLab(speedup=1.2), "wide", again=True)
    assert len(stale()) == 1
    assert finishing.finish(judged, clock=referee_sim.clock, judge=finishing.gate_of).commits
    assert stale() == []


def test_the_inventory_says_what_is_lacking_and_no_phase_of_a_loop(judged: Path) -> None:
    """Breaks when an unfinished task's page looks finished, or the loop's end makes the page stale."""
    loop = report_sim.loop(judged)
    texts = {
        report.final_text(report.final_facts(report_sim.evidence_of(judged, loop=one), POLICY))
        for one in (loop, dataclasses.replace(loop, phase="FINALIZE"), dataclasses.replace(loop, phase="COMPLETE"))
    }
    (text,) = texts
    assert text.split("\n")[4].startswith("**NOT FINISHED: v003_wide is 1.2x the baseline")
    assert "completed" not in text
    told = [line.split(":")[0] for line in text.split("\n") if line.startswith("- rule ")]
    assert len(told) == len(set(told)) > 5


def test_the_inventory_names_every_amendment_and_says_so_when_there_was_none(judged: Path) -> None:
    """Breaks when what the work was judged by may change, and the page that people read does not tell."""
    quiet = report_sim.loop(judged)
    changed = dataclasses.replace(quiet, amends=("plan: AC-3 is 1.2x", "evidence: a new path"))

    def lines(loop: Any) -> list[str]:
        text = report.final_text(report.final_facts(report_sim.evidence_of(judged, loop=loop), POLICY))
        return [line for line in text.split("\n") if line.startswith("- Amended while the loop ran: ")]

    assert lines(quiet) == [
        "- Amended while the loop ran: none, neither plan nor evidence [artifacts/loop/journal.jsonl]"
    ]
    assert lines(changed) == [
        "- Amended while the loop ran: plan: AC-3 is 1.2x [artifacts/loop/journal.jsonl]",
        "- Amended while the loop ran: evidence: a new path [artifacts/loop/journal.jsonl]",
    ]
    assert lines(None) == ["- Amended while the loop ran: not known, no loop is on record."]
    finish(judged, loop=quiet)
    assert found("31", report_sim.evidence_of(judged, loop=quiet)) == []
    (hit,) = found("31", report_sim.evidence_of(judged, loop=changed))
    assert "AC-3 is 1.2x" in hit[1]


def test_an_error_stands_beside_its_limit(judged: Path) -> None:
    """Breaks when 1.6 is called correct and the reader knows of a limit of 1.5 alone: few rows have a wider one."""
    facts = report_sim.evidence_of(judged)
    text = (
        report.final_text(report.final_facts(facts, POLICY)).partition("## Correctness matrix")[2].partition("\n## ")[0]
    )
    table = [[cell.strip() for cell in line.split("|")] for line in text.split("\n") if line.startswith("| ")]
    at = table[0].index("Limit at least")
    limits = {line[1]: line[at] for line in table[1:]}
    outputs = {case.case_id: next(o.shape for o in case.tensors if o.role in ("out", "inout")) for case in facts.cases}
    few = {name for name, shape in outputs.items() if math.prod(shape[:-1]) == 1}
    many = {name for name, shape in outputs.items() if math.prod(shape[:-1]) >= 64}
    assert {limits[name] for name in few} == {"5.45"} and {limits[name] for name in many} == {"1.5"}


def test_the_gate_itself_names_a_byte_added_after_the_inventory(judged: Path) -> None:
    """Breaks if collector, rule table and inventory disagree about one another, or the final phase asks nothing."""

    def named() -> list[str]:
        return [f.what for f in gating.gate(judged, final=True).findings if f.rule == "31"]

    made = finishing.finish(judged, clock=referee_sim.clock, judge=finishing.gate_of)
    assert len(made.commits) == 2
    assert named() == []
    assert finishing.finish(judged, clock=referee_sim.clock, judge=finishing.gate_of).commits == ()
    with (judged / FINAL).open("ab") as page:
        page.write(b"\n")
    assert len(named()) == 1 and named()[0].endswith("(and 1 more difference)")
    assert [f for f in gating.gate(judged, final=False).findings if f.rule == "31"] == []


def test_a_task_that_nobody_made_faster_still_has_its_inventory(locked_template: Path, tmp_path: Path) -> None:
    """Breaks if the page needs a winner, or claims one; an idea's text must not open a section of its own."""
    repo = tmp_path / "repo"
    shutil.copytree(locked_template, repo)
    referee_sim.write_variant(repo, "odd", "def entry(**tensors):\n    pass\n")
    referee_sim.attempt(repo, FakeLab(wrong="tail"), "odd")
    finish(repo)
    facts = report_sim.evidence_of(repo)
    assert found("31", facts) == []
    text = facts.files[FINAL]
    assert "- Selected: the baseline [v000_baseline]; no attempt was shown to be faster." in text
    assert "- Target 1.10x: not met; there is no direct run against the baseline [contract.toml]" in text
    assert "No attempt was ever selected." in text
    rows = [msgspec.structs.replace(row, reason="x\n## Task\n| a |") for row in facts.rows]
    evil = report.final_text(report.final_facts(dataclasses.replace(facts, rows=tuple(rows)), POLICY))
    assert evil.count("\n## Task\n") == 1
    assert "x ## Task \\| a \\|" in evil
