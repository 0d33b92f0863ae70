"""Whole jobs through real processes: honest arms pass, and each dishonest or broken one is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelpilot_helpers.attempt.job import Limits, TimeSpec, VerifySpec
from kernelpilot_helpers.attempt.raw import Raw
from kernelpilot_helpers.executors.local import LocalLab
from kernelpilot_helpers.executors.task_python import find
from tests.jobs import BASELINE, C_CANDIDATE, KERNEL, WRAPPER, materialise, norm_case

ONE = (norm_case(4, 64),)
QUICK = VerifySpec(seeds=1, calls=2)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LocalLab:
    base = tmp_path_factory.mktemp("lab")
    return LocalLab(find(explicit=[sys.executable]), base / "device.lock", cache=base / "cache")


def run(lab: LocalLab, tmp_path: Path, **how: object) -> Raw:
    return lab.run(materialise(tmp_path, **{"cases": ONE, "verify": QUICK, **how}), tmp_path)


def python(body: str, *, head: str = "") -> dict[str, str]:
    """The honest C candidate with ``body`` put before (``{call}``: instead of) its call."""
    call = "LIB.kernel(p(x), p(residual), p(weight), p(out), x.shape[0], x.shape[1], eps)"
    text = WRAPPER.replace(call, body.replace("{call}", call) if "{call}" in body else body + "\n    " + call)
    return {"candidate.py": text.replace("import ctypes\n", "import ctypes\n" + head + "\n", 1), "kernel.c": KERNEL}


def bad(raw: Raw) -> set[str]:
    """Probes of B at which an output was far off."""
    return {c.probe for c in raw.checks if c.arm == "B" and c.where is not None}


def kinds(raw: Raw) -> set[str]:
    return {e.kind for e in raw.events if e.arm == "B"}


def test_an_honest_candidate_passes_every_probe(lab: LocalLab, tmp_path: Path) -> None:
    raw = run(
        lab, tmp_path, phases=("audit", "verify", "time"), cases=(norm_case(4, 64), norm_case(1, 33, timed=False)),
        verify=VerifySpec(seeds=3, calls=3), time=TimeSpec(pairs=2, first_pair=1, blocks=6, sample_us=50.0),
    )  # fmt: skip
    assert (raw.died, raw.events, bad(raw)) == (None, (), set())
    assert {c.probe for c in raw.checks} == {"call", "repeat", "element", "bitwise", "timed"}
    assert [b.ok and b.build_id_ok for b in raw.builds] == [True, True]
    (library,) = raw.builds[1].artifacts
    assert raw.builds[1].loaded == ((library.path, library.sha256),)
    assert library.normal_sha256 != library.sha256
    assert [(s.pair, s.first_arm, s.arm, len(s.ns)) for s in raw.samples] == [
        (1, "B", "B", 6), (1, "B", "A", 6), (2, "A", "A", 6), (2, "A", "B", 6),
    ]  # fmt: skip
    assert all(w > n > 0 for s in raw.samples for n, w in zip(s.ns, s.wall_ns, strict=True))
    assert {c.case_id for c in raw.checks if c.probe == "timed"} == {"r4_n64"}
    assert {c.regime for c in raw.checks} >= {"gen", "small", "large"}


def test_mutants_fail_where_they_must_and_the_baseline_passes(lab: LocalLab, tmp_path: Path) -> None:
    raw = run(lab, tmp_path, phases=("audit",), cases=(norm_case(8, 64), norm_case(1, 64)))
    by = {(m.case_id, m.name): m for m in raw.mutants}
    for (case_id, name), m in by.items():
        worst = max((max(s.max, s.row_ratio, s.unwritten) for s in m.outputs.values()), default=0)
        if m.kind == "must_pass":
            assert m.applicable and worst < 16, (case_id, name)
        elif m.applicable:
            assert worst >= 8, (case_id, name)
    assert not by["r1_n64", "permuted"].applicable
    assert not by["r1_n64", "last_row"].applicable
    assert {n for c, n in by if n.startswith("dropped:")} == {"dropped:x", "dropped:residual", "dropped:weight"}
    assert by["r8_n64", "last_k_tile"].applicable


def test_the_same_source_in_two_places_is_the_same_program(lab: LocalLab, tmp_path: Path) -> None:
    renamed = {"candidate.py": '"""Another docstring."""\n# a comment\n' + WRAPPER, "kernel.c": "/* c */" + KERNEL}
    raw = run(lab, tmp_path, phases=(), a=C_CANDIDATE, b=renamed)
    a, b = raw.builds
    assert a.binary_id == b.binary_id
    assert a.artifacts[0].sha256 != b.artifacts[0].sha256  # the embedded build keys differ
    raw = run(
        lab, tmp_path / "2", phases=(), a=C_CANDIDATE, b={**C_CANDIDATE, "kernel.c": KERNEL.replace("1.0f /", "1.5f /")}
    )
    assert raw.builds[0].binary_id != raw.builds[1].binary_id


BY_POINTER = python("""if DONE.setdefault(p(x), 0):
        return
    DONE[p(x)] = 1""", head="DONE = {}")  # fmt: skip
BY_FINGERPRINT = python("""key = (float(x[0, 0]), float(residual[0, 0]), float(x[-1, -1]))
    if key in SEEN:
        out[...], residual[...] = SEEN[key]
        return
    {call}
    SEEN[key] = out.copy(), residual.copy()""", head="SEEN = {}")  # fmt: skip
TAIL = {**C_CANDIDATE, "kernel.c": KERNEL.replace("for (j = 0; j < n; j++) oi", "for (j = 0; j < n - 8; j++) oi")}


def test_a_memo_by_pointer_fails_on_new_content(lab: LocalLab, tmp_path: Path) -> None:
    assert "repeat" in bad(run(lab, tmp_path, b=BY_POINTER))


def test_a_memo_by_fingerprint_fails_on_one_changed_element(lab: LocalLab, tmp_path: Path) -> None:
    assert bad(run(lab, tmp_path, b=BY_FINGERPRINT)) >= {"element"}


def test_an_unwritten_tail_is_named_by_its_columns(lab: LocalLab, tmp_path: Path) -> None:
    raw = run(lab, tmp_path, b=TAIL)
    found = [c for c in raw.checks if c.arm == "B" and c.output == "out" and c.probe == "call"]
    assert found and all(c.where and c.where.bad_cols == ((56, 64),) for c in found)
    assert all(c.stats and c.stats.unwritten == 32 for c in found)


LAUNCH = """import threading
import time"""
WATCHED = {
    "mutates": (python("x[0, 0] = 1.0"), "cheat.input_mutated"),
    "overruns": (
        {**C_CANDIDATE, "kernel.c": KERNEL.replace("float s = ", "o[rows * n] = 1.0f; float s = ")},
        "memory.redzone",
    ),
    "spawns": (python("os.system('true')", head="import os"), "cheat.subprocess"),
    "late": (
        python("threading.Thread(target=spin, daemon=True).start()", head=LAUNCH + "\ndef spin():\n    while 1: pass"),
        "cheat.thread",
    ),
    "patches": (python("time.perf_counter_ns = lambda: 0", head="import time"), "cheat.patched"),
    "peeks": (
        python("open(os.path.join(HERE, '..', '..', 'oracle', 'reference.py')).read()",
               head="import os\nHERE = os.path.dirname(__file__)"),
        "cheat.reads_other_arm",
    ),
    "uses_numpy": (python("numpy.copyto(out, numpy.add(x, residual))", head="import numpy"), "policy.library_call"),
    "dials": (
        python("socket.socket().connect_ex(('127.0.0.1', 9))", head="import socket"), "cheat.network",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WATCHED))
def test_what_a_candidate_does_beside_computing_is_an_event(lab: LocalLab, tmp_path: Path, name: str) -> None:
    source, kind = WATCHED[name]
    raw = run(lab, tmp_path, b=source)
    assert kind in kinds(raw), (raw.events, raw.died)
    assert raw.builds[0].ok


def test_a_copied_library_is_foreign(lab: LocalLab, tmp_path: Path) -> None:
    head = (
        "import glob, shutil\nSO = shutil.copy(glob.glob('/lib/*/libm.so.6')[0], 'mine.bin')\nctypes.CDLL('./mine.bin')"
    )
    if not list(Path("/lib").glob("*/libm.so.6")):
        pytest.skip("no libm to copy on this machine")
    assert "cheat.foreign_binary" in kinds(run(lab, tmp_path, b=python("pass", head=head)))


FORGE = """for fd in range(3, 1000):
        try:
            os.write(fd, b'{"ns": 1}' + bytes([10]))
        except OSError:
            pass"""


def test_a_forged_reply_ends_the_arm(lab: LocalLab, tmp_path: Path) -> None:
    raw = run(lab, tmp_path, b=python(FORGE, head="import os"))
    assert "cheat.channel" in kinds(raw)
    assert raw.died is not None and (raw.died.arm, raw.died.stage) == ("B", "protocol")


BROKEN = {
    "segfault": (python("ctypes.string_at(0)"), "call", "SIGSEGV", False, None, ""),
    "hang": (python("while True: pass"), "call", None, True, None, "no reply"),
    "leaves": (python("os._exit(7)", head="import os"), "call", None, False, 7, ""),
    "raises": (python("raise ValueError('my words')"), "call", None, False, None, "my words"),
    "exits": (python("sys.exit(3)", head="import sys"), "call", None, False, None, "SystemExit"),
    "no_compile": ({**C_CANDIDATE, "kernel.c": "this is not C"}, "build", None, False, None, "kernel.c:1"),
    "no_import": (python("pass", head="import no_such_module"), "load", None, False, None, "no_such_module"),
    "no_entry": ({"candidate.py": "x = 1"}, "load", None, False, None, "entry"),
    "binary": ({**C_CANDIDATE, "kernel.so": "x"}, "build", None, False, None, "kernel.so"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_arm_is_a_death_with_its_reason_and_the_rest_is_kept(lab: LocalLab, tmp_path: Path, name: str) -> None:
    source, stage, signal, timeout, code, words = BROKEN[name]
    raw = run(lab, tmp_path, b=source, limits=Limits(call_s=1.0, build_s=30.0, wall_s=60.0))
    died = raw.died
    assert died is not None
    assert (died.arm, died.stage, died.signal, died.timeout, died.exit) == ("B", stage, signal, timeout, code)
    assert words in died.log
    assert raw.builds[0].ok
    if stage in ("build", "load"):
        assert not raw.builds[1].ok
    if name == "binary":
        assert "build.binary_in_source" in kinds(raw)


def test_a_candidate_that_varies_is_noted_not_failed(lab: LocalLab, tmp_path: Path) -> None:
    raw = run(
        lab, tmp_path, b=python("{call}\n    N[0] += 1\n    out[0, 0] *= 1 + (N[0] % 2) * 2.0**-23", head="N = [0]")
    )
    notes = [c.note for c in raw.checks if c.arm == "B" and c.probe == "bitwise" and c.output == "out"]
    assert "differ between two calls" in notes[0]
    assert not [c for c in raw.checks if c.arm == "A" and c.note]


def test_prepare_gets_static_tensors_only_and_its_state_comes_back(lab: LocalLab, tmp_path: Path) -> None:
    source = {
        "candidate.py": """
