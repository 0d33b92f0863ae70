"""The command line of set-up: what each flag means, which ones say nothing any more, which ones are refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcr.model import REVIEWERS

HOOK_S = 3600
"""Seconds for which the clients' Stop hook is registered; evidence and review together end before it."""
MARGIN_S = 60
LEAST_S = 10
"""A reviewer that is given less has no time to begin."""
SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
SCRIPT = SCRIPTS / "setup-rlcr-loop.sh"
RLCR, CANCEL = (shlex.quote(str(SCRIPTS / name)) for name in ("rlcr", "cancel-rlcr-loop.sh"))
"""As they are typed in a shell, from wherever."""

USAGE = """\
USAGE: setup-rlcr-loop.sh PLAN [options]
       setup-rlcr-loop.sh --skip-impl [PLAN] [options]

  PLAN, --plan-file P      the plan: a relative path inside this repository
  --track-plan-file        the plan is committed (otherwise it must be gitignored, below .humanize for instance)
  --skip-impl              straight to the code review of what lies between the base branch and HEAD; no plan needed
  --max N                  reviews that may begin a new round, in all phases together (84)
  --session-id ID          the session whose Stops are judged (CLAUDE_CODE_SESSION_ID or CODEX_THREAD_ID)
  --reviewer R             evidence-only, codex or claude (the client that runs this)
  --base-branch B          a local branch (the remote's default, main, master, or this one)
  --full-review-round N    every Nth review looks at everything (5, at least 2)
  --codex-model M[:E]      model and effort (xhigh, high, medium, low) of the reviewer; its own default otherwise
  --codex-timeout S        seconds that one review may take (5400, at least 10; cut to what the hook's time allows)
  --yolo, --skip-quiz, --claude-answer-codex
                           accepted and without meaning here: nothing is asked
  -h, --help               this text

Not supported, and refused by name: --agent-teams, --privacy, --push-every-round, --allow-empty-bitlesson-none,
--require-bitlesson-entry-for-none. Configuration files (config.json) are not read; a note says so where one is found.

Exit code 0: the loop is set up. 1: it is not; the reason is on stderr.
"""
IDLE = ("--yolo", "--skip-quiz", "--claude-answer-codex")
DROPPED = {
    "--agent-teams": "one session drives one loop",
    "--privacy": "nothing is ever sent anywhere, so there is nothing to turn off",
    "--push-every-round": "the loop never pushes",
    "--allow-empty-bitlesson-none": "there are no BitLessons here",
    "--require-bitlesson-entry-for-none": "there are no BitLessons here",
}
VALUED = (
    "--plan-file", "--max", "--session-id", "--reviewer", "--base-branch", "--full-review-round", "--codex-model",
    "--codex-timeout",
)  # fmt: skip
FLAGS = ("--track-plan-file", "--skip-impl")
EFFORTS = ("xhigh", "high", "medium", "low")


