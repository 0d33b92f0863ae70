"""What a committed variant is made of: which one is meant, its language, and whose code it carries."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from kernelpilot_helpers import ledger, proc, records
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.gate.course import IDEA
from kernelpilot_helpers.ledger import citations
from kernelpilot_helpers.ledger.model import Motivation, Provenance
from kernelpilot_helpers.referee import views
from kernelpilot_helpers.referee.workspace import Workspace

LANGUAGES = ((".cu", "cuda"), (".cpp", "c++"), (".cc", "c++"), (".c", "c"))
SHOWN = 6
"""Known names that a refusal lists."""
PROVENANCE = "provenance.toml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names of variant folders: no glob, no path, nothing that a shell or git reads as an option."""
LABEL = re.compile(r"v\d{3,}_[a-z0-9][a-z0-9_-]{0,63}")


def choose_variant(ws: Workspace, asked: str | None) -> str:
    """The variant meant. Raises Refused when the name is unknown or nothing says which one is meant."""
    folder = ws.root / ws.variants
    names = sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
    odd = [name for name in names if not NAME.fullmatch(name) or (folder / name).is_symlink()]
    names = [name for name in names if name not in odd]
    if asked is not None and asked.rstrip("/").rsplit("/", 1)[-1] in odd:
        what = f"{asked!r} cannot be a variant: want a real folder named with letters, digits, '.', '_' and '-'"
        raise Refused(what, where=ws.variants, fix="rename it")
    if asked is not None:
        name = asked.rstrip("/").rsplit("/", 1)[-1]
        if name not in names:
            have = ", ".join(names) or "none yet"
            raise Refused(
                f"no variant {name!r} (there is: {have})",
                where=ws.variants,
                fix=f"write {ws.variants}/{name}/candidate.py",
            )
        return name
    path = views.current_path(ws)
    current = path.read_text(errors="replace").strip() if path.is_file() else ""
    if current in names:
        return current
    if len(names) == 1:
        return names[0]
    what = "no variant yet" if not names else f"which variant is meant? ({', '.join(names)})"
    fix = "name one of them" if names else f"write {ws.variants}/NAME/candidate.py"
    raise Refused(what, where=ws.variants, fix=fix)


def require_cited(ws: Workspace, cited: Motivation) -> None:
    """Raises Refused when a motivation cites a source idea or a profile digest that is not in this repo."""
    keys = [idea.key for idea in ledger.load_ideas(ws.root)]
    folder = ws.root / citations.DIGESTS
    paths = [path.relative_to(ws.root).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    digests = citations.digest_ids(paths)
    missing = citations.unknown(cited, keys=keys, digests=digests)
    if not missing:
        return
    if missing[0].startswith("source "):
        known = f"; there is: {', '.join(dict.fromkeys(keys[-SHOWN:]))}" if keys else ""
        raise Refused(
            f"no {', '.join(missing)}: no such source idea was noted",
            where=ledger.SOURCE_IDEAS_PATH,
            fix=f"{IDEA}  # prints the KEY to cite{known}",
        )
    known = f"; there is: {', '.join(sorted(digests)[:SHOWN])}" if digests else ""
    fix = f"kernelpilot ncu digest FILE --out {citations.DIGESTS}VERSION/CASE  # VERSION is the ID to cite{known}"
    if ws.device.kind == "gpu":
        fix = f"kernelpilot profile --version VERSION  # prints the ID to cite{known}"
    raise Refused(f"no {missing[0]}: no such file or folder", where=citations.DIGESTS, fix=fix)


def files(ws: Workspace, tree: str) -> list[str]:
    """Paths inside a tree."""
    return [p for p in proc.git_out(ws.root, "ls-tree", "-r", "-z", "--name-only", tree).split("\0") if p]


def language(ws: Workspace, tree: str) -> str:
    """What the variant is written in: the contract's word, else by its files."""
    if ws.contract.policy.language != "any":
        return ws.contract.policy.language
    names = files(ws, tree)
    return next((word for suffix, word in LANGUAGES if any(n.endswith(suffix) for n in names)), "python")


def provenance(ws: Workspace, tree: str, path: str) -> tuple[Provenance, ...]:
    """Rows of the variant's ``provenance.toml``. Raises BadRecord when it does not hold what it must."""
    names = files(ws, tree)
    if PROVENANCE not in names:
        return ()
    where = f"{path}/{PROVENANCE}"
    doc = records.parse_toml(proc.blob(ws.root, f"{tree}:{PROVENANCE}") or b"", at=where)
    fix = f"write [[source]] tables with url, commit, licence, files and delta in {where}"
    rows: Any = doc.get("source", [])
    if set(doc) != {"source"}:
        raise BadRecord(f"want [[source]] tables only, got {sorted(doc)}", where=where, fix=fix)
    try:
        found = msgspec.convert(rows, tuple[Provenance, ...], strict=True)
    except msgspec.ValidationError as error:
        raise BadRecord(str(error), where=where, fix=fix) from None
    faults = [f for p in found for f in ledger.provenance_faults(p, names, ws.contract.policy.licences, at=where)]
    if faults:
        raise BadRecord("; ".join(f.what for f in faults), where=where, fix=fix)
    return found
