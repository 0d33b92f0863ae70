"""Rules over the repo itself: skeleton, one root, contract and lock, language, provenance, secrets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from kernelpilot_helpers.contract import CONTRACT_PATH, LOCK_PATH
from kernelpilot_helpers.contract.model import Contract, Lock
from kernelpilot_helpers.evidence.model import MISSING, Evidence
from kernelpilot_helpers.gate import facts
from kernelpilot_helpers.gate.audited import Found, under
from kernelpilot_helpers.gate.facts import MARKS, contract_of, lock_of, short
from kernelpilot_helpers.gate.model import NotEvaluated, Rule
from kernelpilot_helpers.ledger import LINEAGE_PATH
from kernelpilot_helpers.policy import Policy
from kernelpilot_helpers.records import Fault

NATIVE = {
    ".cu": "cuda", ".cuh": "cuda", ".ptx": "ptx", ".cpp": "c++", ".cc": "c++", ".cxx": "c++", ".hpp": "c++", ".c": "c",
    ".s": "assembly", ".rs": "rust", ".hip": "hip",
}  # fmt: skip
ALLOWED = {
    "c": {"c"}, "c++": {"c", "c++"}, "cuda": {"cuda", "ptx", "c", "c++"}, "ptx": {"ptx", "cuda"}, "hip": {"hip", "c++"},
    "python": set(), "numpy": set(), "torch": set(), "triton": set(),
}  # fmt: skip
"""Declared language -> native languages that its files may be in. Python that binds a native file is always there."""
LOCKING = "kernelpilot lock"
IMPORTED = {"numpy": "numpy", "torch": "torch", "triton": "triton"}


def skeleton(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: the scaffold's own check of the worktree, and the files of HEAD at the loop's set-up."""
    known = {fault.where for fault in evidence.faults}
    for fault in evidence.skeleton:
        if fault.where not in known:
            yield fault.where, fault.what, fault.fix
    loop = evidence.loop
    if loop is None or not loop.start or evidence.git.cut:
        return  # without the whole history nobody knows (rule 2)
    if not evidence.base_is_ancestor:
        what = f"the loop was set up at {short(loop.start)}, which is not in HEAD's history"
        fix = "git reflog  # find that commit and bring it back, or cancel the loop and set up another"
        yield loop.directory, what, fix
        return
    for path in evidence.base_missing:
        fix = f"{facts.SETUP}  # once {path} is committed and this loop is cancelled"
        yield path, f"not committed when the loop was set up ({short(loop.start)})", fix


