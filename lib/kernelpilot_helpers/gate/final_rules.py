"""Rules 31 and 33: the final inventory says what the runs say, and so does every round summary."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.evidence.loop import EXPORTED
from kernelpilot_helpers.evidence.model import Evidence
from kernelpilot_helpers.gate import claims as finder
from kernelpilot_helpers.gate.final_facts import FINAL_PATH, FIX, FinalFacts, bench_of, facts_of
from kernelpilot_helpers.gate.final_text import check_final
from kernelpilot_helpers.gate.model import NotEvaluated, Rule
from kernelpilot_helpers.policy import DEVICES, TIERS, Policy
from kernelpilot_helpers.scaffold import RESEARCH_SECTIONS

Found = tuple[str, str, str]
DIGEST_PATH = "artifacts/research-digest.md"
DIGEST_WORDS = 3
"""Fewer words below a heading are "none" or "to do": no finding is told in so few."""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]\w*")
CITE = "cite on that line the run or version that says so, as in [v003_fused.2], or take the figure out"


def unevaluated(evidence: Evidence, policy: Policy) -> tuple[str, ...]:
    """``rule: why`` of every rule of the gate whose inputs are missing, as FINAL.md lists them."""
    from kernelpilot_helpers.gate import RULES  # noqa: PLC0415 - the whole table imports this module

    out: dict[str, list[str]] = {}
    for rule in RULES:
        if rule.id == "31":
            continue
        try:
            for _ in rule.check(evidence, policy):
                pass
        except NotEvaluated as why:
            words, told = " ".join(str(why).split()), out.setdefault(rule.id, [])
            told += [] if words in told else [words]
        except Exception:  # noqa: BLE001, S112 - the gate makes a finding of it; it is no missing input
            continue
    return tuple(f"{number}: {'; '.join(told)}" for number, told in out.items())


def final_facts(evidence: Evidence, policy: Policy) -> FinalFacts:
    """What FINAL.md is rendered from and checked against. Raises Refused when there is nothing to take stock of."""
    return facts_of(evidence, unevaluated(evidence, policy))


def _final(evidence: Evidence, policy: Policy) -> Iterable[Found]:
    try:
        facts = final_facts(evidence, policy)
    except Refused as why:
        raise NotEvaluated(f"{why.where}: {why.what}") from None
    text = evidence.files.get(FINAL_PATH)
    if text is None:
        yield FINAL_PATH, "no final inventory, or it is not text", FIX
        return
    stale: list[tuple[str, str]] = []
    for fault in check_final(text, _as_written(text, facts)):
        if fault.fix == FIX:
            stale.append((fault.where, fault.what))
        else:
            yield fault.where, fault.what, fault.fix
    if FINAL_PATH in evidence.git.dirty or not any(FINAL_PATH in c.paths for c in evidence.git.commits):
        stale.append((FINAL_PATH, "not committed as it stands"))
    if stale:  # one command mends them all
        rest = len(stale) - 1
        more = f" (and {rest} more difference{'s' * (rest != 1)})" if rest else ""
        yield stale[0][0], f"{stale[0][1]}{more}", FIX


def _digest(evidence: Evidence, policy: Policy) -> Iterator[Found]:  # noqa: ARG001
    """Input: the text of the research digest. Nobody can judge what was understood; an empty form was not written."""
    text = _COMMENT.sub("", evidence.files.get(DIGEST_PATH, ""))
    parts = {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in re.split(r"^## ", text, flags=re.M)}
    empty = [title for title in RESEARCH_SECTIONS if len(_WORD.findall(parts.get(title, ""))) < DIGEST_WORDS]
    if empty:
        what = f"says nothing of its own below: {', '.join(empty)}"
        yield DIGEST_PATH, what, f"write a sentence below each of these headings of {DIGEST_PATH}, and commit it"


def _as_written(text: str, facts: FinalFacts) -> FinalFacts:
    """A clone holds the exported journal alone, so more rules lack their inputs than when the page was written.

    There, a rule that the page does not list counts as evaluated then; a rule that it lists must lack its input now.
    """
    loop = facts.evidence.loop
    if loop is None or loop.directory != EXPORTED:
        return facts
    lines = set(text.split("\n"))
    return replace(facts, unevaluated=tuple(entry for entry in facts.unevaluated if f"- rule {entry}" in lines))


def _known(evidence: Evidence) -> dict[str, frozenset[str]]:
    """Everything that a summary may cite -> the versions it speaks of."""
    out: dict[str, set[str]] = {}
    for row in evidence.rows:
        for name in (row.version, row.version.partition("_")[0], row.motivation.digest, *row.runs):
            if name:
                out.setdefault(name, set()).add(row.version)
    return {name: frozenset(versions) for name, versions in out.items()}


def _ratios(evidence: Evidence, versions: Collection[str]) -> list[float]:
    """Every speed-up ratio on record for these versions, interval bounds included."""
    rows = [row for row in evidence.rows if row.version in versions]
    out = [x for row in rows for v in (row.gain, row.vs_baseline) if v for x in (v.speedup, v.ci_low, v.ci_high)]
    for bench in (bench_of(evidence, run) for row in rows for run in row.runs):
        if bench is not None:
            whole = bench.geomean
            out += [x for x in (whole.speedup, whole.ci_low, whole.ci_high) if x]
            out += [x for c in bench.cases for x in (c.speedup, c.ci_low, c.ci_high) if x]
    return out


def _promised(policy: Policy) -> tuple[float, ...]:
    """Fractions that may stand on any line: confidences, floors, margins and bands are policy, not claims."""
    levels = [1 - tier.alpha for tier in TIERS.values()]
    limits = [x for d in DEVICES.values() for x in (d.floor_max, d.noninferiority)]
    return (*levels, *limits, policy.same_band, policy.weak_gain, policy.profile_band, policy.improved_point)


def _summaries(evidence: Evidence, policy: Policy) -> Iterator[Found]:
    if evidence.loop is None:
        raise NotEvaluated("no loop, so there is no round summary")
    if not evidence.loop.summaries:
        raise NotEvaluated("the loop holds no round summary yet")
    known = _known(evidence)
    for number, text in sorted(evidence.loop.summaries.items()):
        for claim in finder.claims(text):
            where = f"round-{number}-summary.md:{claim.line}"
            what = _wrong(claim, known, evidence, policy)
            if what:
                yield where, what, CITE


def _wrong(claim: finder.Claim, known: dict[str, frozenset[str]], evidence: Evidence, policy: Policy) -> str:
    names = finder.cited(claim.whole)
    unknown = [name for name in names if name not in known]
    if unknown:
        return f"{claim.text!r} cites {', '.join(unknown)}, which is not in the lineage"
    digests = {row.motivation.digest for row in evidence.rows if row.motivation.digest}
    found = [name for name in (*names, *(d for d in digests if d in claim.whole)) if name in known]
    if not found:
        return f"{claim.text!r} says no run, version or digest on its line"
    if not claim.of_speed:
        return ""
    versions = frozenset().union(*(known[name] for name in found))
    if finder.agrees(claim, _ratios(evidence, versions), _promised(policy)):
        return ""
    return f"{claim.text!r} is no speed-up that {', '.join(sorted(versions))} has on record"


FINAL_RULES: tuple[Rule, ...] = (
    Rule(id="31", title="final inventory", severity="block", phase="final", check=_final),
    Rule(id="31", title="research digest is written", severity="block", phase="final", check=_digest),
    Rule(id="33", title="claims in a round summary", severity="repair", phase="always", check=_summaries),
)
