"""Rules 4 and 8: the framework's checkout stays as it was locked, and whose code a variant may hold."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from kernelpilot_helpers.contract import LOCK_PATH, checkouts
from kernelpilot_helpers.contract.model import Checkout, Contract
from kernelpilot_helpers.evidence.model import CheckoutFacts, Evidence
from kernelpilot_helpers.gate import facts, shingles
from kernelpilot_helpers.gate.audited import Found
from kernelpilot_helpers.gate.facts import MARKS, contract_of, lock_of
from kernelpilot_helpers.gate.model import NotEvaluated, Rule
from kernelpilot_helpers.gate.shingles import Code, Shared
from kernelpilot_helpers.policy import Policy
from kernelpilot_helpers.records import Fault

AMEND = "kernelpilot lock --amend --why TEXT"
PROSE = (".md", ".txt", ".rst", ".toml", ".json", ".jsonl", ".yaml", ".yml", ".csv", ".cfg", ".ini", "")
"""Suffixes of a baseline's files that are no code; a variant's may be read by its program, whatever they are called."""
PROVENANCE = "provenance.toml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Original:
    """A file that variants are compared with."""

    name: str
    code: Code


def checkout(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: HEAD and files of each framework's checkout as they are, against what the lock recorded."""
    contract = contract_of(evidence)
    if not contract.framework:
        raise NotEvaluated("the contract names no framework checkout")
    lock = lock_of(evidence)
    for name in checkouts.unrecorded(contract, lock):
        yield LOCK_PATH, f"the lock says nothing of framework {name}, which the contract names", AMEND
    for name in checkouts.pinned(contract):
        locked, found = lock.frameworks.get(name), evidence.checkouts.get(name)
        if found is None or isinstance(found.now, Fault):
            fault = found.now if found and isinstance(found.now, Fault) else None
            what = fault.what if fault else "nobody looked at its checkout"
            yield f"framework {name}", f"nobody knows whether it was edited: {what}", fault.fix if fault else AMEND
        elif locked is not None:
            yield from _changed(name, locked, found, found.now)
    if allowed := [one.name for one in contract.framework if one.in_place]:
        raise NotEvaluated(f"the contract allows edits in place of {', '.join(allowed)}")


def _changed(name: str, locked: Checkout, found: CheckoutFacts, now: Checkout) -> Iterator[Found]:
    there = f"git -C {shlex.quote(found.path)}"
    for kind, what in checkouts.changes(locked, now):
        if kind == "head":
            fix = f"{there} checkout {locked.head}  # or, for a new epoch on what is there now: {AMEND}"
            yield f"framework {name}", what, fix
            continue
        named = f": {', '.join(found.edits)}" if found.edits else ""
        fix = f"{there} status  # take the edits back or, for a new epoch on what is there now: {AMEND}"
        yield f"framework {name}", what + named, fix


