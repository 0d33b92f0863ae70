"""Rules 14 to 18: the baseline's profile, triggers, correct versions only, true digests, one answered step. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from kernelpilot_helpers.attempt import profile
from kernelpilot_helpers.attempt.profile import Profile
from kernelpilot_helpers.benchmark.physics import cold_bytes
from kernelpilot_helpers.contract import device
from kernelpilot_helpers.evidence.digest_facts import DigestFacts
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import facts, triggers
from kernelpilot_helpers.gate.audited import Found
from kernelpilot_helpers.gate.facts import contract_of, epoch_rows
from kernelpilot_helpers.gate.model import NotEvaluated, Rule
from kernelpilot_helpers.ledger import BASELINE, LINEAGE_PATH, Row, citations
from kernelpilot_helpers.policy import Policy

DIGESTS = "artifacts/profile-digests/"
NO_GPU = "a task for a CPU: ncu has nothing to profile"
DECLINED = "declined:"
"""How a motivation begins that cites a digest and does not do what it says; the reason follows."""
BARE = re.compile(r"\W*declined?\b(?:\W*\b(?:reason|none|n/?a|no|tbd|todo)\b)?\W*\w{0,2}\W*", re.IGNORECASE)
"""A refusal without a word that could be a reason."""


def _on_gpu(evidence: Evidence) -> None:
    if device(contract_of(evidence).target) != "gpu":
        raise NotEvaluated(NO_GPU)


def _filed_at(evidence: Evidence, digest: DigestFacts) -> int | None:
    """Place in the history of the last commit that changed the digest's profile.json; None before it is committed."""
    path = f"{digest.path}/{profile.NAME}"
    return max((ix for ix, commit in enumerate(evidence.git.commits) if path in commit.paths), default=None)


