"""From a reviewer's final message to a verdict: parse it, then hold it to the rules it cannot talk itself out of."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

from rlcr.review import markers, schema
from rlcr.review.model import BLOCKING, Ac, Finding, Infra, Request, Verdict

_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.S)
_NO_REFERENCE = re.compile(r"\W*(?:none|n/?a|nil|null|no evidence|unknown|tbd|todo)?\W*", re.I)
_EVIDENCE_LIMIT = 4 << 20


def judge(message: str, request: Request, *, token: str) -> Verdict | Infra:
    """The verdict in a final message. ``token`` marks our prompt: prose holding it is an echo, not a review."""
    text = message.strip()
    if not text:
        return Infra(kind="empty", detail="the reviewer ended without a final message")
    fenced = _FENCE.match(text)
    body = fenced[1].strip() if fenced else text
    if body.startswith(("{", "[")):
        try:
            return settle(schema.verdict(schema.loads(body)), request)
        except schema.Malformed as bad:
            return Infra(kind="bad-json", detail=str(bad))
    if token in text:
        return Infra(kind="echo", detail="the final message repeats the prompt")
    if markers.is_error(text):
        return Infra(kind="error-banner", detail=_first_line(text))
    found = markers.verdict(text)
    if found is None:
        return Infra(kind="no-verdict", detail=f"no verdict in the final message, which opens: {_first_line(text)}")
    return settle(found, request)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:200]


def settle(found: Verdict, request: Request) -> Verdict:
    """The verdict after our own rules.

    A criterion is met only with a reference to evidence made at the reviewed commit; nothing is complete beside an
    unmet criterion or an open P0 or P1; every finding gets an id that a reviewer cannot choose.
    """
    current = _evidence_is_current(request)
    acs = tuple(_held(ac, current=current) for ac in found.acs)
    findings = _named(found.findings, {finding.id for finding in request.prior_open})
    open_end = any(ac.status == "unmet" for ac in acs) or any(f.priority in BLOCKING for f in findings)
    outcome = "continue" if found.verdict == "complete" and open_end else found.verdict
    return replace(found, verdict=outcome, acs=acs, findings=findings)


def _held(ac: Ac, *, current: bool) -> Ac:
    if ac.status == "met" and (not current or _NO_REFERENCE.fullmatch(ac.evidence)):
        return replace(ac, status="unmet")
    return ac


def _evidence_is_current(request: Request) -> bool:
    """False when the evidence file is missing or says it was made at another commit."""
    try:
        found = _read_json(request.evidence_path)
    except (OSError, ValueError, RecursionError):
        return False
    return not isinstance(found, dict) or found.get("head", request.head) == request.head


def _read_json(path: Path) -> object:
    with path.open("rb") as file:
        found: object = json.loads(file.read(_EVIDENCE_LIMIT))
    return found


def _named(found: tuple[Finding, ...], known: set[str]) -> tuple[Finding, ...]:
    named: dict[str, Finding] = {}
    for finding in found:
        key = finding.id if finding.id in known else finding_id(finding.file, finding.claim)
        kept = named.get(key)
        if kept is None or finding.priority < kept.priority:
            named[key] = replace(finding, id=key)
    return tuple(named.values())


def finding_id(file: str, claim: str) -> str:
    """``F-`` and ten hex digits; blind to case, spacing and line numbers, which move without the fault changing."""
    words = re.sub(r"[\W_]+", " ", re.sub(r":\d+(?:-\d+)?", "", claim)).strip().lower()
    return "F-" + hashlib.sha256(f"{file}\0{words}".encode(errors="replace")).hexdigest()[:10]
