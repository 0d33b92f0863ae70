"""The loop from outside: a client runs headless, turn after turn, each end of a turn judged by the same core."""

from __future__ import annotations

import contextlib
import io
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlcr import cli, drive_turn, loop, registry, repo, setup, stop_hook
from rlcr.answer import answer
from rlcr.command import here
from rlcr.decide import Terminated
from rlcr.drive_agents import AGENTS
from rlcr.drive_turn import Ended, Record, Turn
from rlcr.drive_words import USAGE, Words, parse
from rlcr.files import Locked, locked
from rlcr.journal import NAME, crash
from rlcr.loop import Loop
from rlcr.model import TERMINALS, State, sha256
from rlcr.options import CANCEL, RLCR, Refused
from rlcr.review.logs import log_dir
from rlcr.step import Illegal

FAILURES = 5
"""Failed turns in a row before the driver gives up."""
LONGEST_PAUSE_S = 60
_SETTLE_S = 3.0
"""Seconds that a cancel from another terminal has to write what it told us to end for."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
Sleep = Callable[[float], None]


def main(words: Sequence[str], sleep: Sleep = time.sleep) -> int:
    """Drive the loop of this worktree to its end; the exit codes are in ``USAGE``."""
    given: Words | None = None
    try:
        given = parse(words)
        if given is None:
            print(USAGE, end="")
            return 0
        _told_apart()
        return _main(given, sleep)
    except (Terminated, KeyboardInterrupt):
        _say(f"interrupted; the loop stays as it is. To go on: {given.again() if given else 'rlcr drive'}")
        return 130
    except (Illegal, Locked, OSError, repo.GitError, ValueError, LookupError, RecursionError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more: no reason to end
        print(f"rlcr drive: {text}", file=sys.stderr, flush=True)


def _told_apart() -> None:
    """From now on the first signal ends what is going on; judging a Stop sets handlers of its own."""

    def told(_signal: int, _frame: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # the client's group is being ended: let that be done
        raise Terminated

    for number in _SIGNALS:
        signal.signal(number, told)


def _main(given: Words, sleep: Sleep) -> int:
    program = shutil.which(given.agent)
    if program is None:
        raise Refused(f"no {given.agent} on PATH")
    root = repo.toplevel(Path.cwd())
    if root is None:
        raise Refused("not inside a git repository")
    lock = registry.state_dir() / "drives" / f"{sha256(str(root))}.lock"
    try:
        with locked(lock, 0):
            owner = _begin(given, root) if given.setup else _take_over(given)
            return Driver(given=given, program=program, root=root, owner=owner, sleep=sleep).run() if owner else 1
    except Locked as busy:
        if str(busy) != str(lock):
            raise
        raise Refused(f"another rlcr drive is at work in {root}") from None


def _begin(given: Words, root: Path) -> str:
    """Set a loop up under a session of our own; its owner's hash, empty when set-up was refused and said why."""
    session = f"drive-{secrets.token_hex(16)}"
    owner = sha256(session)
    drive_turn.save(owner, Record(agent=given.agent, extra=given.extra or ()))
    said = io.StringIO()
    done = 1
    try:
        with contextlib.redirect_stdout(said):
            done = setup.main([*given.setup, "--session-id", session])
    finally:
        found = loop.active(root)
        if found is None or found.state.session_sha256 != owner:
            drive_turn.record_path(owner).unlink(missing_ok=True)
    for line in said.getvalue().partition("\nNote: whether")[0].splitlines():
        if line.startswith(("Plan:", "Reviewer:", "Evidence:", "Note:")):
            _say(line)
    return owner if done == 0 else ""