def baseline_first(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: rows whose motivation is a profile, and the baseline's digest or the waiver with the tool's own words."""
    _on_gpu(evidence)
    driven = [row for row in epoch_rows(evidence) if row.kind in facts.TRIED and row.motivation.kind == "profile"]
    if driven and not triggers.baseline_decided(evidence):
        what = "rests on a profile, and the baseline has neither a digest nor the reason why ncu cannot make one"
        case = next(
            (d.case_id for d in evidence.digests if citations.names(driven[0].motivation.digest, d.subject, d.case_id)),
            "",
        )
        yield f"{LINEAGE_PATH}: {driven[0].version}", what, profile.command(BASELINE, case)


def triggered(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    """Input: figures and cases of the runs of parents and claims, weak rounds, round contracts; digests by regime."""
    _on_gpu(evidence)
    seen: set[tuple[str, str]] = set()
    for trigger in triggers.triggers(evidence, policy):
        key = trigger.row.tree, trigger.regime
        if key in seen or triggers.served(evidence, trigger):
            continue
        seen.add(key)
        what = f"to be profiled before work goes on from it: {trigger.why}"
        yield trigger.row.version, what, profile.command(trigger.row.version, trigger.case_id)


def profiled(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: folders below artifacts/profile-digests/, the version and tree of each, and rows written before it."""
    correct = {r.version for r in evidence.rows if r.kind == "baseline" or r.verdict not in (None, "WRONG", "BROKEN")}
    named = {path.removeprefix(DIGESTS).split("/")[0] for path in evidence.sizes if path.startswith(DIGESTS)}
    for version in sorted(name for name in named if name != "README.md"):
        if version not in correct:
            fix = f"git rm -r {DIGESTS}{version}  # or attempt {version} until it is correct"
            yield f"{DIGESTS}{version}", "a profile of a version that no row shows correct", fix
    places = facts.places(evidence)
    for digest in evidence.digests:
        made, filed = digest.profile, _filed_at(evidence, digest)
        if made is None or digest.subject not in correct:
            continue
        mine = [r for r in evidence.rows if r.version == made.subject and r.tree == made.tree and r.epoch == made.epoch]
        shown = [r for r in mine if r.kind == "baseline" or r.verdict not in (None, "WRONG", "BROKEN")]
        early = filed is not None and shown and all(places.get(r.at_head, filed) > filed for r in shown)
        if not shown or early:
            what = "was profiled before its verdict" if early else "is of a tree that no row of that version judged"
            yield digest.path, what, profile.command(digest.subject, digest.case_id)


def true(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: the files of each digest, its numbers made again from its facts (collector), and the baseline's digest."""
    _on_gpu(evidence)
    epoch = facts.lock_of(evidence).epoch
    base = {d.case_id: d for d in _of(evidence, epoch) if d.subject == BASELINE}
    for digest in evidence.digests:
        made = digest.profile
        if made is not None and made.epoch != epoch:
            continue  # of an earlier contract: nothing of now rests on it
        again = profile.command(digest.subject, digest.case_id)
        for fault in (*digest.faults, *_told(evidence, digest)):
            yield digest.path, fault, f"git checkout -- {digest.path}  # or made again: {again}"
        if made is not None and (there := _works(evidence, made, epoch)):
            yield digest.path, f"says that ncu cannot run, and it gave a report of {there} on the same GPU", again
        if made is None or not digest.real or digest.subject == BASELINE:
            continue
        other = base.get(digest.case_id)
        if other is None or other.profile is None:
            what = f"the baseline has no digest of case {digest.case_id}: there is nothing to hold this one against"
            yield digest.path, what, profile.command(BASELINE, digest.case_id)
        elif other.real and (differ := unlike(other.profile, made)):
            what = f"cannot be held against the baseline's digest: {differ}"
            yield digest.path, what, f"{profile.command(BASELINE, digest.case_id)} && {again}"


def _told(evidence: Evidence, digest: DigestFacts) -> Iterator[str]:
    """What a digest was told of its case, against the case and the runs."""
    case = next((c for c in evidence.cases if c.case_id == digest.case_id), None)
    if digest.min_bytes is not None and (case is None or digest.min_bytes != cold_bytes(case)):
        yield f"rests on a least traffic of {digest.min_bytes} bytes, which is not that of {digest.case_id}"
    measured = (f for run in evidence.runs.values() for f in run.gpu.figures)
    if digest.floor_us is not None and not any(
        (f.case_id, f.figure) == (digest.case_id, "touch") and math.isclose(f.us, digest.floor_us, rel_tol=1e-5)
        for f in measured
    ):
        yield f"rests on a floor of {digest.floor_us:g} us, which no run measured on {digest.case_id}"


def _works(evidence: Evidence, made: Profile, epoch: int) -> str:
    """A digest by which ncu works on the machine for which a waiver says that it cannot; empty without one."""
    if made.why is None or made.why.code not in profile.MACHINE:
        return ""
    real = (d for d in _of(evidence, epoch) if d.real and not d.faults)
    same = (d.id for d in real if d.profile and (d.profile.gpu, d.profile.driver) == (made.gpu, made.driver))
    return next(same, "")


def _of(evidence: Evidence, epoch: int) -> Iterator[DigestFacts]:
    yield from (d for d in evidence.digests if d.profile is not None and d.profile.epoch == epoch)


def unlike(one: Profile, other: Profile) -> str:
    """What keeps two profiles of one case from being compared, in words; empty when nothing does."""
    pairs = {
        "case": (one.case_id, other.case_id),
        "GPU": (one.gpu, other.gpu),
        "ncu major version": (one.major, other.major),
        "cache control": (one.launches.cache_control, other.launches.cache_control),
        "clock control": (one.launches.clock_control, other.launches.clock_control),
        "calls": (one.launches.calls, other.launches.calls),
        "warm-up": (one.launches.warm_up, other.launches.warm_up),
        "skipped launches": (one.launches.skip, other.launches.skip),
    }
    return "; ".join(f"{name} {a!s} and {b!s}" for name, (a, b) in pairs.items() if a != b)


def answered(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: next steps of digests whose kind is edit, and what the attempts after each of them cite.

    Attempts on another parent owe a digest nothing. A later attempt that cites it, taken or declined, mends the
    finding: rows stay for ever.
    """
    _on_gpu(evidence)
    epoch = facts.lock_of(evidence).epoch
    places = facts.places(evidence)
    for digest in _of(evidence, epoch):
        filed = _filed_at(evidence, digest)
        if filed is None or not digest.real or digest.kind != "edit" or digest.faults:
            continue
        after = [r for r in epoch_rows(evidence) if r.kind == "attempt" and places.get(r.at_head, -1) > filed]
        yield from _owed(digest, after)


def _owed(digest: DigestFacts, after: list[Row]) -> Iterator[Found]:
    mine = [r for r in after if r.parent == digest.subject]
    citing = [r for r in after if citations.names(r.motivation.digest, digest.subject, digest.case_id)]
    cites = f"--digest {digest.id}"
    answer = f'kernelpilot attempt NAME {cites} --motivation "..."  # or: --motivation "{DECLINED} REASON"'
    if mine and not citing:
        what = f"does not answer the next step of digest {digest.id}: take it, or decline it with the reason"
        yield f"{LINEAGE_PATH}: {mine[0].version}", what, answer
    bare = [r for r in citing if BARE.fullmatch(r.motivation.text)]
    if bare and len(bare) == len(citing):
        yield f"{LINEAGE_PATH}: {bare[0].version}", f"declines digest {digest.id} without a reason", answer


def target_there(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: the file that a next step names, against the files of the variants; code of a library is nobody's here."""
    _on_gpu(evidence)
    for digest in _of(evidence, facts.lock_of(evidence).epoch):
        name = digest.target.rpartition("/")[2]
        if not name or digest.subject == BASELINE or not digest.real or digest.profile is None:
            continue
        folder = f"{facts.variants(evidence)}/{digest.profile.variant}/"
        if not any(path.startswith(folder) and path.rpartition("/")[2] == name for path in evidence.sources):
            what = f"its next step names {name}, which is no file of {digest.profile.variant}"
            yield digest.path, what, f"look for the line in what {digest.profile.variant} includes or generates"


RULES: tuple[Rule, ...] = (
    Rule(id="14", title="baseline profile decision", severity="block", phase="always", check=baseline_first),
    Rule(id="15", title="profile triggers", severity="block", phase="always", check=triggered),
    Rule(id="16", title="only correct versions are profiled", severity="repair", phase="always", check=profiled),
    Rule(id="17", title="digest complete and true", severity="block", phase="always", check=true),
    Rule(id="18", title="one next step, answered", severity="repair", phase="always", check=answered),
    Rule(id="18", title="the step's file is there", severity="trend", phase="always", check=target_there),
)
