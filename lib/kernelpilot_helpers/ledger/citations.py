"""What an attempt's motivation may cite: a source idea that was noted, a profile digest that lies in the repo. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kernelpilot_helpers.ledger.model import Motivation

DIGESTS = "artifacts/profile-digests/"
COMMON = ("digest.json", "digest.md", "facts.json", "profile.json", "report.ncu-rep", "report.ncu-repz", "README.md")
"""Names that every digest has or none is: they say nothing of which one is meant."""


def digest_ids(paths: Iterable[str]) -> frozenset[str]:
    """Names by which the digests of these repo-relative paths may be cited: a folder, a file, or a path of them.

    >>> sorted(digest_ids(["artifacts/profile-digests/v001_x/m1/digest.md", "artifacts/profile-digests/README.md"]))
    ['m1', 'v001_x', 'v001_x/m1', 'v001_x/m1/digest.md']
    """
    out: set[str] = set()
    for path in paths:
        parts = path.removeprefix(DIGESTS).split("/")
        if not path.startswith(DIGESTS) or parts == ["README.md"]:
            continue
        for ix, part in enumerate(parts):
            out |= {"/".join(parts[: ix + 1]), *((part,) if part not in COMMON else ())}
        name, dot, _ = parts[-1].rpartition(".")
        out |= {name} if dot and parts[-1] not in COMMON else set()
    return frozenset(out)


def names(cited: str, subject: str, case_id: str) -> bool:
    """Whether a citation is of the digest of this version and case: by both, by one of them, or by a file of it.

    >>> [names(said, "v001_x", "m1") for said in ("v001_x/m1", "v001_x", "m1", "v001_x/m1/digest.md", "v002_x", "")]
    [True, True, True, True, False, False]
    """
    bare = cited.removeprefix(DIGESTS).rstrip("/")
    return bare in (subject, case_id) or f"{bare}/".startswith(f"{subject}/{case_id}/")


def unknown(cited: Motivation, *, keys: Collection[str], digests: Collection[str]) -> tuple[str, ...]:
    """``source KEY`` and ``digest ID`` of everything that is cited and is not there."""
    out = [f"source {key}" for key in cited.source_keys if key not in keys]
    return (*out, *((f"digest {cited.digest}",) if cited.digest and cited.digest not in digests else ()))