def _take_over(given: Words) -> str:
    """The owner's hash of the loop that is active here, once it is ours. Raises Refused, Illegal, LookupError."""
    found = here()
    owner, entry = found.state.session_sha256, registry.load(found.state.session_sha256)
    if faults := found.faults(entry):
        raise Illegal(f"{faults[0].where}: {faults[0].what}; the loop cannot be driven, see rlcr status")
    record = drive_turn.load(owner)
    if record is None and not given.adopt:
        raise Refused(
            f"the loop {found.folder} belongs to a session of a client: say --adopt to take it over, and that session "
            "is free from then on"
        )
    if record is not None and drive_turn.end_left(record):
        _say(f"ended the {record.agent} that the last driver left at work")
    same = record is not None and record.agent == given.agent
    kept = record if record is not None and same else Record(agent=given.agent, turn=record.turn if record else 0)
    kept = replace(kept, pid=0, mark="", extra=kept.extra if given.extra is None else given.extra)
    if record is None or (entry is None and found.state.pending == "setup"):  # the second: a set-up died half way
        session = f"drive-{secrets.token_hex(16)}"
        owner, former = sha256(session), owner
        drive_turn.save(owner, kept)
        with contextlib.redirect_stdout(io.StringIO()):
            cli.adopt(["--session-id", session])
        drive_turn.record_path(former).unlink(missing_ok=True)
    drive_turn.save(owner, kept)
    return owner


