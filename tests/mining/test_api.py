"""GitHub's interface, every status played by a loopback server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("git", reason="GitPython is not installed")
pytest.importorskip("requests", reason="requests is not installed")

import refresh_pr_knowledge
from kernelpilot_helpers.errors import KernelPilotError
from mining import api, emit
from mining.cursor import Cursor
from tests.mining.fake_github import FakeGitHub, serving

LIST = "/repos/o/r/pulls?state=closed&sort=updated&direction=desc&per_page=100"
PATCH = "@@ -1,2 +1,4 @@\n __global__ void copy_kernel(float* o) {\n+  tma_load(o);\n+  ldmatrix(o);\n }"
TOKEN = "token-of-the-test"


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with serving() as fake:
        yield fake


def pull(
    number: int, *, merged: str | None = "2025-03-01T00:00:00Z", updated: str = "2025-03-02T00:00:00Z"
) -> dict[str, Any]:
    return {
        "number": number, "updated_at": updated, "merged_at": merged, "merge_commit_sha": f"{number:040x}",
        "head": {"sha": "f" * 40}, "title": "Faster copy, faster by TMA", "body": "Nobodykeeps this. 1.5x speedup",
        "user": {"login": "someone-private"},
    }  # fmt: skip


def files_of(number: int) -> str:
    return f"/repos/o/r/pulls/{number}/files?per_page=100"


FILES = [{"filename": "csrc/a.cu", "status": "modified", "additions": 2, "deletions": 0, "patch": PATCH}]


def run(github: FakeGitHub, out: Path, monkeypatch: pytest.MonkeyPatch, *options: str, token: str = TOKEN) -> int:
    monkeypatch.setenv("GITHUB_TOKEN", token)
    arguments = ["--repo", "o/r", "--api", github.base, "--out", str(out), "--since", "2025-01-01", "--quiet"]
    return refresh_pr_knowledge.main([*arguments, *options])


def stored(out: Path) -> dict[str, Any]:
    rows = [json.loads(row) for row in emit.unpack(emit.file_of(out, "o/r").read_bytes())]
    return {row["id"]: row for row in rows}


def session(github: FakeGitHub, **options: Any) -> api.GitHub:
    plain: dict[str, Any] = {"base": github.base, "max_requests": 50, "max_wait": 5.0, "token": TOKEN, "backoff": 0.0}
    return api.GitHub(**{**plain, **options})


def walk(hub: api.GitHub, cursor: Cursor | None, path: str = "/x") -> list[Any]:
    return [kept for kept, _ in hub.pages(path, cursor, lambda answer: answer)]


def test_merged_pulls_become_facts(github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a page is not followed by its Link, an unmerged or old one counts, or something private is kept."""
    following = f"{github.base}{LIST}&page=2"
    github.on(LIST, body=[pull(5), pull(4, merged=None)], Link=f'<{following}>; rel="next"')
    github.on(f"{LIST}&page=2", body=[pull(3), pull(2, merged="2024-01-01T00:00:00Z")])
    for number in (5, 3):
        github.on(files_of(number), body=FILES)
    assert run(github, tmp_path, monkeypatch) == 0
    rows = stored(tmp_path)
    assert list(rows) == ["o/r#3", "o/r#5"]
    row = rows["o/r#5"]
    assert (row["how"], row["sha"], row["merged_at"]) == ("api", f"{5:040x}", "2025-03-01T00:00:00Z")
    assert row["diff_terms"] == {"ldmatrix": 1, "tma": 1} and row["tier"] == "A" and row["claims"] == ["1.5x"]
    assert row["words"] == ["copy", "faster", "tma"] and row["kadd"] == 2
    held = json.dumps(rows).encode() + (tmp_path / ".cursor.sqlite").read_bytes()
    for secret in (TOKEN, "someone-private", "Nobodykeeps", "Faster copy", "tma_load(o)"):
        assert secret.encode() not in held
    assert all(headers["Authorization"] == f"Bearer {TOKEN}" for _, headers in github.asked)


