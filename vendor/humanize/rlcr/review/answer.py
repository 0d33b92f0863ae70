"""From a reviewer's final message to a verdict: parse it, then hold it to the rules it cannot talk itself out of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from rlcr import criteria
from rlcr.review import markers, schema
from rlcr.review.model import BLOCKING, Ac, Finding, Infra, Request, Verdict
from rlcr.review.proof import Proof, place, proof

_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.S)
_JSON = re.compile(r"\{|\[(?!P\d\])")
_ANSWER = re.compile(r"""\{\s*"(?:mainline|acs|findings)"\s*:|["'\\]{1,4}verdict["'\\]{1,4}\s*:""")
_NAMED, _LONGEST = 30, 400
_SILENT = Ac(id="", status="unmet", evidence="")


def judge(message: str, request: Request, *, token: str) -> Verdict | Infra:
    """The verdict in a final message. ``token`` marks our prompt: prose holding it is an echo, not a review."""
    text = message.strip()
    if not text:
        return Infra(kind="empty", detail="the reviewer ended without a final message")
    fenced = _FENCE.match(text)
    body = fenced[1].strip() if fenced else text
    if _JSON.match(body):
        try:
            return settle(schema.verdict(schema.loads(body)), request)
        except schema.Malformed as bad:
            return Infra(kind="bad-json", detail=str(bad))
    if token in text:
        return Infra(kind="echo", detail="the final message repeats the prompt")
    if markers.is_error(text):
        return Infra(kind="error-banner", detail=_first_line(text))
    if _ANSWER.search(text):
        return Infra(kind="bad-json", detail="an answer object stands among other text: which one counts?")
    found = markers.verdict(text)
    if found is None:
        return Infra(kind="no-verdict", detail=f"no verdict in the final message, which opens: {_first_line(text)}")
    return settle(replace(found, acs=_spoken(found, request)), request, spoken=True)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:200]


def _spoken(found: Verdict, request: Request) -> tuple[Ac, ...]:
    """What a marker says of the criteria: ``COMPLETE`` stands for all of them, but only over evidence that passed."""
    passed = proof(request, ()).passed
    good = found.verdict == "complete" and bool(passed)
    cited = ", ".join(passed)
    names = {_canon(one): one for one in request.acs}.values()
    return tuple(Ac(id=one, status="met" if good else "unmet", evidence=cited) for one in names)


def settle(found: Verdict, request: Request, *, spoken: bool = False) -> Verdict:
    """The verdict after our own rules, which the worker reads above the reviewer's text.

    Every criterion of the plan is judged, by silence as unmet; it is met only with a reference that stands at the
    reviewed commit. Nothing is complete beside a criterion that is not met, one of the reviewer's own included, or an
    open P0 or P1; and nothing is where no criterion is met at all. Every finding gets an id that a reviewer cannot
    choose. ``spoken``: the answer had no place for criteria. Raises schema.Malformed.
    """
    acs, notes = _judged(found.acs, request)
    passed = bool(proof(request, ()).passed)
    bare, words = not passed, "COMPLETE without an evidence command that passed at HEAD meets no criterion"
    if spoken:
        notes = []
    else:
        # Without a plan there may be no criterion to name: then the commands have to have passed.
        bare = not acs and (request.planned or not passed)
        words = "complete without one criterion that is met, with its evidence, completes nothing"
    claimed = found.verdict == "complete"
    notes += [words] if claimed and bare else []
    findings = _named(found.findings, request)
    left = bare or any(ac.status != "met" for ac in acs) or any(f.priority in BLOCKING for f in findings)
    outcome = "continue" if claimed and left else found.verdict
    head = "The runtime on this review:\n" + "".join(f"- {note}\n" for note in notes) + "\n" if notes else ""
    return replace(found, verdict=outcome, acs=acs, findings=findings, text=(head + found.text)[: schema.LONGEST])


def _judged(said: tuple[Ac, ...], request: Request) -> tuple[tuple[Ac, ...], list[str]]:
    """Every criterion with the status that it comes to, in the plan's order, and what was not taken as it was said."""
    by_id: dict[str, Ac] = {}
    for ac in said:
        key = _canon(ac.id)
        if key in by_id:
            raise schema.Malformed(f"answer.acs: {ac.id[:40]!r} is judged twice")
        by_id[key] = replace(ac, id=ac.id[:80])
    plan = {_canon(one): one for one in request.acs}
    # What the plan does not number adds nothing to it by being met; called anything else, it stands.
    own = {key: ac.id for key, ac in by_id.items() if key not in plan and (not plan or ac.status != "met")}
    wanted = {**plan, **own}
    shown = proof(request, (ac.evidence for ac in by_id.values() if ac.status == "met"))
    acs = tuple(_held(replace(by_id.get(key, _SILENT), id=one), shown) for key, one in wanted.items())
    return acs, list(_notes(by_id, wanted, acs))


def _canon(name: str) -> str:
    """``AC-1`` for "ac 1", "AC1" and "**AC-01**"; a name that holds no such id, or two of them, is itself."""
    found = {(parent, first) for parent, first, last in criteria.spans(name[:_LONGEST]) if first == last}
    return criteria.name(found.pop()) if len(found) == 1 else name.strip().casefold()


def _held(ac: Ac, shown: Proof) -> Ac:
    return ac if ac.status != "met" or shown.cited(ac.evidence) else replace(ac, status="unmet")


def _notes(said: dict[str, Ac], wanted: dict[str, str], acs: tuple[Ac, ...]) -> Iterator[str]:
    status = dict(zip(wanted, acs, strict=True))
    for what, names in (
        ("called met without evidence at HEAD", [n for k, n in wanted.items() if _lost(said.get(k), status[k])]),
        ("not judged, so not met", [n for k, n in wanted.items() if k not in said]),
        (
            "deferred is not met: only an amended plan drops a criterion",
            [n for k, n in wanted.items() if status[k].status == "deferred"],
        ),
        ("not in the plan, so of no account", [ac.id for k, ac in said.items() if k not in wanted]),
    ):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            yield f"{', '.join(' '.join(name.split())[:40] for name in names[:_NAMED])}{more}: {what}"


def _lost(said: Ac | None, now: Ac) -> bool:
    return said is not None and said.status == "met" and now.status != "met"


def _named(found: tuple[Finding, ...], request: Request) -> tuple[Finding, ...]:
    """Each finding once, the gravest first, under an id of ours."""
    known = {finding.id for finding in (*request.prior_open, *request.queued)}
    named: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda one: one.priority):
        file = place(finding.file, request.worktree)
        key = finding.id if finding.id in known else finding_id(file, finding.claim)
        named.setdefault(key, replace(finding, id=key, file=file))
    return tuple(named.values())


def finding_id(file: str, claim: str) -> str:
    """``F-`` and ten hex digits; blind to case, spacing and line numbers, which move without the fault changing."""
    words = re.sub(r"[\W_]+", " ", re.sub(r":\d+(?:-\d+)?", "", claim)).strip().lower()
    return "F-" + hashlib.sha256(f"{file}\0{words}".encode(errors="replace")).hexdigest()[:10]
