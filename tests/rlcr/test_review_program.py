"""The reviewer's program: pinned at set-up, run as it was pinned, and pinned anew by one command after an update."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from rlcr import reviewer
from rlcr.evidence import BadEvidence
from tests.rlcr.real import ACS, CODEX, RLCR, Real

WHAT = "the reviewer's program changed since set-up (an update?)"


@pytest.fixture
def reviewed(real: Real) -> Real:
    """A loop under a reviewer, with its first round's work done."""
    real.reviewer()
    real.answer(met=True)
    assert real.setup("--reviewer", "codex").returncode == 0
    real.work(0)
    return real


def fake(real: Real) -> Path:
    """A folder with a codex of the worker's own, which accepts everything."""
    folder, says = real.base / "fake", real.base / "yes.json"
    folder.mkdir()
    acs = [{"id": ac, "status": "met", "evidence": "gate"} for ac in ACS]
    says.write_text(
        json.dumps({"verdict": "complete", "mainline": "advanced", "acs": acs, "findings": [], "text": "x"})
    )
    (folder / "codex").write_text(CODEX.format(python=sys.executable, log=str(real.base / "lied"), says=str(says)))
    (folder / "codex").chmod(0o755)
    return folder


def test_another_program_that_comes_first_on_path_is_not_asked(reviewed: Real) -> None:
    """Breaks when whoever runs the gate by hand chooses the reviewer by PATH, or by renewing the pin under it."""
    reviewed.reviews("continue", "Wrong result.")
    path = f"{fake(reviewed)}:{reviewed.env['PATH']}"
    reviewed.stop("a", PATH=path)
    assert reviewed.at == ("BUILD", 1)
    done = reviewed.run(RLCR, "evidence", "--amend", "--why", "another one", PATH=path)
    assert done.returncode == 3 and "as the loop has them" in done.stderr
    assert not (reviewed.base / "lied").exists() and (reviewed.base / "bought").exists()


def test_a_program_that_was_replaced_is_not_run_until_it_is_pinned_anew(reviewed: Real) -> None:
    """Breaks when a changed reviewer is believed, or an update of the client costs more than one command."""
    reviewed.reviews("continue", "Wrong result.")
    program = reviewed.base / "bin" / "codex"
    program.write_text(program.read_text() + "# version 2\n")
    said = reviewed.stop("a")["reason"]
    assert WHAT in said and "evidence --amend --why" in said
    assert reviewed.at == ("BUILD", 0) and not (reviewed.base / "bought").exists()
    assert WHAT in reviewed.run(RLCR, "evidence").stdout
    done = reviewed.run(RLCR, "evidence", "--amend", "--why", "the reviewer was updated")
    assert done.returncode == 0 and f"Reviewer pinned anew: {program}\n" in done.stdout
    reviewed.stop("b")
    assert reviewed.at == ("BUILD", 1) and (reviewed.base / "bought").exists()


def test_a_program_replaced_while_the_evidence_ran_is_not_run(reviewed: Real) -> None:
    """Breaks when the pin is only looked at before the evidence commands, one of which may be the worker's script."""
    reviewed.reviews("continue", "Wrong result.")
    program = reviewed.base / "bin" / "codex"
    more = f"\nPath({str(program)!r}).open('a').write('# mine\\n')\n"
    text = reviewed.script.read_text()
    reviewed.script.write_text(text.replace("said = json", f"{more}said = json"))
    assert reviewed.run(RLCR, "evidence", "--amend", "--why", "it writes").returncode == 0
    assert WHAT in reviewed.stop("a")["reason"]
    assert not (reviewed.base / "bought").exists()


def script(path: Path, first: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{first}\nprint(1)\n")
    path.chmod(0o755)
    return path


def test_an_interpreter_that_path_would_choose_is_pinned_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a client that is a script is pinned, and the node that runs it is whatever PATH has first."""
    tools = tmp_path / "tools"
    node = script(tools / "node", "#!/bin/sh")
    codex = script(tools / "codex", "#!/usr/bin/env -S node --quiet")
    monkeypatch.setenv("PATH", str(tools))
    pins = reviewer.pin("codex")
    assert reviewer.argv(pins) == (str(node), "--quiet", str(codex))
    other = script(tmp_path / "other" / "node", "#!/bin/sh")
    monkeypatch.setenv("PATH", f"{other.parent}:{tools}")
    assert reviewer.amended(pins, "codex") == () and reviewer.pin("codex", pins) == pins
    node.write_text("#!/bin/sh\n# another\n")
    (found,) = reviewer.amended(pins, "codex")
    assert (found.rule, found.where, found.what) == ("amend", str(codex), WHAT)
    node.unlink()
    assert reviewer.argv(reviewer.pin("codex", pins))[0] == str(other), "the old one is gone"


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/usr/bin/env -i sh", "#!/usr/bin/env A=1 sh", "#!/usr/bin/env", "x"])
def test_other_programs_run_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """Breaks when a first line that names no program of PATH makes a client impossible to start."""
    codex = script(tmp_path / "codex", first)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert reviewer.argv(reviewer.pin("codex")) == (str(codex),)


def test_a_link_that_leads_elsewhere_is_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when an update that moves a link, as native installers do, is not seen."""
    for version in ("1", "2"):
        script(tmp_path / version, "#!/bin/sh")
    (tmp_path / "claude").symlink_to(tmp_path / "1")
    monkeypatch.setenv("PATH", str(tmp_path))
    pins = reviewer.pin("claude")
    assert reviewer.amended(pins, "claude") == ()
    (tmp_path / "claude").unlink()
    (tmp_path / "claude").symlink_to(tmp_path / "2")
    assert reviewer.amended(pins, "claude") != ()
    renewed = reviewer.pin("claude", pins)
    assert reviewer.amended(renewed, "claude") == () and renewed != pins


def test_a_loop_without_a_pin_has_no_reviewer_and_one_without_a_reviewer_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a missing pin means any program will do."""
    assert reviewer.pin("evidence-only") == {} and reviewer.amended({}, "evidence-only") == ()
    assert len(reviewer.amended({}, "codex")) == 1
    script(tmp_path / "codex", "#!/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert len(reviewer.amended(reviewer.pin("codex"), "claude")) == 1
    with pytest.raises(BadEvidence, match="claude was not found"):
        reviewer.pin("claude")


def test_a_large_program_is_known_in_no_time(tmp_path: Path) -> None:
    """Breaks when every Stop reads 400 MB, or an edit at either end of a large program is not seen."""
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(400 << 20)
    began = time.monotonic()
    marks = [reviewer.mark(str(big))]
    assert time.monotonic() - began < 0.5
    for at in (0, (400 << 20) - 1):
        with big.open("r+b") as file:
            file.seek(at)
            file.write(b"x")
        marks.append(reviewer.mark(str(big)))
    os.truncate(big, 401 << 20)
    marks.append(reviewer.mark(str(big)))
    assert len(set(marks)) == 4
