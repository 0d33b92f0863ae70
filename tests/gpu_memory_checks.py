"""Run by a Python with torch (test_runtime_gpu_memory.py): the GPU's arena, contents and probes on torch's CPU tensors.

Every ``check_*`` function is one test; ``main`` prints ``{name: traceback or ""}`` as JSON.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lib"))

from kernelpilot_helpers.runtime import gpu_arena, odd, stats, verify
from kernelpilot_helpers.runtime.arena import Arena, open_arena
from kernelpilot_helpers.runtime.content import Contents
from kernelpilot_helpers.runtime.frames import CudaFrame, TorchFrame
from kernelpilot_helpers.runtime.gpu_arena import GpuArena, multilinear
from kernelpilot_helpers.runtime.oracle import Oracle
from kernelpilot_helpers.runtime.session import Session
from kernelpilot_helpers.runtime.spec import Arm, Case, JobError, Tensor
from kernelpilot_helpers.runtime.uses import Uses


class Device:
    """Memory of this process in place of a GPU's."""

    torch_device = "cpu"
    full = False

    def allocate(self, nbytes: int) -> Any:
        import torch

        if self.full:
            raise type("OutOfMemoryError", (RuntimeError,), {})("full")
        return SimpleNamespace(tensor=torch.zeros(nbytes, dtype=torch.uint8), handle="00", close=lambda: None)

    def synchronize(self) -> None:
        pass


def tensor(name: str, role: str, shape: tuple[int, ...] = (2, 8), **over: Any) -> Tensor:
    stride = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    known = {
        "dtype": "float32", "shape": shape, "stride": stride, "offset": 0, "align": 64,
        "gen": "normal(0,1)", "value": None,
    }  # fmt: skip
    return Tensor(name=name, role=role, **{**known, **over})


CASE = Case(
    case_id="c", axes={}, flags={}, timed=True,
    tensors=(
        tensor("x", "in"), tensor("q", "in", (3, 5), dtype="int8", gen="integers(-100,100)", offset=1),
        tensor("y", "inout", stride=(32, 2), dtype="bfloat16"), tensor("w", "static", (8,)),
        tensor("out", "out", dtype="bfloat16"), tensor("gaps", "out", (2, 4), stride=(8, 2)),
        tensor("mask", "out", (5,), dtype="bool"),
    ),
)  # fmt: skip


class Bench:
    """Four slots and two copies of the statics, filled with contents 1 to 4."""

    def __init__(self, kind: str = "gpu") -> None:
        self.frame = CudaFrame(Device()) if kind == "gpu" else TorchFrame()
        self.contents = Contents(self.frame, CASE)
        self.arena: Any = (
            GpuArena(self.frame, CASE, 4, 2, device=Device()) if kind == "gpu" else Arena(self.frame, CASE, 4, 2)
        )
        self.arena.fill_static(self.contents)
        self.arena.fill_all(self.contents, range(1, 5))
        self.held = {s: s + 1 for s in range(4)}

    def region(self, slot: int, name: str) -> Any:
        return next(r for r in self.arena.layout.slots[slot] if r.tensor.name == name)

    def view(self, slot: int, name: str) -> Any:
        return self.arena._view(self.region(slot, name))

    def byte(self, at: int) -> None:
        """Write one byte, whatever was there becomes another."""
        if isinstance(self.arena, GpuArena):
            self.arena._flat[at] ^= 1
        else:
            self.arena._map[at] ^= 1

    def call(self, *slots: int) -> None:
        for slot in slots:
            for name in ("out", "gaps", "y"):
                self.view(slot, name).fill_(1.0)

    def faults(self, *ran: int) -> Any:
        inside = {s: k for s, k in self.held.items() if s in ran}
        outside = {s: k for s, k in self.held.items() if s not in ran}
        return self.arena.faults(inside, outside, self.contents)


def _equal(a: Any, b: Any) -> bool:
    return tuple(a.shape) == tuple(b.shape) and bool((a == b).all())


def check_one_kernel_fills_every_slot_as_slot_by_slot_does() -> None:
    """Breaks when the gather reads another window than the oracle's own view of that call."""
    for limit in (1 << 20, 1):  # gathered, and slot by slot
        gpu_arena.GATHER_MAX = limit
        try:
            for ks in (range(3, 7), [9, 2, 65522, 4]):
                b = Bench()
                b.arena.fill_all(b.contents, ks)
                for slot, k in enumerate(ks):
                    for name, value in b.contents.inputs(k).items():
                        if name != "w":
                            assert _equal(b.view(slot, name), value), (limit, ks, name)
                    assert b.view(slot, "out").isnan().all()
                whole = b.arena._flat.clone()
                for slot, k in enumerate(ks):
                    b.arena.fill(slot, b.contents, k)
                assert _equal(b.arena._flat, whole)
        finally:
            gpu_arena.GATHER_MAX = 1 << 20


