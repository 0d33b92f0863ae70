"""Rules 14 to 18 on evidence written by hand: silent on a CPU and in order, one finding on the one wrong thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import gate
from kernelpilot_helpers.attempt.profile import Launches, Profile, Why
from kernelpilot_helpers.attempt.raw import FigureTime
from kernelpilot_helpers.benchmark.physics import cold_bytes
from kernelpilot_helpers.evidence.digest_facts import DigestFacts
from kernelpilot_helpers.evidence.gpu_run import GpuRun
from kernelpilot_helpers.evidence.model import CommitFacts, Evidence
from kernelpilot_helpers.gate import rules_profile
from kernelpilot_helpers.ledger import Motivation
from kernelpilot_helpers.policy import POLICY
from tests.evidence_sim import (
    BASE_TREE,
    BASELINE,
    CONTRACT,
    GIT,
    GOOD,
    LOOP,
    ROWED,
    RUNS,
    TIMED,
    TREE,
    VARIANTS,
    bench,
    decision,
    gain,
    row,
    run,
)

GPU = msgspec.structs.replace(CONTRACT, target=msgspec.structs.replace(CONTRACT.target, gpu="H200", arch="sm_90a"))
CASE, OTHER = TIMED[0], TIMED[-1]
FIRST, LATE = "d" * 40, "e" * 40
WRITTEN = tuple(
    msgspec.structs.replace(case, regime="small" if case.case_id == CASE else "large") for case in GOOD.written
)
ON_GPU = replace(GOOD, contract=GPU, written=WRITTEN)


def made(subject: str = "v001_fused", case_id: str = CASE, **changes: Any) -> Profile:
    fields: dict[str, Any] = {
        "subject": subject, "variant": "fused", "tree": BASE_TREE if subject == BASELINE.version else TREE, "epoch": 1,
        "case_id": case_id, "regime": "", "residency": "cold", "verdict": "IMPROVED", "run": "v001_fused.2", "at": "",
        "seconds": 1.0, "source": "ncu", "tool": "ncu 2025.3.1.0", "gpu": "H200", "facts_sha256": "",
        "launches": Launches(calls=3, warm_up=3, skip=0, count=3), "digest_sha256": "", "page_sha256": "",
    }  # fmt: skip
    return Profile(**{**fields, **changes})


def digest(subject: str = "v001_fused", case_id: str = CASE, *, faults: tuple[str, ...] = (), kind: str = "edit",
           name: str = "mem.uncoalesced", target: str = "", **changes: Any) -> DigestFacts:  # fmt: skip
    path = f"artifacts/profile-digests/{subject}/{case_id}"
    return DigestFacts(path=path, subject=subject, case_id=case_id, profile=made(subject, case_id, **changes),
                       name=name, kind=kind, target=target, faults=faults)  # fmt: skip


BASE_DIGEST = digest("v000_baseline")
NO = Why(code="ncu.permission", words="ERR_NVGPUCTRPERM")
FALLBACK = digest("v000_baseline", source="fallback", why=NO, kind="capture")


def at(*digests: DigestFacts, rows: tuple[Any, ...] = (BASELINE, row()), **changes: Any) -> Evidence:
    """A GPU repo whose digests were committed after the rows of ``evidence_sim``, and then one commit more."""
    paths = tuple(f"{d.path}/profile.json" for d in digests)
    commits = (*GIT.commits, CommitFacts(commit=FIRST, paths=paths), CommitFacts(commit=LATE, paths=()))
    return replace(ON_GPU, digests=digests, rows=rows, git=replace(GIT, commits=commits, head=LATE), **changes)


def found(e: Evidence) -> list[tuple[str, str, str, str]]:
    report = gate.decide(e, POLICY, final=False)
    return [(f.rule, f.where, f.what, f.fix) for f in report.findings if f.rule in ("14", "15", "16", "17", "18")]


def rules(e: Evidence) -> list[tuple[str, str]]:
    return [(rule, where) for rule, where, _, _ in found(e)]


def test_a_task_for_a_cpu_owes_no_profile_and_says_why() -> None:
    """Breaks when a CPU task is sent to a profiler that it cannot have, or the rules are passed over in silence."""
    e = replace(at(rows=(BASELINE, row(gain=gain(1.0), vs_baseline=gain(1.0)))), contract=CONTRACT)
    report = gate.decide(e, POLICY, final=False)
    assert found(e) == []
    assert {w for w in report.not_evaluated if w.endswith(rules_profile.NO_GPU)} == {
        f"{n}: {rules_profile.NO_GPU}" for n in (14, 15, 17, 18)
    }


def test_a_gpu_repo_in_order_says_nothing_and_evaluates_all_five() -> None:
    """Breaks when a rule wants a profile that nothing asks for."""
    e = at(BASE_DIGEST, digest())
    assert found(e) == []
    silent = {w.partition(":")[0] for w in gate.decide(e, POLICY, final=False).not_evaluated}
    assert not silent & {"14", "15", "16", "17", "18"}
    assert found(at()) == []


def test_14_the_first_edit_that_rests_on_a_profile_needs_the_baseline_s_decision() -> None:
    """Breaks when a candidate is profiled and edited before anybody looked at the baseline."""
    driven = row("v002_next", parent="v001_fused", at_head=ROWED, tree="3" * 40,
                 motivation=Motivation(kind="profile", text="t", digest=f"v001_fused/{CASE}"))  # fmt: skip
    rows = (BASELINE, row(), driven)
    (said,) = [f for f in found(at(digest(source="fallback", why=Why(code="x", words="y")), rows=rows)) if f[0] == "14"]
    assert said[1] == "artifacts/lineage.jsonl: v002_next"
    assert said[3] == f"kernelpilot profile --version baseline --case {CASE}"
    for decided in (BASE_DIGEST, FALLBACK):
        assert "14" not in {f[0] for f in found(at(decided, rows=rows))}
    broken = replace(BASE_DIGEST, faults=("facts.json is missing",))
    older = digest("v000_baseline", epoch=0)
    for bad in (broken, older):
        assert "14" in {f[0] for f in found(at(bad, rows=rows))}


def slow_case(speedup: float, high: float, case_id: str = OTHER) -> dict[str, Any]:
    """Runs in which one required case of v001_fused has these figures."""
    cases = tuple(
        msgspec.structs.replace(c, speedup=speedup, ci_high=high) if c.case_id == case_id else c for c in bench().cases
    )
    return {"runs": {**RUNS, "v001_fused.2": run("v001_fused.2", "confirm", bench=bench(cases=cases))}}


NEAR = (BASELINE, row(gain=gain(1.3), vs_baseline=gain(1.015)))
CHAINED = (
    BASELINE, row(vs_baseline=None, gain=gain(1.25)),
    row("v002_b", tree="3" * 40, incumbent="v001_fused", parent="v001_fused", gain=gain(0.81), vs_baseline=None,
        verdict="REGRESSED", status="rejected", tier="claim", at_head=ROWED),
)  # fmt: skip
FAR = (BASELINE, row(gain=gain(12.0), vs_baseline=gain(12.0)))


@pytest.mark.parametrize(
    ("e", "version", "words"),
    [
        (at(rows=NEAR), "v001_fused", "within 2% of the baseline (1.01x)"),
        (at(rows=CHAINED), "v002_b", "within 2% of the baseline (1.01x)"),
        (at(**slow_case(0.9, 0.97)), "v001_fused", f"required case {OTHER} is slower (0.9x)"),
        (at(rows=FAR), "v001_fused", "12x is more than 10x away"),
        (at(rows=(BASELINE, row(gain=gain(0.05), vs_baseline=gain(0.05)))), "v001_fused", "0.05x is more than 10x"),
        (at(loop=replace(LOOP, contracts={1: f"- Profile: v001/{OTHER}\n"})), "v001_fused", "the reviewer asks"),
    ],
)
def test_15_every_trigger_names_the_command_that_answers_it(e: Evidence, version: str, words: str) -> None:
    """Breaks when a trigger is not seen, or names another version."""
    (said,) = found(e)
    assert said[:2] == ("15", version) and words in said[2]
    label = "v001_fused" if version == "v001_fused" else version
    assert said[3].startswith(f"kernelpilot profile --version {label} --case ")
    report = gate.decide(e, POLICY, final=False)
    assert not report.passed
    if {f.rule for f in report.findings} == {"15"}:
        assert gate.next_step(e, report).startswith(said[3])


def test_15_what_nobody_builds_on_or_claims_needs_no_profile() -> None:
    """Breaks when each rejected try costs a profile, or a case that is slower only by noise does."""
    rejected = row("v002_b", tree="3" * 40, incumbent="v001_fused", parent="v001_fused", gain=gain(0.7),
                   vs_baseline=gain(1.0), verdict="REGRESSED", status="rejected", at_head=ROWED)  # fmt: skip
    assert found(at(rows=(BASELINE, row(), rejected))) == []
    assert found(at(**slow_case(0.99, 1.02))) == []
    child = row("v003_c", tree="4" * 40, parent="v002_b", at_head=ROWED, incumbent="v001_fused",
                gain=gain(0.7), vs_baseline=gain(1.3), verdict="REGRESSED", status="rejected")  # fmt: skip
    assert rules(at(rows=(BASELINE, row(), rejected, child))) == [("15", "v002_b")]


def test_15_two_weak_rounds_ask_for_the_version_that_they_stand_on() -> None:
    """Breaks when work on a plateau goes on without a look at the counters."""
    weak = tuple(
        row(f"v00{n}_w", tree=f"{n}" * 40, round=n, incumbent="v001_fused", parent="v001_fused", gain=gain(1.001),
            vs_baseline=gain(1.5), verdict="SAME", status="rejected", at_head=ROWED)
        for n in (3, 4)
    )  # fmt: skip
    (said,) = found(at(rows=(BASELINE, row(), *weak)))
    assert said[:2] == ("15", "v001_fused") and "2 weak rounds in a row" in said[2]
    assert found(at(rows=(BASELINE, row(), weak[0]))) == []
    assert "15" not in {f[0] for f in found(at(BASE_DIGEST, digest(kind="stop"), rows=(BASELINE, row(), *weak)))}


def test_15_one_digest_a_class_and_regime_serves() -> None:
    """Breaks when each case of a regime costs a profile, or a digest of another regime or a false one serves."""
    e = slow_case(0.9, 0.97)
    own = digest(case_id=OTHER, kind="stop")
    assert "15" not in {f[0] for f in found(at(digest("v000_baseline", OTHER), own, **e))}
    waived = digest(case_id=OTHER, source="fallback", why=Why(code="ncu.permission", words="no"))
    assert found(at(waived, **e)) == []
    same_class = (BASE_DIGEST, digest("v000_baseline", OTHER), digest(kind="stop"))
    assert "15" not in {f[0] for f in found(at(*same_class, **e))}
    for bad in (
        (BASE_DIGEST, digest(kind="stop")),
        (replace(own, faults=("x",)),),
        (BASE_DIGEST, digest("v000_baseline", OTHER, ), digest(kind="stop", name="lat.occupancy")),
    ):  # fmt: skip
        assert "15" in {f[0] for f in found(at(*bad, **e))}


def test_16_a_digest_older_than_its_verdict_or_of_another_tree_shows() -> None:
    """Breaks when a version can be profiled first and shown correct later, or a digest is moved to another version."""
    late = (BASELINE, row(at_head=LATE))
    assert [r for r in rules(at(BASE_DIGEST, digest(kind="stop"), rows=late)) if r[0] == "16"] == [
        ("16", digest().path)
    ]
    moved = digest(tree="9" * 40, kind="stop")
    (said,) = [f for f in found(at(BASE_DIGEST, moved)) if f[0] == "16"]
    assert "no row of that version judged" in said[2]
    assert found(at(BASE_DIGEST)) == []


def test_17_what_does_not_hold_is_a_finding_of_its_folder() -> None:
    """Breaks when a digest that nobody can make again passes for evidence."""
    for name in ("v001_fused", "v000_baseline"):
        bad = digest(name, faults=("digest.json is not what facts.json gives (groups differ)",))
        others = () if name == "v000_baseline" else (BASE_DIGEST,)
        (said,) = [f for f in found(at(*others, bad)) if f[0] == "17"]
        assert said[1] == bad.path and said[3].startswith(f"git checkout -- {bad.path}  # or made again: kernelpilot")
    bare = DigestFacts(path="p", subject="v001_fused", case_id=CASE, faults=("profile.json is missing",))
    assert ("17", "p") in rules(at(bare))
    assert (
        found(at(digest(epoch=0, faults=("x",), tree=BASE_TREE), rows=(BASELINE, row(), row(epoch=0, tree=BASE_TREE))))
        == []
    )


def test_17_baseline_and_candidate_share_case_gpu_filter_and_major_version() -> None:
    """Breaks when two captures of different machines or cache states are held against each other."""
    (alone,) = found(at(digest(kind="stop")))
    assert alone[0] == "17" and alone[3] == f"kernelpilot profile --version baseline --case {CASE}"
    elsewhere = replace(FALLBACK, profile=made("v000_baseline", source="fallback", driver="550", why=NO))
    assert found(at(elsewhere, digest(kind="stop"))) == []
    differ: dict[str, dict[str, Any]] = {
        "GPU H200 and H100": {"gpu": "H100"},
        "ncu major version 2025 and 2026": {"tool": "ncu 2026.1.0"},
        "cache control all and none": {
            "launches": Launches(calls=3, warm_up=3, skip=0, count=3, cache_control="none")},
        "calls 3 and 5": {"launches": Launches(calls=5, warm_up=3, skip=0, count=3)},
    }  # fmt: skip
    for words, changes in differ.items():
        (said,) = found(at(BASE_DIGEST, digest(kind="stop", **changes)))
        assert said[0] == "17" and words in said[2]
    other = Launches(calls=3, warm_up=3, skip=0, count=9, kernels=("other",), collected="full")
    assert found(at(BASE_DIGEST, digest(kind="stop", launches=other, tool="ncu 2025.9"))) == []


def test_17_a_waiver_for_the_machine_falls_where_ncu_worked_on_it() -> None:
    """Breaks when a version that no one wants to look at is waived on a machine where ncu works."""
    waived = digest(source="fallback", why=NO, kind="capture")
    (said,) = found(at(BASE_DIGEST, waived))
    assert said[:2] == ("17", waived.path)
    assert said[2] == f"says that ncu cannot run, and it gave a report of v000_baseline/{CASE} on the same GPU"
    own = replace(waived, profile=made(source="fallback", why=Why(code="ncu.timeout", words="x")))
    for other in (own, replace(waived, profile=made(source="fallback", why=NO, gpu="H100"))):
        assert found(at(BASE_DIGEST, other)) == []
    assert found(at(replace(BASE_DIGEST, faults=("x",)), waived))[0][1] == BASE_DIGEST.path
    assert found(at(FALLBACK, waived)) == []


def test_17_what_a_digest_was_told_of_its_case_is_looked_up_again() -> None:
    """Breaks when "at the roof" can be had by naming another amount of bytes, or a floor that nobody measured."""
    case = next(c for c in GOOD.cases if c.case_id == CASE)
    for told, words in (
        ({"min_bytes": cold_bytes(case) + 1}, "a least traffic of"), ({"floor_us": 9.5}, "a floor of 9.5 us"),
    ):  # fmt: skip
        (said,) = found(at(BASE_DIGEST, replace(digest(kind="stop"), **told)))
        assert said[:2] == ("17", digest().path) and words in said[2]
    figure = FigureTime(arm="", case_id=CASE, figure="touch", us=9.5)
    ran = {"v001_fused.2": replace(RUNS["v001_fused.2"], gpu=GpuRun(figures=(figure,)))}
    right = replace(digest(kind="stop"), min_bytes=cold_bytes(case), floor_us=9.5)
    assert found(at(BASE_DIGEST, right, runs={**RUNS, **ran})) == []


@pytest.mark.parametrize(("ratio", "near"), [(1.02, True), (0.98, True), (1.0201, False), (0.9799, False), (1.0, True)])
def test_15_two_percent_is_within_two_percent(ratio: float, near: bool) -> None:
    """Breaks when the border itself is lost to the last digit of a float."""
    rows = (BASELINE, row(gain=gain(1.3), vs_baseline=gain(ratio)))
    assert [f[0] for f in found(at(rows=rows))] == (["15"] if near else [])


@pytest.mark.parametrize(("ratio", "far"), [(10.0, False), (10.01, True), (0.1, False), (0.0999, True)])
def test_15_ten_times_is_no_surprise_and_more_is(ratio: float, far: bool) -> None:
    """Breaks when the border moves."""
    rows = (BASELINE, row(gain=gain(1.3), vs_baseline=gain(ratio)))
    assert [f[0] for f in found(at(rows=rows))] == (["15"] if far else [])


def test_18_the_next_attempt_takes_the_step_or_declines_it_with_a_reason() -> None:
    """Breaks when a digest is made and then ignored, or the finding can never be mended."""
    digests = (digest("v000_baseline", kind="stop"), digest())

    def after(text: str = "t", cites: str = "", parent: str = "v001_fused", version: str = "v002_n") -> Any:
        return row(version, parent=parent, incumbent="v001_fused", tree="5" * 40, at_head=LATE, gain=gain(0.7),
                   vs_baseline=gain(1.4), verdict="REGRESSED", status="rejected",
                   motivation=Motivation(kind="profile" if cites else "review", text=text, digest=cites))  # fmt: skip

    def said(*tried: Any) -> list[str]:
        return [what for rule, _, what, _ in found(at(*digests, rows=(BASELINE, row(), *tried))) if rule == "18"]

    unanswered = f"does not answer the next step of digest v001_fused/{CASE}: take it, or decline it with the reason"
    assert said(after()) == [unanswered]
    assert said(after(parent="v000_baseline")) == said() == []
    for cites in (f"v001_fused/{CASE}", "v001_fused", CASE):
        assert said(after(cites=cites)) == said(after("declined: it is there already", cites)) == []
    for bare in ("declined:", "Declined", " declined : -", "declined: n/a", "declined: no reason"[:12], "declined: x."):
        assert said(after(bare, "v001_fused")) == [f"declines digest v001_fused/{CASE} without a reason"], bare
    for reason in ("declined: no shared memory left", "declined: the loads are coalesced", "declined loads: next"):
        assert said(after(reason, "v001_fused")) == [], reason
    assert said(after(), after(cites="v001_fused", version="v003_n")) == []
    for kind in ("capture", "stop"):
        quiet = at(BASE_DIGEST, digest(kind=kind), rows=(BASELINE, row(), after()))
        assert [f for f in found(quiet) if f[0] == "18"] == []


def test_30_exhausted_is_borne_out_by_a_true_digest_at_the_roof_of_what_is_selected() -> None:
    """Breaks when "exhausted" is believed without counters, or a digest of another version serves."""
    rows = (BASELINE, row(), decision("stop: exhausted", at_head=LATE))

    def open_(*digests: DigestFacts) -> bool:
        report = gate.decide(at(*digests, rows=rows), POLICY, final=True)
        return any(w.startswith("30: ") and "says exhausted" in w for w in report.not_evaluated)

    roof = digest(name="none.at_limit", kind="stop")
    assert not open_(roof)
    assert open_() and open_(digest(kind="stop")) and open_(replace(roof, faults=("x",)))
    assert open_(digest("v000_baseline", name="none.at_limit"))


def test_18_a_step_whose_file_is_not_there_is_told_and_blocks_nothing() -> None:
    """Breaks when the edit's place does not exist and nobody says so, or a library's header bars the way."""
    e = at(BASE_DIGEST, digest(kind="stop", target="src/kernel.cu"))
    (said,) = found(e)
    assert said[0] == "18" and "names kernel.cu, which is no file of fused" in said[2]
    assert gate.decide(e, POLICY, final=False).passed
    there = {f"{VARIANTS}/fused/kernel.cu": "x", **GOOD.sources}
    assert found(replace(e, sources=there)) == []