def one_root(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: folders with a ``.git``, an outer repository that tracks this folder, and what git ignores and hides."""
    git = evidence.git
    yield from under("2")(evidence, policy)
    for path in git.nested:
        yield (
            path,
            "a repository inside the repository: its files are not in this history",
            f"rm -rf {shlex.quote(path)}/.git",
        )
    if git.above:
        yield (
            git.above,
            "this outer repository tracks this folder",
            f"git -C {git.above} rm -r --cached {evidence.root}",
        )
    if git.head and not git.humanize_ignored:
        yield ".gitignore", ".humanize is not ignored", "add the line .humanize* to .gitignore and commit it"
    for path in git.humanize_tracked:
        yield path, "loop files must not be in the history", f'git rm --cached {path} && git commit -m "loop files"'
    if git.cut:
        fix = "git fetch --unshallow" if "shallow" in git.cut else "rm .git/info/grafts"
        yield ".git", git.cut, fix
    if git.filtered:
        path, more = git.filtered[0], len(git.filtered) - 1
        what = f"a git filter rewrites it (and {more} more), so the history does not hold what lies here"
        yield (
            path,
            what,
            f"git check-attr filter -- {path}  # take that line out of .gitattributes or .git/info/attributes",
        )
    for path in git.hidden:
        what = "git was told not to look at this file (assume-unchanged or skip-worktree)"
        yield path, what, f"git update-index --no-assume-unchanged --no-skip-worktree {path}"


def explicit(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: contract, W and lock as parsed now, the contract at the loop's set-up, and the order of the rows."""
    known = ""
    if not isinstance(evidence.contract, Contract):
        fault = evidence.contract
        known = fault.what
        edited = isinstance(evidence.lock, Lock) and CONTRACT_PATH in evidence.git.dirty
        fix = f"git checkout HEAD -- {CONTRACT_PATH}  # or, to keep the change: {fault.fix}" if edited else fault.fix
        yield fault.where, f"K, R and W are not known: {known}", fix
    yield from _no_lock(evidence)
    yield from (found for found in under("5")(evidence, policy) if found[1] != known)
    if evidence.base_contract and evidence.loop is not None:
        where = f"contract.toml at {short(evidence.loop.start)}"
        yield where, f"did not parse when the loop was set up: {evidence.base_contract}", facts.SETUP
    tried = [ix for ix, row in enumerate(evidence.rows) if row.kind in facts.TRIED and row.epoch > 0]
    first = next((ix for ix, row in enumerate(evidence.rows) if row.kind == "baseline"), len(evidence.rows))
    if tried and tried[0] < first:
        yield (
            LINEAGE_PATH,
            "a candidate was judged before any contract was locked",
            "git log -- artifacts/lineage.jsonl",
        )


def early(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: HEAD at the loop's set-up, and the commit that first held a lock."""
    at, loop = facts.places(evidence), evidence.loop
    first = next((ix for ix, commit in enumerate(evidence.git.commits) if LOCK_PATH in commit.paths), None)
    if loop is None or not loop.active or evidence.git.cut or first is None or at.get(loop.start, first) >= first:
        return
    what = f"the loop was set up at {short(loop.start)}, before the contract was locked"
    yield loop.directory, what, f"{facts.SETUP}  # once this loop is cancelled: a round judges against a lock"


def _no_lock(evidence: Evidence) -> Iterator[Found]:
    if isinstance(evidence.lock, Lock):
        return
    fault = evidence.lock
    if fault.what != MISSING:
        yield fault.where, fault.what, _back(evidence)
    elif was_locked(evidence):
        yield LOCK_PATH, "the lock is gone", f"git checkout HEAD -- {LOCK_PATH}" if _held(evidence) else LOCKING
    elif isinstance(evidence.contract, Contract):
        yield LOCK_PATH, "no lock, run kernelpilot lock", LOCKING


def _held(evidence: Evidence) -> bool:
    """Whether any commit holds a lock that ``git checkout`` could bring back."""
    return any(LOCK_PATH in commit.paths for commit in evidence.git.commits)


def _back(evidence: Evidence) -> str:
    """What mends a lock that is not the one of HEAD: one that no commit holds can only be made."""
    if _held(evidence):
        return f"git checkout HEAD -- {LOCK_PATH}"
    whole = isinstance(evidence.lock, Lock) and not evidence.audit
    return LOCKING if whole else f"rm {LOCK_PATH} && {LOCKING}"


def was_locked(evidence: Evidence) -> bool:
    """Whether a lock was ever written: a row or a commit says so."""
    return _held(evidence) or any(row.kind == "baseline" for row in evidence.rows)


def unchanged(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: hashes of the lock against the files of now (audit), and locked files that differ from HEAD."""
    broken = evidence.contract.what if isinstance(evidence.contract, Fault) else ""  # rule 5 has told it
    found = [one for one in under("6")(evidence, policy) if one[1] != broken]
    yield from found
    lock = lock_of(evidence)
    told = {where for where, _, _ in found}
    for path in evidence.git.dirty:
        if (path == LOCK_PATH or path in lock.files) and path not in told:
            fix = _back(evidence) if path == LOCK_PATH else f"git checkout HEAD -- {path}"
            yield path, "locked, and not as HEAD holds it", fix


def amended(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: baseline rows that a later epoch began with, written in a round of a loop. Allowed, and never silent."""
    for row in evidence.rows:
        if row.kind == "baseline" and row.epoch > 1 and row.round is not None:
            what = f"the contract was amended in round {row.round} (epoch {row.epoch}): {row.reason[:200]}"
            yield LOCK_PATH, what, f"git log -p {short(row.commit)} -- contract.toml workloads"


def language(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: ``policy.language`` of the contract against suffixes and imports of the committed variants' files."""
    declared = contract_of(evidence).policy.language.lower()
    if declared in ("", "any"):
        return
    if declared not in ALLOWED:
        raise NotEvaluated(f"what files of language {declared!r} look like is not known")
    for slug in evidence.git.head_variants:
        folder = f"{facts.variants(evidence)}/{slug}/"
        held = {path: text for path, text in evidence.sources.items() if path.startswith(folder)}
        yield from _language(declared, folder, held)


def _language(declared: str, folder: str, held: dict[str, str]) -> Iterator[Found]:
    fix = "write it in the declared language  # or change the contract: kernelpilot lock --amend --why TEXT"
    seen = set()
    for path in sorted(held):
        native = next((word for suffix, word in NATIVE.items() if path.lower().endswith(suffix)), "")
        seen.add(native)
        if native and native not in ALLOWED[declared]:
            yield path, f"is {native}; the contract declares {declared}", fix
    if held and ALLOWED[declared] and declared not in seen:
        yield folder.rstrip("/"), f"holds no {declared} file; the contract declares {declared}", fix
    wanted = IMPORTED.get(declared)
    if held and wanted and not any(re.search(rf"^\s*(?:import|from) {wanted}\b", t, re.M) for t in held.values()):
        yield folder.rstrip("/"), f"no file imports {wanted}; the contract declares {declared}", fix


def provenance(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: licence lines and source addresses in the files of judged variants, against their rows' provenance."""
    scratch = contract_of(evidence).policy.source == "from_scratch"
    rows = {row.tree: row for row in evidence.rows if row.kind in facts.TRIED}
    for slug, tree in sorted(evidence.git.head_variants.items()):
        if tree not in rows or evidence.git.variants.get(slug) != tree:
            continue  # not judged (rule 10), or being edited (rule 13)
        folder = f"{facts.variants(evidence)}/{slug}/"
        said = {name for entry in rows[tree].provenance for name in entry.files}
        for path, text in sorted(evidence.sources.items()):
            mark = MARKS.search(text) if path.startswith(folder) and not path.endswith("provenance.toml") else None
            if mark is None or (path.removeprefix(folder) in said and not scratch):
                continue
            what = f"carries {mark[0]!r}, and no provenance of {rows[tree].version} names it"
            fields = "one [[source]] with url, commit, licence, files and delta"
            fix = f"write {folder}provenance.toml, {fields}, and attempt {slug} again"
            if scratch:
                what, fix = f"carries {mark[0]!r}; the contract says from_scratch", "write it anew without that source"
            yield path, what, fix


def secrets(evidence: Evidence, policy: Policy) -> Iterable[Found]:
    """Input: sizes of the evidence files and a pattern scan of every file that git holds or would take."""
    most = policy.evidence_file_bytes_max
    for path, size in evidence.sizes.items():
        if size > most:
            what = f"{size} bytes; evidence files hold at most {most}"
            yield path, what, f"git rm --cached {path}  # keep a digest or a smaller file"
    for found in evidence.secrets:
        path, _, name = found.partition(": ")
        yield path, f"looks as if it held {name}", f"take it out of {path}, revoke it, and commit"


RULES: tuple[Rule, ...] = (
    Rule(id="1", title="skeleton is committed", severity="block", phase="always", check=skeleton),
    Rule(id="2", title="one root", severity="block", phase="always", check=one_root),
    Rule(id="5", title="K, R and W are explicit", severity="block", phase="always", check=explicit),
    Rule(id="5", title="the lock comes before the loop", severity="trend", phase="always", check=early),
    Rule(id="6", title="nothing locked was changed", severity="block", phase="always", check=unchanged),
    Rule(id="6", title="an amendment is shown", severity="trend", phase="always", check=amended),
    Rule(id="7", title="language follows the request", severity="block", phase="always", check=language),
    Rule(id="9", title="provenance", severity="block", phase="always", check=provenance),
    Rule(id="34", title="no secrets, no giant files", severity="block", phase="always", check=secrets),
)