class Driver:
    """One loop, one client, until either ends."""

    def __init__(self, *, given: Words, program: str, root: Path, owner: str, sleep: Sleep) -> None:
        self.given, self.program, self.root, self.owner, self.sleep = given, program, root, owner, sleep
        self.agent = AGENTS[given.agent]
        self.folder = next(f for f in loop.folders(root) if Loop(f).state.session_sha256 == owner)
        self.record = drive_turn.load(owner) or Record(agent=given.agent)
        self.logs = log_dir(root, self.folder.name)
        self.failures = self.used = 0
        self.entered = False
        """Whether the client got into its session in the present row of failures."""

    @property
    def state(self) -> State:
        """What the journal says now."""
        return Loop(self.folder).state

    def note(self, **changes: Any) -> None:
        """Change the record."""
        self.record = drive_turn.save(self.owner, replace(self.record, **changes))

    def run(self) -> int:
        """Turns and Stops until there is an exit code."""
        s = self.state
        _say(f"{self.folder}, round {s.round} of {s.begun.max}, {s.phase}")
        _say(f"what {self.given.agent} prints is in {self.logs}/turn-N.out and .log")
        code = self.judge("") if 0 <= self.record.due >= s.intents else self.over()
        while code is None:
            if self.given.turns and self.used >= self.given.turns:
                if self._gone():
                    return self.over() or 2
                _say(f"{self.used} turns used up; the loop stays as it is. To go on: {self.given.again()}")
                return 6
            code = self.turn()
        return code

    def turn(self) -> int | None:
        """One turn, and the judgement of its end."""
        self.used += 1
        last_try = self.failures == FAILURES - 1 and not self.entered  # perhaps gone, in words that we do not know
        resumed = "" if last_try else self.record.session
        prompt = self.prompt(fresh=not resumed)
        number = self.record.turn + 1
        self.note(turn=number, due=-1)
        ended = drive_turn.run(
            Turn(
                agent=self.agent, argv=self.agent.argv(self.program, resumed, self.record.extra), cwd=self.root,
                stem=self.logs / f"turn-{number}", prompt=prompt, resumed=bool(resumed), timeout_s=self.given.turn_s,
            ),
            started=lambda pid, mark: self.note(pid=pid, mark=mark), named=self._named, over=self._ended,
        )  # fmt: skip
        session = ended.heard.session or self.record.session
        self.note(pid=0, mark="", session="" if ended.gone else session)
        if ended.how == "over":
            return self.over()
        if ended.failed:
            return self.failed(ended)
        self.failures, self.entered = 0, False
        self.note(due=self.state.intents)
        crash("drive.ended")
        return self.judge(ended.heard.message, ended.seconds)

    def _named(self, session: str) -> None:
        self.note(session=session)
        crash("drive.turn")

    def _ended(self) -> bool:
        """Whether the loop has ended, or is no longer ours, while a turn runs."""
        return not registry.path_of(self.owner).exists() and self._lost()

    def _lost(self) -> bool:
        state = self.state
        return not state.active or state.session_sha256 != self.owner

    def failed(self, ended: Ended) -> int | None:
        """Wait before the next try, or give up."""
        self.failures += 1
        self.entered = self.entered or bool(ended.heard.session)
        what = f"turn {self.record.turn}: {ended.seconds:.0f} s, no Stop: {ended.failed}"
        if ended.gone:
            what += "; that session is gone, a new one begins"
        if self.failures >= FAILURES:
            if self._gone():
                return self.over()
            _say(f"{what}; {self.failures} failures in a row. The loop stays as it is. To go on: {self.given.again()}")
            return 4
        if self.used == self.given.turns:
            _say(what)
            return None
        pause = min(LONGEST_PAUSE_S, 2 ** (self.failures - 1))
        _say(f"{what}; again in {pause} s")
        self.sleep(pause)
        return self.over()

    def judge(self, message: str, seconds: float = 0.0) -> int | None:
        """The end of a turn, through the core of the Stop hook; None when the loop goes on."""
        said: list[dict[str, str] | None] = []
        payload = {
            "rlcr_by": "drive", "session_id": self.record.session, "cwd": str(self.root), "hook_event_name": "Stop",
            "last_assistant_message": f"turn {self.record.turn}: {message}",  # two turns are never one Stop
        }  # fmt: skip
        heard = stop_hook.main(payload, said.append, self.owner)
        _told_apart()
        crash("drive.judged")
        if not heard:
            self._wait_for_cancel()
        got = (said[-1] if said else None) or {}
        s = self.state
        blocked = got.get("decision") == "block"
        short = f": {got.get('systemMessage', '')}" if blocked else ""
        _say(f"turn {self.record.turn}: {seconds:.0f} s, round {s.round}, {s.phase}{short}")
        if not blocked or self._gone():
            return self.over(got)
        self.note(due=-1)
        return None

    def _wait_for_cancel(self) -> None:
        """A signal while judging may come from a cancel, which ends the loop as soon as the lock is free."""
        until = time.monotonic() + _SETTLE_S
        while not self._lost():
            if time.monotonic() >= until:
                raise Terminated
            time.sleep(0.05)

    def _gone(self) -> bool:
        """Whether nothing is left on disk that could be judged, or told as laid aside."""
        return not any((self.folder / name).exists() for name in (NAME, f"{NAME}.broken"))

    def over(self, said: dict[str, str] | None = None) -> int | None:
        """The exit code of a loop that has ended or is parked, with its reason on stderr; None when it goes on."""
        s, entry = self.state, registry.load(self.owner)
        if self._gone():
            _say(f"the loop {self.folder} is gone, so nothing can be judged any more. To free its session: {CANCEL}")
            drive_turn.record_path(self.owner).unlink(missing_ok=True)
            return 2
        if s.phase in TERMINALS:
            _say(answer(s, self.folder).get("systemMessage", s.phase))
            drive_turn.record_path(self.owner).unlink(missing_ok=True)
            return 0 if s.phase == "COMPLETE" else 2
        if s.session_sha256 != self.owner:
            what = "was given to another session" if s.setup else "is UNEXPECTED: its journal was laid aside as broken"
            _say(f"the loop {self.folder} {what}")
            drive_turn.record_path(self.owner).unlink(missing_ok=True)
            return 2
        parked = s.exit_reason if s.phase == "PARKED" else entry.parked if entry else ""
        if parked or said is not None:
            why = parked or (said or {}).get("systemMessage", "the core let go of the loop")
            _say(f"PARKED: {why}. To go on: {RLCR} resume && {self.given.again()}")
            return 5
        return None

    def prompt(self, *, fresh: bool) -> str:
        """What the client is told: the last block's reason, or the page of the round where there is none."""
        s = self.state
        page = "finalize-prompt.md" if s.phase == "FINALIZE" else f"round-{s.round}-prompt.md"
        read = f"Read {self.folder / page} and do what it says."
        last = s.last
        if last is None or last.outcome != "block" or (last.phase, last.round) != (s.phase, s.round):
            return read
        reason = answer(s, self.folder).get("reason", read)
        return f"{read}\n\n{reason}" if fresh and last.page != page else reason
