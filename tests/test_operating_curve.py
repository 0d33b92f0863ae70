"""The operating curve from a pool of known pairs, and the bookkeeping of measuring one, without a GPU."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import random
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from kernelpilot_helpers.attempt.job import Job
from kernelpilot_helpers.attempt.raw import Died, Raw, Samples
from kernelpilot_helpers.executors.lab import job_sha256

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.fixture
def curve(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module; its neighbours are found as they are when it is run."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    for name in ("curve_workload", "curve_report", "operating_curve"):
        sys.modules.pop(name, None)
    spec = importlib.util.spec_from_file_location("operating_curve", SCRIPTS / "operating_curve.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def synthetic(effects: dict[str, float], sd: float = 0.002, pairs: int = 40) -> dict[str, Any]:
    """A pool of pairs whose cases stray by ``sd`` around the effect."""
    rng = random.Random(7)
    cases = [f"c{i}" for i in range(8)]

    def pair(ix: int, effect: float) -> dict[str, Any]:
        cells = {c: [math.log1p(effect) + rng.gauss(0, sd), 1000.0 * (1 + effect), 1000.0] for c in cases}
        return {"order": 1 if ix % 2 == 0 else -1, "cells": cells}

    return {
        "format": "kernelpilot.operating-pool", "version": 1, "cases": cases, "blocks": 12,
        "chunks": [{"effect": "A/A", "pairs": 20, "seconds": 60.0, "time_s": 50.0, "env": {"gpu": "H200"}}],
        "effects": {n: {"nominal": e, "pairs": [pair(i, e) for i in range(pairs)]} for n, e in effects.items()},
    }  # fmt: skip


def test_rates_of_a_known_pool_and_the_drawing_without_a_gpu(
    curve: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when false gains and power are mixed up, or gates are drawn in another way at each call."""
    path = tmp_path / "pool.json"
    path.write_text(json.dumps(synthetic({"A/A": 0.0, "slower 2 %": 0.02})))
    out = tmp_path / "deep" / "curve.json"
    assert curve.main(["--resample-only", str(path), "--gates", "60", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    null, two = (result["effects"][n]["tiers"] for n in ("A/A", "slower 2 %"))
    assert null["accept"]["rates"]["IMPROVED"] == 0.0 and two["accept"]["rates"]["IMPROVED"] == 1.0
    assert two["accept"]["regressed_with_arms_exchanged"] == 1.0
    assert two["screen"]["rates"]["IMPROVED"] == 0.0  # that tier never says so
    assert 0.0 < null["accept"]["half_width_median"] < 0.01
    # six pairs and their confirmation, two jobs: 12 x 2.5 s + 2 x 10 s
    assert (two["accept"]["pairs_mean"], two["accept"]["seconds"]) == (12.0, 50.0)
    assert result["pool"]["effects"]["A/A"]["pairs"][0]["order"] == 1
    root = ET.fromstring(out.with_suffix(".svg").read_text())
    assert len(root.findall(".//{http://www.w3.org/2000/svg}polyline")) == 4
    first = capsys.readouterr().out
    curve.main(["--resample-only", str(path), "--gates", "60"])
    assert capsys.readouterr().out == first


class FakeLab:
    """Answers a timing job: arm A takes its base time and ``step_ns`` for each waiting step that its table names."""

    def __init__(self, *, step_ns: float = 4.0, died: bool = False) -> None:
        self.step_ns, self.died = step_ns, died
        self.jobs: list[Job] = []
        self.rng = random.Random(3)

    def run(self, job: Job, workdir: Path) -> Raw:
        self.jobs.append(job)
        assert job.time is not None
        text = (workdir / "arms" / "A" / "candidate.py").read_text()
        table = eval(text.split("WAIT = ", 1)[1].split("\n", 1)[0])
        samples = []
        for pair in range(job.time.first_pair, job.time.first_pair + job.time.pairs):
            for case in job.cases:
                base = 2000 * case.axes["M"] ** 0.5
                for arm in ("A", "B"):
                    extra = table[case.axes["M"], case.axes["N"]] * self.step_ns if arm == "A" else 0.0
                    ns = int(1000 * (base + extra) * (1 + self.rng.gauss(0, 0.0003)))
                    samples.append(
                        Samples(pair=pair, first_arm="AB"[pair % 2], case_id=case.case_id, arm=arm, calls=1000,
                                ns=(ns,) * 4, wall_ns=(ns,) * 4, method="graph")
                    )  # fmt: skip
        died = Died(arm="B", stage="call", log="boom") if self.died else None
        env = {"gpu": "H200", "phase_seconds": {"time": 0.0}}
        return Raw(
            job_id=job.job_id, job_sha256=job_sha256(job), framework="torch", env=env, samples=tuple(samples), died=died
        )  # fmt: skip


def options(tmp_path: Path, **changed: Any) -> argparse.Namespace:
    known = {"pool": tmp_path / "pool.json", "budget_s": 1e6, "pairs": 4, "chunk": 2, "blocks": 4, "sample_us": 300.0}
    return argparse.Namespace(effects="", **{**known, "arena_gib": 1.0, **changed})


def test_injected_slow_downs_are_calibrated_per_shape_and_chunks_add_up(curve: Any, tmp_path: Path) -> None:
    """Breaks when a nominal 2 % is another share on small shapes, or a second call measures everything again."""
    lab = FakeLab()
    curve.Study(options(tmp_path), lab).measure()
    pool = json.loads((tmp_path / "pool.json").read_text())
    for name, nominal in curve.EFFECTS.items():
        pairs = pool["effects"][name]["pairs"]
        assert [p["order"] for p in pairs] == [1, -1, 1, -1]
        for case in pool["cases"]:
            mean = sum(p["cells"][case][0] for p in pairs) / 4
            assert mean == pytest.approx(math.log1p(nominal), abs=0.0015)  # a step of the shortest shape is 0.2 %
    assert len(lab.jobs) == 1 + 2 * len(curve.EFFECTS)
    assert {j.time.first_pair for j in lab.jobs[1:] if j.time} == {0, 2}
    again = FakeLab()
    curve.Study(options(tmp_path), again).measure()
    assert again.jobs == []


def test_the_budget_is_kept_and_a_dead_job_is_told(curve: Any, tmp_path: Path) -> None:
    """Breaks when a run is cut off by its caller with nothing kept, or a death is a row of the pool."""
    lab = FakeLab()
    curve.Study(options(tmp_path, budget_s=5.0), lab).measure()
    assert len(lab.jobs) == 1 and json.loads((tmp_path / "pool.json").read_text())["effects"] == {}
    with pytest.raises(SystemExit, match=r"died in call .arm B.: boom"):
        curve.Study(options(tmp_path), FakeLab(died=True)).measure()
    with pytest.raises(SystemExit, match="another pool"):
        curve.Study(options(tmp_path, blocks=9), lab)


def test_a_loop_that_costs_nothing_measurable_is_refused(curve: Any, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="calibrate again"):
        curve.Study(options(tmp_path), FakeLab(step_ns=-1.0)).measure()


def test_placebo_edits_change_the_source_and_nothing_else(curve: Any) -> None:
    from_ = curve.workload.program()
    renamed = curve.workload.program(name="other", unused=True)
    assert "never" in renamed["kernel.cu"] and "never" not in from_["kernel.cu"]
    back = renamed["kernel.cu"].replace("other", "add_rms").replace(curve.workload.UNUSED, "/*UNUSED*/\n")
    assert back.replace("/*UNUSED*/\n", "") == from_["kernel.cu"]


def test_every_repeat_of_the_speed_study_is_another_program(curve: Any, tmp_path: Path) -> None:
    """Breaks when a cached build makes either side look fast, or the ratio is upside down."""
    spec = importlib.util.spec_from_file_location("screen_speed", SCRIPTS / "screen_speed.py")
    assert spec is not None and spec.loader is not None
    speed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(speed)
    speed.write(tmp_path / "v", 1)
    first = (tmp_path / "v" / "kernel.cu").read_text()
    speed.write(tmp_path / "v", 2)
    assert first != (tmp_path / "v" / "kernel.cu").read_text() and "edit_1 = 1" in first
    made = speed.summary([{"seconds": s} for s in (9.0, 10.0, 30.0)], [{"seconds": s} for s in (50.0, 55.0, 60.0)])
    assert (made["screen_seconds"], made["sequential_seconds"], made["ratio"]) == (10.0, 55.0, 5.5)
