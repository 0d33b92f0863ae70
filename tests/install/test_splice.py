"""The settings of a client are edited by text splice: one group in, one group out, every other byte kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpilot_install.problems import InstallError
from kernelpilot_install.spans import NotJson, scan
from kernelpilot_install.splice import CODEX_TOP, groups, splice, unsplice

GROUP = {"hooks": [{"type": "command", "command": "'/a b/stop-hook'", "timeout": 3600}]}
OURS = '{"hooks": [{"type": "command", "command": "\'/a b/stop-hook\'", "timeout": 3600}]}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{"hooks": {"Stop": [@]}}'),
        ("{\n}\n", '{"hooks": {"Stop": [@]}\n}\n'),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "hooks": {"Stop": [@]}\n}\n'),
        ('{\r\n\t"a": "]}"\r\n}', '{\r\n\t"a": "]}",\r\n\t"hooks": {"Stop": [@]}\r\n}'),
        ('{"hooks": {}}', '{"hooks": {"Stop": [@]}}'),
        ('{"hooks": {"Pre": [] }}\n', '{"hooks": {"Pre": [],"Stop": [@] }}\n'),
        ('{"hooks": {"Stop": [ ]}}', '{"hooks": {"Stop": [@ ]}}'),
        ('{"hooks": {"Stop": [\n  {"x": "[{"}\n]}}', '{"hooks": {"Stop": [\n  {"x": "[{"},\n  @\n]}}'),
        ('{"hooks":{"Stop":[1]},"z":[[]]} \n', '{"hooks":{"Stop":[1,@]},"z":[[]]} \n'),
    ],
)
def test_the_group_lands_last_and_nothing_else_moves(before: str, after: str) -> None:
    """Breaks if a re-dump, a wrong bracket or a lost comma touches a foreign byte."""
    done = splice(before.encode(), GROUP, where="f")
    assert done.after.decode() == after.replace("@", OURS)
    assert unsplice(done.after, done.inserted, GROUP, where="f") == before.encode()


@pytest.mark.parametrize("before", [b"", b"\n", b" \r\n"])
def test_an_empty_file_counts_as_an_empty_object(before: bytes) -> None:
    """Breaks if an empty hooks.json, which clients write, is called broken."""
    done = splice(before, GROUP, where="f")
    assert json.loads(done.after) == {"hooks": {"Stop": [GROUP]}}
    assert unsplice(done.after, done.inserted, GROUP, where="f") == before


@pytest.mark.parametrize(
    ("before", "place", "word"),
    [
        (b'{\n  "a": 1,\n}', "line 3, column 1", "string"),
        (b'{"a": 1', "line 1, column 8", "end of the file"),
        (b'{"a": nan}', "line 1, column 7", "value"),
        (b'{"a": 1}\n// c', "line 2, column 1", "end of the file"),
        (b'{"a": 1, "a": 2}', "line 1, column 10", "twice"),
        (b'{"b": [{"a": 1, "\\u0061": 2}]}', "line 1, column 17", "twice"),
        (b'{"a": "x\ty"}', "line 1, column 7", "broken string"),
        (b'\xef\xbb\xbf{"a": 1}', "line 1, column 1", "byte order mark"),
        (b'{"a":\n "\xff"}', "line 2, column 3", "UTF-8"),
        (b"[]", "line 1, column 1", "object"),
        (b'{"hooks": []}', "line 1, column 11", "'hooks'"),
        (b'{"hooks": {"Stop": {}}}', "line 1, column 20", "'hooks.Stop'"),
        (b"[" * 200, "line 1, column 101", "deeper"),
        (b'{"a": 01}', "line 1, column 8", "','"),
    ],
)
def test_a_foreign_shape_is_refused_with_its_place(before: bytes, place: str, word: str) -> None:
    """Breaks if a file we cannot read is edited anyway, or the message does not say where it is wrong."""
    with pytest.raises(InstallError) as e:
        splice(before, GROUP, where="/h/settings.json")
    assert e.value.where == f"/h/settings.json, {place}"
    assert word in e.value.what


def test_codex_refuses_an_unknown_top_level_key_that_claude_allows() -> None:
    """Breaks if we add a hook to a hooks.json that Codex drops as a whole."""
    before = b'{"permissions": {}, "hooks": {}}'
    assert splice(before, GROUP, where="f").after
    with pytest.raises(InstallError) as e:
        splice(before, GROUP, where="f", top=CODEX_TOP)
    assert "'permissions'" in e.value.what


def test_our_group_leaves_while_the_users_later_edits_stay() -> None:
    """Breaks if uninstall needs the file untouched, or drops a group that was added beside ours."""
    done = splice(b'{"hooks": {"Stop": []}}', GROUP, where="f")
    edited = done.after.replace(OURS.encode(), OURS.encode() + b', {"mine": 1}')
    assert unsplice(edited, done.inserted, GROUP, where="f") == b'{"hooks": {"Stop": [{"mine": 1}]}}'


def test_a_reformatted_file_loses_only_our_group() -> None:
    """Breaks if a client that re-dumps its own settings makes the hook impossible to remove."""
    done = splice(b'{"a": 1}', GROUP, where="f")
    dumped = json.dumps(json.loads(done.after), indent=4).encode()
    left = unsplice(dumped, done.inserted, GROUP, where="f")
    assert left is not None
    assert json.loads(left) == {"a": 1, "hooks": {"Stop": []}}


@pytest.mark.parametrize(
    "now",
    [
        b'{"hooks": {"Stop": []}}',
        b"{ broken " + OURS.encode(),
        b'{"hooks": {"Stop": [' + OURS.encode() + b", " + OURS.encode() + b"]}}",
        b'{"note": ' + json.dumps(OURS).encode() + b"}",
    ],
)
def test_what_cannot_be_told_apart_is_left(now: bytes) -> None:
    """Breaks if uninstall guesses: gone already, not JSON, twice there, or only quoted in a string."""
    assert unsplice(now, OURS, GROUP, where="f") is None


def test_groups_reads_what_is_registered() -> None:
    """Breaks if an existing registration is overlooked and made twice."""
    assert groups(b'{"hooks": {"Stop": [{"a": [1]}, 2]}}', where="f") == [{"a": [1]}, 2]
    assert groups(b"", where="f") == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
stop_lists = st.lists(json_values, max_size=3)
hook_tables = st.dictionaries(st.sampled_from(["Pre", "Post", "]", '"']), json_values, max_size=3).flatmap(
    lambda d: st.just(d) | stop_lists.map(lambda s: {**d, "Stop": s}) | stop_lists.map(lambda s: {"Stop": s, **d})
)
documents = st.dictionaries(st.text(max_size=5).filter(lambda k: k != "hooks"), json_values, max_size=3).flatmap(
    lambda d: st.just(d) | hook_tables.map(lambda h: {**d, "hooks": h}) | hook_tables.map(lambda h: {"hooks": h, **d})
)
layouts = st.tuples(
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", " \t\r\n"]),
)


@pytest.mark.property
@given(documents, layouts)
def test_splice_then_unsplice_is_the_identity(
    document: dict[str, object], layout: tuple[int | str | None, bool, str, str]
) -> None:
    """Breaks on any document or layout whose bytes do not come back, or whose meaning changed by more than ours."""
    indent, ascii_only, newline, tail = layout
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).replace("\n", newline) + tail
    before = text.encode("utf-8", "replace")
    document = json.loads(before)
    done = splice(before, GROUP, where="f")
    hooks = document.get("hooks", {})
    assert isinstance(hooks, dict)
    want = {**document, "hooks": {**hooks, "Stop": [*hooks.get("Stop", []), GROUP]}}
    assert json.loads(done.after) == want
    assert unsplice(done.after, done.inserted, GROUP, where="f") == before


@pytest.mark.property
@given(st.text(alphabet='{}[]",:0123456789-.eE+truefalsn\\u \n', max_size=30))
def test_the_scanner_accepts_only_what_json_accepts(text: str) -> None:
    """Breaks if the scanner reads spans out of text that the clients would refuse."""
    try:
        root = scan(text)
    except NotJson:
        return
    json.loads(text)
    assert text.strip(" \t\r\n") == text[root.start : root.end]