def check_contents_differ_by_call_and_stay_within_their_buffer() -> None:
    contents = Contents(CudaFrame(Device()), CASE)
    seen = {bytes(contents.window(CASE.tensor("x"), k).tolist()) for k in range(300)}
    assert len(seen) == 300
    last = max(range(70000), key=contents.index)
    assert contents.index(last) == 65520
    assert len(contents.window(CASE.tensor("q"), last)) == 15
    assert {t: contents.grain(CASE.tensor(t)) for t in ("x", "q", "y")} == {"x": 16, "q": 16, "y": 16}


def check_poke_changes_one_element() -> None:
    contents = Contents(CudaFrame(Device()), CASE)
    before = {n: v.clone() for n, v in contents.inputs(4).items()}
    contents.poke(4)
    changed = {n: int((before[n] != v).sum()) for n, v in contents.inputs(4).items()}
    assert changed == {"x": 1, "q": 1, "y": 1, "w": 0}


def check_an_honest_block_has_no_fault_and_asks_once() -> None:
    """Breaks when the good case falls back to a look at every region."""
    b = Bench()
    b.call(0, 2)
    b.arena._same = b.arena._clean = None  # the slow way would stumble over these
    assert b.faults(0, 2) == []
    b.call(1, 3)
    assert b.faults(0, 1, 2, 3) == []


def _plans() -> list[tuple[str, Any]]:
    return [
        ("own input", lambda b: b.view(0, "x")[1, 3].neg_()),
        ("own small input", lambda b: b.view(0, "q")[2, 4].add_(1)),
        ("another's input", lambda b: b.view(3, "x")[0, 0].add_(1)),
        ("another's output", lambda b: b.view(3, "out")[0, 0].fill_(1)),
        ("another's mask", lambda b: b.view(3, "mask")[4].fill_(False)),
        ("static", lambda b: b.arena._view(b.arena.layout.static[1][0])[7].add_(1)),
        ("before", lambda b: b.byte(b.region(0, "out").data - 1)),
        ("after", lambda b: b.byte(b.region(0, "out").data_end)),
        ("last byte of a zone", lambda b: b.byte(b.region(0, "mask").end - 1)),
        ("static's zone", lambda b: b.byte(b.arena.layout.static[1][0].data_end)),
        ("another's zone", lambda b: b.byte(b.region(3, "y").data_end + 7)),
        ("gap", lambda b: b.byte(b.region(0, "gaps").data + 4)),
        ("gap in place", lambda b: b.byte(b.region(2, "y").data + 2)),
        ("not written", lambda b: b.arena.fill(2, b.contents, 3)),
    ]


def check_every_trespass_is_named_and_named_as_on_the_cpu() -> None:
    """Breaks when the fast look misses something, or the two kinds of arena disagree."""
    kinds = {}
    for what, plant in _plans():
        told = []
        for kind in ("gpu", "cpu"):
            b = Bench(kind)
            b.call(0, 2)
            assert b.faults(0, 2) == []
            plant(b)
            before = {(n, k): v.clone() for k in (1, 3) for n, v in b.contents.inputs(k).items()}
            told.append(b.faults(0, 2))
            for (name, k), value in before.items():
                assert _equal(b.contents.inputs(k)[name], value), f"{what}: the look changed the content of {name}"
        assert told[0] == told[1], (what, told)
        kinds[what] = [kind for kind, _ in told[0]]
    assert kinds == {
        "own input": ["cheat.input_mutated"], "own small input": ["cheat.input_mutated"],
        "another's input": ["cheat.input_mutated"], "another's output": ["cheat.neighbour"],
        "another's mask": ["cheat.neighbour"], "static": ["cheat.input_mutated"], "before": ["memory.redzone"],
        "after": ["memory.redzone"], "last byte of a zone": ["memory.redzone"], "static's zone": ["memory.redzone"],
        "another's zone": ["memory.redzone"], "gap": ["memory.redzone"], "gap in place": ["memory.redzone"],
        "not written": ["cheat.skipped", "cheat.skipped"],
    }  # fmt: skip


