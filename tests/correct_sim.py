"""Hand-made raw records for the correctness judge: everything right, then one thing wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kernelpilot_helpers.attempt.raw import Build, Check, KernelUse, Mutant, Raw, Stats, Where
from kernelpilot_helpers.correctness import Expectation

GOOD = Stats(
    n=64000, rms=0.4, max=2.0, bias=0.001, bias_se=0.01, base_rms=0.4, base_max=2.0, base_bias=0.0,
    row_ratio=1.2, row_ix=3, col_ratio=1.1, col_ix=7, tile_ratio=1.1, tile_ix=(0, 1),
    nonfinite_equal=True, unwritten=0, exact=False,
)  # fmt: skip
BAD = msgspec.structs.replace(GOOD, rms=5e4, max=1e6, row_ratio=1e5, col_ratio=1e5, tile_ratio=1e5)
TAIL = Where(
    rows_total=64, cols_total=1000, bad=64 * 104, bad_rows=((0, 64),), bad_cols=((896, 1000),), n_bad_rows=64,
    n_bad_cols=104, sample=((0, 896, 0.0, 1.25),),
)  # fmt: skip
ALL = Where(
    rows_total=64, cols_total=1000, bad=64000, bad_rows=((0, 64),), bad_cols=((0, 1000),), n_bad_rows=64,
    n_bad_cols=1000,
)  # fmt: skip
REGIMES = ("gen", "small", "large")
EXPECT = Expectation(
    cases=("c0", "edge"), outputs=("out",), seeds=3, timed_cases=("c0",), edge_cases=("edge",),
    shapes={"c0": {"out": (64, 1000)}, "edge": {"out": (64, 1000)}}, axes={"c0": {"M": 64, "N": 1000}},
)  # fmt: skip


def stats(**changed: Any) -> Stats:
    return msgspec.structs.replace(GOOD, **changed)


def check(case: str = "c0", **changed: Any) -> Check:
    base: dict[str, Any] = {
        "arm": "B", "case_id": case, "seed_ix": 0, "regime": "gen", "probe": "call", "call_ix": 0,
        "output": "out", "stats": GOOD,
    }  # fmt: skip
    return Check(**{**base, **changed})


def checks(arm: str = "B") -> list[Check]:
    """Three seeds of both cases with every probe, and two timed rechecks: one process per case."""
    out: list[Check] = []
    for case in ("c0", "edge"):
        call = 0
        for seed, regime in enumerate(REGIMES):
            for probe in ("call", "repeat", "element", "bitwise"):
                out.append(check(case, arm=arm, seed_ix=seed, regime=regime, probe=probe, call_ix=call))
                call += 1
    return out + [check("c0", arm=arm, probe="timed", call_ix=ix, pair=0) for ix in (5, 9)]


def broken(one: Check, **changed: Any) -> Check:
    return msgspec.structs.replace(one, **{"stats": BAD, "where": TAIL, **changed})


def build(arm: str, **changed: Any) -> Build:
    made = Build(arm=arm, build_key=arm * 4, ok=True, binary_id=arm * 8, seconds=0.1)
    return msgspec.structs.replace(made, **changed)


def raw(items: Sequence[Check] | None = None, **changed: Any) -> Raw:
    found = [*checks("A"), *checks("B")] if items is None else [*checks("A"), *items]
    made = Raw(
        job_id="j", job_sha256="0" * 64, framework="numpy", env={}, builds=(build("A"), build("B")),
        checks=tuple(found),
    )  # fmt: skip
    return msgspec.structs.replace(made, **changed)


def mutant(name: str, kind: Any, one: Stats | None, **changed: Any) -> Mutant:
    outputs = {} if one is None else {"out": one}
    made = Mutant(name=name, kind=kind, case_id="c0", applicable=True, outputs=outputs)
    return msgspec.structs.replace(made, **changed)


ON_GPU = msgspec.structs.replace(EXPECT, gpu=True)


def gpu_checks(arm: str = "B") -> list[Check]:
    """The CPU's checks, and both probes of the GPU on each case."""
    more = [check(case, arm=arm, probe=probe, call_ix=20) for case in ("c0", "edge") for probe in ("graph", "late")]
    return [*checks(arm), *more]


def use(name: str, ns: int, *, ours: bool, arm: str = "B", case: str = "c0") -> KernelUse:
    """One kernel of one watched call."""
    return KernelUse(arm=arm, case_id=case, name=name, count=1, ns=ns, ours=ours)


def gpu_raw(items: Sequence[Check] | None = None, **changed: Any) -> Raw:
    """A job on a GPU with nothing wrong: both probes, and an inventory that is all the candidate's own."""
    found = gpu_checks() if items is None else items
    return raw(found, **{"inventory": (use("tuned_kernel", 9_000, ours=True),), **changed})
