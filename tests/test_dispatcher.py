"""From a map to rules: which version serves which shapes, what refuses a rule, and what the generated code does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelpilot_helpers import contract, dispatcher
from kernelpilot_helpers.autotune import PerformanceMap
from kernelpilot_helpers.contract import Contract
from kernelpilot_helpers.dispatcher import Guard, Table, code
from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.executors import deploy
from tests import taskpy
from tests.tuning_sim import CASES, built, case, tuned

MATMUL = b"""format = "kernelpilot.contract"
version = 1
task = {name = "mm", op = "gemm"}
target = {gpu = "cpu"}
axes = {M = {var = [1, 4096]}, N = {values = [512, 1024, 2048, 4096]}, T = {expr = "M * 2"}}
constraints = ["M % 2 == 0"]
baseline = [{id = "b", fn = "baseline/base.py:run"}]
[tensors]
x = {role = "in", dtype = "f32", shape = ["M", "N"], align = 4}
bias = {role = "in", dtype = "f32", shape = ["N"], optional = true, align = 4}
wide = {role = "static", dtype = "f32", shape = ["T"], align = 4}
out = {role = "out", dtype = "flag:out_dtype", shape = ["M", "N"], align = 4}
"""
FLAGS = {"bias": False, "out_dtype": "float32"}


def shown(table: Table) -> list[tuple[str, str, list[tuple[str, int, int]]]]:
    """Rules as plain values."""
    return [(r.regime, r.version, [(g.axis, g.low, g.high) for g in r.guards]) for r in table.rules]


WIDE_BOX = [("M", 32, 64), ("N", 2048, 4096)]
TALL_BOX = [("M", 128, 256), ("N", 512, 1024)]


def test_each_regime_gets_its_best_version() -> None:
    """Breaks when one version that is best on the whole takes a regime where another is faster."""
    a = tuned("v001_a", {"w1": 2.0, "w2": 2.0, "t1": 1.2, "t2": 1.2, "h1": 1.2})
    b = tuned("v002_b", {"w1": 1.5, "w2": 1.5, "t1": 1.4, "t2": 1.4, "h1": 1.4})
    table = dispatcher.choose(built(a, b))
    assert sorted(shown(table)) == [("tall", "v002_b", TALL_BOX), ("wide", "v001_a", WIDE_BOX)]
    assert (table.kind, table.refused, table.fallback) == ("table", (), "baseline")
    assert "2.00x over w1 2.00x, w2 2.00x; next v002_b 1.50x" in {r.why for r in table.rules}
    assert dispatcher.check(table, built(a, b)) == []


def test_a_version_that_does_not_beat_the_baseline_serves_nothing() -> None:
    """Breaks when the best of bad versions is dispatched, or one that only may be faster."""
    slow = tuned("v001_a", {"w1": 0.95, "w2": 1.0, "t1": 1.3, "t2": 1.3, "h1": 1.3})
    unsure = tuned("v001_a", {"w1": 1.03, "w2": 1.03, "t1": 1.3, "t2": 1.3, "h1": 1.3}, half=0.05)
    for one in (slow, unsure):
        table = dispatcher.choose(built(one))
        assert shown(table) == [("tall", "v001_a", TALL_BOX)]
        assert [(r.regime, r.version) for r in table.refused] == [("wide", "baseline")]
        assert dispatcher.pick(table.rules, {"M": 32, "N": 4096}, {}) == "baseline"


def test_a_required_case_that_may_be_slower_refuses_a_version() -> None:
    """Breaks when a gain on one shape pays for a loss on another beyond the device's margin (10 % on a CPU)."""
    cases = (case("a", "r", 32, 512), case("b", "r", 64, 512), case("c", "r", 48, 512))
    mixed = tuned("v001_a", {"a": 3.0, "b": 3.0, "c": 0.85}, cases=cases)
    table = dispatcher.choose(built(mixed, cases=cases))
    assert shown(table) == []
    assert "not shown to be no slower than the baseline on c" in table.refused[0].why
    assert "no split on one axis serves c better" in table.refused[0].why
    assert table.kind == "trivial"


