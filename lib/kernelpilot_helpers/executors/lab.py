"""The one thing a verdict needs from a machine: a job goes in, raw facts come out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Protocol

import msgspec

from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.errors import BadRecord

JOB_FILE = "job.json"
RAW_FILE = "raw.json"


class Lab(Protocol):
    """Where a job runs. ``workdir`` is the job directory: the arms' sources and ``oracle/`` lie in it."""

    def run(self, job: Job, workdir: Path) -> Raw:
        """Run ``job`` and answer what was seen; a dead arm is a ``Raw`` with ``died``, never an exception.

        Raises Refused where the machine lacks the GPU that the job needs: that says nothing of any arm.
        """
        ...


def encode_job(job: Job) -> bytes:
    """``job.json``'s bytes: what the runtime hashes into ``raw.json`` as ``job_sha256``."""
    return msgspec.json.format(msgspec.json.encode(job), indent=1) + b"\n"


def job_sha256(job: Job) -> str:
    """Hex sha256 of ``encode_job(job)``."""
    return hashlib.sha256(encode_job(job)).hexdigest()


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise BadRecord(f"key {key!r} twice in one object", where=RAW_FILE, fix="run the job again")
        out[key] = value
    return out


def parse_raw(data: bytes) -> Raw:
    """``raw.json``'s bytes as a strict record.

    Raises BadRecord on invalid JSON, a duplicate key, a missing or unknown field, or a NaN.
    """
    try:
        json.loads(data, object_pairs_hook=_pairs, parse_constant=_refuse_constant)
        return msgspec.json.decode(data, type=Raw)
    except (ValueError, msgspec.MsgspecError) as fault:
        raise BadRecord(str(fault), where=RAW_FILE, fix="run the job again") from fault


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that JSON has")
