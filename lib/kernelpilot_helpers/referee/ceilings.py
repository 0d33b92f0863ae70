"""What each GPU can do at best, measured once and kept by its UUID and driver in the tool's cache."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from kernelpilot_helpers import proc, records, units
from kernelpilot_helpers.attempt.job import Job, Limits
from kernelpilot_helpers.errors import BadRecord, KernelPilotError, ToolMissing
from kernelpilot_helpers.executors.lab import Lab
from kernelpilot_helpers.policy import POLICY

FORMAT = "kernelpilot.ceilings"
VERSION = 1
FIX = "kernelpilot bench --ceilings --refresh"
REFERENCE = "def ref():\n    return {}\n"
UUID = re.compile(r"GPU-[0-9a-fA-F-]{8,}")
DIRECTIONS = ("read", "write", "copy")


class Ceilings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GPU's best figures."""

    format: str = FORMAT
    version: int = VERSION
    gpu: str
    gpu_uuid: str
    driver: str
    measured: str
    """UTC, ISO 8601, to the second."""
    values: dict[str, float]
    """``read@SIZE``, ``write@SIZE``, ``copy@SIZE`` in GB/s, ``matmul@TYPE`` in TFLOP/s, ``floor_us``."""


OWNER = records.Owner(format=FORMAT, version=VERSION, type=Ceilings, fix=FIX)


def path(uuid: str, cache: Path | None = None) -> Path:
    """Where one GPU's ceilings are kept."""
    name = re.sub(r"[^A-Za-z0-9-]", "_", uuid)
    return (proc.cache_dir() if cache is None else cache) / "ceilings" / f"{name}.json"


def cached(uuid: str, driver: str, cache: Path | None = None) -> Ceilings | None:
    """The kept figures of this GPU under this driver; None where there are none or the file cannot be read."""
    try:
        found = records.load(path(uuid, cache), OWNER)
    except BadRecord:
        return None
    return found if (found.gpu_uuid, found.driver) == (uuid, driver) else None


def measure(lab: Lab, *, cache: Path | None = None, now: dt.datetime | None = None) -> Ceilings:
    """Measure this machine's GPU through the runtime (seconds) and keep the result.

    Raises ToolMissing where the job finds no GPU, KernelPilotError where it ends otherwise without figures.
    """
    now = dt.datetime.now(dt.timezone.utc) if now is None else now
    with tempfile.TemporaryDirectory(prefix="kp-ceilings-") as tmp:
        oracle = Path(tmp) / "oracle"
        oracle.mkdir()
        (oracle / "reference.py").write_text(REFERENCE)
        raw = lab.run(job(), Path(tmp))
    if raw.died is not None or not raw.ceilings:
        why = raw.died.log.strip() if raw.died is not None else "the job measured nothing"
        kind = ToolMissing if "gpu.absent" in why else KernelPilotError
        raise kind(f"no ceilings: {why[-600:]}", where="bench --ceilings", fix="kernelpilot doctor")
    found = Ceilings(
        gpu=str(raw.env.get("gpu", "")),
        gpu_uuid=str(raw.env.get("gpu_uuid", "")),
        driver=str(raw.env.get("driver", "")),
        measured=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        values=dict(raw.ceilings),
    )
    records.save(path(found.gpu_uuid, cache), found)
    return found


def job() -> Job:
    """The job that measures ceilings: no arms, no cases."""
    return Job(
        job_id="ceilings",
        device="gpu",
        framework="torch",
        phases=("ceilings",),
        cases=(),
        arms=(),
        limits=Limits(wall_s=120.0, lock_s=POLICY.lock_s),
    )


def here(environ: Mapping[str, str] | None = None) -> tuple[str, str] | None:
    """(UUID, driver) of the GPU that a job would use, as nvidia-smi tells it; None where it cannot be told."""
    environ = os.environ if environ is None else environ
    return choose(_listing(os.environ.get("PATH", "")), environ.get("CUDA_VISIBLE_DEVICES", ""))


@lru_cache(maxsize=4)
def _listing(path: str) -> str:  # noqa: ARG001 - another search path may find another program
    """nvidia-smi takes a good part of a second, and one command may judge a hundred rows."""
    argv = ["nvidia-smi", "--query-gpu=uuid,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def best_here(kind: str) -> dict[str, float]:
    """What this machine's GPU was measured to do at best; empty on a CPU and where nobody measured. Decides nothing."""
    gpu = here() if kind == "gpu" else None
    found = cached(*gpu) if gpu is not None else None
    return dict(found.values) if found is not None else {}


def choose(listing: str, visible: str) -> tuple[str, str] | None:
    """The first visible GPU of nvidia-smi's ``uuid, driver`` lines; ``visible`` holds numbers or UUIDs.

    >>> choose("GPU-aaaaaaaa, 580.1\\nGPU-bbbbbbbb, 580.1\\n", "1,0")
    ('GPU-bbbbbbbb', '580.1')
    >>> choose("GPU-aaaaaaaa, 580.1", "MIG-0") is None
    True
    """
    rows = [tuple(part.strip() for part in line.split(",")) for line in listing.splitlines() if UUID.match(line)]
    first = visible.partition(",")[0].strip()
    if not first:
        found = rows[:1]
    elif first.isdigit():
        found = rows[int(first) : int(first) + 1]
    else:
        found = [row for row in rows if row[0].startswith(first)]
    return (found[0][0], found[0][1]) if found and len(found[0]) == 2 else None


def table(found: Ceilings) -> str:
    """The figures for a person: bandwidth by size, products by type, the floor."""
    sizes = list(dict.fromkeys(k.partition("@")[2] for k in found.values if k.partition("@")[0] in DIRECTIONS))
    lines = [f"{found.gpu}  {found.gpu_uuid}  driver {found.driver}  measured {found.measured}"]
    lines.append(f"  {'GB/s':<10}" + "".join(f"{name:>10}" for name in DIRECTIONS))
    for size in sizes:
        cells = (found.values.get(f"{name}@{size}") for name in DIRECTIONS)
        lines.append(f"  {size:<10}" + "".join(f"{'-' if v is None else f'{v:.0f}':>10}" for v in cells))
    products = {k.partition("@")[2]: v for k, v in found.values.items() if k.startswith("matmul@")}
    if products:
        lines.append("  TFLOP/s (int8: TOP/s)  " + "  ".join(f"{k} {v:.0f}" for k, v in products.items()))
    if "floor_us" in found.values:
        lines.append(f"  an empty kernel in a graph: {units.micros(found.values['floor_us'])}")
    return "\n".join(lines)