def check_a_digest_stands_for_every_bit() -> None:
    """Breaks when two flipped top bits cancel, which they do in a plain sum of odd multiples."""
    b = Bench()
    b.arena.fill(1, b.contents, 1)
    assert b.arena.digest(0)["y"] == b.arena.digest(1)["y"]
    assert {len(d) for d in b.arena.digest(0).values()} == {16}
    for at in (0, 30):
        b.byte(b.region(1, "y").data + at)
        assert b.arena.digest(0)["y"] != b.arena.digest(1)["y"]
        b.byte(b.region(1, "y").data + at)
    import torch

    words = torch.arange(3 * gpu_arena.LANE + 5, dtype=torch.int32)
    whole = multilinear(torch, words)
    for places in ((0, 1), (0, gpu_arena.LANE), (2 * gpu_arena.LANE, 3 * gpu_arena.LANE + 4)):
        other = words.clone()
        other[list(places)] += -(2**31)
        assert not (multilinear(torch, other) == whole).any()
    swapped = torch.cat(
        [words[gpu_arena.LANE : 2 * gpu_arena.LANE], words[: gpu_arena.LANE], words[2 * gpu_arena.LANE :]]
    )
    assert not (multilinear(torch, swapped) == whole).any()
    assert (multilinear(torch, words.clone()) == whole).all()


def check_what_was_kept_is_compared_byte_by_byte() -> None:
    for kind in ("gpu", "cpu"):
        b = Bench(kind)
        b.call(0, 1)
        b.arena.fill(1, b.contents, 1)
        b.call(1)
        kept = b.arena.keep(0)
        assert b.arena.differ(kept, 1) == {}
        b.byte(b.region(1, "out").data)
        b.byte(b.region(1, "out").data + 9)
        assert b.arena.differ(kept, 1) == {"out": "2 of 32 bytes differ between two calls on the same content"}


def check_every_copy_of_a_static_tensor_holds_something_else() -> None:
    """Breaks when what was prepared of one copy answers for another, or the reference reads the wrong one."""
    b = Bench()
    first, second = (b.arena._view(copy[0]) for copy in b.arena.layout.static)
    assert not _equal(first, second)
    assert _equal(first, b.contents.inputs(3)["w"])
    b.contents.rotate(5, 2)  # call 8 is the fourth of its block and reads copy 1
    assert _equal(second, b.contents.inputs(8)["w"])
    assert _equal(first, b.contents.inputs(5)["w"])
    assert first.data_ptr() != second.data_ptr()


def check_the_call_farthest_from_the_other_arms_is_found() -> None:
    """Breaks when calls of two arms are compared over other places than their outputs', or bfloat16 is not taken."""
    mine, theirs = Bench(), Bench()
    for bench in (mine, theirs):
        for slot in range(4):
            for name in ("y", "out", "gaps", "mask"):
                bench.view(slot, name)[...] = slot
    assert odd.odd_calls(mine.frame, mine.arena, theirs.arena, 0) == set()
    mine.view(2, "y")[1, 3] = 2.5
    mine.view(1, "mask")[4] = False
    assert odd.odd_calls(mine.frame, mine.arena, theirs.arena, 0) == {1, 2}


def check_full_memory_is_the_machines_fault_and_says_so() -> None:
    device = Device()
    device.full = True
    try:
        GpuArena(CudaFrame(device), CASE, 2, device=device)
        raise AssertionError("it was allocated")
    except JobError as fault:
        assert str(fault).startswith("gpu.memory: "), fault
    oracle = Oracle.__new__(Oracle)
    oracle.frame, oracle._check = CudaFrame(device), None
    oracle._ref = lambda **_: device.allocate(1)
    try:
        oracle.want(CASE, Contents(oracle.frame, CASE).inputs(0))
        raise AssertionError("it was computed")
    except JobError as fault:
        assert str(fault).startswith("gpu.memory: "), fault


def check_errors_are_the_same_numbers_as_on_the_cpu() -> None:
    """Breaks when the device's frame rounds, pools or places otherwise than the CPU's."""
    import torch

    torch.manual_seed(5)
    ref = torch.randn(70, 130, dtype=torch.float64)
    got = (ref * 1.01).to(torch.bfloat16)
    got[69, 129] = float("nan")
    told: list[Any] = []
    for frame in (CudaFrame(Device()), TorchFrame()):
        unit = stats.unit_of(frame, "bfloat16", ref.abs())
        want = stats.Want(ref=ref, unit=unit, dtype="bfloat16", exact=False)
        m = stats.measure(frame, got, want)
        told.append((stats.summary(frame, m, want, stats.lean(m)), stats.where(frame, m, want, 1e6)))
    assert told[0] == told[1]
    assert told[0][1]["sample"] == [(69, 129, 1e308, float(ref[69, 129]))]
    assert told[0][1]["bad_rows"] == [(69, 70)]


