"""``humanize monitor rlcr``: where the newest loop of this repository stands. Reads only; takes no lock."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rlcr import monitor_read as reading
from rlcr.monitor_text import render
from rlcr.review.logs import log_dir

FORMAT = "humanize.monitor"
VERSION = 1
EVERY_S = 2.0
_ROOT = Path(__file__).resolve().parents[1]
_KEYS = (
    "format",
    "version",
    "project",
    "loop",
    "dir",
    "started",
    "active",
    "phase",
    "unfinished",
    "reason",
    "round",
    "max",
    "reviewer",
    "branch",
    "base_commit",
    "plan",
    "gate",
    "verdict",
    "last_event",
    "blocks",
    "amendments",
    "lease",
    "criteria",
    "findings",
    "git",
    "log",
    "faults",
)
"""Every key of ``--json``, always all there; null where there is nothing to say."""


def snapshot(project: Path, now: datetime) -> dict[str, Any]:
    """The newest loop of a repository as plain data; ``loop`` is null when there is none."""
    found: dict[str, Any] = dict.fromkeys(_KEYS)
    found.update(format=FORMAT, version=VERSION, project=str(project), git=_git_facts(project), faults=[])
    loop = reading.newest_loop(project)
    if loop is None:
        return found
    journal, faults = reading.read(loop)
    state = journal.state
    met, total, kept = reading.criteria(loop)
    found.update(
        loop=loop.name,
        dir=str(loop),
        criteria={"met": met, "total": total, "kept": kept},
        findings={"open": len(state.open), "queued": len(state.queued)},
        blocks=state.blocks,
        log=_newest_log(project, loop.name),
        unfinished=bool(state.pending),
        amendments=[f"{amend.what}: {amend.why}" for amend in state.amends],
        lease=reading.lease(loop, now),
        reason=reading.parked(state.session_sha256, loop) or state.exit_reason or None,
        gate=_gate(reading.last_with(journal, "gate")),
        verdict=_verdict(reading.last_with(journal, "verdict")),
    )
    if state.setup is not None:
        setup = state.setup
        found.update(max=setup.max, reviewer=setup.reviewer, branch=setup.branch, base_commit=setup.base_commit)
        found.update(plan=setup.plan, started=setup.at, phase=state.phase, round=state.round, active=state.active)
    if journal.entries:
        last = reading.last_event(journal)
        found["last_event"] = None if last is None else {**last, "age_s": _age(last["at"], now)}
        view = None if state.pending else reading.view_fault(loop, state)
        faults += [view] if view is not None else []
    found["faults"] = [asdict(fault) for fault in faults]
    return found


def _gate(last: tuple[str, dict[str, Any]] | None) -> dict[str, Any] | None:
    if last is None:
        return None
    found = last[1].get("findings")
    return {
        "at": last[0],
        "pass": last[1].get("pass") is True,
        "done": last[1].get("done") is True,
        "findings": [str(item) for item in found] if isinstance(found, list) else [],
    }


def _verdict(last: tuple[str, dict[str, Any]] | None) -> dict[str, Any] | None:
    if last is None:
        return None
    return {"at": last[0], "verdict": last[1].get("verdict"), "mainline": last[1].get("mainline")}


def _age(at: object, now: datetime) -> int | None:
    try:
        then = datetime.strptime(str(at), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return max(0, int((now - then).total_seconds()))


def _newest_log(project: Path, loop: str) -> str | None:
    try:
        logs = [(p.stat().st_mtime, str(p)) for p in log_dir(project, loop).iterdir() if p.name.startswith("round-")]
    except OSError:
        return None
    return max(logs)[1] if logs else None


def _git(project: Path, *argv: str) -> str | None:
    """Output of git, or None; without the index lock, so that the worker's commits are not in its way."""
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", *argv], cwd=project, env=env, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def _git_facts(project: Path) -> dict[str, Any] | None:
    """HEAD and how many paths are changed, new, gone and untracked."""
    status = _git(project, "status", "--porcelain=v1", "-z", "--no-renames")
    if status is None:
        return None
    marks = [entry[:2] for entry in status.split("\0") if entry]
    head = _git(project, "rev-parse", "--verify", "-q", "HEAD")
    return {
        "head": (head or "").strip(),
        "changed": sum("M" in m or "T" in m or "U" in m for m in marks),
        "added": sum("A" in m and "U" not in m for m in marks),
        "deleted": sum("D" in m and "U" not in m for m in marks),
        "untracked": marks.count("??"),
    }


def _project() -> Path | None:
    top = _git(Path.cwd(), "rev-parse", "--show-toplevel")
    return Path(top.rstrip("\n")) if top else None


def _how_to_start() -> str:
    return f'start one with: "{_ROOT / "scripts" / "setup-rlcr-loop.sh"}" PLAN --yolo'


def main(argv: list[str]) -> int:
    """Run the monitor; returns the exit code: 0, 1 when there is no loop to show, 2 on wrong usage."""
    parser = argparse.ArgumentParser(
        prog="humanize monitor rlcr", description="show the newest loop of this repository"
    )
    parser.add_argument("--once", action="store_true", help="print once and end")
    parser.add_argument("--json", action="store_true", help="print one JSON object and end")
    try:
        options = parser.parse_args(argv)
    except SystemExit as ended:
        return int(ended.code or 0)
    try:
        return _show(once=options.once, as_json=options.json)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered must not raise again at exit
        return 0


def _show(*, once: bool, as_json: bool) -> int:
    project = _project()
    if project is None:
        sys.stderr.write("humanize: not inside a git repository; cd into the loop's repository\n")
        return 1
    found = snapshot(project, datetime.now(timezone.utc))
    if as_json:
        print(json.dumps(found, ensure_ascii=True, sort_keys=True))
    if found["loop"] is None:
        sys.stderr.write(f"humanize: no loop below {project}; {_how_to_start()}\n")
        return 1
    if once and not as_json:
        print(render(found))
    if not once and not as_json:
        _watch(lambda: snapshot(project, datetime.now(timezone.utc)), found)
    sys.stdout.flush()
    return 0


def _watch(look: Callable[[], dict[str, Any]], found: dict[str, Any]) -> None:
    """Redraw until interrupted. Where stdout is no terminal, a frame is printed only when more than its age changed."""
    terminal, shown = sys.stdout.isatty(), ""
    while True:
        frame = render(found)
        ageless = json.dumps({**found, "last_event": (found["last_event"] or {}).get("at")}, sort_keys=True)
        if terminal:
            sys.stdout.write("\x1b[H\x1b[2J" + frame + "\n\nCtrl-C ends the monitor, not the loop\n")
        elif ageless != shown:
            sys.stdout.write(frame + "\n\n")
        shown = ageless
        sys.stdout.flush()
        time.sleep(EVERY_S)
        found = look()
