"""Provenance rows: a file that carries somebody's code must say whose, from when, and under which licence."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

from kernelpilot_helpers.ledger.model import Provenance
from kernelpilot_helpers.records import Fault

COMMIT = re.compile(r"[0-9a-f]{40}\Z")
FIX = "write url, commit, licence, files and delta as they are, then attempt again"


def _problems(entry: Provenance, licences: Collection[str], listing: Collection[str]) -> list[str]:
    out: list[str] = []
    try:
        url = urlsplit(entry.url)
        sound = url.scheme in ("https", "http", "ssh", "git") and bool(url.hostname)
    except ValueError:
        sound = False
    if not sound:
        out.append(f"url: want an address with a host, got {entry.url!r}")
    if not COMMIT.match(entry.commit):
        out.append(f"commit: want 40 hex digits, got {entry.commit!r}")
    if entry.licence not in licences:
        out.append(f"licence: {entry.licence!r} is not allowed by the contract ({', '.join(sorted(licences))})")
    if not entry.files:
        out.append("files: empty; name the files that carry the code")
    out += [f"files: {name!r} is not in the judged tree" for name in entry.files if name not in listing]
    if not entry.delta.strip():
        out.append("delta: empty; say what was changed")
    return out


def provenance_faults(
    entry: Provenance, listing: Collection[str], licences: Collection[str], *, at: str
) -> list[Fault]:
    """What is wrong with one provenance entry.

    ``listing`` holds the paths of the judged tree (relative to it), ``licences`` the contract's SPDX names.
    """
    return [Fault(where=at, what=what, fix=FIX) for what in _problems(entry, licences, listing)]
