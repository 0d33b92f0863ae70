"""Building for a GPU on a machine without one, by whichever compiler is here."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelpilot_helpers.runtime import build, building, cubin, extension, forge, nvrtc, usage
from kernelpilot_helpers.runtime.forge import BuildError, Session

compiler = pytest.mark.skipif(
    nvrtc.find_library() is None and shutil.which("nvcc") is None, reason="neither NVRTC nor nvcc is here"
)
KERNEL = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += STEP; }\n'
Begin = Callable[..., Session]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    for name in (*forge.CACHES, *forge.FIXED, "TORCH_CUDA_ARCH_LIST"):
        monkeypatch.setenv(name, "elsewhere")

    def make(arm: str = "A", *, known: dict[str, str] | None = None, text: str = KERNEL) -> Session:
        source, target = tmp_path / f"src-{arm}", tmp_path / f"build-{arm}"
        source.mkdir(exist_ok=True)
        target.mkdir(exist_ok=True)
        (source / "kernel.cu").write_text(text)
        session = Session(
            source=source, target=target, key=arm.lower() * 64, known=known or {}, gpu=True,
            during=lambda _on: None, admit=lambda _path: None,
        )  # fmt: skip
        build.begin(session)
        return session

    yield make
    forge._session.clear()


def one(begin: Begin, arm: str, step: str, text: str = KERNEL) -> Session:
    session = begin(arm, text=text)
    build.nvrtc("kernel.cu", flags=(f"-DSTEP={step}",))
    return session


@compiler
def test_the_same_source_in_two_arms_is_the_same_program(begin: Begin) -> None:
    """Breaks when the stamp or an arm's path keeps identical cubins from being one program, or other code is one."""
    a, b, c = one(begin, "A", "1.0f"), one(begin, "B", "1.0f", "// another comment\n" + KERNEL), one(begin, "C", "2.0f")
    files = [s.target / "kernel.cubin" for s in (a, b, c)]
    hashes = [forge.sha256(f) for f in files]
    normal = [forge.normal_sha256(f, s.key) for f, s in zip(files, (a, b, c), strict=True)]
    assert len(set(hashes)) == 3 and normal[0] == normal[1] != normal[2]
    assert [s.artifacts[0]["build_id"] for s in (a, b, c)] == ["a" * 64, "b" * 64, "c" * 64]
    (said,) = usage.of_build(files[0].read_bytes(), a.artifacts[0]["log"])
    assert said["name"] == "add" and said["registers"] > 0 and len(said["sass_sha256"]) == 64


@compiler
def test_a_later_worker_takes_the_file_that_was_built_and_no_other(begin: Begin) -> None:
    """Breaks when a later worker compiles again, or loads a file that was exchanged."""
    first = one(begin, "A", "1.0f")
    file = first.target / "kernel.cubin"
    known = {"kernel.cubin": forge.sha256(file)}
    stamp = file.stat().st_mtime_ns
    begin("A", known=known, text="not CUDA")  # never read again
    assert build.nvrtc("kernel.cu", flags=("-DSTEP=1.0f",)).kernels == ("add",)
    assert file.stat().st_mtime_ns == stamp
    begin("A", known=known)
    with pytest.raises(BuildError, match=r"late.cubin was not built when the candidate was imported"):
        build.nvrtc("kernel.cu", flags=("-DSTEP=1.0f",), name="late")
    file.write_bytes(file.read_bytes() + b"x")
    begin("A", known=known)
    with pytest.raises(BuildError, match=r"kernel.cubin is not the file that was built"):
        build.nvrtc("kernel.cu", flags=("-DSTEP=1.0f",))


@compiler
def test_a_compilers_message_names_the_file_relative_to_the_variant(begin: Begin, tmp_path: Path) -> None:
    """Breaks when the message shows this machine's paths or another line."""
    session = begin("A", text="\n\n" + KERNEL)
    with pytest.raises(BuildError, match=r"(?m)^kernel\.cu\(3\): error.*STEP") as fault:
        build.nvrtc("kernel.cu")
    assert str(tmp_path) not in str(fault.value)
    assert session.artifacts == []


def test_words_that_cannot_be_meant_are_refused(begin: Begin) -> None:
    """Breaks when a string is taken for a list of flags, or a source outside of the variant is compiled."""
    begin()
    with pytest.raises(BuildError, match="has a comma before its bracket"):
        build.nvrtc("kernel.cu", flags="-O3")  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="below the variant's folder"):
        build.nvrtc("../src-B/kernel.cu")
    with pytest.raises(BuildError, match="write it like sm_90a"):
        forge.arch_list("hopper")
    assert (forge.arch_list("sm_90a"), forge.arch_list("sm_100a"), forge.arch_list("sm_89")) == ("9.0a", "10.0a", "8.9")


def test_caches_of_an_arm_are_its_own_and_a_changed_cubin_in_them_is_seen(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a Triton kernel of an earlier job is found, or a cached one is exchanged between two workers."""
    session = begin("A")
    import os

    assert os.environ["TRITON_CACHE_DIR"] == str(session.target / "triton")
    assert os.environ["TORCH_CUDA_ARCH_LIST"] == "9.0a"
    file = session.target / "triton" / "ABC" / "norm_kernel.cubin"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"code")
    assert build.scan_cache() == [
        {"path": "triton/ABC/norm_kernel.cubin", "command": ["triton", "norm_kernel"], "build_id": "", "log": ""}
    ]
    known = {"triton/ABC/norm_kernel.cubin": forge.sha256(file)}
    begin("A", known=known)
    file.write_bytes(b"other")
    with pytest.raises(BuildError, match=r"norm_kernel\.cubin is not the file"):
        begin("A", known=known)


def test_a_path_that_a_worker_names_stays_below_the_build_folder(tmp_path: Path) -> None:
    """Breaks when a forged reply makes the oracle hash a file elsewhere."""
    assert building.below(tmp_path, "triton/a/k.cubin") == "triton/a/k.cubin"
    assert building.below(tmp_path, "../../etc/passwd") == "passwd"
    assert building.below(tmp_path, "/etc/passwd") == "passwd"


def test_what_identifies_a_program_of_cuda_sources(tmp_path: Path) -> None:
    """Breaks when a comment makes two programs of one cubin, or two extensions of other sources are one program."""
    (tmp_path / "kernel.cu").write_text("// one")
    cubins = [{"path": "kernel.cubin", "normal_sha256": "0", "command": ["nvcc", "kernel.cu"]}]
    module = [{"path": "ext-m/m.so", "normal_sha256": "0", "command": ["torch_extension", "m"]}]
    before = [building.binary_id(tmp_path, a) for a in (cubins, module, [])]
    (tmp_path / "kernel.cu").write_text("// two")
    after = [building.binary_id(tmp_path, a) for a in (cubins, module, [])]
    assert [x == y for x, y in zip(before, after, strict=True)] == [True, False, False]
    module[0]["normal_sha256"] = "1"  # names of the folder are in it
    assert building.binary_id(tmp_path, module) == after[1]


def test_the_extensions_generated_source_holds_id_and_binding() -> None:
    """Breaks when the id is not exported, or a function is bound without its declaration."""
    text = extension.stamp_source("a" * 64, {"run": "void run(at::Tensor x);"})
    assert f'kp_build_id[65] = "{"a" * 64}";' in text
    assert "void run(at::Tensor x);\nPYBIND11_MODULE" in text
    assert 'm.def("run", &run);' in text
    assert "PYBIND11" not in extension.stamp_source("a" * 64, {})
    assert cubin.build_id(b"..." + b"a" * 64 + b"\0") == "a" * 64
