"""Packages that the contract's baselines need: asked of the task's Python before the lock, named where they lack."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.contract import Contract
from kernelpilot_helpers.contract.model import Baseline
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.executors.local import LocalLab

ASK = """
import importlib.metadata, importlib.util, json, sys
def there(name):
    try:
        return bool(importlib.metadata.distribution(name))
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        return importlib.util.find_spec(name.replace("-", "_")) is not None
    except (ImportError, ValueError):
        return False
print("\\n" + json.dumps([name for name in sys.argv[1:] if not there(name)]))
"""
ASK_S = 60.0
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What a requirement begins with; its version is pip's business."""
ABSENT = re.compile(r"^ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE)


def require_packages(lab: Lab, made: Contract) -> None:
    """Refuse a contract with a baseline whose ``requires`` the task's Python lacks.

    Raises Refused. A lab elsewhere is not asked: what its Python lacks shows when the baseline is imported.
    """
    if not isinstance(lab, LocalLab):
        return
    named = {text: found[0] for one in made.baseline for text in one.requires if (found := NAME.match(text))}
    absent = set(_lacking(lab.python.argv, sorted(set(named.values())))) if named else set()
    for one in made.baseline:
        lacks = [text for text in one.requires if named.get(text) in absent]
        if lacks:
            raise _refusal(one, lacks, lab, sole=len(made.baseline) == 1)


def require_imported(raw: Raw, lab: Lab, made: Contract, root: Path) -> None:
    """Refuse, naming the package, where the first baseline (arm A) died for want of one. Raises Refused."""
    died = raw.died
    if died is None or died.arm != "A" or died.stage not in ("build", "load"):
        return
    found = ABSENT.findall(died.log)
    top = found[-1].partition(".")[0] if found else ""
    if top and not any((root / "baseline").glob(f"{top}*")):
        one = made.baseline[0]
        raise _refusal(one, one.requires or (top,), lab, sole=len(made.baseline) == 1)


def _refusal(one: Baseline, lacks: Sequence[str], lab: Lab, *, sole: bool) -> Refused:
    python = shlex.join(lab.python.argv) if isinstance(lab, LocalLab) else "python3"
    instead = "or write another baseline" if sole else f'or delete baseline "{one.id}" from contract.toml'
    return Refused(
        f"baseline {one.id} needs {', '.join(lacks)}, which the task's Python lacks",
        where="contract.toml: baseline",
        fix=f"{python} -m pip install {shlex.join(lacks)}  # {instead} before the lock",
    )


def _lacking(argv: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names that this Python has neither as a package nor as a module; none where it cannot be asked."""
    try:
        done = subprocess.run(
            [*argv, "-I", "-c", ASK, *names], capture_output=True, text=True, timeout=ASK_S, check=False
        )
        found = json.loads(done.stdout.strip().rpartition("\n")[2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    return [name for name in names if name in found]
