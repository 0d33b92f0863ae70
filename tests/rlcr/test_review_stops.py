"""Reviews as a Stop buys them: one at most, of the right scope, kept, and retried alone when they fail."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rlcr.decide import touched
from rlcr.model import Opinion
from tests.rlcr import sim
from tests.rlcr.real import ACS, PLAN, Real


def prompt(real: Real) -> str:
    """What the last reviewer was told."""
    (found,) = real.home.glob(".cache/humanize/*/*/round-*-codex-run.cmd")
    return found.read_text()


def fresh(real: Real) -> None:
    for path in real.home.glob(".cache/humanize/*/*/round-*-codex-run.cmd"):
        path.unlink()


@pytest.fixture
def cached(real: Real) -> Real:
    """A loop under a reviewer, in round 0 with its work done, whose evidence may be used again."""
    real.reviewer()
    path = real.repo / ".humanize" / "evidence.json"
    data = json.loads(path.read_text())
    data["commands"][0]["cache"] = True
    path.write_text(json.dumps(data))
    assert real.setup("--reviewer", "codex").returncode == 0
    real.work(0)
    return real


def counted(real: Real) -> tuple[int, int]:
    """Runs of the evidence, reviews bought."""
    bought = real.base / "bought"
    return len(real.log.read_text().splitlines()), bought.read_text().count("bought") if bought.exists() else 0


@pytest.mark.parametrize("answer", ["", "Error: usage limit reached", "Everything looks fine to me."])
def test_a_failed_review_is_retried_alone(cached: Real, answer: str) -> None:
    """Breaks when long evidence is run again because a reviewer said nothing, or a failure takes a round."""
    (cached.base / "review.json").write_text(answer)
    assert "could not be judged (review-" in cached.stop("a")["reason"]
    assert cached.at == ("BUILD", 0) and counted(cached) == (1, 1)
    cached.reviews("continue", "Off by one.")
    cached.stop("b")
    assert cached.at == ("BUILD", 1) and counted(cached) == (1, 2), "one review a Stop, and no evidence again"
    cached.work(1)
    cached.stop("c")
    assert counted(cached) == (2, 3), "another commit has no evidence yet"


def test_a_reviewer_killed_with_the_hook_costs_no_second_run_of_the_evidence(cached: Real) -> None:
    """Breaks when evidence is only kept after the review, which is what a host's time limit cuts off."""
    cached.reviews("continue", "Off by one.")
    cached.stop("a", crash="append.review.before")
    cached.stop("a")
    assert cached.at == ("BUILD", 1) and counted(cached) == (1, 2)


def test_what_the_reviewer_is_told_follows_what_it_said_before(cached: Real) -> None:
    """Breaks when a re-review looks at everything again, or misses criteria, the fix or what was open."""
    cached.reviews("continue", "Off by one.")
    cached.stop("a")
    first, told = cached.git("rev-parse", "HEAD"), prompt(cached)
    assert f"once: {', '.join(ACS)}\n" in told and "Scope: everything" in told
    fresh(cached)
    cached.work(1)
    cached.reviews("continue", "Off by one.", "Misspelt.")
    cached.stop("b")
    told = prompt(cached)
    assert f"`git diff {first}..{cached.git('rev-parse', 'HEAD')}`" in told and "Scope: a re-review" in told
    assert "P1 in-round a.txt:1 Off by one." in told and "last review:\n- a.txt\n" in told
    (verdict,) = [line["data"]["verdict"] for line in cached.lines() if line["event"] == "review"][1:]
    assert (verdict["full"], verdict["changed"]) == (False, ["a.txt"])


def test_a_round_whose_diff_is_empty_is_reviewed_in_full(cached: Real) -> None:
    """Breaks when an empty scope, by which nothing can be a touched file, locks every P1 out."""
    cached.reviews("continue", "Off by one.")
    cached.stop("a")
    cached.papers(1, "No-op: waiting for a machine\n")
    cached.git("commit", "-q", "--allow-empty", "-m", "nothing")
    cached.stop("b")
    reviews = [line["data"]["verdict"] for line in cached.lines() if line["event"] == "review"]
    assert [said["full"] for said in reviews] == [True, True]


def test_complete_that_leaves_criteria_out_completes_nothing_and_says_so(cached: Real) -> None:
    """Breaks when a reviewer ends the plan by judging a part of it."""
    cached.answer(met=True)
    path = cached.base / "review.json"
    cached.reviews("complete")
    said = json.loads(path.read_text())
    said["acs"][20]["evidence"] = "I believe so"
    path.write_text(json.dumps({**said, "acs": [*said["acs"][:18], *said["acs"][20:]]}))
    assert "AC-19" in cached.stop("a")["reason"]
    assert cached.at == ("BUILD", 1)
    page = (cached.loop / "round-1-prompt.md").read_text()
    assert "- AC-19, AC-20: not judged, so not met\n" in page
    assert "- AC-21: called met without evidence at HEAD\n" in page


