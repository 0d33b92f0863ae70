"""The reader of framework checkouts and the lock that records them, on real git repositories."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import contract, records, scaffold
from kernelpilot_helpers.contract.model import Checkout, Contract, Framework
from kernelpilot_helpers.errors import BadRecord, Refused
from kernelpilot_helpers.evidence import checkouts
from kernelpilot_helpers.evidence.model import CheckoutFacts
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.records import Fault
from kernelpilot_helpers.referee import gating, locking, workspace
from tests.referee_sim import clock, quiet

NAMED = Framework(name="sgl", sources=("csrc", "entry.py"))
BASE = scaffold.example(task="t")


def git(repo: Path, *args: str) -> str:
    argv = ["git", "-c", "user.name=w", "-c", "user.email=w@w", "-c", "protocol.file.allow=always", *args]
    return subprocess.run(argv, cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def of(*frameworks: Framework) -> Contract:
    return msgspec.structs.replace(BASE.contract, framework=frameworks)


def made(folder: Path) -> Path:
    """A framework with two sources and an ignored build folder, committed."""
    (folder / "csrc").mkdir(parents=True)
    (folder / "csrc/k.cu").write_text("int k;\n")
    (folder / "entry.py").write_text("e = 1\n")
    (folder / ".gitignore").write_text("build/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "framework")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder beside the framework ``../sgl``, which its local file names."""
    made(tmp_path / "sgl")
    (tmp_path / "root/.kernelpilot").mkdir(parents=True)
    (tmp_path / "root/.kernelpilot/local.toml").write_text('[framework.sgl]\npath = "../sgl"\n')
    return tmp_path / "root"


def read(root: Path, named: Framework = NAMED) -> CheckoutFacts:
    return checkouts.collect(root, of(named), None)["sgl"]


def seen(root: Path) -> Checkout:
    now = read(root).now
    assert isinstance(now, Checkout), now
    return now


def test_a_clean_checkout_with_its_sources(root: Path) -> None:
    """Breaks when HEAD, the list or the texts are not the repository's, or ignored files count."""
    sgl = root.parent / "sgl"
    (sgl / "build").mkdir()
    (sgl / "build/k.o").write_text("x")
    found = read(root)
    assert isinstance(found.now, Checkout)
    assert (found.now.head, found.now.edited, found.edits) == (git(sgl, "rev-parse", "HEAD"), 0, ())
    assert found.sources == {"csrc/k.cu": "int k;\n", "entry.py": "e = 1\n"} and found.source_faults == ()
    assert str(root.parent) not in json.dumps(msgspec.to_builtins(found.now))


def _edit(sgl: Path) -> None:
    (sgl / "entry.py").write_text("e = 2\n")


def _new(sgl: Path) -> None:
    (sgl / "new.py").write_text("")


def _gone(sgl: Path) -> None:
    (sgl / "entry.py").unlink()


def _hidden(sgl: Path) -> None:
    git(sgl, "update-index", "--assume-unchanged", "entry.py")
    _edit(sgl)


def _staged(sgl: Path) -> None:
    _edit(sgl)
    git(sgl, "add", "-A")


def test_hiding_a_new_file_is_itself_a_change(root: Path) -> None:
    """Breaks when one line in the checkout's own store lets files appear that no list shows."""
    sgl = root.parent / "sgl"
    before = seen(root)
    (sgl / ".git/info").mkdir(exist_ok=True)
    (sgl / ".git/info/exclude").write_text("new.py\n")
    _new(sgl)
    after = seen(root)
    assert after.edited == 0 and after.status != before.status


@pytest.mark.parametrize("change", [_edit, _new, _gone, _hidden, _staged])
def test_each_change_shows(root: Path, change: Callable[[Path], None]) -> None:
    """Breaks when an edit, a new or deleted file, or one that git was told not to look at changes nothing."""
    before = seen(root)
    change(root.parent / "sgl")
    after = seen(root)
    assert (after.head, after.edited) == (before.head, 1) and after.status != before.status


def test_a_second_edit_of_a_file_that_was_edited_shows(root: Path) -> None:
    """Breaks when only the list of changed files counts: a checkout that was dirty at the lock could change freely."""
    _edit(root.parent / "sgl")
    before = seen(root)
    (root.parent / "sgl/entry.py").write_text("e = 3\n")
    after = seen(root)
    assert before.edited == after.edited == 1 and before.status != after.status


def test_a_submodule_counts_with_what_was_edited_in_it(root: Path) -> None:
    """Breaks when a second edit inside a submodule is hidden by the first."""
    sgl = root.parent / "sgl"
    made(root.parent / "inner")
    git(sgl, "submodule", "add", "-q", str(root.parent / "inner"), "inner")
    git(sgl, "commit", "-qm", "submodule")
    assert seen(root).edited == 0
    states = set()
    for text in ("1", "2"):
        (sgl / "inner/entry.py").write_text(text)
        states.add(seen(root).status)
    assert len(states) == 2