def test_a_clean_threshold_splits_a_regime() -> None:
    """Breaks when a regime with two optima is served by one version, or is cut where the cases are not."""
    cases = (case("a", "r", 16, 512), case("b", "r", 32, 512), case("c", "r", 64, 1024), case("d", "r", 128, 512))
    low = tuned("v001_low", {"a": 2.0, "b": 2.0, "c": 1.1, "d": 1.1}, cases=cases)
    high = tuned("v002_high", {"a": 1.5, "b": 1.5, "c": 3.0, "d": 3.0}, cases=cases)
    table = dispatcher.choose(built(low, high, cases=cases))
    assert sorted(shown(table), key=lambda r: r[1]) == [
        ("r", "v001_low", [("M", 16, 32), ("N", 512, 512)]),
        ("r", "v002_high", [("M", 64, 128), ("N", 512, 1024)]),
    ]
    assert all("split on M" in r.why for r in table.rules)
    assert table.kind == "trivial"
    assert dispatcher.check(table, built(low, high, cases=cases)) == []


def test_noise_does_not_split() -> None:
    """Breaks when two versions within each other's interval cut a regime in pieces."""
    a = tuned("v001_a", {"w1": 1.50, "w2": 1.48, "t1": 1.5, "t2": 1.5, "h1": 1.5}, half=0.02)
    b = tuned("v002_b", {"w1": 1.48, "w2": 1.49, "t1": 1.2, "t2": 1.2, "h1": 1.2}, half=0.02)
    assert sorted(shown(dispatcher.choose(built(a, b)))) == [
        ("tall", "v001_a", TALL_BOX), ("wide", "v001_a", WIDE_BOX),
    ]  # fmt: skip


def test_a_held_out_case_refuses_and_never_chooses() -> None:
    """Breaks when a rule is kept that a shape between the measured ones disproves, or when that shape votes."""
    base = {"w1": 1.5, "w2": 1.5, "t1": 1.5, "t2": 1.5}
    worse = dispatcher.choose(built(tuned("v001_a", {**base, "h1": 0.85})))
    assert [r.regime for r in worse.rules] == ["wide"]
    assert worse.refused[0].version == "v001_a" and "held-out case h1" in worse.refused[0].why
    a = tuned("v001_a", {**base, "h1": 1.0})
    b = tuned("v002_b", {**base, "t1": 1.4, "t2": 1.4, "h1": 9.0})
    assert {r.version for r in dispatcher.choose(built(a, b)).rules if r.regime == "tall"} == {"v001_a"}


def test_weights_choose_where_the_objective_is_total_time() -> None:
    """Breaks when a rare shape counts as much as a frequent one although W says otherwise."""
    cases = (case("a", "r", 16, 512, calls=1), case("b", "r", 20, 600, calls=100), case("c", "r", 18, 560, calls=100))
    rare = tuned("v001_rare", {"a": 9.0, "b": 1.20, "c": 1.20}, half=0.1, cases=cases)
    often = tuned("v002_often", {"a": 1.2, "b": 1.25, "c": 1.25}, half=0.1, cases=cases)
    by_time = dispatcher.choose(built(rare, often, cases=cases, objective="total_time"))
    assert "v002_often" in {r.version for r in by_time.rules}
    assert {r.version for r in dispatcher.choose(built(rare, often, cases=cases)).rules} != {
        r.version for r in by_time.rules
    }