NO_IDS = "# Plan\n\n## Goal\n\nFast.\n\n## Acceptance Criteria\n\n- twice as fast\n- half the memory\n"


@pytest.mark.parametrize(("commands", "spoken"), [(True, False), (False, False), (False, True)])
def test_a_plan_without_numbers_is_not_ended_by_a_review_of_nothing(real: Real, commands: bool, spoken: bool) -> None:
    """Breaks when complete, with no criterion named and no evidence, ends a plan that numbers none."""
    real.reviewer()
    real.answer(met=True)
    (real.repo / PLAN).write_text(NO_IDS)
    if not commands:
        (real.repo / ".humanize" / "evidence.json").unlink()
    assert real.setup("--reviewer", "codex").returncode == 0
    said = {"verdict": "complete", "mainline": "advanced", "acs": [], "findings": [], "text": "fine"}
    text = "Mainline Progress Verdict: ADVANCED\n\nCOMPLETE" if spoken else json.dumps(said)
    (real.base / "review.json").write_text(text)
    real.work(0)
    real.stop("a")
    assert real.at == ("BUILD", 1)


def test_a_change_without_a_plan_is_not_ended_by_a_review_of_nothing(real: Real) -> None:
    """Breaks when --skip-impl passes over an empty review and no evidence."""
    real.reviewer()
    real.git("switch", "-qc", "side")
    real.commit("b.txt", "new")
    (real.repo / ".humanize" / "evidence.json").unlink()
    said = {"verdict": "complete", "mainline": "stalled", "acs": [], "findings": [], "text": ""}
    (real.base / "review.json").write_text(json.dumps(said))
    assert real.setup("--skip-impl", "--reviewer", "codex", plan="").returncode == 0
    real.stop("a")
    assert real.at[0] != "FINALIZE"


SWAP = """\
#!{python}
import json, re, sys
from pathlib import Path
argv = sys.argv[1:]
if argv[:2] == ["features", "list"]:
    sys.exit(0)
told = sys.stdin.read()
base, read = Path({base!r}), "".join(Path(p).read_text() for p in re.findall(r": (/\\S+/papers/\\S+)", told))
for path, text in json.loads((base / "swap.json").read_text()).items():
    path = re.search(r"/\\S+/papers/plan.md", told)[0] if path == "copy" else path
    Path(path).write_text(text)
(base / "read").write_text(read)
Path(argv[argv.index("--output-last-message") + 1]).write_text((base / "review.json").read_text())
"""


@pytest.mark.parametrize("name", ["copy", "plan", "summary", "evidence", "diff", "work"])
def test_what_is_swapped_while_it_is_read_is_not_reviewed(real: Real, name: str) -> None:
    """Breaks when a review counts of papers, their copies or files that are not what was judged any more."""
    real.reviewer()
    (real.base / "bin" / "codex").write_text(SWAP.format(python=sys.executable, base=str(real.base)))
    real.reviews("complete")
    assert real.setup("--reviewer", "codex").returncode == 0
    real.work(0)
    places: dict[str, str | Path] = {
        "copy": "copy", "plan": real.repo / PLAN, "summary": real.loop / "round-0-summary.md",
        "evidence": real.loop / ".evidence-for-review.json", "diff": real.loop / ".diff-for-review.patch",
        "work": real.repo / "a.txt",
    }  # fmt: skip
    path = places[name]
    before = real.repo.joinpath(path).read_text() if name in ("plan", "summary", "work") else ""
    (real.base / "swap.json").write_text(json.dumps({str(path): "# Plan\n\nanything goes\n"}))
    assert "moved" in real.stop("a")["reason"]
    assert real.at == ("BUILD", 0) and not any(line["event"] == "review" for line in real.lines())
    if before:
        real.repo.joinpath(path).write_text(before)
    (real.base / "swap.json").write_text("{}")
    real.stop("b")
    assert real.at[0] == "BUILD" and sum(line["event"] == "review" for line in real.lines()) == 1
    read = (real.base / "read").read_text()
    assert "criterion number 21" in read and "work 0" in read and '"checks"' in read and "+round 0" in read


def test_what_is_kept_of_a_large_diff_is_what_its_findings_need() -> None:
    """Breaks when the journal grows with the diff, or a file beyond the cut counts as untouched."""
    many = tuple(f"src/{n:05}.py" for n in range(5000))
    said = Opinion(verdict="continue", mainline="advanced", findings=(
        sim.finding("P1", id="a", file="src/04999.py"), sim.finding("P1", id="b", file="src/"),
    ))  # fmt: skip
    kept = touched(many, said)
    assert len(kept) == 500 and kept[0] == "src/04999.py"
    assert touched(("b", "a"), said) == ("b", "a")