@pytest.mark.parametrize("status", [404, 451, 406])
def test_one_withheld_pull_does_not_end_the_run(
    status: int, github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a vanished, withheld or too large one stops the others."""
    github.on(LIST, body=[pull(5), pull(4)])
    github.on(files_of(5), status, {"message": "no"})
    github.on(files_of(4), body=FILES)
    assert run(github, tmp_path, monkeypatch) == 0
    assert list(stored(tmp_path)) == ["o/r#4"]


def test_a_renamed_repository_is_followed(github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when 301 is taken for an end."""
    github.on(LIST, 301, None, Location=f"{github.base}/repositories/1/pulls")
    github.on("/repositories/1/pulls", body=[pull(5)])
    github.on(files_of(5), body=FILES)
    assert run(github, tmp_path, monkeypatch) == 0
    assert list(stored(tmp_path)) == ["o/r#5"]


def test_a_spent_limit_saves_the_cursor_and_the_bytes_end_the_same(
    github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when 403 with nothing remaining is taken for forbidden, page one is read again, or bytes differ."""
    following = f"{github.base}{LIST}&page=2"
    github.on(LIST, body=[pull(5)], Link=f'<{following}>; rel="next"')
    github.on(files_of(5), body=FILES)
    github.on(f"{LIST}&page=2", 403, {}, X_RateLimit_Remaining="0", X_RateLimit_Reset="9999999999")
    github.on(f"{LIST}&page=2", body=[pull(3)])
    github.on(files_of(3), body=FILES)
    assert run(github, tmp_path / "parts", monkeypatch) == 75
    assert list(stored(tmp_path / "parts")) == ["o/r#5"]
    github.asked.clear()
    assert run(github, tmp_path / "parts", monkeypatch) == 0
    assert github.paths() == [f"{LIST}&page=2", files_of(3)]
    assert run(github, tmp_path / "whole", monkeypatch) == 0
    assert emit.file_of(tmp_path / "parts", "o/r").read_bytes() == emit.file_of(tmp_path / "whole", "o/r").read_bytes()


def test_a_later_run_stops_at_what_it_knows(
    github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when the high-water mark is not kept: every refresh would read every page."""
    github.on(LIST, body=[pull(5)])
    github.on(LIST, body=[pull(6, updated="2025-04-01T00:00:00Z"), pull(5), pull(4, updated="2025-02-01T00:00:00Z")],
              Link=f'<{github.base}/never>; rel="next"')  # fmt: skip
    for number in (5, 6):
        github.on(files_of(number), body=FILES)
    assert run(github, tmp_path, monkeypatch) == 0
    github.asked.clear()
    assert run(github, tmp_path, monkeypatch) == 0
    assert list(stored(tmp_path)) == ["o/r#5", "o/r#6"]
    assert "/never" not in github.paths() and files_of(4) not in github.paths()


def test_open_pulls_come_and_go(github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a closed candidate stays, or an open one is filed by its merge commit."""
    opened = LIST.replace("closed", "open")
    github.on(LIST, body=[])
    github.on(opened, body=[pull(8, merged=None), pull(7, merged=None)])
    github.on(opened, body=[pull(8, merged=None)])
    for number in (7, 8):
        github.on(files_of(number), body=FILES)
    assert run(github, tmp_path, monkeypatch, "--open") == 0
    rows = stored(tmp_path)
    assert [(key, row["how"], row["sha"]) for key, row in rows.items()] == [
        ("o/r#7", "open", "f" * 40), ("o/r#8", "open", "f" * 40),
    ]  # fmt: skip
    assert run(github, tmp_path, monkeypatch, "--open") == 0
    assert list(stored(tmp_path)) == ["o/r#8"]


def test_the_budget_of_requests_ends_with_75(
    github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when --max-requests is not counted down."""
    github.on(LIST, body=[pull(5)])
    assert run(github, tmp_path, monkeypatch, "--max-requests", "1") == 75
    assert len(github.asked) == 1


def test_without_a_token_only_git_is_read(
    github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when somebody without a token is asked to wait for sixty requests an hour."""
    monkeypatch.delenv("GH_TOKEN", raising=False)
    assert run(github, tmp_path, monkeypatch, token="") == 0
    assert github.asked == [] and "no GITHUB_TOKEN" in capsys.readouterr().err


def test_tags_belong_to_a_token(github: FakeGitHub) -> None:
    """Breaks when an unchanged page is lost, or one token's tag is sent with another."""
    github.on("/x", body=[1], ETag='"t1"', Link=f'<{github.base}/y>; rel="next"')
    github.on("/y", body=[2])
    with Cursor(None) as cursor:
        assert walk(session(github), cursor) == [[1], [2]]
        assert walk(session(github), cursor) == [[1], [2]]
        walk(session(github, token="another"), cursor)
    tags = [headers.get("If-None-Match") for path, headers in github.asked if path == "/x"]
    assert tags == [None, '"t1"', None]


def test_a_busy_server_is_asked_again_and_a_dead_one_is_left(github: FakeGitHub) -> None:
    """Breaks when 502 ends the run at once, or a server that stays broken is a traceback."""
    github.on("/x", 502)
    github.on("/x", 503)
    github.on("/x", body=[1])
    github.on("/dead", 500)
    assert walk(session(github), None) == [[1]]
    with pytest.raises(api.OutOfBudget, match="500"):
        walk(session(github), None, "/dead")


def test_waits_as_long_as_it_is_told(github: FakeGitHub) -> None:
    """Breaks when Retry-After or the reset time is ignored, or a longer wait than allowed is slept."""
    slept: list[float] = []
    github.on("/x", 429, {}, Retry_After="3")
    github.on("/x", 403, {}, X_RateLimit_Remaining="0", X_RateLimit_Reset="1004")
    github.on("/x", body=[1])
    hub = session(github, sleep=slept.append, clock=lambda: 1000.0)
    assert walk(hub, None) == [[1]] and slept == [3.0, 5.0]
    github.on("/long", 429, {}, Retry_After="6")
    with pytest.raises(api.OutOfBudget) as stopped:
        walk(hub, None, "/long")
    assert stopped.value.exit_code == 75 and slept == [3.0, 5.0]


def test_forbidden_is_no_limit(github: FakeGitHub) -> None:
    """Breaks when a bad token waits for a limit that is not one."""
    github.on("/x", 403, {"message": "no"}, X_RateLimit_Remaining="10")
    github.on("/y", 401, {"message": "bad credentials"})
    for path in ("/x", "/y"):
        with pytest.raises(KernelPilotError, match="GITHUB_TOKEN") as told:
            walk(session(github), None, path)
        assert TOKEN not in str(told.value)


def test_pages_that_lead_in_a_circle_or_elsewhere(github: FakeGitHub) -> None:
    """Breaks when a loop of pages never ends, or the token follows a link to another host."""
    github.on("/x", body=[1], Link=f'<{github.base}/x>; rel="next"')
    with pytest.raises(KernelPilotError, match="circle"):
        walk(session(github), None)
    github.on("/z", body=[1], Link='<http://elsewhere.invalid/a>; rel="next"')
    assert walk(session(github), None, "/z") == [[1]]


def test_an_answer_of_another_shape_is_a_named_fault(github: FakeGitHub) -> None:
    """Breaks when a proxy's page ends in a traceback."""
    github.on("/x", body={"message": "hello"})
    with pytest.raises(KernelPilotError, match="not the answer expected"):
        list(session(github).pages("/x", None, lambda answer: answer[0]))