def test_a_box_that_swallows_another_regimes_case_goes() -> None:
    """Breaks when the first rule that matches serves a case of another regime worse than its own choice."""
    cases = (case("a", "big", 16, 512), case("b", "big", 256, 4096), case("c", "mid", 64, 1024))
    one = tuned("v001_a", {"a": 2.0, "b": 2.0, "c": 0.7}, cases=cases)
    table = dispatcher.choose(built(one, cases=cases))
    assert shown(table) == []
    assert any("its box holds c of regime mid, where baseline is faster" in r.why for r in table.refused)
    fine = tuned("v002_b", {"a": 1.1, "b": 1.1, "c": 3.0}, cases=cases)
    both = dispatcher.choose(built(one, fine, cases=cases))
    assert dispatcher.pick(both.rules, {"M": 64, "N": 1024}, {}) == "v002_b"
    assert dispatcher.pick(both.rules, {"M": 65, "N": 1024}, {}) == "v001_a"


def test_flags_part_what_shapes_do_not() -> None:
    """Breaks when a version measured with a bias serves calls without one."""
    cases = (case("a", "r", 32, 512, flags={"bias": True}), case("b", "r", 32, 512, flags={"bias": False}))
    one = tuned("v001_a", {"a": 2.0, "b": 0.5}, cases=cases)
    table = dispatcher.choose(built(one, cases=cases))
    assert dispatcher.pick(table.rules, {"M": 32, "N": 512}, {"bias": True}) == "v001_a"
    assert dispatcher.pick(table.rules, {"M": 32, "N": 512}, {"bias": False}) == "baseline"
    assert dispatcher.pick(table.rules, {"M": 32, "N": 512}, {}) == "baseline"


def test_check_finds_a_wrong_table() -> None:
    """Breaks if check cannot fail: a rule that leaves what was measured, a foreign version, a losing one."""
    found = built(tuned("v001_a", {"w1": 1.5, "w2": 1.5, "t1": 0.5, "t2": 0.5, "h1": 0.5}))
    table = dispatcher.choose(found)
    rule = table.rules[0]
    open_end = msgspec.structs.replace(
        rule, guards=(Guard(axis="M", low=1, high=9999), Guard(axis="N", low=1, high=9999))
    )
    said = dispatcher.check(msgspec.structs.replace(table, rules=(open_end,)), found)
    assert "a shape outside W goes to v001_a" in said
    assert "case t1 goes to v001_a, which is worse there than the baseline" in said
    foreign = msgspec.structs.replace(table, rules=(msgspec.structs.replace(rule, version="v009_x"),))
    assert "case w1 goes to v009_x, which the map does not hold" in dispatcher.check(foreign, found)


VERSION = """\
from pathlib import Path

import helper

NAME = helper.NAME


def entry(*, x, wide, out, bias=None):
    assert (Path(__file__).parent / "helper.py").is_file()
    helper.served.append(NAME)
    out[...] = helper.FACTOR * x + (0 if bias is None else bias)
"""
BASE = """\
import helper


def run(*, x, wide, out, bias=None):
    helper.served.append("baseline")
    out[...] = 2 * x + (0 if bias is None else bias)
"""


def helper(name: str) -> bytes:
    return (
        f"import builtins\nNAME = {name!r}\nFACTOR = 2\nserved = builtins.__dict__.setdefault('_served', [])\n".encode()
    )


def mm() -> Contract:
    return contract.parse(MATMUL, at="contract.toml")


def mm_map(**more: Any) -> PerformanceMap:
    cases = tuple(msgspec.structs.replace(c, flags=FLAGS) for c in CASES)
    a = tuned("v001_a", {"w1": 2.0, "w2": 2.0, "t1": 1.2, "t2": 1.2, "h1": 1.2}, cases=cases)
    b = tuned("v002_b", {"w1": 1.5, "w2": 1.5, "t1": 1.4, "t2": 1.4, "h1": 1.4}, cases=cases)
    return built(a, b, cases=cases, **more)


def generated(found: PerformanceMap, made: Contract, **trees: Mapping[str, bytes]) -> dispatcher.Generated:
    table = dispatcher.choose(found)
    files: dict[str, Mapping[str, bytes]] = {
        "baseline": {"base.py": BASE.encode(), "helper.py": helper("baseline")},
        "v001_a": {"candidate.py": VERSION.encode(), "helper.py": helper("a")},
        "v002_b": {"candidate.py": VERSION.encode(), "helper.py": helper("b")},
        **trees,
    }
    runtime = {path.name: path.read_bytes() for path in deploy.source_dir().glob("*.py")}
    return dispatcher.generate(table, found, contract=made, trees=files, runtime=runtime)


