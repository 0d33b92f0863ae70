"""Ordinary commands, as a user or an agent would type them; their JSON objects come back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelpilot_helpers import policy
from kernelpilot_helpers.errors import KernelPilotError


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, with this very package first and no loop or client of the caller's in it."""
    foreign = ("RLCR_", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "CODEX_SESSION_ID")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**env, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **(extra or {})}


def ask(argv: Sequence[str], *, cwd: Path, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """One kernelpilot command. Raises KernelPilotError when it exits with another code or prints no object."""
    cwd.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "kernelpilot_helpers", *argv, "--json"]
    done = run(command, cwd=cwd, env=environment())
    try:
        data = json.loads(done.stdout)
    except ValueError:
        data = None
    if done.returncode not in codes or not isinstance(data, dict):
        words = (done.stderr or done.stdout).strip()
        fix = f"cd {cwd} && kernelpilot {' '.join(argv[:2])}"
        raise KernelPilotError(f"kernelpilot {argv[0]} failed: {words}", where=str(cwd), fix=fix)
    return data


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], data: str = "") -> subprocess.CompletedProcess[str]:
    """Any program, waited for. Raises KernelPilotError when it does not end in time."""
    limit = policy.POLICY.job_s * 3
    try:
        return subprocess.run(
            list(argv), cwd=cwd, env=dict(env), input=data, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        raise KernelPilotError(
            f"{argv[0]} did not end within {limit:.0f} s", where=str(cwd), fix="try it again"
        ) from None
