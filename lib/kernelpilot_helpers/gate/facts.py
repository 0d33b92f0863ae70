"""What several rules ask of the evidence, and the words they refuse with when it is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kernelpilot_helpers import ledger
from kernelpilot_helpers.contract.model import Contract, Lock
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.evidence.model import Evidence, LoopFacts
from kernelpilot_helpers.gate.model import NotEvaluated
from kernelpilot_helpers.ledger import Row

STOP, PIVOT, CONTINUE = "stop:", "pivot:", "continue:"
DECISIONS = (STOP, PIVOT, CONTINUE)
REASON, EXPECTED = "REASON", "EXPECTED_GAIN and where from"
"""What a decision's command leaves to fill in; a decision that still says so decides nothing."""
ATTEMPT = 'kernelpilot attempt {name} --motivation "..."'
SETUP = '"$(kernelpilot root)/vendor/humanize/scripts/setup-rlcr-loop.sh" .humanize/kernel-agent/refined-plan.md --yolo'
RLCR = '"$(kernelpilot root)/vendor/humanize/scripts/rlcr"'
RESUME = f"{RLCR} resume"
ASK = f"{RLCR} evidence"
"""What the Stop would be told, without stopping."""
END = f"{RLCR} stop --why TEXT"
"""Ends a loop as STOP, for whoever wants no more of it; COMPLETE is for work whose evidence is whole."""
TRIED = ("attempt", "recheck")
VOID = ("interrupted", "harness", "oracle", "incumbent", "machine", "evidence", "suspect", "gpu", "clock")
"""Reason codes that say nothing about the candidate: such a row is no evidence of a weak round.

The codes after which the referee lets the same tree be attempted again; it stands right of this word.
"""
WIP = "wip"
"""How the subject of a commit begins that holds work in progress, not a candidate."""


def contract_of(evidence: Evidence) -> Contract:
    """The contract. Raises NotEvaluated without a readable one."""
    if isinstance(evidence.contract, Contract):
        return evidence.contract
    raise NotEvaluated(f"no readable contract ({evidence.contract.where}: {evidence.contract.what})")


def lock_of(evidence: Evidence) -> Lock:
    """The lock. Raises NotEvaluated without a readable one."""
    if isinstance(evidence.lock, Lock):
        return evidence.lock
    raise NotEvaluated(f"no readable lock ({evidence.lock.where}: {evidence.lock.what})")


def loop_of(evidence: Evidence) -> LoopFacts:
    """The newest loop. Raises NotEvaluated without one, or when its journal does not even tell its set-up."""
    if evidence.loop is None:
        raise NotEvaluated("no loop was set up")
    if not evidence.loop.stops:
        raise NotEvaluated(f"the journal of {evidence.loop.directory} does not tell its set-up")
    return evidence.loop


def epoch_rows(evidence: Evidence) -> tuple[Row, ...]:
    """Rows of the lock's epoch, in order. Raises NotEvaluated without a lock."""
    epoch = lock_of(evidence).epoch
    return tuple(row for row in evidence.rows if row.epoch == epoch)


def best_of(evidence: Evidence) -> Row:
    """The selected version of this epoch. Raises NotEvaluated when the epoch has not even a baseline row."""
    try:
        return ledger.best(evidence.rows, lock_of(evidence).epoch)
    except Refused as why:
        raise NotEvaluated(f"{why.where}: {why.what}") from None


def found_wrong(evidence: Evidence, version: Row) -> str:
    """What shows that a version does not hold: its own verdict, the newest of its tree, or a tune run; else empty.

    A recheck against the baseline that is slower, or that broke, takes the claim back as a wrong output does.
    """
    if version.kind == "baseline":
        return ""
    newest = ledger.by_tree(evidence.rows, version.tree, version.epoch)[-1:]
    bad = [row for row in (version, *newest) if row.verdict == "WRONG"]
    bad += [version] if version.verdict == "BROKEN" else []
    bad += [row for row in newest if row.kind == "recheck" and row.verdict == "BROKEN" and not void(row)]
    bad += [row for row in newest if row.verdict == "REGRESSED" and row.incumbent == ledger.BASELINE]
    if bad:
        return f"{bad[0].version} is {bad[0].verdict} ({bad[0].reason[:120]})"
    found = evidence.tuning.map
    outs = found.left_out if found is not None and found.epoch == version.epoch else ()
    return next((f"the tune run {out.run} says {out.why[:120]}" for out in outs if out.tree == version.tree), "")