def prepare(case, static):
    assert sorted(static) == ["weight"] and case["axes"] == {"R": 4, "N": 64}
    return static["weight"] * 1.0


def entry(*, x, residual, weight, eps, out, state):
    residual[...] = x + residual
    mean = (residual * residual).sum(-1) / residual.shape[-1]
    out[...] = residual / ((mean + eps) ** 0.5).reshape(-1, 1) * state
"""
    }
    raw = run(lab, tmp_path, b=source, stages=("prepare", "entry"), library_calls=True)
    assert (raw.died, raw.events, bad(raw)) == (None, (), set())


def test_a_wrong_reference_is_the_oracles_death(lab: LocalLab, tmp_path: Path) -> None:
    job = materialise(tmp_path, cases=ONE, verify=QUICK)
    (tmp_path / "oracle" / "reference.py").write_text("def ref(*, x, residual, weight, eps):\n    return x\n")
    raw = lab.run(job, tmp_path)
    assert raw.died is not None and (raw.died.arm, raw.died.stage) == ("", "oracle")
    assert "returned 1 tensors" in raw.died.log


def test_a_third_arm_is_the_yardstick_and_is_timed_too(lab: LocalLab, tmp_path: Path) -> None:
    raw = run(
        lab, tmp_path, a=C_CANDIDATE, z=BASELINE, phases=("verify", "time"),
        time=TimeSpec(pairs=2, blocks=4, sample_us=20.0),
    )  # fmt: skip
    assert raw.died is None and not raw.events
    verified = [c for c in raw.checks if c.probe == "call"]
    assert {c.arm for c in verified} == {"B"}
    assert any(c.stats is not None and c.stats.base_rms > 0 for c in verified)
    assert {(s.arm, len(s.ns)) for s in raw.samples} == {("A", 4), ("B", 4), ("Z", 2)}
    timed = [c for c in raw.checks if c.probe == "timed" and c.arm == "A" and c.output == "out"]
    assert timed and all(c.stats and c.stats.base_rms > 0 for c in timed)
