"""The one impure reader: a repo becomes one record, and a repo in any state becomes one. Never raises for a file.

Whatever is absent, garbled, a link, a folder where a file belongs or refused by git is a ``Fault`` in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from kernelpilot_helpers import contract as contracts
from kernelpilot_helpers import ledger, plan, records, scaffold
from kernelpilot_helpers.attempt.job import JobCase
from kernelpilot_helpers.attempt.resolve import resolve
from kernelpilot_helpers.contract.model import Case, Contract, Lock
from kernelpilot_helpers.errors import KernelPilotError, Refused
from kernelpilot_helpers.evidence import checkouts, digests, files, git_facts, loop, run_facts
from kernelpilot_helpers.evidence.model import MISSING, CheckoutFacts, Evidence, GitFacts, LoopFacts, TuningFacts
from kernelpilot_helpers.evidence.tuning import collect_tuning
from kernelpilot_helpers.ledger import Idea, Row
from kernelpilot_helpers.records import Fault

Audit = Callable[[Path], Sequence[Fault]]
Tuning = Callable[..., TuningFacts]
"""``collect_tuning(root, *, contract, lock, rows, cases)``."""
T = TypeVar("T")
EVIDENCE = ("artifacts/", "dispatch/")
CHECKOUT = "git checkout -- {path}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Words:
    """Contract, lock, W and lineage as read, before git is asked."""

    contract: Contract | Fault
    lock: Lock | Fault
    written: tuple[Case, ...]
    cases: tuple[JobCase, ...]
    rows: tuple[Row, ...]
    ideas: tuple[Idea, ...]
    faults: tuple[Fault, ...]


def collect(root: Path, *, audit: Audit, tuning: Tuning | None = None) -> Evidence:
    """The whole repo as facts. Raises Refused for a pipe or device in the repo: nothing after it could be read.

    ``audit`` is the referee's own check of ledgers, seals, verdicts and lock (it stands right of this word in the
    import order); ``tuning`` reads the performance map and the dispatcher.
    """
    root = Path(root)
    if found := files.pipe(root):
        what = "a pipe or device lies where files belong: whoever reads it waits for ever"
        raise Refused(what, where=found, fix=f"rm {found}  # then git status: what is missing now?")
    words = _words(root)
    task = _task(root, words.contract)
    current_path = f"src/{task}/current"
    current = (files.text(root / current_path) or "").strip()
    git, refused = git_facts.collect(root, task=task, current=current, rows=words.rows)
    loops = tuple(loop.load(root, folder) for folder in loop.folders(root))
    held = [p for p in sorted({*git.tracked, *git.dirty}) if not p.endswith("/")]
    sizes = files.sizes(root, held)
    newest = loops[-1] if loops else None
    base = git_facts.listing(root, newest.start) if newest and newest.start else ()
    facts, tuning_faults = _tuning(root, words, tuning or collect_tuning)
    return Evidence(
        root=str(root),
        contract=words.contract,
        lock=words.lock,
        written=words.written,
        cases=words.cases,
        rows=words.rows,
        ideas=words.ideas,
        audit=tuple(_audit(root, words, audit)),
        skeleton=tuple(_skeleton(root, words.contract)),
        base_missing=_base_missing(words.contract, newest, base),
        base_is_ancestor=_is_ancestor(newest, git),
        runs=run_facts.collect(root),
        git=git,
        loop=newest,
        tuning=facts,
        files=files.texts(root, _read(root, words.contract, current_path)),
        sizes={path: size for path, size in sizes.items() if path.startswith(EVIDENCE)},
        secrets=files.secrets(root, sizes),
        faults=(*words.faults, *refused, *files.odd(root), *_byte_code(git), *loop.export_faults(root), *tuning_faults),
        earlier=loops[:-1],
        base_contract=_base_contract(root, newest, base),
        sources=files.texts(root, (path for path, _ in files.walk(root, f"src/{task}/variants"))) if task else {},
        task=task,
        checkouts=_checkouts(root, words),
        originals=_originals(root, words.lock),
        given=scaffold.given(words.contract) if isinstance(words.contract, Contract) else {},
        digests=digests.collect(root),
    )


def _words(root: Path) -> _Words:
    faults: list[Fault] = []
    fix = "kernelpilot scaffold DIR --task NAME  # or cd into the standalone repo"
    contract = _document(root, contracts.CONTRACT_PATH, lambda d: contracts.parse(d, at=contracts.CONTRACT_PATH), fix)
    read_lock = _document(
        root,
        contracts.LOCK_PATH,
        lambda d: records.parse(d, contracts.LOCK, at=contracts.LOCK_PATH),
        "kernelpilot lock",
    )
    written: tuple[Case, ...] = ()
    resolved: tuple[JobCase, ...] = ()
    if isinstance(contract, Contract):
        made: Contract = contract
        cases = _document(root, contracts.CASES_PATH, lambda d: _cases(d, made), f"write {contracts.CASES_PATH}")
        if isinstance(cases, Fault):
            faults.append(cases)
        else:
            written, resolved = cases
    rows = _log(root, ledger.LINEAGE_PATH, ledger.load, faults)
    ideas = _log(root, ledger.IDEAS_PATH, ledger.parse_ideas, faults)
    return _Words(
        contract=contract, lock=read_lock, written=written, cases=resolved, rows=rows, ideas=ideas, faults=tuple(faults)
    )


def _document(root: Path, path: str, parse: Callable[[bytes], T], fix: str) -> T | Fault:
    target = root / path
    if not target.exists() and not target.is_symlink():
        return Fault(where=path, what=MISSING, fix=fix)
    try:
        if not files.plain(target):
            raise OSError("not a plain file")
        return parse(target.read_bytes())
    except KernelPilotError as error:
        return Fault(where=error.where or path, what=error.what, fix=error.fix or CHECKOUT.format(path=path))
    except OSError as error:
        return Fault(where=path, what=f"cannot be read: {error.strerror or error}", fix=CHECKOUT.format(path=path))
    except (ValueError, ArithmeticError, RecursionError, LookupError, TypeError) as error:
        return Fault(where=path, what=f"cannot be parsed: {error}", fix=CHECKOUT.format(path=path))


def _cases(data: bytes, contract: Contract) -> tuple[tuple[Case, ...], tuple[JobCase, ...]]:
    written = contracts.parse_cases(data, contract, at=contracts.CASES_PATH)
    every = (*written, *contracts.edges(contract, written))
    return written, tuple(resolve(contract, case) for case in every)


def _log(
    root: Path,
    path: str,
    parse: Callable[[bytes], tuple[tuple[T, ...], tuple[Fault, ...]]],
    faults: list[Fault],
) -> tuple[T, ...]:
    """Rows of a log; a bad line is a fault, and so is a log that is no readable file. Absence is the skeleton's."""
    found = _document(root, path, parse, CHECKOUT.format(path=path))
    if isinstance(found, Fault):
        if found.what != MISSING:
            faults.append(found)
        return ()
    rows, wrong = found
    faults += wrong
    return rows


