"""Content that evidence reads and HEAD does not hold, kept from git by whatever means; and honest set-ups beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlcr import unseen
from tests.rlcr.ahead import commands, rehearse
from tests.rlcr.real import RLCR, Real

READS = """\
import json, sys
from pathlib import Path
ok = {test}
done = {{"met": ok, "why": "w", "missing": [] if ok else ["x"]}}
print(json.dumps({{"pass": ok, "done": done, "findings": [], "not_evaluated": []}}))
sys.exit(0 if ok else 1)
"""


def reading(real: Real, test: str) -> None:
    """A worked round whose evidence is a look at the files."""
    real.script.write_text(READS.format(test=test))
    commands(real)
    done = real.setup()
    assert done.returncode == 0, done.stderr
    real.work(0)


def held(real: Real) -> str:
    """What two Stops in a row say where nothing may be carried on."""
    said = [real.stop(f"m{n}")["reason"] for n in range(2)]
    assert real.at == ("BUILD", 0)
    return said[-1]


def test_settings_of_git_in_the_environment_hide_nothing(real: Real) -> None:
    # A5: GIT_CONFIG_COUNT hid an untracked file from `rlcr evidence`, whose pass the clean commit then got.
    reading(real, 'Path("cheat.txt").exists()')
    patterns = real.base / "patterns"
    patterns.write_text("cheat.txt\n")
    (real.repo / "cheat.txt").write_text("x")
    hide = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.excludesFile", "GIT_CONFIG_VALUE_0": str(patterns)}
    assert "clean cheat.txt" in real.run(RLCR, "evidence", **hide).stdout
    (real.repo / "cheat.txt").unlink()
    assert "gathered" not in [e["event"] for e in real.lines()]
    assert "did not pass" in held(real)


def info_exclude(real: Real) -> None:
    (real.repo / ".git/info/exclude").write_text("fast.py\n")
    (real.repo / "fast.py").write_text("x")


def global_excludes(real: Real) -> None:
    (real.base / "patterns").write_text("fast.py\n")
    real.git("config", "--global", "core.excludesFile", str(real.base / "patterns"))
    (real.repo / "fast.py").write_text("x")


def default_excludes(real: Real) -> None:
    (real.home / ".config/git").mkdir(parents=True)
    (real.home / ".config/git/ignore").write_text("fast.py\n")
    (real.repo / "fast.py").write_text("x")


def own_gitignore(real: Real) -> None:
    (real.repo / "deep").mkdir()
    (real.repo / "deep/.gitignore").write_text("*\n")
    (real.repo / "deep/fast.py").write_text("x")


def empty_link(real: Real) -> None:
    real.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    real.git("commit", "-q", "-m", "link")
    (real.repo / "sub").mkdir(exist_ok=True)
    (real.repo / "sub/fast.py").write_text("x")


def false_link(real: Real) -> None:
    empty_link(real)
    (real.repo / "sub/.git").write_text("gitdir: nowhere\n")


HIDES = [
    (info_exclude, "clean fast.py", "git add -f -- fast.py"),
    (global_excludes, "clean fast.py", "printf '/%s\\n' fast.py >>.gitignore"),
    (default_excludes, "clean fast.py", "git add -f -- fast.py"),
    (own_gitignore, "clean deep/", "git add -f -- deep/"),
    (empty_link, "clean sub", "git rm --cached -- sub"),
    (false_link, "clean sub", "git rm --cached -- sub"),
]


@pytest.mark.parametrize(("hide", "named", "fix"), HIDES, ids=[h[0].__name__ for h in HIDES])
def test_a_file_that_evidence_reads_and_head_does_not_hold_is_named(
    real: Real, hide: Callable[[Real], None], named: str, fix: str
) -> None:
    # A9: COMPLETE for a tree whose fast.py was in no commit.
    reading(real, 'any(Path().rglob("fast.py"))')
    hide(real)
    said = held(real)
    assert named in said and "hidden from git status" in said and fix in said, said


@pytest.mark.parametrize("hide", [h[0] for h in HIDES], ids=lambda f: f.__name__)
def test_set_up_refuses_what_would_be_held_against_every_round(real: Real, hide: Callable[[Real], None]) -> None:
    hide(real)
    done = real.setup()
    assert done.returncode == 1 and "hidden from git status" in done.stderr, done.stderr


def test_the_fix_for_a_hidden_file_mends_it(real: Real) -> None:
    info_exclude(real)
    assert real.setup().returncode == 1
    real.run("sh", "-c", "printf '/%s\\n' fast.py >>.gitignore; git commit -qam ignore")
    assert real.setup().returncode == 0


@pytest.mark.parametrize("scope", ["--global", "--local"])
@pytest.mark.parametrize("name", ["h", "lfs"])
def test_a_filter_of_the_users_own_config_hides_no_edit(real: Real, scope: str, name: str) -> None:
    reading(real, '"fast" in Path("a.txt").read_text()')
    real.git("config", scope, f"filter.{name}.clean", "git cat-file blob HEAD:%f")
    (real.repo / ".git/info/attributes").write_text(f"a.txt filter={name}\n")
    (real.repo / "a.txt").write_text("fast\n")
    real.git("add", "a.txt")
    assert real.git("status", "--porcelain") == ""
    said = held(real)
    assert f"filter.{name}.clean" in said and f"git config {scope} --unset-all filter.{name}.clean" in said


def test_words_where_git_puts_an_object_id_are_an_edit(real: Real) -> None:
    reading(real, '"fast" in Path("b.py").read_text() if Path("b.py").exists() else False')
    real.commit("b.py", "MODE = '$Id$'\n")
    (real.repo / ".git/info/attributes").write_text("b.py ident\n")
    (real.repo / "b.py").write_text("MODE = '$Id: fast $'\n")
    real.git("add", "b.py")
    assert real.git("status", "--porcelain") == ""
    assert "clean b.py: hidden from git status by the attribute ident" in held(real)
    real.run("sh", "-c", "rm -- b.py; git checkout -q -- b.py")
    assert "$Id: " in (real.repo / "b.py").read_text(), "git itself puts the id there"
    assert "ident" not in real.stop("m9").get("reason", "")


def test_an_honest_set_up_stays_green(real: Real) -> None:
    # Breaks when junk, a loop ignored outside .gitignore, or git-lfs makes every round red.
    (real.repo / ".gitignore").write_text("build/\n*.o\n")
    real.git("add", "-A", ".gitignore")
    (real.repo / ".git/info/exclude").write_text("# mine\n.humanize\n.idea/\n")
    real.git("commit", "-q", "-m", "ignore")
    (real.base / "patterns").write_text("*.swp\n.DS_Store\n**/.claude/settings.local.json\n__pycache__/\n")
    real.git("config", "--global", "core.excludesFile", str(real.base / "patterns"))
    for name, value in (
        ("clean", "git-lfs clean -- %f"), ("smudge", "git-lfs smudge -- %f"), ("process", "git-lfs filter-process"),
    ):  # fmt: skip
        real.git("config", "--global", f"filter.lfs.{name}", value)
    real.git("config", "--global", "filter.nbstripout.clean", "nbstripout")
    for path in (".a.txt.swp", ".DS_Store", ".claude/settings.local.json", "__pycache__/a.pyc", ".idea/x.xml",
                 ".venv/lib/x.py", "build/lib.so", "x.o"):  # fmt: skip
        (real.repo / path).parent.mkdir(parents=True, exist_ok=True)
        (real.repo / path).write_text("x")
    (real.repo / ".venv/.gitignore").write_text("*\n")
    done = real.setup()
    assert done.returncode == 0, done.stderr
    real.work(0)
    assert "round 1 begins" in real.stop()["reason"] and real.at == ("BUILD", 1)


def test_a_submodule_is_looked_into(real: Real) -> None:
    inner = real.base / "inner"
    real.run("git", "init", "-q", inner)
    (inner / "x.py").write_text("0")
    real.run("git", "-C", inner, "add", "-A")
    real.run("git", "-C", inner, "-c", "user.name=w", "-c", "user.email=w@e", "commit", "-q", "-m", "0")
    real.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    real.git("commit", "-q", "-m", "sub")
    done = real.setup()
    assert done.returncode == 0, done.stderr
    real.work(0)
    real.git("-C", "sub", "update-index", "--assume-unchanged", "x.py")
    (real.repo / "sub/x.py").write_text("1")
    assert "cd sub && git update-index --no-skip-worktree --no-assume-unchanged -- x.py" in held(real)


def test_names_of_junk_are_junk_in_every_folder_and_sources_are_not() -> None:
    paths = ("a/.x.swp", "b/__pycache__/", ".DS_Store", "fast.py", "build/", "swp", ".env")
    assert unseen.blind(paths) == ("fast.py", "build/", "swp", ".env")


def test_rehearsal_and_stop_see_the_same_hidden_file(real: Real) -> None:
    reading(real, 'Path("fast.py").exists()')
    info_exclude(real)
    code, said = rehearse(real)
    assert code == 10 and said["gathered"] == [] and said["problems"][0]["rule"] == "clean"
