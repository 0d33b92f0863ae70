"""What the reviewer is given to read: copies made for this call alone, of the very bytes that were judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rlcr.files import TooBig, read_regular
from rlcr.records import sha256
from rlcr.review.model import Infra, Request

_LIMIT = 8 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Papers:
    """``request`` names the copies; ``seen`` is the SHA-256 of every copy and of what it was made from."""

    request: Request
    seen: Mapping[Path, str]

    def moved(self) -> Infra | None:
        """What is not any more what was read."""
        gone = next((path for path, was in self.seen.items() if sha256(_read(path) or b"") != was), None)
        return None if gone is None else _moved(gone)


def copy(request: Request, folder: Path) -> Papers | Infra:
    """Copy plan, summary, evidence, diff and, of an amended plan, the first one; what is not there is left out.

    Infra of kind ``moved`` where the bytes are not those of ``request.sha256``. Raises OSError.
    """
    folder.mkdir(mode=0o700)
    named = {
        "plan_path": ("plan.md", request.plan_path),
        "summary_path": ("summary.md", request.summary_path),
        "evidence_path": ("evidence.json", request.evidence_path),
        "diff_path": ("diff.patch", request.diff_path),
        "first_plan": ("first-plan.md", request.loop_dir / "plan.md" if request.amends else None),
    }
    copies: dict[str, Path] = {}
    seen: dict[Path, str] = {}
    for field, (name, path) in named.items():
        raw = None if path is None else _read(path)
        wanted = None if path is None else request.sha256.get(path)
        if path is not None and wanted is not None and not (raw is not None and _is(raw, wanted)):
            return _moved(path)
        if path is None or raw is None:
            continue
        copies[field] = folder / name
        copies[field].write_bytes(raw)
        seen |= {path: sha256(raw), copies[field]: sha256(raw)}
    return Papers(request=replace(request, **copies), seen=seen)  # type: ignore[arg-type]


def _read(path: Path) -> bytes | None:
    try:
        return read_regular(path, _LIMIT)
    except TooBig:
        return None


def _is(raw: bytes, wanted: str) -> bool:
    """Whether a hash is that of the bytes, or of the text that was made of them."""
    return wanted in (sha256(raw), sha256(raw.decode("utf-8", "replace")))


def _moved(path: Path) -> Infra:
    return Infra(kind="moved", detail=f"{path.name} changed while it was reviewed")