class Hand:
    """An arm in this process: what a Worker does, on the same memory."""

    def __init__(self, arm: Arm, kind: str = "honest", names: tuple[str, ...] = ("mine",)) -> None:
        self.arm, self.kind, self.alive, self.names = arm, kind, True, names
        self._first: dict[int, Any] = {}
        self.log: list[str] = []
        self.arena: Any = None
        self._tape: list[tuple[int, Any]] = []
        self._calls = 0

    def map(self, arena: Any) -> None:
        self.arena = arena
        self.log.append("map")

    def drop(self) -> None:
        self.log.append("drop")

    def warm(self, slots: Any) -> int:
        self.log.append("warm")
        self.run(slots)
        return 1

    def _at(self, slot: int, name: str) -> Any:
        return self.arena._view(next(r for r in self.arena.layout.slots[slot] if r.tensor.name == name))

    def _answer(self, slot: int) -> Any:
        return self._at(slot, "x") * 2.0

    def run(self, slots: Any) -> tuple[int, int]:
        self._calls += 1
        for slot in slots:
            answer = self._answer(slot)
            if self.kind == "remembers":
                answer = self._first.setdefault(slot, answer)
            self._at(slot, "out").copy_(answer)
            if self.kind == "never the same":
                self._at(slot, "out")[0, 0] *= 1.0 + self._calls % 2 * 2.0**-23
        return 1, 1

    def late(self, slot: int, source: int) -> None:
        early = self._answer(slot)
        self._at(slot, "x").copy_(self._at(source, "x"))
        self._at(slot, "out").copy_(early if self.kind == "other stream" else self._answer(slot))

    def capture(self, groups: Any, *, figure: str = "pipelined", hot: Any = ()) -> Any:
        if self.kind == "syncs":
            return SimpleNamespace(ok=False, code="capture.sync", text="a wait inside a call")
        if self.kind == "forks":
            return SimpleNamespace(ok=False, code="capture.unjoined", text="a second stream was not joined back")
        if self.kind == "escapes":
            return SimpleNamespace(ok=False, code="cheat.outside_window", text="work outside the capture")
        self._tape = [(slot, self._answer(slot)) for group in groups for slot in group]
        return SimpleNamespace(ok=True, code="", text="", names=self.names)

    def replay(self) -> None:
        for slot, then in self._tape:
            self._at(slot, "out").copy_(then if self.kind == "decides at capture" else self._answer(slot))

    def inventory(self, slot: int) -> tuple[list[tuple[str, int, int]], int]:
        return [("kernel", 1, 1000)], 1000


PAIR = Case(case_id="p", axes={}, flags={}, timed=True, tensors=(tensor("x", "in"), tensor("out", "out")))


def _verified(kind: str, names: tuple[str, ...] = ("mine",), **job: Any) -> tuple[Any, list[Hand]]:
    built = Path(tempfile.mkdtemp())
    (built / "k.cubin").write_bytes(b"\0.text.mine\0")
    frame = CudaFrame(Device())
    oracle = Oracle.__new__(Oracle)
    oracle.frame, oracle._check, oracle._ref = frame, None, lambda x: x * 2.0
    events: list[Any] = []
    checks: list[Any] = []
    session: Any = SimpleNamespace(
        frame=frame, oracle=oracle, gpu=True, device=Device(), base={}, events=events, checks=checks, inventory=[],
        figures=[], cases=[PAIR], lap=lambda part: contextlib.nullcontext(), build_dir=lambda arm: built,
        job={"limits": {"arena_bytes": 1 << 20}, "phases": ["verify"], **job},
        event=lambda arm, code, text, **at: events.append((arm, code, text)),
        check=lambda arm, case, m, want, base, **on: checks.append({"arm": arm, "max": m.max, "base": base, **on}),
    )  # fmt: skip
    session.base_of = functools.partial(Session.base_of, session)
    session.uncaptured = functools.partial(Session.uncaptured, session)  # the real one, on what it reads here
    arms = [Arm(name=n, source="", entry="", build_key="", is_baseline=n == "A") for n in ("A", "B")]
    hands: list[Any] = [Hand(arms[0]), Hand(arms[1], kind, names)]
    uses = Uses(session)
    for seed in range(2):
        round_ = verify.Round(session, hands, PAIR, seed, "gen", 0, uses=uses)
        round_.go(3, probe=True)
        round_.close()
    uses.settle(hands[1])
    shutil.rmtree(built)
    return session, hands