def _task(root: Path, contract: Contract | Fault) -> str:
    if isinstance(contract, Contract):
        return contract.task.name
    try:
        found = sorted(path.parent.name for path in (root / "src").glob("*/current"))
    except OSError:
        return ""
    return found[0] if len(found) == 1 else ""


def _checkouts(root: Path, words: _Words) -> dict[str, CheckoutFacts]:
    if isinstance(words.contract, Fault):
        return {}
    return checkouts.collect(root, words.contract, words.lock if isinstance(words.lock, Lock) else None)


def _originals(root: Path, lock: Lock | Fault) -> dict[str, str]:
    if isinstance(lock, Fault):
        return {}
    return files.texts(root, (path for path in lock.files if path.startswith("baseline/")))


def _audit(root: Path, words: _Words, audit: Audit) -> list[Fault]:
    if isinstance(words.contract, Fault) and words.contract.what == MISSING:
        return []  # nothing to audit; the rule on the contract says so
    try:
        return [replace(f, where=_relative(root, f.where), what=_relative(root, f.what)) for f in audit(root)]
    except KernelPilotError as error:
        where = _relative(root, error.where) or "artifacts"
        return [Fault(where=where, what=_relative(root, error.what), fix=error.fix or "kernelpilot ledger check")]
    except OSError as error:
        where = _relative(root, str(error.filename or "artifacts"))
        return [Fault(where=where, what=f"cannot be read: {error.strerror}", fix=CHECKOUT.format(path=where))]
    except Exception as error:  # noqa: BLE001 - an audit that fails must be a finding, never a silence
        what = f"the audit failed: {type(error).__name__}: {error}"
        return [
            Fault(where="artifacts", what=what, fix="kernelpilot ledger check  # and git status: what was changed?")
        ]


