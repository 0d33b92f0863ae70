"""``kernelpilot profile`` with a small script in ncu's place: what is filed, what is refused, and every way to fail."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kernelpilot_helpers import proc, records
from kernelpilot_helpers.attempt import profile as formats
from kernelpilot_helpers.attempt.profile import Launches, Profile
from kernelpilot_helpers.cli import common, profile_command
from kernelpilot_helpers.errors import Busy, KernelPilotError, Refused
from kernelpilot_helpers.evidence import digests
from kernelpilot_helpers.executors import ncu_tool, profile_stage
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.profile_stage import Kernel, Rehearsal
from kernelpilot_helpers.ledger.model import Motivation
from kernelpilot_helpers.ncu.redact import Redactor
from kernelpilot_helpers.referee import capture, fallback, filing, gating, profiling, sources, subject, workspace
from kernelpilot_helpers.runtime import forge, profile_target
from tests import gpu_sim
from tests.profile_sim import CASE, GOOD, FakeStage, ncu, profile, repo
from tests.referee_sim import attempt, clock, locked_repo, quiet, write_variant

FOLDER = f"artifacts/profile-digests/v000_baseline/{CASE}"
FILES = {"digest.json", "digest.md", "facts.json", "profile.json"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return repo(tmp_path_factory.mktemp("profiled") / "repo")


@pytest.fixture
def made(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "repo", symlinks=True))


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return ncu(tmp_path / "tools")


def held(made: Path, path: str = FOLDER) -> set[str]:
    """Names that HEAD holds below a folder."""
    listed = proc.git_out(made, "ls-tree", "-r", "--name-only", "HEAD", "--", path).split()
    return {name.rpartition("/")[2] for name in listed}


def faults(made: Path) -> dict[str, tuple[str, ...]]:
    return {d.id: d.faults for d in digests.collect(made)}


def stored(made: Path, path: str = FOLDER) -> Profile:
    return records.load(made / path / "profile.json", formats.OWNER)


def test_a_report_is_filed_whole_committed_without_itself_and_holds(made: Path, tools: Path) -> None:
    """Breaks when a file is missing, the binary report enters git, or the filed digest cannot be made again."""
    done = profile(made, tools, "baseline")
    assert (done.profile.source, done.profile.why, done.profile.tool) == ("ncu", None, "ncu 2025.3.1.0")
    assert held(made) == FILES and (made / FOLDER / "report.ncu-rep").is_file()
    assert proc.dirty(made) == [] and done.commit == proc.head(made)
    assert faults(made) == {f"v000_baseline/{CASE}": ()}
    kept = stored(made)
    assert kept == done.profile and kept.report is not None
    assert kept.report.sha256 == records.file_sha256(made / FOLDER / "report.ncu-rep")
    assert (kept.verdict, kept.regime, kept.epoch, kept.gpu) == ("baseline", "prefill", 1, "NVIDIA H200")
    assert not any(str(made) in word or word.startswith("/") for word in kept.command)
    assert not (made / ".kernelpilot" / "profile").exists()


def test_a_packed_report_is_taken_and_one_that_git_would_keep_is_not_left_there(made: Path, tools: Path) -> None:
    """Breaks when a newer ncu seems to write nothing, or an older repo gets its reports into the history."""
    for ignored in (True, False):
        done = profile(made, ncu(tools, "packed"), "baseline")
        assert done.profile.report is not None and done.profile.report.name == "report.ncu-repz"
        assert (made / FOLDER / "report.ncu-repz").exists() is ignored
        assert proc.dirty(made) == [] and set(faults(made).values()) == {()}
        (made / ".gitignore").write_text((made / ".gitignore").read_text().replace("*.ncu-repz\n", ""))
        proc.commit(made, "older", [".gitignore"])


def test_the_command_captures_the_version_s_own_launches_after_the_warm_up(made: Path, tools: Path) -> None:
    """Breaks when set-up kernels are captured, the clocks are held, or hot tensors are flushed between passes."""
    profile(made, tools, "v001")
    words = (tools / "argv").read_text().splitlines()
    for name, value in {
        "--clock-control": "none", "--cache-control": "none", "--import-source": "on",
        "--target-processes": "all", "--profile-from-start": "off",
        "--kernel-name": "regex:^(copy_vec4)$", "--launch-count": "3",
    }.items():  # fmt: skip
        assert words[words.index(name) + 1] == value, name
    assert [words[i + 1] for i, w in enumerate(words) if w == "--section"] == ["SpeedOfLight", "Occupancy"]
    profile(made, tools, "v001", residency="cold", collected="full")
    words = (tools / "argv").read_text().splitlines()
    assert words[words.index("--cache-control") + 1] == "all" and words[words.index("--set") + 1] == "full"


def test_a_candidate_is_held_against_the_baseline_of_its_case(made: Path, tools: Path) -> None:
    """Breaks when a candidate's digest says nothing of the baseline, or goes on resting on one that was replaced."""
    alone = profile(made, tools, "v001")
    assert alone.profile.compared is None and alone.digest.parent is None
    profile(made, tools, "baseline")
    both = profile(made, tools, "v001")
    assert both.profile.compared is not None and both.digest.parent is not None
    assert both.profile.compared.facts_sha256 == stored(made).facts_sha256
    assert set(faults(made).values()) == {()}
    (made / FOLDER / "facts.json").write_bytes(b"{}")
    lost = faults(made)[f"v001_fused/{CASE}"]
    assert lost == ("it was compared with a digest of v000_baseline that is no longer there",)


