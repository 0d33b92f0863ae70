"""What ``kernelpilot build`` tells somebody who gets it wrong the first time, on a machine without a GPU."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Artifact, Died, Event, Raw
from kernelpilot_helpers.cli import scratch_output
from kernelpilot_helpers.executors.fake import FakeLab
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.executors.task_python import TaskPython
from kernelpilot_helpers.proc import file_lock
from kernelpilot_helpers.referee import locking, scratch, signature
from kernelpilot_helpers.runtime import build, extension, forge, launch, nvrtc
from kernelpilot_helpers.runtime.forge import BuildError, Session
from tests import gpu_sim
from tests.cubins import cubin
from tests.jobs import materialise, norm_case
from tests.referee_sim import clock, quiet, write_variant
from tests.test_runtime_nvrtc import compiler

NVCC = """k.cu(1): warning #177-D: variable "a" was declared but never referenced
      int a;
          ^

ptxas info    : 0 bytes gmem
ptxas info    : Function properties for f
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
k.cu(2): error: identifier "STEP" is undefined
      x[0] = STEP;
             ^
"""
TENSORS = ("x", "residual", "weight", "eps")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    for name in (*forge.CACHES, *forge.FIXED, "TORCH_CUDA_ARCH_LIST"):
        monkeypatch.setenv(name, "elsewhere")
    monkeypatch.setenv(forge.WANTED, "")
    for name in ("src", "out"):
        (tmp_path / name).mkdir()
    yield Session(
        source=tmp_path / "src", target=tmp_path / "out", key="a" * 64, known={}, gpu=True,
        during=lambda _on: None, admit=lambda _path: None,
    )  # fmt: skip
    forge._session.clear()


def test_errors_come_first_with_their_source_lines_and_the_whole_log_stays(session: Session) -> None:
    """Breaks when a warning or ptxas's figures hide the error, or a caret loses its line."""
    fault = forge.refused(session, "nvcc failed (1)", NVCC)
    assert str(fault).splitlines() == [
        "nvcc failed (1):", 'k.cu(2): error: identifier "STEP" is undefined', "      x[0] = STEP;", "             ^",
        'k.cu(1): warning #177-D: variable "a" was declared but never referenced', "      int a;", "          ^",
    ]  # fmt: skip
    assert (session.target / "compiler-1.log").read_text() == NVCC
    lost = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"
    assert forge.warnings(f"{NVCC}{lost}\n") == [NVCC.splitlines()[0], lost]