def test_what_cannot_be_looked_at_is_a_fault(root: Path) -> None:
    """Breaks when a checkout that is gone, no repository, a folder inside one, or nowhere named has a state."""
    sgl, local = root.parent / "sgl", root / ".kernelpilot/local.toml"

    def why() -> str:
        now = read(root).now
        assert isinstance(now, Fault) and now.fix and now.where == "framework sgl"
        return now.what

    local.write_text('[framework.sgl]\npath = "../sgl/csrc"\n')
    assert why() == "is a folder inside a checkout: name the top folder"
    local.write_text("[framework.sgl]\npath = 7\n")
    assert "want path" in why()
    local.write_text("[framework")
    assert why().startswith(".kernelpilot/local.toml: ")
    local.write_text('[framework.sgl]\npath = "."\n')
    git(root, "init", "-q")
    assert "this repo itself" in why()
    local.write_text('[framework.sgl]\npath = "../sgl"\n')
    shutil.rmtree(sgl / ".git")
    assert why().startswith("no git checkout: ")
    shutil.rmtree(sgl)
    assert why() == "its checkout is gone: no such folder"
    local.unlink()
    assert "does not say" in why()


def test_a_source_that_is_not_there_or_no_text_is_a_fault(root: Path) -> None:
    """Breaks when the baseline's code is quietly not compared."""
    sgl = root.parent / "sgl"
    (sgl / "blob.cu").write_bytes(b"\xff\xfe")
    git(sgl, "add", "-A")
    git(sgl, "commit", "-qm", "blob")
    found = read(root, Framework(name="sgl", sources=("nowhere", "blob.cu")))
    assert [fault.where for fault in found.source_faults] == ["framework sgl: nowhere", "framework sgl: blob.cu"]


def test_the_contract_refuses_names_and_paths_that_mean_nothing() -> None:
    """Breaks when two frameworks share a name, a source leaves the checkout, or dump and parse disagree."""
    good = of(NAMED, Framework(name="b", in_place=True))
    assert contract.parse(contract.dump(good), at="c") == good
    assert "framework" not in records.parse_toml(contract.dump(BASE.contract), at="c")
    bad = of(NAMED, NAMED, Framework(name="a b", sources=("../x", "/y")))
    with pytest.raises(BadRecord) as caught:
        contract.parse(contract.dump(bad), at="c")
    assert caught.value.what.splitlines()[1:] == [
        "  framework: 2 entries have the name 'sgl'",
        '  framework[2].name = "a b": want a name of letters, digits and _',
        '  framework[2].sources = "../x": want a path inside the checkout, without ..',
        '  framework[2].sources = "/y": want a path inside the checkout, without ..',
    ]


def four(repo: Path) -> list[str]:
    return [f.what.split(";")[0] for f in gating.gate(repo, final=False).findings if f.rule == "4"]


def test_lock_records_a_checkout_and_the_gate_watches_it(tmp_path: Path) -> None:
    """Breaks when a lock takes an unknown checkout, forgets one, accepts one that moved, or the gate does not look."""
    sgl, repo = made(tmp_path / "sgl"), tmp_path / "repo"
    request = msgspec.structs.replace(BASE, contract=of(NAMED))
    scaffold.make(request, repo, kernelpilot=Path(sys.executable))

    def lock(**more: object) -> locking.Locked:
        asked = {"amend": False, "why": "", **more}
        return locking.lock(repo, lab=FakeLab(), clock=clock, say=quiet, **asked)  # type: ignore[arg-type]

    with pytest.raises(Refused, match="framework sgl: where its checkout lies"):
        lock()
    (repo / ".kernelpilot/local.toml").write_text(f'[framework.sgl]\npath = "{sgl}"\n')
    (sgl / "new.py").write_text("")
    locked = lock()
    assert locked.advice == ("framework sgl is locked with 1 edited or new files: new.py",)
    text = (repo / workspace.LOCK).read_bytes()
    assert records.parse(text, contract.LOCK, at="l").frameworks["sgl"].edited == 1 and str(sgl).encode() not in text
    assert four(repo) == [] and lock().audit is None

    _edit(sgl)
    assert four(repo) == [
        "its files are not as they were when it was locked (edited or new: 1 then, 2 now): entry.py, new.py"
    ]
    with pytest.raises(Refused, match="a framework changed since the lock: framework sgl: its files"):
        lock()
    assert lock(amend=True, why="mended upstream").lock.epoch == 2 and four(repo) == []
    git(sgl, "commit", "-qam", "moved")
    assert four(repo)[0].startswith("HEAD is ")
    (repo / ".kernelpilot/local.toml").unlink()
    assert four(repo)[0].startswith("nobody knows whether it was edited: where its checkout lies")
