"""The real clients as reviewers: what they are asked, what they may do, and what their answer is worth."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from client_lab import CLONE, Lab, Ran, reason, texts
from scripted_model import Answer, Reply, Say, Shell, Tool, Turn
from tests.clients.kernel_play import PAPERS

PLAN = ".humanize/plan.md"
PLAN_TEXT = """# Plan

## Goal Description

A note that says what it should.

## Acceptance Criteria

- AC-1: the note is there
- AC-2: the note is right
"""
GREEN = json.dumps({
    "pass": True, "done": {"met": False, "why": "a reviewer decides", "missing": ["a review"]}, "findings": [],
    "not_evaluated": [],
})  # fmt: skip
CLAIM = "the note says seven where the plan says eight"
GUARD = "RLCR_REVIEWER"


def plain_repo(lab: Lab, name: str) -> Path:
    """A repo without kernels whose evidence is green and leaves the rest to the reviewer."""
    lab.repo = lab.work / name
    (lab.repo / ".humanize").mkdir(parents=True)
    (lab.repo / PLAN).write_text(PLAN_TEXT)
    (lab.repo / ".gitignore").write_text(".humanize*\n")
    (lab.repo / "note.txt").write_text("0\n")
    (lab.repo / ".humanize" / "said.json").write_text(GREEN)
    command = {"name": "gate", "argv": ["cat", ".humanize/said.json"], "timeout_s": 60}
    evidence = {"format": "humanize.evidence", "version": 1, "commands": [command]}
    (lab.repo / ".humanize" / "evidence.json").write_text(json.dumps(evidence))
    for argv in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "a note")):
        lab.must("git", *argv, cwd=lab.repo)
    return lab.repo


def answer(verdict: str, *, met: bool, claim: str = "") -> Answer:
    """A reviewer's answer in the schema, with one P1 finding where there is a claim."""
    acs = [
        {"id": f"AC-{n}", "status": "met" if met else "unmet", "evidence": "note.txt" if met else ""} for n in (1, 2)
    ]
    found = [{"id": "new", "priority": "P1", "file": "note.txt", "line": 1, "claim": claim, "locus": "in-round"}]
    return Answer({
        "verdict": verdict, "mainline": "advanced", "acs": acs, "findings": found if claim else [],
        "text": "Look at the note again.",
    })  # fmt: skip


def reviewed_loop(lab: Lab, reviewer: str) -> None:
    """Three reviews through the Stop hook: a finding, an answer that is none, and a pass beside a write."""
    repo = plain_repo(lab, f"{lab.client}-by-{reviewer}")
    python = lab.home / ".local" / "share" / "kernelpilot" / "venv" / "bin" / "python"

    def work(number: int) -> Shell:
        return lab.sh(
            f"'{python}' '{PAPERS}' {number} && echo {number + 7} > note.txt && git commit -qam 'round {number}'"
        )

    turns = [lab.begin(PLAN, reviewer), work(0), Say("A"), work(1), Say("B"), Say("C"), Shell(lab.cancel()), Say("D")]
    evil = [repo / f"evil-{n}" for n in range(2)]
    words = f"cd {repo}; touch {evil[0]}; echo evil > note.txt; touch ~/evil; env | grep {GUARD}; git log --oneline"
    look: Turn = Shell(f"cd {repo} && git log --oneline && cat note.txt")
    tries: list[Turn] = [Shell(words)]
    empty: list[Turn] = [Say("It all looks good to me.")]
    if reviewer == "claude":  # it has no shell, asks twice for the schema, and reads the diff from a file
        look, empty = Reply(_read_diff), empty * 2
        tries = [Tool("Bash", {"command": words, "description": "write"}),
                 Tool("Write", {"file_path": str(evil[1]), "content": "evil"})]  # fmt: skip
    reviews = [
        look, answer("continue", met=False, claim=CLAIM), *empty, *tries, answer("complete", met=True),
    ]  # fmt: skip
    ran = lab.play("begin", turns, reviews=reviews)
    lab.check(f"{reviewer} reviews: the whole script was played", (len(ran.asked), ran.code) == (len(turns), 0),
              f"{len(ran.asked)} of {len(turns)}, {len(ran.reviewed)} of {len(reviews)}; {ran.err[-600:]}")  # fmt: skip
    _asked(lab, ran, reviewer)
    diff = "\n".join(texts(ran.reviewed[1])) if len(ran.reviewed) > 1 else ""
    lab.check(f"{reviewer} reviews: it can see what changed", "round 0" in diff and "7" in diff, diff[-900:])
    first, second = reason(lab, ran, 4), reason(lab, ran, 6)
    lab.check(f"{reviewer} reviews: its finding is the next user message", CLAIM in first, first)
    lab.check(f"{reviewer} reviews: words instead of the schema are no review, and never a pass",
              "could not be judged (review-" in second, second)  # fmt: skip
    stops = lab.stops()
    verdicts = [(s.get("verdict") or {}).get("verdict") for s in stops]
    lab.check(f"{reviewer} reviews: three stops of the worker, and none of the reviewer's own",
              len(stops) == 3 and verdicts[:2] == ["continue", None], (verdicts, len(stops)))  # fmt: skip
    wrote = [str(p) for p in (*evil, lab.home / "evil") if p.exists()]
    clean = lab.must("git", "status", "--porcelain", cwd=repo)
    lab.check(f"{reviewer} reviews: it cannot write", not wrote and not clean, (wrote, clean))
    lab.notes.append(f"{reviewer} as a reviewer that tried to write: the verdict of that review is {verdicts[2:]}")
    lab.over()


