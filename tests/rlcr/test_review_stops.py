"""Reviews as a Stop buys them: one at most, of the right scope, kept, and retried alone when they fail."""

from __future__ import annotations

import json

import pytest

from rlcr.decide import touched
from rlcr.model import Opinion
from tests.rlcr import sim
from tests.rlcr.real import ACS, Real


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


def test_what_is_kept_of_a_large_diff_is_what_its_findings_need() -> None:
    """Breaks when the journal grows with the diff, or a file beyond the cut counts as untouched."""
    many = tuple(f"src/{n:05}.py" for n in range(5000))
    said = Opinion(verdict="continue", mainline="advanced", findings=(
        sim.finding("P1", id="a", file="src/04999.py"), sim.finding("P1", id="b", file="src/"),
    ))  # fmt: skip
    kept = touched(many, said)
    assert len(kept) == 500 and kept[0] == "src/04999.py"
    assert touched(("b", "a"), said) == ("b", "a")
