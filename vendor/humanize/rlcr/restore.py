"""What another hand did to a loop's files, undone: one record for each."""

from __future__ import annotations

import re
from pathlib import Path

from rlcr import model, tracker
from rlcr.files import TooBig, read_regular, replace_file, set_aside
from rlcr.journal import Journal
from rlcr.model import Tamper
from rlcr.views import (
    CAP,
    STATE_NAMES,
    Pages,
    as_bytes,
    expected,
    plans_of,
    renew_tracker,
    state_name,
)

OWNED = re.compile(
    r"(round-\d+-(prompt|gate|review-result)\.md|round-\d+-(evidence|verdict)\.json|findings\.jsonl"
    r"|finalize-prompt\.md|plan(-\d+)?\.md|([a-z]+-)?state\.md)"
)
INPUT = re.compile(r"(round-\d+-(summary|contract)\.md|finalize-summary(-\d+)?\.md)")


def restore(folder: Path, journal: Journal, plan: str | None) -> list[Tamper]:
    """Put back whatever another hand changed; one record for each. ``plan`` is the text at set-up."""
    state, out = journal.state, []
    gone = {"state.md", *STATE_NAMES.values()} - {state_name(state)}
    known = {name: digest for name, digest in state.files.items() if name not in gone}
    made: Pages | None = None
    for name, digest in known.items():
        try:
            found = read_regular(folder / name, CAP)
        except TooBig:
            found = b""
        if digest and (found is None or model.sha256(found) != digest):
            made = made or expected(journal, plan)
            if name in made.owned:
                replace_file(folder / name, as_bytes(made.owned[name]))
            what = f"{name} was removed" if found is None else f"{name} was edited by hand"
            out.append(Tamper(what=what, path=name))
    for path in sorted(folder.iterdir()):
        if path.name not in known and (OWNED.fullmatch(path.name) or INPUT.fullmatch(path.name)):
            set_aside(path)
            out.append(Tamper(what=f"{path.name} was written by another hand", path=path.name))
    return out + _restored_tracker(folder, plans_of(state, plan))


def _restored_tracker(folder: Path, plans: tuple[str, ...]) -> list[Tamper]:
    absent = not (folder / tracker.NAME).is_file()
    if not plans or not renew_tracker(folder, plans):
        return []
    what = "was removed" if absent else "was edited above its mutable section"
    return [Tamper(what=f"{tracker.NAME} {what}", path=tracker.NAME)]