def _bad(session: Any) -> list[str]:
    return sorted({c["probe"] for c in session.checks if c["max"] > 1.0})


def check_an_honest_arm_passes_every_probe_of_a_gpu() -> None:
    session, hands = _verified("honest")
    assert (session.events, _bad(session)) == ([], [])
    probes = [(c["probe"], c["seed_ix"]) for c in session.checks]
    seen = {p: probes.count((p, 0)) for p in ("call", "repeat", "element", "bitwise", "graph", "late")}
    assert seen == {"call": 1, "repeat": 5, "element": 1, "bitwise": 1, "graph": 3, "late": 1}
    assert (probes.count(("call", 1)), probes.count(("repeat", 1))) == (1, 2)
    assert all(c["base"] is not None and not c["note"] for c in session.checks)
    assert session.inventory == [{"arm": "B", "case_id": "p", "name": "mine", "count": 1, "ns": 0, "ours": True}]
    assert (hands[1].log, session.figures) == (["map", "warm", "drop"] * 2, [])


def check_only_an_own_graph_goes_without_the_profiler() -> None:
    """Breaks when a fill, a foreign kernel or a graph without names passes for the arm's own work."""
    for names, kind, job in (
        (("mine", "memset"), "honest", {}), (("mine", "theirs"), "honest", {}), ((), "honest", {}),
        (("mine",), "syncs", {}), (("mine",), "honest", {"graph": "never"}),
    ):  # fmt: skip
        session, hands = _verified(kind, names, **job)
        assert [(e["name"], e["ns"], e["ours"]) for e in session.inventory] == [("kernel", 1000, False)], names
        assert hands[1].log == ["map", "warm", "drop"] * 3, names
        assert session.figures == [{"arm": "B", "case_id": "p", "figure": "span", "us": 1.0}]


def check_an_answer_from_before_the_first_call_is_known() -> None:
    """Breaks when a result kept since the calls that warm up looks like an ordinary error at the first checked call."""
    notes = {c["note"] for c in _verified("remembers")[0].checks if c["probe"] == "call"}
    assert notes == {"stale: the output of a call before the first one, on other content"}


def check_what_only_a_graph_or_a_late_input_shows() -> None:
    """Breaks when a probe compares with the content that was there before."""
    assert _bad(_verified("decides at capture")[0]) == ["graph"]
    assert _bad(_verified("other stream")[0]) == ["late"]


def check_other_bits_on_the_same_content_are_noted() -> None:
    """Breaks when the outputs kept are not those of the call before."""
    noted = {(c["probe"], c["note"]) for c in _verified("never the same")[0].checks if c["note"]}
    assert noted == {("bitwise", "1 of 64 bytes differ between two calls on the same content")}
    assert _verified("never the same", deterministic=False)[0].events == []


def check_a_refused_capture_is_said_as_the_contract_asks() -> None:
    session, _ = _verified("syncs")
    assert session.events == [("B", "note.capture", "capture.sync: a wait inside a call")]
    assert "graph" not in {c["probe"] for c in session.checks}
    assert "late" in {c["probe"] for c in session.checks}
    assert _verified("syncs", graph="must")[0].events == [("B", "capture.sync", "a wait inside a call")]
    assert _verified("syncs", graph="never")[0].events == []
    forked = ("B", "capture.unjoined", "a second stream was not joined back")
    assert _verified("forks")[0].events == [forked], "whatever the contract says: events would not wait for it"
    assert _verified("escapes")[0].events == [("B", "cheat.outside_window", "work outside the capture")]


def check_large_outputs_get_fewer_calls_but_every_seed() -> None:
    verify.BIG = 1
    try:
        session, _ = _verified("honest")
    finally:
        verify.BIG = 64 << 20
    probes = [(c["probe"], c["seed_ix"]) for c in session.checks]
    assert [probes.count((p, s)) for p, s in (("call", 0), ("repeat", 0), ("call", 1), ("repeat", 1))] == [1, 2, 1, 0]
    assert probes.count(("graph", 0)) == 2


def check_the_arena_follows_the_device() -> None:
    session: Any = SimpleNamespace(frame=TorchFrame(), device=None)
    assert isinstance(open_arena(session, CASE, 1), Arena)
    session = SimpleNamespace(frame=CudaFrame(Device()), device=Device())
    assert isinstance(open_arena(session, CASE, 1), GpuArena)


def main() -> None:
    """Run every check."""
    told = {}
    for name, function in list(globals().items()):
        if name.startswith("check_"):
            try:
                function()
                told[name] = ""
            except Exception:  # noqa: BLE001  (the test prints it)
                told[name] = traceback.format_exc()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
