"""Where a generated dispatcher is tried: its repo and binding, arguments of a call, what must come out, captures.

For ``scripts/dispatcher_checks.py``: torch and the standard library, nothing of the tool.
"""

# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

Shape = tuple[int, int]
EPS = 1e-6
NEAR, FAR = 0.02, 0.01
"""Absolute and relative error that bfloat16 outputs may have."""
CALLS = 100
"""Calls in one timed stretch: fewer launches than the GPU's queue holds."""


class Wrong(Exception):
    """The dispatcher did not do what its documents say."""


class Skipped(Exception):
    """This machine lacks what the check needs."""


class Bed:
    """A repo's dispatcher, its binding, the shapes that its table serves, and where tensors lie."""

    def __init__(self, repo: Path, device: str, late: Sequence[int] = (), cache: Path | None = None) -> None:
        self.device, self.repo, self.cache = device, repo, cache
        self.before = dict(os.environ)
        sys.path.insert(0, str(repo))
        torch_op = importlib.import_module("bindings.torch_op")
        self.dispatcher = torch_op.dispatcher()
        self.operator = getattr(torch.ops.kernelpilot, torch_op.NAME.partition("::")[2])
        rules = json.loads((repo / "dispatch" / "table.json").read_text())["rules"]
        served = {box(rule): rule["version"] for rule in rules}
        self.late = {s: name for s, name in sorted(served.items()) if s[0] in late}
        """Shapes whose version must stay unloaded until its check."""
        self.shapes = {s: name for s, name in sorted(served.items()) if s not in self.late}

    def tensors(self, shape: Shape, *, seed: int = 0, device: str = "") -> dict[str, Any]:
        """Arguments of one call; another seed, other content."""
        (rows, columns), device = shape, device or self.device
        random = torch.Generator(device=device).manual_seed(1000 * seed + rows)

        def normal(*shape: int) -> Any:
            return torch.randn(*shape, device=device, generator=random).bfloat16()

        x, residual, weight = normal(rows, columns), normal(rows, columns), normal(columns)
        return {"x": x, "residual": residual, "weight": weight, "out": torch.full_like(x, torch.nan), "eps": EPS}

    def wait(self) -> None:
        """Until the GPUs that are used here have done their work."""
        for index in range(min(torch.cuda.device_count(), 2) if self.device == "cuda" else 0):
            torch.cuda.synchronize(index)

    def captured(self, call: Callable[[], object]) -> Callable[[], object]:
        """``call`` captured; what replays it."""
        if self.device == "cpu":
            return call
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        replay: Callable[[], object] = graph.replay
        return replay

    def loaded(self, version: str, place: Any = None) -> Any:
        """A version as the dispatcher holds it."""
        here = torch.cuda.current_device() if self.device == "cuda" else ""
        return self.dispatcher._load(version, here if place is None else place)


def box(rule: dict[str, Any]) -> Shape:
    """The one shape that a rule covers."""
    (rows, columns) = (guard["low"] for guard in rule["guards"])
    return rows, columns


def copied(tensors: dict[str, Any]) -> dict[str, Any]:
    """The same content in other memory."""
    return {name: value.clone() if hasattr(value, "clone") else value for name, value in tensors.items()}


def expect(given: dict[str, Any], before: dict[str, Any], what: str) -> None:
    """Raises Wrong unless ``given`` is what a call makes of ``before``: residual += x, out = the norm of that."""
    total = (before["x"].float() + before["residual"].float()).bfloat16()
    if not torch.equal(given["residual"], total):
        raise Wrong(f"{what}: residual is not the sum")
    wide = total.float()
    want = wide * (wide.square().mean(-1, keepdim=True) + EPS).rsqrt() * before["weight"].float()
    off = (given["out"].float() - want).abs() - FAR * want.abs()
    if not bool((off <= NEAR).all()):  # a NaN is not below it either
        raise Wrong(f"{what}: out is wrong in {int((~(off <= NEAR)).sum())} of {off.numel()} elements")


def serve(bed: Bed, shape: Shape, call: Callable[..., object], what: str, seed: int = 0) -> None:
    """One call on new content, and its result."""
    given = bed.tensors(shape, seed=seed)
    before = copied(given)
    call(**given)
    bed.wait()
    expect(given, before, what)


def refused(bed: Bed, given: dict[str, Any], what: str) -> None:
    """Raises Wrong unless a call is answered with a ValueError."""
    with contextlib.suppress(ValueError):
        bed.dispatcher.entry(**given)
        raise Wrong(f"{what} were served")


def host_us(bed: Bed, call: Callable[..., object], given: dict[str, Any]) -> float:
    """Microseconds that the host spends on a call, launches not waited for."""
    bed.wait()
    started = time.perf_counter()
    for _ in range(CALLS):
        call(**given)
    us = (time.perf_counter() - started) / CALLS * 1e6
    bed.wait()
    return us


def machine(device: str) -> dict[str, Any]:
    """The card and the versions, as far as torch knows them."""
    out: dict[str, Any] = {"python": platform.python_version(), "torch": torch.__version__, "cores": os.cpu_count()}
    if device == "cuda":
        out |= {"gpu": torch.cuda.get_device_name(), "gpus": torch.cuda.device_count(), "cuda": torch.version.cuda}
        with contextlib.suppress(ImportError):
            out["triton"] = __import__("triton").__version__
    return out
