"""The first CUDA C++ candidate and the commands that the README of a GPU repo shows."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from kernelpilot_helpers import scaffold
from kernelpilot_helpers.contract.model import Tensor
from kernelpilot_helpers.scaffold import content, starter
from tests.contract.test_docs import commands, parses

REQUESTS = Path(__file__).resolve().parents[1] / "examples/requests"
CARDS = [p.relative_to(REQUESTS).as_posix() for p in sorted(REQUESTS.rglob("*.toml"))]
SHOWN = {"python": "candidate.py", "cuda": "kernel.cu"}


def shown(name: str) -> tuple[scaffold.Request, str, dict[str, str]]:
    """(request, README of its repo, the files of its first candidate as the README shows them)."""
    request = scaffold.parse_request((REQUESTS / name).read_bytes(), str(REQUESTS / name))
    text = content.readme(request)
    part = text.partition("### A candidate in CUDA C++")[2]
    return (
        request,
        text,
        {SHOWN[kind]: body for kind, body in re.findall(r"```(python|cuda)\n(.*?)```", part, re.DOTALL)},
    )


@pytest.mark.parametrize("name", CARDS)
def test_the_readme_shows_a_candidate_that_takes_the_contracts_tensors(name: str) -> None:
    """Breaks when the first code that is copied has other arguments than the contract or passes others."""
    request, text, files = shown(name)
    assert re.findall(r"@[A-Z]+@", text) == []
    tree = ast.parse(files["candidate.py"])
    entry = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
    assert [a.arg for a in entry.args.kwonlyargs] == list(request.contract.tensors)
    launch = next(n for n in ast.walk(entry) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    passed = launch.args[2]
    assert isinstance(passed, ast.Tuple)
    parameters = re.search(r"void (\w+)\((.*?)\) {", files["kernel.cu"], re.DOTALL)
    assert parameters is not None
    assert parameters[1] == request.contract.task.name
    names = [p.split()[-1] for p in parameters[2].split(",")]
    assert names == [*request.contract.tensors, "count"]
    assert len(passed.elts) == len(names)


def test_the_candidates_of_the_readmes_compile(tmp_path: Path) -> None:
    """Breaks when a dtype lacks its header, or becomes a type that C does not know."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH: the READMEs' first kernels were not compiled")
    kernels = [shown(name)[2]["kernel.cu"] for name in CARDS if "from_scratch" not in name]
    (tmp_path / "all.cu").write_text("\n".join(kernels))
    argv = [nvcc, "-cubin", "-arch=sm_90a", "-Xptxas=-v", "-o", str(tmp_path / "k.cubin"), str(tmp_path / "all.cu")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    compiled = re.findall(r"Compiling entry function '(\w+)'", done.stderr)
    assert sorted(compiled) == ["gemm_bias", "int8_scaled_mm", "softmax"]


def test_numbers_and_optional_tensors_of_a_first_candidate() -> None:
    """Breaks when a wide scalar is passed narrow, or an absent tensor as None, which a launch refuses."""
    request, _, files = shown("int8_scaled_mm/derived.toml")
    assert "build.i64(0) if bias is None else bias, out, build.i64(count)" in files["candidate.py"]
    assert "const void* bias" in files["kernel.cu"]
    tensors = {
        "count": Tensor(role="scalar", dtype="int64"), "eps": Tensor(role="scalar", dtype="bfloat16"),
        "p": Tensor(role="scalar", dtype="float64"), "k": Tensor(role="scalar", dtype="uint8"),
        "kept": Tensor(role="inout", dtype="float16", shape=("M",)),
    }  # fmt: skip
    odd = msgspec.structs.replace(request.contract, tensors=tensors)
    assert "(build.i64(count), eps, build.f64(p), k, kept, build.i64(count_))" in starter.candidate(odd)
    assert "count_ = kept.numel()" in starter.candidate(odd)
    declared = starter.kernel(odd).partition("(\n")[2].partition(") {")[0]
    assert [p.strip() for p in declared.split(",")] == [
        "long long count", "float eps", "double p", "int k", "__half* kept", "long long count_",
    ]  # fmt: skip


@pytest.mark.parametrize("request_", [scaffold.example(op="norm", gpu="cuda"), shown("softmax_bf16/request.toml")[0]])
def test_every_command_of_a_gpu_repos_readme_parses(request_: scaffold.Request) -> None:
    """Breaks when the README names a command or a flag that is not there, or misses one that a GPU task needs."""
    said = commands(content.readme(request_))
    assert [fault for line in said if (fault := parses(line))] == []
    assert {line.split()[1] for line in said} >= {"plan", "lock", "build", "try", "attempt", "bench", "job"}
