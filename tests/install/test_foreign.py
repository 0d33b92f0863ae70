"""The user's own hooks and settings, byte for byte, through install, reinstall, upgrade and uninstall."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MINE = '{"hooks": [{"type": "command", "command": "/bin/mine  --x \'a b\'", "timeout": 5}]}'
LATER = '{ "hooks":[ {"command": "/bin/later", "type":"command"} ] }'
LAYOUTS = {
    "one line, no final newline": b'{"hooks":{"Stop":[' + MINE.encode() + b"]}}",
    "tabs and CRLF": b'{\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t' + MINE.encode() + b"\r\n\t\t]\r\n\t}\r\n}\r\n",
    "odd indentation": b'{ "hooks" :\n     {\n  "PreToolUse": [ ],\n "Stop"\n:\n[\n       '
    + MINE.encode()
    + b" ] }\n\n\n}",
    "escapes and other alphabets": b'{"hooks": {"Stop": ['
    + MINE.encode()
    + b', {"hooks": [], "n": "\\u00e9\xc3\xa9\\/"}]}}\n',
    "Stop is not last": b'{"hooks": {"Stop": [' + MINE.encode() + b'], "SessionStart": [{"hooks": []}]}}\n',
    "an empty Stop": b'{\n "hooks": {"Stop": [\n\n ]}\n}',
    "no hooks": b"{ }",
    "nothing but space": b" \n",
}
TOML = b'# mine\r\nmodel = "x"   # why\n\n[hooks.state."/h:stop:0:0"]  # reviewed\ntrusted_hash = "sha256:00"'


def files(world) -> tuple[Path, Path]:
    return world.home / ".codex" / "hooks.json", world.home / ".claude" / "settings.json"


def commands(path: Path) -> list[str]:
    stop = json.loads(path.read_bytes())["hooks"]["Stop"]
    return ["ours" if "stop-hook" in str(g) else str(g["hooks"][0]["command"]) if g["hooks"] else "" for g in stop]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_byte_of_the_user_comes_back(hooked, second_clone, layout: str) -> None:
    """Breaks if a foreign group, a comment, an indentation, a CRLF or a missing newline is not as it was."""
    for path in files(hooked):
        path.parent.mkdir()
        path.write_bytes(LAYOUTS[layout])
        path.chmod(0o640)
    (hooked.home / ".codex" / "config.toml").write_bytes(TOML)
    before = hooked.tree()
    assert hooked.run("--client", "both") == 0
    installed = [path.read_bytes() for path in files(hooked)]
    assert hooked.run("--client", "both") == 0
    assert [path.read_bytes() for path in files(hooked)] == installed
    (hooked.clone / "requirements.lock").write_text("x==2\n", encoding="utf-8")
    assert hooked.run("--client", "both") == 0
    assert [path.read_bytes() for path in files(hooked)] == installed
    first, hooked.clone = hooked.clone, second_clone
    assert hooked.run("--client", "both", "--replace") == 0
    old, new = str(first).encode(), str(second_clone).encode()
    assert [path.read_bytes() for path in files(hooked)] == [text.replace(old, new) for text in installed]
    assert (hooked.home / ".codex" / "config.toml").read_bytes() == TOML
    assert hooked.run("--uninstall") == 0
    assert hooked.tree() == before


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "space" not in name and name != "no hooks"])
def test_a_group_added_after_ours_keeps_its_place(hooked, second_clone, layout: str) -> None:
    """Breaks if an upgrade moves ours behind a later group: Codex knows hooks by place, and drops their trust."""
    for path in files(hooked):
        path.parent.mkdir()
        path.write_bytes(LAYOUTS[layout])
    assert hooked.run("--client", "both") == 0
    with_later = []
    for path in files(hooked):
        text = path.read_bytes().decode()
        group = next(g for g in json.loads(text)["hooks"]["Stop"] if "stop-hook" in str(g))
        here = json.dumps(group)
        assert text.count(here) == 1
        path.write_bytes(text.replace(here, f"{here} ,\n   {LATER}").encode())
        with_later.append(path.read_bytes())
    order = commands(files(hooked)[0])
    assert order[-2:] == ["ours", "/bin/later"]
    assert hooked.run("--client", "both") == 0
    assert [path.read_bytes() for path in files(hooked)] == with_later
    first, hooked.clone = hooked.clone, second_clone
    assert hooked.run("--client", "both", "--replace") == 0
    swapped = [text.replace(str(first).encode(), str(second_clone).encode()) for text in with_later]
    assert [path.read_bytes() for path in files(hooked)] == swapped
    assert [commands(path) for path in files(hooked)] == [order, order]
    assert hooked.run("--uninstall") == 0
    for path in files(hooked):
        assert commands(path) == [c for c in order if c != "ours"]
        assert LATER.encode() in path.read_bytes()
        if layout != "an empty Stop":
            assert MINE.encode() in path.read_bytes()


def test_uninstall_says_what_codex_will_ask_again(hooked, capsys) -> None:
    """Breaks if hooks that move up a place lose their trust in Codex and nobody says so."""
    path = files(hooked)[0]
    path.parent.mkdir()
    path.write_bytes(LAYOUTS["one line, no final newline"])
    hooked.run("--client", "codex")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.removesuffix("]}}") + f", {LATER}]}}}}", encoding="utf-8")
    capsys.readouterr()
    assert hooked.run("--uninstall") == 0
    assert "review those that stood after ours again in /hooks" in capsys.readouterr().out
    hooked.run("--client", "codex")
    capsys.readouterr()
    assert hooked.run("--uninstall") == 0
    assert "review those" not in capsys.readouterr().out


def test_a_reformatted_file_is_upgraded_in_place_too(hooked, second_clone) -> None:
    """Breaks if a client that re-dumps its settings makes an upgrade reorder the groups or leave two of ours."""
    path = files(hooked)[1]
    path.parent.mkdir()
    path.write_bytes(LAYOUTS["one line, no final newline"])
    hooked.run("--client", "claude")
    data = json.loads(path.read_bytes())
    data["hooks"]["Stop"].append(json.loads(LATER))
    path.write_text(json.dumps(data, indent=4), encoding="utf-8")
    order = commands(path)
    hooked.clone = second_clone
    assert hooked.run("--client", "claude", "--replace") == 0
    assert commands(path) == order
    assert path.read_text().count("stop-hook") == 1
    assert str(second_clone) in path.read_text()
    assert hooked.run("--uninstall") == 0
    data["hooks"]["Stop"].pop(1)
    assert json.loads(path.read_bytes()) == data