class Refused(ValueError):
    """Why there will be no loop, in words for the user."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """A parsed command line."""

    plan: str = ""
    track: bool = False
    skip_impl: bool = False
    max: int = 84
    session: str = ""
    reviewer: str = ""
    base_branch: str = ""
    full: int = 5
    model: str = ""
    effort: str = "high"
    timeout_s: int = 5400
    idle: tuple[str, ...] = ()
    help: bool = False


def parse(argv: Sequence[str], env: Mapping[str, str]) -> Options:
    """Options from words and environment. Raises Refused; what needs the repository is not looked at here."""
    given, plans, idle, flags = _words(argv)
    if given.get("--help"):
        return Options(help=True)
    if len(plans) + ("--plan-file" in given) > 1:
        raise Refused("Cannot specify both PLAN and --plan-file, or more than one PLAN")
    planned, skip = bool(plans or "--plan-file" in given), "--skip-impl" in flags
    session, reviewer = _session(given.get("--session-id"), env), _reviewer(given.get("--reviewer"), env)
    if not session or not reviewer:
        raise Refused(_no_client(argv, bool(session), bool(reviewer), planned or skip))
    if skip and reviewer == "evidence-only":
        raise Refused(
            "--skip-impl goes straight to code review, and --reviewer evidence-only has none: codex or claude"
        )
    if "--track-plan-file" in flags and not planned:
        raise Refused("No plan file provided, which --track-plan-file is about")
    model, _, effort = given.get("--codex-model", "").partition(":")
    if model and not re.fullmatch(r"[A-Za-z0-9._-]+", model):
        raise Refused(f"--codex-model: {model!r} is no model name")
    if effort not in EFFORTS and ":" in given.get("--codex-model", ""):
        raise Refused(f"--codex-model: effort {effort!r} is none of {', '.join(EFFORTS)}")
    return Options(
        plan=given.get("--plan-file", plans[0] if plans else ""), track="--track-plan-file" in flags,
        skip_impl=skip, max=_number(given, "--max", 84, 1),
        session=session, reviewer=reviewer,
        base_branch=given.get("--base-branch", ""), full=_number(given, "--full-review-round", 5, 2),
        model=model, effort=effort or "high", timeout_s=_number(given, "--codex-timeout", 5400, LEAST_S), idle=idle,
    )  # fmt: skip


def _words(argv: Sequence[str]) -> tuple[dict[str, str], list[str], tuple[str, ...], set[str]]:
    given: dict[str, str] = {}
    plans: list[str] = []
    idle: list[str] = []
    flags: set[str] = set()
    words = list(argv)
    while words:
        word = words.pop(0)
        if word in ("-h", "--help"):
            return {"--help": "yes"}, [], (), set()
        if word in DROPPED:
            raise Refused(f"{word} is not supported: {DROPPED[word]}")
        if word in VALUED:
            if not words or words[0].startswith("--"):
                raise Refused(f"{word} needs a value")
            given[word] = words.pop(0)
        elif word in FLAGS:
            flags.add(word)
        elif word in IDLE:
            idle.append(word)
        elif word.startswith("-"):
            raise Refused(f"unknown option {word}; see --help")
        else:
            plans.append(word)
    return given, plans, tuple(idle), flags


def _number(given: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = given.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise Refused(f"{name} must be a whole number, not {text!r}")
    if int(text) < least:
        raise Refused(f"{name} must be at least {least}")
    return int(text)


def _session(given: str | None, env: Mapping[str, str]) -> str:
    if given is not None:
        if not given.strip():
            raise Refused("--session-id is empty")
        return given
    found = {name: env[name] for name in ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID") if env.get(name)}
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    if found:
        raise Refused("both CLAUDE_CODE_SESSION_ID and CODEX_THREAD_ID are set: pass the one meant as --session-id")
    return ""


def _reviewer(given: str | None, env: Mapping[str, str]) -> str:
    if given is not None:
        if given not in REVIEWERS:
            raise Refused(f"--reviewer must be one of {', '.join(REVIEWERS)}")
        return given
    if env.get("CODEX_THREAD_ID"):
        return "codex"
    if env.get("CLAUDE_CODE_SESSION_ID"):
        return "claude"
    return ""


def _no_client(argv: Sequence[str], session: bool, reviewer: bool, plan: bool) -> str:
    """All that a client would have told, and the command line that says it instead."""
    missing, words = [], [str(SCRIPT), *([] if plan else ["PLAN"]), *argv]
    if not session:
        missing.append("no session id (CLAUDE_CODE_SESSION_ID, CODEX_THREAD_ID or --session-id)")
        words += ["--session-id", "NAME"]
    if not reviewer:
        missing.append(f"the reviewer must be given (--reviewer {'|'.join(REVIEWERS)})")
        words += ["--reviewer", REVIEWERS[0]]
    return f"no client is running this: {', and '.join(missing)}. In a plain shell:\n{shlex.join(words)}"