def _relative(root: Path, words: str) -> str:
    return "." if words == str(root) else words.replace(f"{root}/", "")


def _skeleton(root: Path, contract: Contract | Fault) -> list[Fault]:
    if isinstance(contract, Fault):
        return []
    try:
        return scaffold.check(root)
    except (KernelPilotError, OSError, ValueError) as error:
        return [Fault(where=".", what=f"the skeleton cannot be checked: {error}", fix="git status")]


def _base_missing(contract: Contract | Fault, found: LoopFacts | None, base: Sequence[str]) -> tuple[str, ...]:
    if found is None or isinstance(contract, Fault):
        return ()
    held = set(base)
    return tuple(path for path in scaffold.required_files(contract) if path not in held)


def _byte_code(git: GitFacts) -> list[Fault]:
    """Byte code below dispatch/ in the history: an import may run it in place of the generated file."""
    what = "byte code in the history: python may run it in place of the generated file"
    found = sorted(p for p in git.tracked if p.startswith("dispatch/") and ("/__pycache__/" in p or p.endswith(".pyc")))
    return [Fault(where=path, what=what, fix=f'git rm -f {path} && git commit -m "no byte code"') for path in found]


def _is_ancestor(found: LoopFacts | None, git: GitFacts) -> bool:
    return found is None or any(commit.commit == found.start for commit in git.commits)


def _base_contract(root: Path, found: LoopFacts | None, base: Sequence[str]) -> str:
    """What is wrong with the contract at the loop's start; empty when nothing is, or when it is not there at all."""
    if found is None or contracts.CONTRACT_PATH not in base:
        return ""
    text = git_facts.Asked(root=root).out("cat-file", "blob", f"{found.start}:{contracts.CONTRACT_PATH}", quiet=True)
    try:
        contracts.parse(text.encode(), at=contracts.CONTRACT_PATH)
    except (KernelPilotError, ValueError) as error:
        return getattr(error, "what", str(error))
    return ""


def _tuning(root: Path, words: _Words, tuning: Tuning) -> tuple[TuningFacts, list[Fault]]:
    try:
        found = tuning(root, contract=words.contract, lock=words.lock, rows=words.rows, cases=words.cases)
    except Exception as error:  # noqa: BLE001 - tuning that cannot be read must be a finding, never a silence
        fix = "kernelpilot tune && kernelpilot dispatch"
        return TuningFacts(), [
            Fault(where="dispatch", what=f"cannot be read: {type(error).__name__}: {error}", fix=fix)
        ]
    return found, []


def _read(root: Path, contract: Contract | Fault, current: str) -> list[str]:
    """Paths of the small texts that rules and ``next`` look at."""
    fixed = ["README.md", plan.PATH, current, f"{loop.EXPORTED}/{loop.JOURNAL}"]
    if isinstance(contract, Contract):
        specs = [contract.reference.fn, *(one.fn for one in contract.baseline)]
        fixed += [spec.partition(":")[0] for spec in specs]
    pages = [path for path, _ in files.walk(root, "artifacts") if path.endswith(".md")]
    return list(dict.fromkeys([*fixed, *pages]))