def _read_diff(body: dict[str, Any]) -> Tool:
    """Open the diff that the prompt names."""
    found = re.search(r"/\S+/diff\.patch", "\n".join(texts(body)))
    return Tool("Read", {"file_path": found[0] if found else "/absent"})


def _asked(lab: Lab, ran: Ran, reviewer: str) -> None:
    """The schema as the model got it."""
    sys.path[:0] = [str(CLONE / "vendor" / "humanize")]
    from rlcr.review.schema import SCHEMA

    body: dict[str, Any] = ran.reviewed[0] if ran.reviewed else {}
    if reviewer == "codex":
        form = (body.get("text") or {}).get("format") or {}
        lab.check("codex takes our schema as it is, and strictly", form.get("strict") is True and
                  form.get("type") == "json_schema" and form.get("schema") == SCHEMA, form)  # fmt: skip
    else:
        tools = {t.get("name"): t.get("input_schema") for t in body.get("tools") or []}
        given = tools.get("StructuredOutput") or {}
        same = all(given.get(key) == SCHEMA[key] for key in SCHEMA)
        lab.check("claude takes our schema as it is, as a tool", same, given)
        hands = {"Bash", "Write", "Edit", "NotebookEdit"} & tools.keys()
        lab.check("claude as a reviewer has no tool that writes or runs anything", tools and not hands, hands)


def rerouted(lab: Lab, reviewer: str) -> None:
    """The worker commits settings that would send the reviewer to a model of the worker's own."""
    repo = plain_repo(lab, f"{lab.client}-reroutes-{reviewer}")
    (repo / ".claude").mkdir()
    (repo / ".codex").mkdir()
    (repo / ".claude" / "settings.json").write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}}))
    (repo / ".codex" / "config.toml").write_text(
        'model_provider = "mine"\n[model_providers.mine]\nname = "mine"\nbase_url = "http://127.0.0.1:1/v1"\n'
        'wire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
    )
    lab.must("git", "add", "-A", cwd=repo)
    lab.must("git", "commit", "-qm", "settings", cwd=repo)
    python = lab.home / ".local" / "share" / "kernelpilot" / "venv" / "bin" / "python"
    work = lab.sh(f"'{python}' '{PAPERS}' 0 && echo 1 > note.txt && git commit -qam work")
    turns = [lab.begin(PLAN, reviewer), work, Say("A"), Shell(lab.cancel()), Say("B")]
    ran = lab.play("begin", turns, reviews=[answer("continue", met=False, claim=CLAIM)])
    text = reason(lab, ran, 4)
    lab.check(f"settings in the repo do not send the {reviewer} reviewer elsewhere",
              len(ran.reviewed) == 1 and CLAIM in text, (len(ran.reviewed), text))  # fmt: skip
    lab.over()