def test_generated_files_are_listed_and_the_same_every_time() -> None:
    """Breaks when a file escapes the table's hashes, or when generating twice gives two dispatchers."""
    one = generated(mm_map(), mm())
    assert one.files == generated(mm_map(), mm()).files
    assert set(one.files) - set(one.table.files) == {"dispatch/table.json", "artifacts/tuning-decisions.md"}
    assert "dispatch/kernelpilot_runtime/build.py" in one.table.files
    assert "kernelpilot_helpers" not in one.files["dispatch/dispatch.py"].decode()


def test_an_axis_that_no_call_shows_is_refused() -> None:
    """Breaks when generated code guesses an axis."""
    text = MATMUL.replace(b'shape = ["M", "N"]', b'shape = ["M + 2", "N"]').replace(b'["T"]', b'["N"]')
    hidden = contract.parse(text, at="contract.toml")
    with pytest.raises(Refused, match="axis M is no size"):
        generated(mm_map(), hidden)


PROBE = """\
import json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import dispatch, builtins
assert not any(name.startswith("kernelpilot_helpers") for name in sys.modules)
answers = {}
for name, kwargs in json.loads(sys.argv[2])["choose"].items():
    answers[name] = dispatch.choose(**kwargs, flags={"bias": False, "out_dtype": "float32"})
def call(m, n, bias=False, dtype="float32", step=1, wide=None, extra=None):
    x = np.arange(m * n * step, dtype="float32").reshape(m, n * step)[:, ::step]
    out = np.zeros((m, n), dtype=dtype)
    more = {"bias": np.ones(n, dtype="float32")} if bias else {}
    more.update(extra or {})
    try:
        dispatch.entry(x=x, wide=np.zeros(wide or 2 * m, dtype="float32"), out=out, **more)
    except ValueError as fault:
        return f"ValueError: {fault}"
    right = bool((out == 2 * x + (1 if bias else 0)).all())
    bound, again = dispatch.bind(x=x, wide=np.zeros(2 * m, dtype="float32"), out=out, **more), np.zeros_like(out)
    bound(x=x, wide=None, out=again, **more)
    right = right and bool((again == out).all())
    return f"{builtins._served[-1]} {right}"
for name, kwargs in json.loads(sys.argv[2])["call"].items():
    answers[name] = call(**kwargs)
answers["modules"] = "helper" in sys.modules or "candidate" in sys.modules
print(json.dumps(answers))
"""


