"""The built-in GPU tasks, their templates and binding, and the example requests: all that can be seen without a GPU."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelpilot_helpers import contract, proc, scaffold
from kernelpilot_helpers.attempt.resolve import resolve
from kernelpilot_helpers.cli import group
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.scaffold import binding, content
from tests import taskpy

ROOT = Path(__file__).resolve().parents[1]
REQUESTS = ROOT / "examples/requests"
TOOL = Path("/opt/kp/bin/kernelpilot")
OPS = ["norm", "gemm"]
FLAT = {
    "norm": {
        (1, 4096): "decode", (16, 4096): "decode", (128, 4096): "decode", (512, 8192): "prefill",
        (2048, 4096): "prefill", (4096, 8192): "prefill", (16384, 4096): "prefill", (16384, 8192): "prefill",
    },
    "gemm": {
        (1, 6144, 4096): "decode", (16, 6144, 4096): "decode", (64, 6144, 4096): "decode", (64, 4096, 4096): "decode",
        (256, 4096, 4096): "prefill", (1024, 6144, 4096): "prefill", (4096, 6144, 4096): "prefill",
        (4096, 4096, 4096): "prefill",
    },
}  # fmt: skip


def made(op: str) -> scaffold.Request:
    return scaffold.example(op=op, gpu="cuda")


@pytest.mark.parametrize("op", OPS)
def test_a_gpu_task_has_its_eight_timed_cases_and_every_edge_resolves(op: str) -> None:
    """Breaks when a size is lost, or a generated edge leaves what the contract allows."""
    request = made(op)
    timed = [c for c in request.cases if contract.timed(c)]
    assert {tuple(c.axes.values()): c.regime for c in timed} == FLAT[op]
    jobs = [resolve(request.contract, c) for c in (*request.cases, *contract.edges(request.contract, request.cases))]
    assert sum(j.edge for j in jobs) >= 5
    assert sum(j.held_out for j in jobs) == 2


def test_the_contracts_say_what_the_tasks_are_about() -> None:
    """Breaks when the norm is no longer in place, a weight no longer cold, or the GEMM no longer exact."""
    norm, gemm = made("norm").contract, made("gemm").contract
    assert {n: (t.role, t.dtype, t.residency) for n, t in norm.tensors.items()} == {
        "x": ("in", "bfloat16", "hot"),
        "residual": ("inout", "bfloat16", "hot"),
        "weight": ("static", "bfloat16", "cold"),
        "out": ("out", "bfloat16", "hot"),
        "eps": ("scalar", "float32", None),
    }
    assert gemm.numerics.class_ == "exact_int32"
    assert gemm.policy.library_calls is False
    assert (gemm.tensors["b"].stride, gemm.tensors["b"].residency, gemm.tensors["bias"].optional) == (
        (1, "K"),
        "cold",
        True,
    )


def test_another_family_is_refused_with_what_there_is() -> None:
    """Breaks when an op without a built-in task falls through to another one."""
    with pytest.raises(Refused, match=r"op 'moe' here, only: norm on a CPU, norm on a GPU, gemm on a GPU"):
        scaffold.example(op="moe", gpu="cuda")
    with pytest.raises(Refused) as caught:
        scaffold.example(task="t", op="gemm")
    assert caught.value.fix.startswith("kernelpilot scaffold DIR --device cuda --op gemm")


@pytest.mark.parametrize("op", OPS)
def test_the_repo_is_whole_and_its_readme_lists_each_template(tmp_path: Path, op: str) -> None:
    """Breaks when a template is not committed, not listed, or the first command copies a folder that is not there."""
    repo = scaffold.make(made(op), tmp_path / "repo", kernelpilot=TOOL).path
    assert scaffold.check(repo) == []
    assert proc.dirty(repo) == []
    text = (repo / "README.md").read_text()
    folders = sorted(p.name for p in (repo / "templates").iterdir())
    assert re.findall(r"^\| `templates/(\w+)` \| \S", text, re.MULTILINE) == folders
    for source in re.findall(r"^cp -r (\S+) ", text, re.MULTILINE):
        assert (repo / source / "candidate.py").is_file()
    assert re.findall(r"@[A-Z]+@", text) == []
    # the lock covers neither: they may be edited and thrown away
    listed = proc.git_out(repo, "ls-files").splitlines()
    assert not [p for p in contract.locked_paths(made(op).contract, listed) if p.startswith(("templates", "bindings"))]


def test_a_cpu_repo_has_no_gpu_in_it(tmp_path: Path) -> None:
    """Breaks when the CPU example gets templates that cannot run, or its README speaks of a GPU."""
    repo = scaffold.make(scaffold.example(task="t"), tmp_path / "repo", kernelpilot=TOOL).path
    assert not (repo / "templates").exists()
    assert [p.name for p in (repo / "bindings").iterdir()] == ["README.md"]
    text = (repo / "README.md").read_text()
    assert "GPU" not in text
    assert re.findall(r"@[A-Z]+@", text) == []


@pytest.mark.parametrize("op", OPS)
def test_each_template_takes_the_contracts_tensors(op: str) -> None:
    """Breaks when an entry has other arguments than the contract, or reads a file that its folder lacks."""
    request = made(op)
    files = content.template_files(request)
    entries = {p: d for p, d in files.items() if p.endswith("/candidate.py")}
    assert len(entries) >= 2
    optional = {name for name, t in request.contract.tensors.items() if t.optional}
    for path, data in entries.items():
        tree = ast.parse(data)
        entry = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "entry")
        names = [a.arg for a in entry.args.kwonlyargs]
        assert sorted(names) == sorted(request.contract.tensors), path
        given = {n for n, d in zip(names, entry.args.kw_defaults, strict=True) if d is not None}
        assert given == optional, path
        folder = path.rpartition("/")[0]
        named = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        for source in [n for n in named if re.fullmatch(r"\w+\.(cu|cpp)", n)]:
            text = files[f"{folder}/{source}"].decode()
            for header in re.findall(r'#include "(.+)"', text):
                assert f"{folder}/{header}" in files, path


@pytest.mark.parametrize("op", OPS)
def test_each_kernel_that_a_candidate_launches_is_compiled(tmp_path: Path, op: str) -> None:
    """Breaks when a template no longer compiles for Hopper, or spills registers."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH: the CUDA templates were not compiled")
    for path, data in content.template_files(made(op)).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    source = tmp_path / "templates/cuda_nvrtc/kernel.cu"
    argv = [nvcc, "-cubin", "-arch=sm_90a", "-Xptxas=-v", "-Werror=all-warnings", "-o", str(tmp_path / "k.cubin")]
    done = subprocess.run([*argv, str(source)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    compiled = set(re.findall(r"Compiling entry function '(\w+)'", done.stderr))
    assert compiled == KERNELS[op]
    assert set(re.findall(r"(\d+) bytes spill stores", done.stderr)) == {"0"}
    shared = [int(n) for n in re.findall(r"(\d+) bytes smem", done.stderr)]
    assert max(shared) <= 48 * 1024  # static shared memory ends there


KERNELS = {
    "norm": {"add_rmsnorm_v1", "add_rmsnorm_v2", "add_rmsnorm_v4", "add_rmsnorm_any"},
    "gemm": {f"int8_mm_{size}_{dtype}" for size in ("few", "some", "many", "any") for dtype in ("bf16", "f16")},
}


def test_the_extension_launches_what_the_kernels_file_has(tmp_path: Path) -> None:
    """Breaks when the launcher and the shared kernels drift apart."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH: the extension's launcher was not compiled")
    files = content.template_files(made("norm"))
    for name in ("kernel.cu", "launch.cu"):
        (tmp_path / name).write_bytes(files[f"templates/cuda_extension/{name}"])
    argv = [nvcc, "-c", "-arch=sm_90a", "-o", str(tmp_path / "launch.o"), str(tmp_path / "launch.cu")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


NUMBERS = """
import importlib.util, sys, warnings
warnings.filterwarnings("ignore")
import torch
root = sys.argv[1]
def load(path, name):
    spec = importlib.util.spec_from_file_location("m" + str(len(path)), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
norm, gemm = root + "/add_rmsnorm", root + "/int8_scaled_mm"
bf, nan = torch.bfloat16, float("nan")
def near(got, want):
    got, want = torch.as_tensor(got).double(), torch.as_tensor(want).double()
    assert torch.allclose(got, want, rtol=2**-7, atol=0), (got, want)
# (3, 4): mean square 12.5, with eps 13; 3 / sqrt(13) = 0.83205, 4 / sqrt(13) * 10 = 11.09400
case = lambda t: dict(x=torch.tensor([[1., 2.]], dtype=t), residual=torch.tensor([[2., 2.]], dtype=t),
                      weight=torch.tensor([1., 10.], dtype=t))
total, out = load(norm + "/reference.py", "ref")(**case(torch.float64), eps=0.5)
near(total, [[3., 4.]]); near(out, [[0.8320503, 11.0940039]])
for path in ("/baseline/candidate.py", "/variants/torch_ops/candidate.py"):
    k = case(bf) | {"out": torch.full((1, 2), nan, dtype=bf), "eps": 0.5}
    assert load(norm + path, "entry")(**k) is None
    near(k["residual"], [[3., 4.]]); near(k["out"], [[0.8320503, 11.0940039]])
# rows (1, 2) and (3, -4) by columns (1, 1) and (2, 0): (3, 2), (-1, 6); x scale_a (.5, 2) x scale_b (1, 4) + (1, -1)
ints = dict(a=torch.tensor([[1, 2], [3, -4]], dtype=torch.int8), b=torch.tensor([[1, 1], [2, 0]], dtype=torch.int8).t())
scales = dict(scale_a=torch.tensor([.5, 2.]), scale_b=torch.tensor([1., 4.]))
bias = torch.tensor([1., -1.])
ref, entry = load(gemm + "/reference.py", "ref"), load(gemm + "/baseline/candidate.py", "entry")
want = {True: [[2.5, 3.], [-1., 47.]], False: [[1.5, 4.], [-2., 48.]]}
for biased, values in want.items():
    extra = {"bias": bias.double()} if biased else {}
    near(ref(**ints, **{n: s.double() for n, s in scales.items()}, **extra), values)
    for kind in (bf, torch.float16):
        out = torch.full((2, 2), nan, dtype=kind)
        entry(**ints, **scales, out=out, **({"bias": bias.to(kind)} if biased else {}))
        near(out, values)
# a size that torch's int8 product takes, few rows, padded; and the extreme values, exactly
for rows in (1, 17):
    a = torch.full((rows, 64), -127, dtype=torch.int8); b = torch.full((16, 64), 127, dtype=torch.int8).t()
    out = torch.full((rows, 16), nan, dtype=bf)
    entry(a=a, b=b, scale_a=torch.full((rows,), 2.**-10), scale_b=torch.full((16,), 2.**-10), out=out)
    near(out, torch.full((rows, 16), -127 * 127 * 64 / 2**20))
print("all right")
"""


@taskpy.needs_torch
def test_references_baselines_and_the_torch_template_agree_with_hand_made_figures() -> None:
    """Breaks when the built-in tasks compute something else, round elsewhere, or forget bias, scale, eps or weight."""
    folder = ROOT / "lib/kernelpilot_helpers/scaffold/templates/cuda"
    done = subprocess.run(
        [taskpy.TORCH, "-c", NUMBERS, str(folder)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "all right\n", done.stderr


def test_the_operators_schema_says_what_is_written() -> None:
    """Breaks when torch would think an output unchanged, or an optional tensor required."""
    assert binding.schema(made("norm").contract) == (
        "(Tensor x, Tensor(a1!) residual, Tensor weight, Tensor(a3!) out, float eps) -> ()"
    )
    assert binding.schema(made("gemm").contract) == (
        "(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, Tensor? bias, Tensor(a5!) out) -> ()"
    )


OPERATOR = """
import sys, warnings
warnings.filterwarnings("ignore")
import torch
sys.path.insert(0, sys.argv[1])
import bindings.torch_op
op = torch.ops.kernelpilot.int8_scaled_mm
x, out = torch.ones(2), torch.zeros(2)
try:
    op(x, x, x, x, None, out)
except ImportError as fault:
    print("kernelpilot dispatch" in str(fault))
open(sys.argv[1] + "/dispatch/dispatch.py", "w").write("def entry(*, out, **rest): out.fill_(len(rest))\\n")
before = out._version
op(x, x, x, x, None, out)
print(out.tolist(), out._version > before)
op(a=x, b=x, scale_a=x, scale_b=x, bias=x, out=out)
print(out.tolist())
"""


@taskpy.needs_torch
def test_the_binding_calls_the_dispatcher(tmp_path: Path) -> None:
    """Breaks when torch refuses the schema, an absent bias is passed on, or the outputs are not the caller's."""
    repo = scaffold.make(made("gemm"), tmp_path / "repo", kernelpilot=TOOL).path
    done = subprocess.run(
        [taskpy.TORCH, "-c", OPERATOR, str(repo)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "True\n[4.0, 4.0] True\n[5.0, 5.0]\n", done.stderr


def called(*argv: str) -> tuple[int, str]:
    done = CliRunner().invoke(group, ["scaffold", *argv])
    return done.exit_code, done.output


def test_the_commands_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when --device cuda needs a name, --gpu is lost, or two options that contradict each other are taken."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for argv, name, gpu in (
        (("--device", "cuda"), "add_rmsnorm", "cuda"),
        (("--gpu", "H200", "--op", "gemm", "--task", "mine"), "mine", "H200"),
    ):
        place = tmp_path / name
        code, said = called(str(place), *argv)
        assert code == 0, said
        kept = contract.parse((place / "contract.toml").read_bytes(), at="c")
        assert (kept.task.name, kept.target.gpu) == (name, gpu)
    wrong: tuple[tuple[tuple[str, ...], str], ...] = (
        ((), "give one of"),
        (("--device", "cpu"), "give one of"),
        (("--device", "cpu", "--gpu", "H200"), "contradict"),
        (("--request", "r.toml", "--device", "cuda"), "names its own target"),
        (("--request", "r.toml", "--task", "t"), "give one of"),
    )
    for options, why in wrong:
        code, said = called(str(tmp_path / "no"), *options)
        assert code != 0
        assert why in said, (options, said)
        assert not (tmp_path / "no").exists()


CARDS = [p.relative_to(REQUESTS).as_posix() for p in sorted(REQUESTS.rglob("*.toml"))]


@pytest.mark.parametrize("name", CARDS)
def test_an_example_request_makes_a_whole_repo(tmp_path: Path, name: str) -> None:
    """Breaks when an example no longer parses, leaves a stub, or loses one of its baselines."""
    path = REQUESTS / name
    request = scaffold.parse_request(path.read_bytes(), str(path))
    done = scaffold.make(request, tmp_path / "repo", kernelpilot=TOOL)
    assert done.todo == ()
    assert scaffold.stubs(done.path, request.contract) == []
    assert scaffold.check(done.path) == []
    for one in request.contract.baseline:
        assert (done.path / one.fn.partition(":")[0]).is_file()
    text = (done.path / "README.md").read_text()
    assert "templates/" not in text
    assert "On the GPU" in text


def test_the_requests_say_what_their_cards_say() -> None:
    """Breaks when an example drifts from the card that it is for."""
    read = {n: scaffold.parse_request((REQUESTS / n).read_bytes(), str(REQUESTS / n)) for n in CARDS}
    derived, scratch = (read[f"int8_scaled_mm/{n}.toml"] for n in ("derived", "from_scratch"))
    for one in (derived, scratch):
        assert (one.contract.target.gpu, one.contract.task.api) == ("H100", "sgl_kernel.int8_scaled_mm")
        assert [(b.id, b.requires) for b in one.contract.baseline] == [("sgl_kernel", ("sgl-kernel",)), ("int_mm", ())]
    assert derived.contract.policy.source == "derived"
    assert (scratch.contract.policy.source, scratch.contract.policy.language) == ("from_scratch", "cuda")
    assert derived.cases == scratch.cases
    short = read["gemm_fp16_bias/request.toml"]
    assert short.contract.target.speedup == 1.10
    assert [c.axes for c in short.cases if contract.timed(c)] == [{"M": 64, "N": 2048, "K": 2048}]
    assert short.contract.tensors["bias"].dtype == "float16"
    softmax = read["softmax_bf16/request.toml"].contract.tensors
    assert [(t.dtype, t.residency) for t in softmax.values()] == [("bfloat16", "cold"), ("bfloat16", "hot")]
    # what a missing key would mean is not left to the reader
    assert {n: 'graph = "may"' in (REQUESTS / n).read_text() for n in CARDS} == dict.fromkeys(CARDS, True)
    assert len(read) == 4


def test_a_baseline_that_the_folder_lacks_becomes_a_stub(tmp_path: Path) -> None:
    """Breaks when the second of two baselines is forgotten: the lock would find no file."""
    text = (REQUESTS / "int8_scaled_mm/derived.toml").read_text()
    (tmp_path / "baseline").mkdir()
    shutil.copy(REQUESTS / "int8_scaled_mm/baseline/torch_ops.py", tmp_path / "baseline")
    request = scaffold.parse_request(text.encode(), str(tmp_path / "r.toml"))
    assert content.todo(request) == ("reference.py", "baseline/sgl.py")
    files = content.files(request)
    assert b"write the baseline" in files["baseline/sgl.py"]
    assert b"_int_mm" in files["baseline/torch_ops.py"]