def void(row: Row) -> bool:
    """Whether a row speaks of the machine or the harness, and not of its candidate."""
    return row.reason.split(":", 1)[0].split(".", 1)[0] in VOID


def decide(evidence: Evidence, said: str) -> str:
    """The command of a decision, ``said`` being its word; the selected version, where there is one, is kept."""
    try:
        version = best_of(evidence).version
    except NotEvaluated:
        version = "VERSION"
    hint = EXPECTED if said == CONTINUE else REASON
    return f'kernelpilot select {version} --why "{said} {hint}"'


def way_on(evidence: Evidence, *, may_stop: bool) -> str:
    """What to do while the target is not met. A stop decision is named only where it would count."""
    if may_stop:
        return decide(evidence, STOP)
    return f"{ATTEMPT.format(name='NAME')}  # or end the loop as STOP, not COMPLETE: {END}"


def decisions(evidence: Evidence) -> tuple[str, str, str]:
    """The three commands that decide on a plateau: change the route, go on, stop."""
    try:
        label = best_of(evidence).version.partition("_")[0]
    except NotEvaluated:
        label = "VERSION"
    said = (f"{PIVOT} {REASON}", f"{CONTINUE} {EXPECTED}", f"{STOP} {REASON}")
    pivot, go_on, stop = (f'kernelpilot select {label} --why "{words}"' for words in said)
    return pivot, go_on, stop


def word(row: Row) -> str:
    """How a decision's reason begins: ``stop:``, ``pivot:``, ``continue:`` or ``select:``; empty for other rows.

    The first three need words of their own after them.
    """
    if row.kind != "decision":
        return ""
    bare = row.reason.removeprefix(ledger.rows.SELECT).strip()
    said = next((w for w in DECISIONS if bare.lower().startswith(w)), "")
    if said and bare[len(said) :].strip() in ("", REASON, EXPECTED):
        said = ""
    return said or (ledger.rows.SELECT if row.reason.startswith(ledger.rows.SELECT) else "")


def variants(evidence: Evidence) -> str:
    """Repo-relative folder of the variants."""
    return f"src/{evidence.task}/variants"


def current_path(evidence: Evidence) -> str:
    """The file that names the selected variant."""
    return f"src/{evidence.task}/current"


def orphans(evidence: Evidence) -> Iterator[str]:
    """Runs that no row cites: of a command at work just now, or of one that was killed."""
    cited = {run for row in evidence.rows for run in row.runs}
    yield from (run for run in evidence.runs if run not in cited)


def places(evidence: Evidence) -> Mapping[str, int]:
    """Commit -> its place in the history, oldest first."""
    return {commit.commit: ix for ix, commit in enumerate(evidence.git.commits)}


def loops(evidence: Evidence) -> tuple[LoopFacts, ...]:
    """Every loop of this repo, oldest first."""
    return (*evidence.earlier, *((evidence.loop,) if evidence.loop else ()))


def rounds(evidence: Evidence) -> dict[str, int]:
    """Commit -> the round of a loop that it belongs to: (HEAD of the Stop before, HEAD of this Stop].

    Commits before, between and after loops are left out; what follows the last Stop belongs to the round that runs.
    """
    at = places(evidence)
    out: dict[str, int] = {}
    for loop in loops(evidence):
        begin = at.get(loop.start)
        if begin is None:
            continue
        for stop in loop.stops[1:]:
            end = at.get(stop.head)
            if end is None:
                continue
            out |= {c.commit: stop.round for c in evidence.git.commits[begin + 1 : end + 1]}
            begin = max(begin, end)
        if loop.active and loop.directory == (evidence.loop or loop).directory:
            out |= {c.commit: loop.round for c in evidence.git.commits[begin + 1 :]}
    return out


def short(commit: str) -> str:
    """Twelve digits of a commit or tree."""
    return commit[:12]


COMMIT = re.compile(r"[0-9a-f]{40}\Z")
MARKS = re.compile(
    r"SPDX-License-Identifier|\bCopyright\s+(?:\(c\)|©|\d{4})"
    r"|https?://(?:www\.)?(?:github\.com|gitlab\.[a-z]+|bitbucket\.org|huggingface\.co|raw\.githubusercontent\.com)/",
    re.IGNORECASE,
)
"""Somebody's licence line, or an address of somebody's source."""
