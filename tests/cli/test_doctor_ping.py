"""``kernelpilot doctor --ping``: the loop's own reviewer call, on a request that needs no thought."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelpilot_install.doctor import reviewer
from tests.doctor_sim import World, make_world

ROOT = Path(__file__).resolve().parents[2]
GOOD = {"verdict": "complete", "mainline": "advanced", "acs": [], "findings": [], "text": "WORD"}
CODEX = r"""#!{python}
import json, re, sys
from pathlib import Path
if sys.argv[1:3] == ["features", "list"]:
    print("hooks stable true")
    sys.exit(0)
argv = sys.argv[1:]
assert argv[0] == "exec" and argv[argv.index("--disable") + 1] == "hooks"
assert json.loads(Path(argv[argv.index("--output-schema") + 1]).read_text())["additionalProperties"] is False
assert (Path(argv[argv.index("-C") + 1]) / ".git").exists()
word = re.search("[0-9a-f]{{16}}", sys.stdin.read())[0]
Path(argv[argv.index("--output-last-message") + 1]).write_text({says!r}.replace("WORD", word))
sys.exit({code})
"""
CLAUDE = r"""#!{python}
import json, re, sys
assert json.loads(sys.argv[sys.argv.index("--json-schema") + 1])["additionalProperties"] is False
word = re.search("[0-9a-f]{{16}}", sys.stdin.read())[0]
answer = json.loads({says!r}.replace("WORD", word))
print(json.dumps({{"type": "result", "subtype": "success", "structured_output": answer}}))
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = make_world(tmp_path)
    shutil.copytree(ROOT / "vendor" / "humanize" / "rlcr", made.clone / "vendor" / "humanize" / "rlcr")
    made.install()
    made.env["PATH"] = f"{tmp_path / 'bin'}:{made.env['PATH']}"
    return made


def client(world: World, text: str, says: object, code: int = 0) -> None:
    name = "claude" if text is CLAUDE else "codex"
    folder = world.home.parent / "bin"
    folder.mkdir(exist_ok=True)
    body = text.format(python=sys.executable, says=says if isinstance(says, str) else json.dumps(says), code=code)
    (folder / name).write_text(body, encoding="utf-8")
    (folder / name).chmod(0o755)


def test_without_the_flag_no_model_is_called(world: World) -> None:
    """Breaks if a plain doctor spends a model call, or passes a reviewer that nobody asked."""
    assert "no `codex` on PATH" in world.one("reviewer-codex").what
    client(world, CODEX, GOOD, code=9)
    said = world.one("reviewer-codex")
    assert said.status == "warn" and "was not asked" in said.what
    assert said.fix.endswith("doctor --client codex --ping")


@pytest.mark.parametrize(("text", "name"), [(CODEX, "codex"), (CLAUDE, "claude")])
def test_an_answer_in_the_schema_is_ok(world: World, text: str, name: str) -> None:
    """Breaks if the reviewer's real call changes and the ping goes its own way, or the schema is not sent."""
    client(world, text, GOOD)
    said = world.ask(reviewer.ping, name, ping=True)
    assert (said.status, said.fix) == ("ok", ""), said
    assert f"{name} answered as the schema wants" in said.what


@pytest.mark.parametrize(
    ("says", "code", "word"),
    [
        (GOOD, 7, "exit-nonzero"),
        ({**GOOD, "text": "hello"}, 0, "not one to this request"),
        ({**GOOD, "extra": 1}, 0, "bad-json: answer: unknown key 'extra'"),
        ({k: v for k, v in GOOD.items() if k != "acs"}, 0, "no key 'acs'"),
        ("WORD looks good", 0, "bad-json"),
        ("", 0, "empty"),
    ],
)
def test_anything_else_fails(world: World, says: Any, code: int, word: str) -> None:
    """Breaks if prose, a failed process or somebody else's answer counts as a working reviewer."""
    client(world, CODEX, says, code)
    said = world.ask(reviewer.ping, "codex", ping=True)
    assert said.status == "fail" and word in said.what, said
    assert said.fix