FAILS = {
    "permission": ("ncu.permission", "does not have permission to access NVIDIA GPU Performance Counters"),
    "silent": ("ncu.no_report", "ncu ended well and left no report"),
    "no_kernels": ("ncu.no_kernels", "No kernels were profiled."),
    "library": ("ncu.library", "LibraryNotLoaded: libcuda.so"),
    "mismatch": ("ncu.mismatch", "Cuda driver is not compatible"),
    "garbage": ("ncu.unreadable", ""),
    "crash": ("ncu.failed", "ncu ended with status 9 and said nothing"),
    "loud": ("ncu.failed", "the last words"),
}


@pytest.mark.parametrize("mode", FAILS)
def test_every_way_in_which_ncu_fails_is_filed_with_its_own_words(made: Path, tools: Path, mode: str) -> None:
    """Breaks when a failed capture is an error without a trace, loses the reason, or passes for a real profile."""
    done = profile(made, ncu(tools, mode), "baseline")
    code, words = FAILS[mode]
    why = stored(made).why
    assert why is not None and why.code == code and words in why.words and "/opt/private" not in why.words
    assert (done.profile.source, done.digest.name, done.profile.report) == ("fallback", "none.insufficient", None)
    assert held(made) == FILES and not (made / FOLDER / "report.ncu-rep").exists()
    assert faults(made) == {f"v000_baseline/{CASE}": ()}
    page = (made / FOLDER / "digest.md").read_text().replace("\\", "")
    assert f"fallback, no report of ncu: {code}" in page


def test_without_any_ncu_the_fallback_says_what_is_known_and_no_more(made: Path, tmp_path: Path) -> None:
    """Breaks when times, launch shapes or spills of the build are lost, or a class is made up without counters."""
    done = profile(made, tmp_path / "nothing", "baseline")
    assert done.profile.why is not None and done.profile.why.code == "ncu.missing" and done.profile.tool == ""
    notes = done.digest.reader.notes
    assert (
        "built: copy_vec4<32>: 20 registers, 16 bytes spill stores, 24 bytes spill loads, 4096 bytes shared, 0 stack"
        in notes
    )
    assert "fill: 4 blocks on 132 multiprocessors" in notes and not any("264" in note for note in notes)
    assert {g.kernel: g.duration_us for g in done.digest.groups} == {"void copy_vec4<32>(float4*)": 9.7, "fill": 0.3}
    assert done.digest.next_step.kind == "capture"
    assert done.digest.next_step.command == f"kernelpilot profile --version baseline --case {CASE} --set full"
    none = fallback.report(Rehearsal(ok=True), done.profile.why)
    assert len(none.launches) == 1 and none.launches[0].metrics == {}


