"""The files of a new repo as bytes, from a request. Only reads; ``repo`` writes."""

from __future__ import annotations

import json
from pathlib import Path

from kernelpilot_helpers import contract, ledger, records
from kernelpilot_helpers.contract.model import Contract
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.scaffold.request import Request, template

EVIDENCE_PATH = ".humanize/evidence.json"
HEAD = """\
# What is computed (task, axes, tensors), what is correct (reference, numerics), how much faster is enough (target).
# Locked by `kernelpilot lock`; a later change needs `kernelpilot lock --amend --why "..."`.

"""
COPIES = {
    "tests/test_correctness.py": "test_correctness.py",
    "benchmarks/bench.py": "bench.py",
    ".gitignore": "gitignore.txt",
    "bindings/README.md": "bindings.md",
    "artifacts/research-digest.md": "research-digest.md",
    "artifacts/profile-digests/README.md": "profile-digests.md",
}
REFERENCE_TODO = "write the reference: what is correct"
BASELINE_TODO = "write the baseline: what must be beaten"
STUB = '''\
"""{what}"""

from __future__ import annotations

from typing import Any


def {name}(*, {arguments}) -> {result}:
    """{words}"""
    raise NotImplementedError("{what}")
'''


def arguments(made: Contract, *roles: str) -> list[str]:
    """Names of the tensors of these roles, in call order."""
    return [name for name, tensor in made.tensors.items() if tensor.role in roles]


def _typed(names: list[str]) -> str:
    return ", ".join(f"{name}: Any" for name in names)


def reference_stub(made: Contract) -> str:
    """A reference that refuses to run, with the right signature."""
    names = arguments(made, "in", "inout", "static", "scalar")
    results = arguments(made, "out", "inout")
    return STUB.format(
        what=REFERENCE_TODO,
        name=made.reference.fn.partition(":")[2],
        arguments=_typed(names),
        result="Any",
        words=f"Return {', '.join(results)}, in this order, computed from float64 inputs.",
    )


def baseline_stub(made: Contract) -> str:
    """A baseline that refuses to run, with the right signature."""
    names = arguments(made, "in", "inout", "static", "scalar", "out")
    return STUB.format(
        what=BASELINE_TODO,
        name=made.baseline[0].fn.partition(":")[2],
        arguments=_typed([n for n in made.tensors if n in names]),
        result="None",
        words=f"Write into {', '.join(arguments(made, 'out', 'inout'))}.",
    )


def readme(made: Contract) -> str:
    """The repo's README."""
    words = {
        "@TASK@": made.task.name,
        "@SUMMARY@": made.task.summary or f"op: {made.task.op}",
        "@REFERENCE@": made.reference.fn.partition(":")[0],
        "@ARGUMENTS@": ", ".join(made.tensors),
    }
    text = template("README.md")
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text


def _read(path: Path) -> bytes:
    data = records.read_bytes(path, fix="check the request's paths")
    if len(data) > POLICY.evidence_file_bytes_max:
        most = POLICY.evidence_file_bytes_max // 2**20
        raise Refused(f"larger than {most} MiB", where=str(path), fix="leave it out of the repo, or make it smaller")
    return data


def _baseline_files(request: Request) -> dict[str, bytes]:
    made = request.contract
    if request.baseline is not None:
        paths = sorted(p for p in request.baseline.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        return {f"baseline/{p.relative_to(request.baseline).as_posix()}": _read(p) for p in paths}
    path = made.baseline[0].fn.partition(":")[0]
    text = template("baseline/candidate.py") if request.example else baseline_stub(made)
    return {path: text.encode()}


def _reference_file(request: Request) -> bytes:
    if request.reference is not None:
        return _read(request.reference)
    return (template("reference.py") if request.example else reference_stub(request.contract)).encode()


def todo(request: Request) -> tuple[str, ...]:
    """Files that are stubs: ``kernelpilot lock`` refuses until they are written."""
    if request.example:
        return ()
    reference = () if request.reference else (request.contract.reference.fn.partition(":")[0],)
    return (*reference, *(() if request.baseline else (request.contract.baseline[0].fn.partition(":")[0],)))


def evidence(kernelpilot: Path) -> bytes:
    """``.humanize/evidence.json``: absolute, because the clients' hooks run with another PATH.

    The loop's runtime reads it and knows nothing of kernels: a name, a command, and how long it may take.
    """
    gate = {"name": "gate", "argv": [str(kernelpilot), "gate", "--json"], "timeout_s": int(POLICY.gate_s)}
    return (json.dumps({"format": "humanize.evidence", "version": 1, "commands": [gate]}, indent=1) + "\n").encode()


def files(request: Request) -> dict[str, bytes]:
    """Repo-relative path -> bytes of everything that is committed."""
    made = request.contract
    task = f"src/{made.task.name}"
    out = {
        "README.md": readme(made).encode(),
        contract.CONTRACT_PATH: HEAD.encode() + contract.dump(made),
        contract.CASES_PATH: contract.dump_cases(request.cases),
        made.reference.fn.partition(":")[0]: _reference_file(request),
        **_baseline_files(request),
        **{path: template(name).encode() for path, name in COPIES.items()},
        f"{task}/current": b"baseline\n",
        f"{task}/variants/.gitkeep": b"",
        "dispatch/.gitkeep": b"",
        "artifacts/runs/.gitkeep": b"",
        ledger.LINEAGE_PATH: records.header(ledger.LINEAGE) + b"\n",
        ledger.IDEAS_PATH: records.header(ledger.IDEAS) + b"\n",
    }
    return out | {path: text.encode() for path, text in ledger.views((), {}, ()).items()}
