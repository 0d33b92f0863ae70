"""The skills that the model is shown, as Codex itself prints them; Claude Code has nothing to be asked that way."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_install import skills
from kernelpilot_install.doctor import codex_says
from kernelpilot_install.doctor.check import Check, Here
from kernelpilot_install.doctor.codex_rpc import Unanswered

NAME = "visible-codex"
_BY_NAME_ONLY = re.compile(r"^[ \t]*allow_implicit_invocation:[ \t]*false\b", re.MULTILINE)


def codex(here: Here) -> Iterator[Check]:
    """Each skill of the bundle is loaded, on, and in the model's list unless it says that it is called by name only."""
    asking = codex_says.Asking(at=here.at, env=here.env, folder=here.folder)
    try:
        with asking.server() as server:
            loaded, errors = codex_says.skills(server, here.folder)
        shown = codex_says.shown(asking)
    except Unanswered as e:
        what = f"what Codex shows the model was not asked: {e}; only the files above were looked at"
        fix = "command -v codex && codex debug prompt-input hello  # with codex on PATH, then: kernelpilot doctor"
        yield Check(name=NAME, status="warn", what=what, fix=fix)
        return
    ours = {n: p for n, p in skills.bundle_folders(here.at.clone).items() if n != "humanize"}
    faults = list(_faults(here, ours, loaded, errors, shown))
    yield from faults
    if not faults:
        seen = sorted(set(ours) & set(shown))
        more = sorted(set(ours) - set(shown))
        by_name = f"; by name only: {', '.join(more)}" if more else ""
        yield Check(name=NAME, status="ok", what=f"Codex shows the model {', '.join(seen)}{by_name}")


def _faults(
    here: Here, ours: dict[str, Path], loaded: list[codex_says.Skill], errors: dict[str, str], shown: list[str]
) -> Iterator[Check]:
    install = f"{shlex.quote(str(here.at.clone / 'install.sh'))} --client codex"
    known = {s.path.resolve(): s for s in loaded}
    broken = {Path(path).resolve(): why for path, why in errors.items()}
    for name, folder in ours.items():
        path = (folder / "SKILL.md").resolve()
        skill = known.get(path)
        if path in broken:
            what = f"Codex does not load {name}: {broken[path]}"
            fix = f"git -C {shlex.quote(str(here.at.clone))} checkout -- skills"
        elif skill is None:
            what, fix = f"Codex does not find {name} from {here.folder}", install
        elif not skill.enabled:
            what = f"{name} is turned off in Codex"
            fix = "codex  # type /skills and turn it on again"
        elif skill.name not in shown and not _by_name_only(folder):
            what = f"Codex loads {name} and leaves it out of the model's list: too many skills, or another of that name"
            fix = "codex  # type /skills and turn off what is not needed"
        else:
            continue
        yield Check(name=NAME, status="fail", what=what, fix=fix)


def _by_name_only(folder: Path) -> bool:
    try:
        text = (folder / "agents" / "openai.yaml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return _BY_NAME_ONLY.search(text) is not None
