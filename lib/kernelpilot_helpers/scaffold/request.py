"""What a new repo is asked to hold: a contract, its cases, and where reference and baseline come from."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from kernelpilot_helpers import contract
from kernelpilot_helpers.contract import Case, Contract
from kernelpilot_helpers.errors import BadRecord, NewerFormat, Refused

TEMPLATES = Path(__file__).parent / "templates"
FLAGS = {"target.gpu": "--gpu", "target.speedup": "--speedup", "task.name": "--task", "task.summary": "--summary"}
"""Field of the contract -> the option that gives it to a built-in task."""
KITS = {
    ("norm", "cpu"): TEMPLATES,
    ("norm", "gpu"): TEMPLATES / "cuda" / "add_rmsnorm",
    ("gemm", "gpu"): TEMPLATES / "cuda" / "int8_scaled_mm",
}
"""Family and device of each built-in task, and the folder of its files."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request. A path of None means: the built-in file of the example, else a stub that says what to write."""

    contract: Contract
    cases: tuple[Case, ...]
    reference: Path | None = None
    """File to copy to the place that ``contract.reference.fn`` names."""
    baseline: Path | None = None
    """Folder whose files become ``baseline/``."""
    kit: Path | None = None
    """Folder of the built-in example that this is; None for a task of the user's own."""


def template(name: str, words: Mapping[str, str] | None = None) -> str:
    """Text of a template file, with each mark of ``words`` replaced, in order."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    for mark, word in (words or {}).items():
        text = text.replace(mark, word)
    return text


def example(*, task: str = "", op: str = "norm", summary: str = "", gpu: str = "cpu", speedup: float = 1.10) -> Request:
    """A built-in task, under another name if wanted: it locks and measures as it is.

    For the CPU a fused add and RMSNorm in float32; for a GPU (any other name) the same in bf16 and in place, or an int8
    GEMM with scales. Raises Refused for an op without a built-in task, BadRecord for a name or target that no contract
    may hold.
    """
    kit = _kit(op, "cpu" if gpu.lower() == "cpu" else "gpu")
    doc = contract.read_toml((kit / "contract.toml").read_bytes(), at="template", fix="kernelpilot scaffold --help")
    doc["task"]["name"] = task or doc["task"]["name"]
    doc["task"]["summary"] = summary or doc["task"]["summary"]
    doc["target"].update(gpu=gpu, speedup=speedup)
    try:
        made = contract.from_document(doc, at="flags")
    except BadRecord as fault:
        raise _by_flag(fault) from None
    cases = contract.parse_cases((kit / "cases.jsonl").read_bytes(), made, at="template")
    return Request(contract=made, cases=cases, kit=kit)


def _by_flag(fault: BadRecord) -> BadRecord:
    """A fault of the contract as one of the options that made it."""
    what, named = fault.what, []
    for field, flag in FLAGS.items():
        if field in what:
            what = what.replace(field, flag)
            named.append(flag)
    return BadRecord(what, where=" ".join(named) or "flags", fix="kernelpilot scaffold --help")


def _kit(op: str, device: str) -> Path:
    if (op, device) not in KITS:
        known = ", ".join(f"{name} on a {'GPU' if where == 'gpu' else 'CPU'}" for name, where in KITS)
        fix = "kernelpilot scaffold DIR --request FILE  # describe it in the file: docs/formats/request.md"
        if (op, "gpu") in KITS:
            fix = f"kernelpilot scaffold DIR --device cuda --op {op}  # or, for a task of your own, --request FILE"
        raise Refused(f"there is no built-in task for op {op!r} here, only: {known}", where="--op", fix=fix)
    return KITS[op, device]


def parse_request(data: bytes, at: str) -> Request:
    """A request file: ``contract.toml`` plus ``[[cases]]`` plus, if wanted, two paths relative to the file.

    ``reference = "file.py"`` (or ``"file.py:function"``) and ``baseline = "folder"`` (holding ``candidate.py``).
    Raises BadRecord naming every fault, each with the line that opens the request and the command that reads it.
    """
    try:
        return _parse(data, at)
    except NewerFormat:
        raise
    except BadRecord as fault:
        file = shlex.quote(at)
        fix = f'"${{EDITOR:-vi}}" {file}  # then: kernelpilot scaffold DIR --request {file}'
        raise BadRecord(fault.what, where=fault.where, fix=fix) from None


def _parse(data: bytes, at: str) -> Request:
    doc = contract.read_toml(data, at=at, fix="")
    doc = {"format": contract.CONTRACT.format, "version": contract.CONTRACT.version, **doc}
    cases = doc.pop("cases", [])
    here = Path(at).parent
    reference = _reference(doc, here, at)
    baseline = _baseline(doc, here, at)
    made = contract.from_document(doc, at=at)
    if not isinstance(cases, list):
        raise BadRecord("cases: want [[cases]] tables", where=at)
    baseline = baseline or ((here / "baseline") if (here / "baseline").is_dir() else None)
    if baseline is not None:
        _require_spelt(made, baseline, at)
    return Request(
        contract=made,
        cases=contract.cases.from_documents(cases, made, at=at),
        reference=reference or _beside(here, made.reference.fn),
        baseline=baseline,
    )


def _require_spelt(made: Contract, folder: Path, at: str) -> None:
    """Refuse a baseline that names no file where one of almost that name lies: a stub would hide it."""
    named = dict.fromkeys(one.fn.partition(":")[0].removeprefix("baseline/") for one in made.baseline)
    spare = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.py"))]
    spare = [name for name in spare if name not in named]
    faults = []
    for name in named:
        near = [] if (folder / name).is_file() else difflib.get_close_matches(name, spare, n=1)
        faults += [f'fn = "baseline/{name}": no such file (did you mean baseline/{near[0]}?)'] if near else []
    if faults:
        raise BadRecord("\n  ".join(faults), where=at)


def _beside(here: Path, spec: str) -> Path | None:
    path = here / spec.partition(":")[0]
    return path if path.is_file() else None


def _reference(doc: dict[str, Any], here: Path, at: str) -> Path | None:
    given = doc.get("reference")
    if not isinstance(given, str):
        return None
    name, _, function = given.partition(":")
    path = here / name
    if not path.is_file():
        raise BadRecord(f"reference = {given!r}: no such file", where=at)
    doc["reference"] = {"fn": f"reference.py:{function or 'ref'}"}
    return path


def _baseline(doc: dict[str, Any], here: Path, at: str) -> Path | None:
    given = doc.get("baseline")
    if given is not None and not isinstance(given, str):
        return None
    if given is None:
        doc["baseline"] = [{"id": "baseline"}]
        return None
    path = here / given
    if not (path / "candidate.py").is_file():
        raise BadRecord(f"baseline = {given!r}: want a folder that holds candidate.py", where=at)
    doc["baseline"] = [{"id": "baseline"}]
    return path
