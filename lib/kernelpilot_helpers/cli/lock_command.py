"""``kernelpilot lock``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelpilot_helpers.cli import common

if TYPE_CHECKING:
    from kernelpilot_helpers.referee.locking import Locked


@click.command("lock")
@click.option("--amend", is_flag=True, help="lock a changed contract: a new epoch, older results not comparable")
@click.option("--why", default="", help="reason of the amendment")
@common.repo_option
@common.json_option
def command(amend: bool, why: str, repo: Path, as_json: bool) -> int:
    """Audit the task, measure the A/A floor, lock contract, reference, cases, baseline, tests and benchmarks.

    The audit shows deliberately wrong outputs to the tolerance: each must fail, and every legal variation must
    pass; the score is printed beside every later "correct". Exit 1 when the task cannot tell right from wrong.
    """
    from kernelpilot_helpers.cli import gate_command
    from kernelpilot_helpers.referee import locking
    from kernelpilot_helpers.referee.floor import utc_now

    tell = common.progress()
    lab = common.measuring_lab(repo, need_lock=False)
    done = locking.lock(repo, amend=amend, why=why, lab=lab, clock=utc_now, say=tell)
    for line in done.notes:
        tell(line)
    then = gate_command.next_of(repo)
    common.emit({**as_object(done), "next": then}, as_json=as_json, text=f"{words(done)}\n  next: {then}")
    return 0


def as_object(done: Locked) -> dict[str, Any]:
    """The stable object."""
    floor = done.floor
    return {
        "epoch": done.lock.epoch,
        "locked_at": done.lock.locked_at,
        "already_locked": done.audit is None,
        "mutation_score": done.lock.mutation_score,
        "survivors": list(done.lock.survivors),
        "not_applicable": list(done.lock.not_applicable),
        "floor": None
        if floor is None
        else {"half_width": floor.half_width, "point": floor.point, "fit": floor.fit, "reason": floor.reason},
        "baseline": done.row.version,
        "notes": [*done.advice, *_unfit(done)],
        "files": sorted(done.lock.files),
    }


def _unfit(done: Locked) -> list[str]:
    """The warning that this machine allows no verdict just now."""
    if done.floor is None or done.floor.fit:
        return []
    return [f"no verdict on speed at this A/A floor: {done.floor.reason}; the next attempt measures it again"]


def words(done: Locked) -> str:
    """The same for a person."""
    if done.audit is None:
        head = f"already locked (epoch {done.lock.epoch}, {done.lock.locked_at}); nothing that it covers has changed"
        return "\n".join([head, *(f"  WARNING: {note}" for note in done.advice)])
    lines = [
        f"locked: epoch {done.lock.epoch}, {len(done.lock.files)} files",
        f"  task audit: {done.lock.mutation_score} wrong outputs caught",
    ]
    if done.lock.not_applicable:
        lines.append(f"  not applicable here: {', '.join(done.lock.not_applicable)}")
    if done.floor is not None:
        fit = "fit for verdicts" if done.floor.fit else "NOT fit for verdicts"
        lines.append(f"  A/A floor: half-width {done.floor.half_width * 100:.2f} %, {fit}")
    lines += [f"  WARNING: {note}" for note in (*done.advice, *_unfit(done))]
    return "\n".join(lines)