def test_a_hanging_ncu_is_killed_with_everything_it_started(
    made: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when the limit is not kept, a child of ncu goes on holding the GPU, or a short limit makes a waiver."""
    started = time.monotonic()
    with pytest.raises(KernelPilotError, match="too little time to say that it cannot") as short:
        profile(made, ncu(tools, "hang"), "baseline", limit_s=0.2)
    assert short.value.fix.endswith(f"--case {CASE} --limit 240") and digests.collect(made) == ()
    monkeypatch.setattr(capture, "LIMIT_S", 0.5)
    done = profile(made, ncu(tools, "hang"), "baseline", limit_s=0.5)
    assert time.monotonic() - started < 20
    assert done.profile.why is not None and done.profile.why.code == "ncu.timeout"
    assert "did not end within 0.5 s" in done.profile.why.words
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    assert str(tools) not in listed
    env = {"PATH": f"{ncu(tools, 'daemon')}:/usr/bin:/bin", "TMPDIR": str(tools / "private")}
    argv = [str(tools / "ncu"), "-o", str(tools / "r")]
    ended = ncu_tool.run(argv, tools / "r.ncu-rep", env=env, cwd=tools, log=tools / "log", limit=20)
    assert ended.why is None and ended.report == tools / "r.ncu-rep"
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 77" not in listed.splitlines()


def refused(made: Path, tools: Path, **options: Any) -> KernelPilotError:
    with pytest.raises(KernelPilotError) as caught:
        profiling.profile_version(
            made, profiling.Request(**options), stage=FakeStage(tools), clock=clock, say=quiet
        )  # fmt: skip
    assert caught.value.fix and not (made / "artifacts/profile-digests/v002_bad").exists()
    return caught.value


def test_what_may_not_be_profiled_is_refused_with_a_fix(made: Path, tools: Path, tmp_path: Path) -> None:
    """Breaks when an incorrect, unknown or never judged version can be profiled, or a task of a CPU."""
    write_variant(made, "bad", "# wrong\n" + gpu_sim.CODE)
    attempt(made, FakeLab(wrong="all"), "bad")
    write_variant(made, "new", "# never attempted\n" + gpu_sim.CODE)
    assert "v002_bad is WRONG" in refused(made, tools, version="v002").what
    assert "v002_bad is WRONG" in refused(made, tools, variant="bad").what
    assert "no row for version 'v009'" in refused(made, tools, version="v009").what
    assert "was never attempted" in refused(made, tools, variant="new").what
    assert "no case 'm9' (timed are: decode, prefill)" in refused(made, tools, case_id="m9").what
    assert "twice" in refused(made, tools, version="v001", variant="fused").what
    locked_repo(tmp_path / "cpu")
    assert "this task is for a CPU" in refused(tmp_path / "cpu", tools).what
    stage = FakeStage(tools, Rehearsal(ok=False, stage="candidate", log="boom\nRuntimeError: no"))
    with pytest.raises(KernelPilotError, match="did not run, so nothing can be profiled: RuntimeError: no"):
        profiling.profile_version(made, profiling.Request(version="baseline"), stage=stage, clock=clock, say=quiet)
    assert digests.collect(made) == ()


def test_the_default_is_the_incumbent_on_its_longest_or_its_regressed_case(made: Path) -> None:
    """Breaks when the profile explains a case that nobody asks about."""
    ws = workspace.open_repo(made)
    chosen = subject.choose(ws, version=None, variant=None, case_id=None)
    assert (chosen.row.version, chosen.case.case_id, chosen.residency) == ("v001_fused", "prefill", "hot")
    assert chosen.run == chosen.row.confirmed_by
    assert subject.choose(ws, version="baseline", variant=None, case_id=None).case.case_id == "prefill"
    slow = attempt_regressed(made)
    assert subject.choose(workspace.open_repo(made), version=slow, variant=None, case_id=None).case.case_id == "decode"


def attempt_regressed(made: Path) -> str:
    write_variant(made, "slow", "# slow\n" + gpu_sim.CODE)
    return attempt(made, FakeLab(speedup={"decode": 0.8, "prefill": 1.3}, noise=0.001), "slow").row.version


def test_a_second_profile_of_the_repo_is_refused_at_once(made: Path, tools: Path) -> None:
    """Breaks when two profiles share a GPU and a work folder."""
    with proc.file_lock(made / profiling.LOCK, timeout_s=0.0, what="a profile"):
        started = time.monotonic()
        with pytest.raises(Busy, match=f"held by process {os.getpid()}"):
            profile(made, tools, "baseline")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("step", ["profile.captured", "profile.drafted", "profile.aside", "profile.placed"])
def test_a_killed_profile_leaves_the_old_one_or_the_new_one_and_the_next_is_whole(
    made: Path, tools: Path, step: str
) -> None:
    """Breaks when kill -9 leaves half a folder, loses the digest that was there, or bars the way to the next."""
    profile(made, ncu(tools, "permission"), "baseline")
    before = stored(made)
    ncu(tools)
    argv = [sys.executable, "-m", "tests.profile_sim", str(made), "baseline", str(tools)]
    env = {**os.environ, "KP_CRASH_AT": step, "PYTHONPATH": os.pathsep.join(["lib", "."])}
    root = Path(__file__).resolve().parents[1]
    died = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert died.returncode == -9, died.stderr
    if (made / FOLDER).exists():
        assert stored(made).source == ("ncu" if step == "profile.placed" else "fallback")
        assert faults(made) == {f"v000_baseline/{CASE}": ()}
    else:
        assert step == "profile.aside"
        with pytest.raises(KernelPilotError):  # brought back even where the next profile fails
            stage = FakeStage(tools, Rehearsal(ok=False, stage="candidate", log="x"))
            profiling.profile_version(made, profiling.Request(), stage=stage, clock=clock, say=quiet)
        assert stored(made) == before
    assert profile(made, tools, "baseline").profile.source == "ncu"
    assert proc.dirty(made) == [] and held(made) == FILES


@pytest.mark.parametrize("name", sorted({*FILES, "report.ncu-rep"}))
def test_one_edited_byte_of_any_file_shows(made: Path, tools: Path, name: str) -> None:
    """Breaks when a number of a digest can be changed by hand, or another report laid in its place."""
    profile(made, tools, "baseline")
    path = made / FOLDER / name
    whole = path.read_bytes()
    digit = max(ix for ix, byte in enumerate(whole[:-2]) if byte in b"12345678")
    path.write_bytes(whole[:digit] + bytes([whole[digit] + 1]) + whole[digit + 1 :])
    (found,) = faults(made).values()
    assert found or name == "profile.json"  # a time or a count of seconds is nobody's proof
    path.unlink()
    (found,) = faults(made).values()
    assert found == (() if name == "report.ncu-rep" else (f"{name} is missing",))


def test_a_number_that_the_facts_do_not_hold_shows_though_every_hash_is_made_to_fit(made: Path, tools: Path) -> None:
    """Breaks when the digest is believed because profile.json was forged along with it."""
    profile(made, tools, "baseline")
    path = made / FOLDER / "digest.json"
    doc = json.loads(path.read_bytes())
    doc["confidence"] = "high" if doc["confidence"] != "high" else "low"
    data = json.dumps(doc).encode()
    path.write_bytes(data)
    kept = msgspec.structs.replace(stored(made), digest_sha256=records.sha256(data))
    records.save(made / FOLDER / "profile.json", kept)
    (found,) = faults(made).values()
    assert any("digest.json is not what facts.json gives (confidence" in fault for fault in found)


def test_a_digest_can_be_cited_by_the_next_attempt(made: Path, tools: Path) -> None:
    """Breaks when the id that the command prints is refused by the command that takes it."""
    done = profile(made, tools, "baseline")
    ws = workspace.open_repo(made)
    sources.require_cited(ws, Motivation(kind="profile", text="t", digest=done.profile.id))
    with pytest.raises(Refused, match="no digest profile"):
        sources.require_cited(ws, Motivation(kind="profile", text="t", digest="profile"))


def owed(made: Path) -> list[tuple[str, str]]:
    report = gating.gate(made, final=False)
    assert not [why for why in report.not_evaluated if why.partition(":")[0] in ("14", "15", "17", "18")]
    return [(f.rule, f.where) for f in report.findings if f.rule in ("14", "15", "16", "17", "18")]


def test_the_gate_reads_what_was_filed(made: Path, tools: Path) -> None:
    """Breaks when a profile as the command files it is a finding, or a tampered one is none."""
    assert owed(made) == []
    profile(made, tools, "v001")
    assert owed(made) == [("17", f"artifacts/profile-digests/v001_fused/{CASE}")]  # no baseline to hold it against
    profile(made, tools, "baseline")
    assert owed(made) == []
    (made / FOLDER / "digest.md").write_text("# TODO\n")
    assert owed(made) == [("17", FOLDER)] * 2
    slow = attempt_regressed(made)
    write_variant(made, "child", "# on the slow one\n" + gpu_sim.CODE)
    attempt(made, FakeLab(speedup=0.9, noise=0.001), "child", parent=slow)
    assert ("15", slow) in owed(made)
    profile(made, tools, slow, case_id=None)
    assert ("15", slow) not in owed(made)


def test_the_command_prints_the_digest_and_the_id_to_cite(
    made: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a key of the JSON is lost, or a refusal waits for a GPU or a Python first."""
    cli = profile_command.command
    refuses = CliRunner().invoke(cli, ["--repo", str(made), "--version", "v009"], standalone_mode=False)
    assert isinstance(refuses.exception, Refused) and "v009" in refuses.exception.what
    monkeypatch.setattr(common, "profile_stage", lambda _repo: FakeStage(tools))
    ncu(tools, "permission")
    argv = ["--repo", str(made), "--version", "baseline", "--case", CASE]
    said = CliRunner().invoke(cli, argv, standalone_mode=False)
    assert f"kernelpilot attempt NAME --digest v000_baseline/{CASE} --motivation" in said.stdout
    assert "FALLBACK, no report of ncu (ncu.permission): ERR_NVGPUCTRPERM" in said.stdout
    ncu(tools)
    data = json.loads(CliRunner().invoke(cli, [*argv, "--json"], standalone_mode=False).stdout)
    assert set(data) == {
        "version", "case_id", "digest", "folder", "source", "reason", "class", "confidence", "next_step", "gpu", "tool",
        "run", "report", "seconds", "commit", "logs",
    }  # fmt: skip
    assert (data["digest"], data["source"], data["reason"]) == (f"v000_baseline/{CASE}", "ncu", None)
    assert data["report"] == f"{FOLDER}/report.ncu-rep" and data["commit"] == proc.head(made)


def test_launches_are_chosen_by_time_and_without_names_by_the_last_run() -> None:
    """Breaks when a long tail of small kernels is captured, or the filter matches nothing."""
    ten = tuple(Kernel(name=f"k{n}", ns=1000 if n < 2 else 1) for n in range(10))
    choose = functools.partial(capture.choose_launches, residency="cold", collected="focused")
    nothing: Any = SimpleNamespace(kernels=())
    what: Any = SimpleNamespace(kernels=(("void a::b<1>(int)", 2), ("Memset (Device)", 1)))
    found = choose(what, msgspec.structs.replace(GOOD, kernels=ten))
    assert (found.kernels, found.count, found.cache_control) == (("k0", "k1"), 6, "all")
    blind = choose(what, msgspec.structs.replace(GOOD, kernels=()))
    assert (blind.kernels, blind.count) == (("b",), 6)
    unknown = choose(nothing, msgspec.structs.replace(GOOD, kernels=()))
    assert (unknown.kernels, unknown.count) == ((), capture.LAUNCHES_BLIND)
    many = tuple(Kernel(name="k", ns=1) for _ in range(40))
    assert choose(what, msgspec.structs.replace(GOOD, kernels=many)).count == capture.LAUNCHES_MAX


def test_a_filter_takes_names_literally_and_no_filter_names_no_kernel(tmp_path: Path) -> None:
    """Breaks when a name with a dot or a dollar matches other kernels."""
    tool = ncu_tool.Tool(path="ncu", version="1", sections=())
    launches = Launches(calls=3, warm_up=3, skip=0, count=3, kernels=("a$b", "c"))
    words = ncu_tool.argv(tool, launches, tmp_path / "r.ncu-rep", ["python3"])
    assert r"regex:^(a\$b|c)$" in words and words[-3:] == ["-o", str(tmp_path / "r"), "python3"]
    assert words[words.index("--set") + 1] == "full"
    bare = msgspec.structs.replace(launches, kernels=())
    assert "--kernel-name" not in ncu_tool.argv(tool, bare, tmp_path / "r.ncu-rep", [])


def test_lines_of_a_scratch_copy_are_named_by_the_variant_s_own_file(
    made: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks as on an H200: the committed digest named a file of a scratch folder that was gone."""
    stage, given, draft = FakeStage(tools), {}, filing.draft

    def spy(*args: Any, roots: dict[str, str], **options: Any) -> Any:
        given.update(roots)
        return draft(*args, roots=roots, **options)

    monkeypatch.setattr(filing, "draft", spy)
    request = profiling.Request(version="v001", case_id=CASE)
    profiling.profile_version(made, request, stage=stage, clock=clock, say=quiet)
    scene, redactor = stage.scenes[0], Redactor(roots=given)
    folder = f"src/{workspace.open_repo(made).task}/variants/fused"
    assert redactor.text(f"{scene.folder}/kernel.cu:49") == f"{folder}/kernel.cu:49"
    assert redactor.text(f"{scene.source}/deep/a.cuh") == f"{folder}/deep/a.cuh"
    assert redactor.text(f"{made}/contract.toml") == "contract.toml"


def test_words_of_the_tool_lose_folders_and_its_usual_note() -> None:
    """Breaks when somebody's home folder or a note that is always there becomes the reason."""
    said = (
        "==PROF== Connected\n==WARNING== Note: Running with unmodified GPU clocks.\n"
        "==ERROR== Failed to open /home/ada/x/lib.so: see https://example.org/a/b\n"
    )
    assert ncu_tool.clean(said) == "Failed to open lib.so: see https://example.org/a/b"
    assert ncu_tool.clean("plain\nlast line of /tmp/x/y") == "plain; last line of y"
    errors_first = "==WARNING== later\n==WARNING== Unable to access the following 6 metrics: a.\n==ERROR== first\n"
    assert ncu_tool.clean(errors_first) == "first; later"


def test_a_report_without_a_launch_of_the_version_is_asked_for_again_without_names(made: Path, tools: Path) -> None:
    """Breaks when a wrong filter costs the profile, or launches of others pass for the version's."""
    ncu(tools, report="tail_wave")
    done = profile(made, tools, "baseline")
    assert done.profile.launches.kernels == () and done.profile.source == "ncu"
    assert "--kernel-name" not in (tools / "argv").read_text()
    assert set(faults(made).values()) == {()}
    kept = stored(made)
    named = msgspec.structs.replace(kept.launches, kernels=("copy_vec4",))
    records.save(made / FOLDER / "profile.json", msgspec.structs.replace(kept, launches=named))
    assert faults(made) == {f"v000_baseline/{CASE}": ("facts.json holds no launch of copy_vec4",)}


def test_what_ncu_and_the_program_said_is_kept_after_a_failure_alone(made: Path, tools: Path) -> None:
    """Breaks when a failed capture cannot be looked into, or 30 MB of noise are kept."""
    logs = made / capture.LOGS
    assert profile(made, ncu(tools, "loud"), "baseline").logs == capture.LOGS
    assert (logs / "ncu.log").stat().st_size <= 2 * ncu_tool.LOG_BYTES and proc.dirty(made) == []
    profile(made, ncu(tools, "garbage"), "baseline")
    assert (logs / "report.ncu-rep").read_text() == "nothing\n"
    assert profile(made, ncu(tools), "baseline").logs is None


def test_a_build_for_a_profiler_gets_line_tables_once() -> None:
    """Breaks when hot lines have no names, or a build that is timed changes."""
    plain = SimpleNamespace(source=Path(), target=Path(), key="", known={}, during=print, admit=print)
    lined = forge.Session(**vars(plain), lines=True).lined
    assert lined(["-O3"]) == ("-O3", "-lineinfo") and lined(["-lineinfo"]) == ("-lineinfo",)
    assert lined(["--generate-line-info"]) == ("--generate-line-info",)
    assert forge.Session(**vars(plain)).lined(["-O3"]) == ("-O3",)


def test_a_trace_gives_kernels_in_the_order_of_their_start() -> None:
    """Breaks when copies count as kernels, or a trace without launch shapes is an error."""
    one = {"cat": "kernel", "name": "b", "ts": 9, "dur": 2.5, "args": {"registers per thread": 32, "shared memory": 64}}
    two = {"cat": "kernel", "name": "a", "ts": 3, "dur": 1, "args": {"grid": [2, 1, 1], "block": [64, 1, 1]}}
    other = {"cat": "gpu_memset", "name": "m", "ts": 1, "dur": 1, "args": {}}
    data = json.dumps({"traceEvents": [one, other, two, {"ph": "M", "name": "x"}]}).encode()
    found = profile_target.kernels(profile_target.events(data))
    assert [(k["name"], k["ns"], k["grid"], k["registers"], k["shared"]) for k in found] == [
        ("a", 1000, [2, 1, 1], 0, 0), ("b", 2500, [], 32, 64),
    ]  # fmt: skip
    msgspec.convert({"ok": True, "kernels": found}, profile_stage.Rehearsal)
