"""The command line of ``rlcr drive``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from rlcr import options
from rlcr.drive_agents import AGENTS
from rlcr.options import SCRIPTS, Refused

USAGE = """\
USAGE: rlcr drive --agent codex|claude [PLAN [set-up options]] [options] [-- CLIENT ARGS]

Run a client headless, turn after turn, and judge every end of a turn as the Stop hook would, without a hook.

  PLAN [set-up options]    set a loop up first (setup-rlcr-loop.sh --help; the reviewer is this client by default);
                           without: go on with the loop of this worktree that rlcr drive began
  --agent A                codex or claude
  --adopt                  take over a loop that belongs to a session of a client, which is free from then on
  --turn-timeout S         seconds that one turn may take before it is ended and begun again (14400)
  --turns N                at most N turns now (no limit)
  -- CLIENT ARGS           words for every call of the client; kept for the next rlcr drive of this loop
  -h, --help               this text

Nobody is there to be asked for leave, so unattended work usually needs, after --:
  codex   --dangerously-bypass-approvals-and-sandbox, or a sandbox in which the repository's .git can be written
  claude  --dangerously-skip-permissions
They are never added by rlcr. Hooks are off in the client that is driven. A turn that ends in an error or in its
time-out is no Stop: it is begun again after 1, 2, 4, ... seconds, five times in a row at most.

Exit code 0: COMPLETE. 1: refused, or there is no loop to drive here. 2: the loop ended without being complete (STOP,
MAXITER, CANCEL, UNEXPECTED), or was given to another session. 4: the client fails. 5: PARKED. 6: the turns are used up.
130: interrupted. After 4, 5, 6 and 130 the loop stands as it is.
"""
TURN_S = 14400


@dataclass(frozen=True, kw_only=True)
class Words:
    """A parsed command line. ``extra`` is None when no ``--`` was given."""

    agent: str
    setup: tuple[str, ...] = ()
    extra: tuple[str, ...] | None = None
    adopt: bool = False
    turn_s: int = TURN_S
    turns: int = 0

    def again(self) -> str:
        """The command that goes on."""
        limit = [] if self.turn_s == TURN_S else ["--turn-timeout", str(self.turn_s)]
        return shlex.join([str(SCRIPTS / "rlcr"), "drive", "--agent", self.agent, *limit])


def parse(words: Sequence[str]) -> Words | None:
    """The command line; None when help is asked for. Raises Refused; what needs the repository is not looked at."""
    before, extra = list(words), None
    if "--" in before:
        cut = before.index("--")
        before, extra = before[:cut], tuple(before[cut + 1 :])
    given: dict[str, str] = {}
    rest: list[str] = []
    while before:
        word = before.pop(0)
        if word in ("-h", "--help"):
            return None
        if word in ("--agent", "--turn-timeout", "--turns"):
            if not before:
                raise Refused(f"{word} needs a value")
            given[word] = before.pop(0)
        elif word == "--adopt":
            given[word] = "yes"
        else:
            rest.append(word)
    agent = given.get("--agent", "")
    if agent not in AGENTS:
        raise Refused(f"--agent must be one of {', '.join(AGENTS)}")
    taken = [word for word in extra or () if word.partition("=")[0] in AGENTS[agent].own]
    if taken:
        raise Refused(f"{taken[0]} after -- is the driver's own to say")
    if rest and "--adopt" in given:
        raise Refused("--adopt takes over a loop that is there; a PLAN begins one")
    return Words(
        agent=agent, setup=_setup_words(rest, agent) if rest else (), extra=extra, adopt="--adopt" in given,
        turn_s=_number(given, "--turn-timeout", TURN_S), turns=_number(given, "--turns", 0),
    )  # fmt: skip


def _setup_words(rest: list[str], agent: str) -> tuple[str, ...]:
    if "--session-id" in rest:
        raise Refused("--session-id: the driver is its own session")
    more = () if "--reviewer" in rest else ("--reviewer", agent)
    options.parse([*rest, *more, "--session-id", "drive"], {})
    return (*rest, *more)


def _number(given: dict[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 6 or (name in given and int(text) < 1):
        raise Refused(f"{name} must be a whole number from 1, not {text!r}")
    return int(text)