def test_the_contracts_architecture_goes_before_the_machines(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when target.arch is ignored, or code for another GPU is loaded."""
    build.begin(session)
    assert (session.arch, os.environ["TORCH_CUDA_ARCH_LIST"]) == ("", "9.0a")
    assert forge.target_words(session, "sm_90a") == "sm_90a; no GPU here: built for sm_90a"
    monkeypatch.setenv(forge.WANTED, "sm_100a")
    build.begin(session)
    assert (session.arch, os.environ["TORCH_CUDA_ARCH_LIST"]) == ("sm_100a", "10.0a")
    assert forge.target_words(session, "sm_100a") == "sm_100a"
    session.device, session.arch = object(), "sm_90a"
    with pytest.raises(BuildError, match=r"target\.arch is sm_100a and this GPU is sm_90a"):
        build.begin(session)
    monkeypatch.setenv(forge.WANTED, "sm_90")
    build.begin(session)
    assert session.arch == "sm_90"


@compiler
def test_a_build_says_compiler_and_architecture(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the artefact is booked to the C compiler, or a warning of a good build is lost."""
    monkeypatch.setenv(forge.WANTED, "sm_80")
    build.begin(session)
    (session.source / "k.cu").write_text('extern "C" __global__ void k(float* x) { int unused_one; x[0] = 1; }\n')
    build.nvrtc("k.cu", name="other")
    (said,) = session.artifacts
    assert "--gpu-architecture=sm_80" in said["command"]
    name, _, arch = said["compiler"].partition(", ")
    assert name.split()[0] in ("nvrtc", "nvcc") and name.split()[1][0].isdigit() and arch == "sm_80"
    assert any("k.cu(1)" in line and "unused_one" in line for line in said["warnings"])


def test_mistyped_builders_and_arguments_are_answered_with_what_is_meant(session: Session) -> None:
    """Breaks when a typo is a bare TypeError, or hasattr no longer works on the module."""
    build.begin(session)
    with pytest.raises(BuildError, match=r"^build\.nvrtc has no argument 'flag': did you mean flags=\?$"):
        build.nvrtc("k.cu", flag=("-O3",))  # type: ignore[call-arg]
    with pytest.raises(BuildError, match=r"build\.cc has no argument 'zzz': it takes source, flags, libs, name"):
        build.cc("k.c", zzz=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match=r"did you mean build\.nvrtc\?"):
        build.nvcc  # noqa: B018
    with pytest.raises(AttributeError, match=r"did you mean build\.torch_extension\?"):
        build.torch_extention  # noqa: B018
    assert not hasattr(build, "__wrapped__")


@pytest.mark.parametrize("flag", ["-arch=sm_80", "--gpu-architecture=sm_80", "-gencode"])
def test_an_architecture_among_the_flags_is_refused(session: Session, flag: str) -> None:
    """Breaks when the last of two architectures silently counts."""
    build.begin(session)
    with pytest.raises(BuildError, match=r"leave this flag out, .* arch= names \(here 'sm_90'\)"):
        build.nvrtc("k.cu", flags=(flag,), arch="sm_90")


def test_a_kernel_is_found_by_the_name_that_a_build_shows() -> None:
    """Breaks when the displayed name is refused, or one of two overloads is taken by chance."""
    names = ("_Z2tkILi128EEvPf", "_Z3addPf", "_Z3addPd", "plain")
    module = launch.Module(cubin(dict.fromkeys(names, b"\1" * 16), registers={}, frame={}), "k.cubin", load=False)
    assert module.kernel("tk<128>").name == "_Z2tkILi128EEvPf"
    assert module.kernel("plain").name == "plain"
    with pytest.raises(BuildError, match="has several kernels 'add': give a symbol, one of _Z3addPd, _Z3addPf"):
        module.kernel("add")
    with pytest.raises(BuildError, match=r"no kernel 'tk<64>' \(there: tk<128> \(_Z2tkILi128EEvPf\)"):
        module.kernel("tk<64>")


def test_a_torch_without_cuda_is_named_before_its_builder_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when somebody with a CPU torch reads a message about CUDA_HOME, or no fix."""
    torch = types.ModuleType("torch")
    torch.version = types.SimpleNamespace(cuda=None)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(
        BuildError, match=r"not built for CUDA \(torch\.version\.cuda is None\)(?s:.*)\nfix: kernelpilot doctor  # "
    ):
        extension.need_cuda()
    with pytest.raises(BuildError, match=r"needs torch, which this Python lacks\nfix: kernelpilot doctor  # "):
        extension.need_torch()  # only stood in for: it has no version
    torch.version.cuda = "13.0"
    extension.need_cuda()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def entry(*, x, residual, weight, eps): pass", []),
        ("def entry(x, residual=None, *, weight, eps, tile=4): pass", []),
        ("def entry(**all): pass", []),
        ("@wrap\ndef entry(*, y): pass", []),
        ("from kernels import entry", []),
        ("entry = make()", []),
        ("def entry(*, x, residul, weight, eps): pass", ["the contract has no 'residul': did you mean residual?"]),
        ("def entry(*, x, residual, weight): pass", ["does not take 'eps'"]),
        ("def entry(*, x, q, **rest): pass", ["the contract has no 'q' (it has: x, residual, weight, eps)"]),
        ("def entry(x, /, **rest): pass", ["x is positional-only"]),
        ("def entri(*, x): pass", ["has no function entry: write def entry(*, x, residual, weight, eps):"]),
        ("def entry(:", []),
    ],
)
def test_names_of_the_function_and_of_the_contract(tmp_path: Path, code: str, said: list[str]) -> None:
    """Breaks when a wrong name is found only by the first call on a GPU, or a good function is refused."""
    file = tmp_path / "candidate.py"
    file.write_text(code)
    found = signature.faults(file, "entry", TENSORS, more=False)
    assert len(found) == len(said) and all(part in text for part, text in zip(said, found, strict=True))


def test_prepare_may_give_further_names(tmp_path: Path) -> None:
    """Breaks when what prepare returns is taken for a typo."""
    file = tmp_path / "candidate.py"
    file.write_text("def prepare(case, static): return {}\ndef entry(*, x, residual, weight, eps, packed): pass\n")
    assert signature.faults(file, "entry", TENSORS, more=True) == ()
    assert len(signature.faults(file, "entry", TENSORS, more=False)) == 1


class Lab(FakeLab):
    """Answers with what the candidate's build gave."""

    def __init__(self, *, artifacts: tuple[Artifact, ...] = (), stood_in: tuple[str, ...] = (), log: str = "") -> None:
        super().__init__()
        self._artifacts, self._log = artifacts, log
        self.events = tuple(Event(arm="B", kind="build.stood_in", detail=name) for name in stood_in)

    def run(self, job: Job, workdir: Path) -> Raw:
        raw = super().run(job, workdir)
        builds = (
            msgspec.structs.replace(b, artifacts=self._artifacts, log=self._log, binary_id=b.arm) for b in raw.builds
        )
        return msgspec.structs.replace(raw, builds=tuple(builds), events=self.events)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = gpu_sim.repo(tmp_path_factory.mktemp("gpu"))
    locking.lock(made, amend=False, why="", lab=FakeLab(), clock=clock, say=quiet)
    write_variant(made, "fused", gpu_sim.CODE)
    write_variant(made, "typo", "def entry(*, x, residul, weight, eps): pass\n")
    return made


def look(repo: Path, lab: FakeLab, variant: str = "fused") -> tuple[dict[str, object], str]:
    tried = scratch.run(repo, variant, mode="build", lab=lab, clock=clock)
    data = scratch_output.as_object(tried)
    return data, scratch_output.words(tried, data)


def test_an_import_that_compiled_nothing_is_not_called_built(repo: Path) -> None:
    """Breaks when a Triton kernel that nobody compiled is BUILT, or the reason is not this Python."""
    data, text = look(repo, Lab(stood_in=("triton",)))
    assert (data["verdict"], data["ok"], data["compiled"], data["lacking"]) == ("IMPORTED", True, False, ["triton"])
    assert text.startswith("IMPORTED fused: nothing was compiled: this Python has no triton   [build, ")
    data, text = look(repo, Lab())
    assert data["verdict"] == "IMPORTED" and "languages in Python compile at the first call" in text


def test_a_c_build_is_built_and_its_warnings_and_compiler_are_shown(repo: Path) -> None:
    """Breaks when a library without a GPU kernel counts as nothing, or warnings of a good build vanish."""
    one = Artifact(path="k.so", sha256="", normal_sha256="", build_id="", command=(), compiler="cc 1, x")
    data, text = look(repo, Lab(artifacts=(one,), log="a.c:1: warning: unused"))
    assert (data["verdict"], data["compilers"]) == ("BUILT", ["cc 1, x"])
    assert data["build"]["log"] == "a.c:1: warning: unused"  # type: ignore[index]
    assert "    a.c:1: warning: unused\n  compiled by cc 1, x" in text and "compile at the first call" not in text


def test_a_wrong_name_is_a_finding_of_a_build(repo: Path) -> None:
    """Breaks when the build of a function that cannot be called exits 0."""
    data, text = look(repo, Lab(), "typo")
    assert (data["verdict"], data["ok"]) == ("BROKEN", False)
    assert data["findings"] == ["entry: the contract has no 'residul': did you mean residual?"]
    assert text.startswith("BROKEN typo: entry: the contract has no 'residul': did you mean residual?   [")


def test_a_hung_import_is_named_with_its_limit(repo: Path) -> None:
    """Breaks when a person must guess why the build died."""
    lab = FakeLab(died=Died(arm="B", stage="build", timeout=True, log="no reply within 300.0 s\n"))
    _, text = look(repo, lab)
    assert text.startswith("BROKEN fused: died in build: the import did not end within 300 s   [")


def test_a_long_log_shows_its_beginning_and_a_traceback_its_end() -> None:
    """Breaks when the first error of many is cut off, or the exception's own line."""
    from kernelpilot_helpers.cli import build_output

    lines = [f"line {i}" for i in range(50)]
    assert build_output.shown("\n".join(lines)) == lines[:20]
    assert build_output.shown("\n".join(["Traceback (most recent call last):", *lines]))[-1] == "line 49"


def test_a_long_build_says_so_on_stderr_and_a_short_one_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a waiting person sees nothing, or --json's stdout gets the line."""
    import time

    monkeypatch.setattr(scratch_output, "PATIENCE_S", 0.05)
    with scratch_output._patience("try"):
        time.sleep(0.15)
    assert capsys.readouterr() == ("", "")
    with scratch_output._patience("build"):
        time.sleep(0.3)
    assert capsys.readouterr() == ("", "still importing candidate.py ...\n")


def test_a_build_waits_for_no_device(tmp_path: Path) -> None:
    """Breaks when a build waits for somebody's measurement."""
    job = msgspec.structs.replace(materialise(tmp_path / "job", cases=(norm_case(4, 64),)), phases=())
    python = tmp_path / "py"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    lab = LocalLab(
        TaskPython(argv=(str(python),), framework="numpy", version="0"), tmp_path / "device.lock",
        cache=tmp_path / "cache", lock_s=0.1,
    )  # fmt: skip
    with file_lock(lab.lock_of(job), timeout_s=1, what="the device"):
        died = lab.run(job, tmp_path / "job").died
    assert died is not None and "status 3" in died.log


def test_the_contracts_architecture_is_in_the_job(repo: Path) -> None:
    """Breaks when the workers are not told."""
    seen: list[str] = []

    class Watch(Lab):
        def run(self, job: Job, workdir: Path) -> Raw:
            seen.append(job.arch)
            return super().run(job, workdir)

    look(repo, Watch())
    assert seen == ["sm_90a"]


def test_nvccs_release_is_read(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the version is the copyright line."""
    monkeypatch.setattr(nvrtc, "run_compiler", lambda *_: "Cuda compilation tools, release 13.0, V13.0.88\nBuild x")
    assert nvrtc.nvcc_version(session) == "nvcc 13.0"