def elsewhere(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: where each checkout lay at the lock and lies now. Allowed on another machine, and never silent."""
    contract, lock = contract_of(evidence), lock_of(evidence)
    for name in checkouts.pinned(contract):
        locked, found = lock.frameworks.get(name), evidence.checkouts.get(name)
        if locked is None or found is None or isinstance(found.now, Fault) or not locked.place:
            continue
        if locked.place != found.now.place:
            what = "another copy is looked at than when it was locked: the baseline may run from that one"
            yield (
                f"framework {name}",
                what,
                "cat .kernelpilot/local.toml  # is that the copy that the baseline imports?",
            )


def source_policy(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: tokens of the committed variants against those of the baseline's files and the frameworks' sources."""
    contract = contract_of(evidence)
    scratch = contract.policy.source == "from_scratch"
    yield from _unreadable(evidence, contract, scratch)
    known = _originals(evidence, scratch)
    if known:
        yield from _variants(evidence, policy, known, scratch)
    if scratch and not known:
        raise NotEvaluated("neither the lock nor a framework's sources hold code to compare with")
    if not known:
        what = "the contract allows derived work, and names no framework sources; no baseline file bears a licence line"
        raise NotEvaluated(what)
    packages = sorted({name for one in contract.baseline for name in one.requires})
    if scratch and packages and not any(one.sources for one in contract.framework):
        raise NotEvaluated(f"compared with baseline/ only: no framework.sources say where {', '.join(packages)} lies")


def _unreadable(evidence: Evidence, contract: Contract, scratch: bool) -> Iterator[Found]:
    """What ought to be compared and cannot be: no evidence is no pass."""
    for one in contract.framework:
        found = evidence.checkouts.get(one.name)
        if not one.sources:
            continue
        if found is None or isinstance(found.now, Fault):
            fault = found.now if found and isinstance(found.now, Fault) else None
            what = f"its sources cannot be compared with: {fault.what if fault else 'nobody read them'}"
            yield f"framework {one.name}", what, fault.fix if fault else AMEND
            continue
        for fault in found.source_faults:
            yield fault.where, f"cannot be compared with: {fault.what}", fault.fix
    if not scratch:
        return
    folder = f"{facts.variants(evidence)}/"
    for path in sorted(evidence.git.tracked):
        if path.startswith(folder) and path not in evidence.sources:
            what = "no UTF-8 text of at most 256 KiB: it cannot be compared with the baseline"
            yield path, what, f"git rm --cached {shlex.quote(path)}  # keep source text in a variant, and attempt it"


def _prose(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in PROSE


def _originals(evidence: Evidence, scratch: bool) -> list[Original]:
    """What is compared with: under ``derived`` only what is somebody else's."""
    texts = {path: text for path, text in evidence.originals.items() if scratch or MARKS.search(text)}
    for name, found in evidence.checkouts.items():
        texts |= {f"{name}: {path}": text for path, text in found.sources.items()}
    return [Original(name=name, code=_code(text, name)) for name, text in sorted(texts.items()) if not _prose(name)]


@functools.lru_cache(maxsize=1024)
def _code(text: str, name: str) -> Code:
    return shingles.code(text, python=name.endswith((".py", "torch_op.txt")))


def _variants(evidence: Evidence, policy: Policy, known: list[Original], scratch: bool) -> Iterator[Found]:
    width = policy.shingle_tokens
    given = shingles.boilerplate((_code(text, name) for name, text in evidence.given.items()), width=width)
    codes = [one.code for one in known]
    places = shingles.index(codes, width=width)
    rows = {row.tree: row for row in evidence.rows if row.kind in facts.TRIED}
    for slug, tree in sorted(evidence.git.head_variants.items()):
        row = rows.get(tree)
        if evidence.git.variants.get(slug) != tree or (row is None and not scratch):
            continue  # being edited (rule 13), or not judged (rule 10)
        folder = f"{facts.variants(evidence)}/{slug}/"
        said = {name for entry in row.provenance for name in entry.files} if row is not None else set()
        for path, text in sorted(evidence.sources.items()):
            inside = path.removeprefix(folder)
            if inside in (path, PROVENANCE) or (inside in said and not scratch):
                continue
            found = shingles.shared(_code(text, path), codes, places, width=width, given=given)
            if found:
                number, most = max(found.items(), key=lambda pair: pair[1].tokens)
                if most.tokens <= policy.shared_tokens_max:
                    continue
                version = row.version if row is not None else slug
                yield path, *_told(most, known[number].name, scratch=scratch, slug=slug, version=version, folder=folder)


def _told(most: Shared, name: str, *, scratch: bool, slug: str, version: str, folder: str) -> tuple[str, str]:
    here, there = f"lines {most.mine[0]}-{most.mine[1]}", f"lines {most.theirs[0]}-{most.theirs[1]}"
    what = f"shares {most.tokens} tokens with {name} ({most.longest} in one stretch: {here} are its {there})"
    if scratch:
        fix = f"write it anew without that source  # or, for derived work: policy.source in contract.toml, and {AMEND}"
        return f"{what}; the contract says from_scratch", fix
    fields = "one [[source]] with url, commit, licence, files and delta"
    fix = f"write {folder}provenance.toml, {fields}, and attempt {slug} again"
    return f"{what}, and no provenance of {version} names it", fix


RULES: tuple[Rule, ...] = (
    Rule(id="4", title="framework checkout is read-only", severity="block", phase="always", check=checkout),
    Rule(id="4", title="another copy of a framework is shown", severity="trend", phase="always", check=elsewhere),
    Rule(id="8", title="source policy", severity="block", phase="always", check=source_policy),
)