def asked(folder: Path, choose: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    """Answers of the generated code in a bare Python with numpy."""
    done = subprocess.run(
        [taskpy.NUMPY, "-I", "-c", PROBE, str(folder), json.dumps({"choose": choose, "call": call})],
        capture_output=True, text=True, check=False, timeout=120, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@taskpy.needs_numpy
def test_the_generated_code_does_what_the_table_says(tmp_path: Path) -> None:
    """Breaks when dispatch.py and table differ at a guard's edge, or when an odd call reaches a version."""
    made = generated(mm_map(), mm())
    for path, data in made.files.items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    edges = {
        f"{m} {n}": {"M": m, "N": n}
        for r in made.table.rules
        for m in (r.guards[0].low - 2, r.guards[0].low, r.guards[0].high, r.guards[0].high + 2)
        for n in (r.guards[1].low // 2, r.guards[1].low, r.guards[1].high, r.guards[1].high * 2)
        if n in (512, 1024, 2048, 4096)
    }
    calls: dict[str, dict[str, Any]] = {
        "wide": {"m": 32, "n": 2048},
        "tall": {"m": 128, "n": 512},
        "wide again": {"m": 64, "n": 2048},
        "outside": {"m": 30, "n": 2048},
        "odd": {"m": 33, "n": 2048},
        "no such N": {"m": 32, "n": 3000},
        "bias": {"m": 32, "n": 2048, "bias": True},
        "float64 out": {"m": 32, "n": 2048, "dtype": "float64"},
        "strided": {"m": 32, "n": 2048, "step": 2},
        "short": {"m": 32, "n": 2048, "wide": 63},
        "unknown": {"m": 32, "n": 2048, "extra": {"y": 1}},
    }
    said = asked(
        tmp_path / "dispatch", {**edges, "N beside": {"M": 64, "N": 3000}, "M odd": {"M": 33, "N": 2048}}, calls
    )
    assert len(edges) >= 16
    for name, axes in edges.items():
        assert said[name] == dispatcher.pick(made.table.rules, axes, FLAGS), name
    assert {said[name] for name in ("N beside", "M odd")} == {"baseline"}
    assert (said["wide"], said["tall"], said["wide again"]) == ("a True", "b True", "a True")
    for name in ("outside", "odd", "no such N", "bias", "float64 out", "strided"):
        assert said[name] == "baseline True", name
    assert said["short"] == "ValueError: tensor wide has shape (63,), the others say (64,)"
    assert said["unknown"] == "ValueError: unknown arguments: y"
    assert said["modules"] is False, "a version's own modules were left where another's would find them"


STAGED = """\
def prepare(case, static):
    made.append(case["axes"]["M"])
    return static["wide"][0] + 1


def entry(*, x, wide, out, state, bias=None):
    out[...] = state * x


made = []
"""
STAGED_PROBE = """\
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import dispatch
def tensors(m, n):
    x = np.ones((m, n), dtype="float32")
    return {"x": x, "wide": np.ones(2 * m, dtype="float32"), "out": np.zeros_like(x)}
a, b = tensors(32, 2048), tensors(128, 512)
state = dispatch.prepare(**a)
dispatch.entry(state=state, **a)
dispatch.entry(state=state, **a)
dispatch.entry(**a)
dispatch.entry(state=state, **b)
made = [dispatch._load(v).module.made for v in ("v001_a", "v002_b")]
print(made, a["out"].max(), b["out"].max())
"""


@taskpy.needs_numpy
def test_stages_are_prepared_once_where_the_caller_keeps_the_state(tmp_path: Path) -> None:
    """Breaks when a task with prepare() cannot be dispatched, or one version gets another's state."""
    made = contract.parse(MATMUL + b'[call]\nstages = ["prepare", "entry"]\n', at="contract.toml")
    staged = {"candidate.py": STAGED.encode()}
    files = generated(mm_map(), made, v001_a=staged, v002_b=staged).files
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    done = subprocess.run(
        [taskpy.NUMPY, "-I", "-c", STAGED_PROBE, str(tmp_path / "dispatch")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout == "[[32, 32], [128]] 2.0 2.0\n", done.stderr


GOOD = Path(__file__).parent / "golden/contract/good"


@pytest.mark.parametrize("path", sorted(GOOD.glob("*.toml")), ids=lambda p: p.stem)
def test_code_is_generated_for_every_contract_that_parses(path: Path) -> None:
    """Breaks when a contract of strides, flags, expressions or constraints gives code that is no Python."""
    made = contract.parse(path.read_bytes(), at=path.name)
    table = dispatcher.choose(built(tuned("v001_a")))
    if path.stem == "int8_scan":
        with pytest.raises(Refused, match="axis N is no size"):
            code.render(made, table)
        return
    text = code.render(made, msgspec.structs.replace(table, rules=()))
    if path.stem == "two_outputs":
        assert "    G = _size(_t, 'x', 2, 1) // 128\n    K = G * 128\n" in text
    compile(text, str(path), "exec")
    assert f"def choose(*, {', '.join(n for n, a in made.axes.items() if a.expr is None)}, flags=None)" in text
