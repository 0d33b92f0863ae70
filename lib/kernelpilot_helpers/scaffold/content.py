"""The files of a new repo as bytes, from a request. Only reads; ``repo`` writes."""

from __future__ import annotations

import json
from pathlib import Path

from kernelpilot_helpers import contract, ledger, records
from kernelpilot_helpers.contract.model import Contract
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.policy import POLICY
from kernelpilot_helpers.scaffold import starter
from kernelpilot_helpers.scaffold.binding import binding_files
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
    "artifacts/research-digest.md": "research-digest.md",
    "artifacts/profile-digests/README.md": "profile-digests.md",
}
FIRST = "cuda_nvrtc"
SHARED = {"cuda_extension": ("cuda_nvrtc/kernel.cu",)}
"""Templates that take files of another one along: a variant's folder must be whole by itself."""
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


def baseline_stub(made: Contract, name: str) -> str:
    """A baseline that refuses to run: function ``name`` with the right signature."""
    names = arguments(made, "in", "inout", "static", "scalar", "out")
    return STUB.format(
        what=BASELINE_TODO,
        name=name,
        arguments=_typed([n for n in made.tensors if n in names]),
        result="None",
        words=f"Write into {', '.join(arguments(made, 'out', 'inout'))}.",
    )


def readme(request: Request) -> str:
    """The repo's README."""
    made = request.contract
    device = _gpu_part(request) if contract.device(made.target) == "gpu" else ""
    words = {
        "@DEVICE@\n": f"\n{device}" if device else "",
        "@FIRST@": FIRST,
        "@TABLE@": _table(request),
        "@GPU@": made.target.gpu,
        "@TASK@": made.task.name,
        "@SUMMARY@": made.task.summary or f"op: {made.task.op}",
        "@REFERENCE@": made.reference.fn.partition(":")[0],
        "@ARGUMENTS@": starter.entry_arguments(made),
    }
    return template("README.md", words)


def _gpu_part(request: Request) -> str:
    """What the README says of a GPU. Without templates to copy it shows how a first candidate is written."""
    made = request.contract
    code = {"@CANDIDATE@\n": starter.candidate(made), "@KERNEL@\n": starter.kernel(made)}
    first = template("cuda/templates.md") if request.kit else template("cuda/starter.md", code)
    return template("cuda/gpu.md") + first + template("cuda/commands.md")


def _table(request: Request) -> str:
    """One row a template: its folder, and the first line of its candidate's docstring."""
    rows = []
    for path, data in template_files(request).items():
        if path.endswith("/candidate.py"):
            words = data.decode().partition('"""')[2].partition("\n")[0].removesuffix('"""')
            rows.append(f"| `{path.removesuffix('/candidate.py')}` | {words} |")
    return "\n".join(rows)


def template_files(request: Request) -> dict[str, bytes]:
    """``templates/`` of a built-in GPU task: whole candidates to copy from, each with every file it needs."""
    if request.kit is None:
        return {}
    root = request.kit / "variants"
    files = {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if _ours(p)}
    for into, names in SHARED.items():
        if any(path.startswith(f"{into}/") for path in files):
            files |= {f"{into}/{name.rpartition('/')[2]}": files[name] for name in names}
    return {f"templates/{path}": data for path, data in sorted(files.items())}


def _ours(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _read(path: Path) -> bytes:
    data = records.read_bytes(path, fix="check the request's paths")
    if len(data) > POLICY.evidence_file_bytes_max:
        most = POLICY.evidence_file_bytes_max // 2**20
        raise Refused(f"larger than {most} MiB", where=str(path), fix="leave it out of the repo, or make it smaller")
    return data


def _baseline_files(request: Request) -> dict[str, bytes]:
    """What is given, and a stub for each of the contract's baselines that it leaves out."""
    made, given = request.contract, request.baseline or (request.kit and request.kit / "baseline")
    paths = sorted(p for p in given.rglob("*") if _ours(p)) if given else []
    files = {f"baseline/{p.relative_to(given or p).as_posix()}": _read(p) for p in paths}
    stubs = {b.fn.partition(":")[0]: baseline_stub(made, b.fn.partition(":")[2]).encode() for b in made.baseline}
    return stubs | files


def _reference_file(request: Request) -> bytes:
    given = request.reference or (request.kit and request.kit / "reference.py")
    return _read(given) if given else reference_stub(request.contract).encode()


def todo(request: Request) -> tuple[str, ...]:
    """Files that are stubs: ``kernelpilot lock`` refuses until they are written."""
    if request.kit:
        return ()
    made = request.contract
    reference = () if request.reference else (made.reference.fn.partition(":")[0],)
    wanted = dict.fromkeys(b.fn.partition(":")[0] for b in made.baseline)
    here = request.baseline
    return (*reference, *(p for p in wanted if not (here and (here / p.removeprefix("baseline/")).is_file())))


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
    out: dict[str, bytes] = {
        "README.md": readme(request).encode(),
        contract.CONTRACT_PATH: HEAD.encode() + contract.dump(made),
        contract.CASES_PATH: contract.dump_cases(request.cases),
        made.reference.fn.partition(":")[0]: _reference_file(request),
        **_baseline_files(request),
        **{path: template(name).encode() for path, name in COPIES.items()},
        **template_files(request),
        **binding_files(made),
        f"{task}/current": b"baseline\n",
        f"{task}/variants/.gitkeep": b"",
        "dispatch/.gitkeep": b"",
        "artifacts/runs/.gitkeep": b"",
        ledger.LINEAGE_PATH: records.header(ledger.LINEAGE) + b"\n",
        ledger.IDEAS_PATH: records.header(ledger.IDEAS) + b"\n",
    }
    return out | {path: text.encode() for path, text in ledger.views((), {}, ()).items()}
