"""The answer's JSON schema, and a reader as strict as the schema.

Every object lists all of its keys as required and allows no other: that is what the clients' strict modes want, and it
is checked again here because an old client ignores the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn, get_args

from rlcr.review.model import Ac, AcStatus, Finding, Locus, Mainline, Outcome, Priority, Verdict

LONGEST = 20_000
"""Characters of one string in an answer; a longer one is cut, never refused."""
LAST_LINE = 10**7


def _object(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _one_of(words: object) -> dict[str, object]:
    return {"type": "string", "enum": list(get_args(words))}


_STRING: dict[str, object] = {"type": "string"}
_AC = _object(id=_STRING, status=_one_of(AcStatus), evidence=_STRING)
_FINDING = _object(
    id=_STRING,
    priority=_one_of(Priority),
    file=_STRING,
    line={"type": "integer"},
    claim=_STRING,
    locus=_one_of(Locus),
)
SCHEMA = _object(
    verdict=_one_of(Outcome),
    mainline=_one_of(Mainline),
    acs={"type": "array", "items": _AC},
    findings={"type": "array", "items": _FINDING},
    text=_STRING,
)


class Malformed(ValueError):
    """The answer is not what the schema says; the message names the first place."""


def loads(text: str) -> object:
    """JSON without duplicate keys, NaN or infinities. Raises Malformed."""
    try:
        return json.loads(text, object_pairs_hook=_pairs, parse_constant=_no_constant)
    except (ValueError, RecursionError) as bad:
        raise Malformed(f"not JSON: {bad}") from bad


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("a key is given twice")
    return found


def _no_constant(word: str) -> NoReturn:
    raise Malformed(f"{word} is not a number")


def verdict(answer: object) -> Verdict:
    """The verdict in a decoded answer; finding ids are the reviewer's own. Raises Malformed."""
    _check(answer, SCHEMA, "answer")
    found: dict[str, Any] = answer  # type: ignore[assignment]
    acs = tuple(Ac(id=a["id"].strip(), status=a["status"], evidence=a["evidence"][:LONGEST]) for a in found["acs"])
    repeated = _repeated(ac.id for ac in acs)
    if repeated:
        raise Malformed(f"answer.acs: {repeated!r} is judged twice")
    return Verdict(
        verdict=found["verdict"],
        mainline=found["mainline"],
        acs=acs,
        findings=tuple(
            Finding(
                id=f["id"].strip(),
                priority=f["priority"],
                file=f["file"].strip(),
                line=min(max(f["line"], 0), LAST_LINE),
                claim=f["claim"].strip()[:LONGEST],
                locus=f["locus"],
            )
            for f in found["findings"]
        ),
        text=found["text"].strip()[:LONGEST],
    )


def _repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _check(value: object, schema: dict[str, Any], at: str) -> None:
    kind = schema["type"]
    if kind == "object":
        _check_object(value, schema, at)
    elif kind == "array":
        if not isinstance(value, list):
            raise Malformed(f"{at}: not a list")
        for index, item in enumerate(value):
            _check(item, schema["items"], f"{at}[{index}]")
    elif kind == "integer":
        if isinstance(value, bool) or not isinstance(value, int):
            raise Malformed(f"{at}: not a whole number")
    elif not isinstance(value, str):
        raise Malformed(f"{at}: not a string")
    elif "enum" in schema and value not in schema["enum"]:
        raise Malformed(f"{at}: {value[:40]!r} is none of {', '.join(schema['enum'])}")


def _check_object(value: object, schema: dict[str, Any], at: str) -> None:
    if not isinstance(value, dict):
        raise Malformed(f"{at}: not an object")
    wanted = schema["properties"]
    extra, missing = sorted(set(value) - set(wanted)), [key for key in wanted if key not in value]
    if extra:
        raise Malformed(f"{at}: unknown key {extra[0][:40]!r}")
    if missing:
        raise Malformed(f"{at}: no key {missing[0]!r}")
    for key, inner in wanted.items():
        _check(value[key], inner, f"{at}.{key}")
