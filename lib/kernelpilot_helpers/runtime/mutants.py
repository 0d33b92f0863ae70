"""Phase 2: deliberately wrong outputs, made from roles and shapes, measured as if a candidate had written them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .arena import Arena, open_arena
from .arms import Nursery
from .content import Contents
from .gpu_arena import GpuArena
from .session import Session
from .spec import MANTISSA, Case, JobError, Tensor
from .stats import lean, matrix, measure, summary, unit_of

CASES_MAX = 4
PART = 8
"""Skipped tiles are the last eighth of an axis."""

Outputs = dict[str, Any]


class NotApplicable(Exception):
    """The mutation changes nothing here, by construction or by these shapes."""


def audit(session: Session, nursery: Nursery) -> None:
    """Append the mutants of the first few timed cases; raises ArmDied where the baseline itself dies."""
    baseline = session.baseline
    if baseline is None:
        raise JobError("the audit needs an arm that is the baseline")
    worker = nursery.fork(baseline)
    try:
        worker.load()
        for case in [c for c in session.cases if c.timed][:CASES_MAX]:
            contents = Contents(session.frame, case)
            arena = open_arena(session, case, 1)
            try:
                arena.fill_static(contents)
                arena.fill(0, contents, 0)
                arena.ready()
                worker.map(arena)
                if session.gpu:
                    worker.warm([0])
                    arena.fill(0, contents, 0)
                    arena.ready()
                worker.run([0])
                Audit(session, case, contents, arena).go()
                if session.gpu:
                    worker.drop()
            finally:
                arena.close()
    finally:
        worker.finish()


class Audit:
    """The mutants of one case; call 0's content is the one they are judged on."""

    def __init__(self, session: Session, case: Case, contents: Contents, arena: Arena | GpuArena) -> None:
        self.session = session
        self.case = case
        self.frame = session.frame
        self.xp = session.frame.xp
        self.oracle = session.oracle
        self.inputs = contents.inputs(0)
        self.other = contents.inputs(1)
        self.arena = arena
        self.wants = self.oracle.want(case, self.inputs)
        self.right = {t.name: self._store(self.wants[t.name].ref, t) for t in case.outputs}
        self.written = arena.snapshot(0)
        self.bases = {n: lean(measure(self.frame, self.written[n], w)) for n, w in self.wants.items()}

    def go(self) -> None:
        """Measure every mutant."""
        for name, make in self._must_fail():
            self._add(name, "must_fail", make)
        for tensor in self.case.inputs:
            self._add(f"react:{tensor.name}", "react", partial(self._reacts, tensor))
        self._add("baseline", "must_pass", lambda: self.written)
        self._add("storage_precision", "must_pass", lambda: self._stored(self.inputs))
        self._add("reversed", "must_pass", self._reversed)

    def _add(self, name: str, kind: str, make: Callable[[], Outputs]) -> None:
        entry: dict[str, Any] = {"name": name, "kind": kind, "case_id": self.case.case_id, "applicable": True}
        try:
            outputs = make()
            if kind != "must_pass" and self._equal(outputs):
                if kind == "must_fail":
                    raise NotApplicable("it changes nothing here")
                entry["note"] = "the reference does not react to this input"
        except NotApplicable as why:
            self.session.mutants.append({**entry, "applicable": False, "note": str(why)})
            return
        stats = {}
        for output, want in self.wants.items():
            measured = measure(self.frame, outputs[output], want, self.arena.poison_view(output))
            stats[output] = summary(self.frame, measured, want, self.bases[output])
        said = self.oracle.violations(self.case, self.inputs, outputs)
        self.session.mutants.append({**entry, "outputs": stats, "violations": said})

    def _must_fail(self) -> Iterator[tuple[str, Callable[[], Outputs]]]:
        xp = self.xp
        yield "zeros", lambda: self._each(lambda ref, _: xp.zeros_like(ref))
        yield "mean", lambda: self._each(lambda ref, _: xp.zeros_like(ref) + ref.mean())
        yield "permuted", self._permuted
        yield "truncated", self._truncated
        yield "scaled", lambda: self._each(lambda ref, _: ref * 1.02)
        for tensor in self.case.inputs:
            if tensor.is_float:
                yield f"dropped:{tensor.name}", partial(self._dropped, tensor)
        yield "last_column_tile", lambda: self._skipped(columns=True)
        yield "last_row", lambda: self._skipped(columns=False)
        yield "last_k_tile", self._last_k
        yield "stale", lambda: self._from_ref(self.other)
        yield "uninitialised", lambda: {t.name: self._before(t) for t in self.case.outputs}

    def _store(self, ref: Any, tensor: Tensor) -> Any:
        return self.frame.cast(ref, tensor.dtype).reshape(tensor.shape)

    def _each(self, change: Callable[[Any, Tensor], Any]) -> Outputs:
        return {t.name: self._store(change(self.wants[t.name].ref, t), t) for t in self.case.outputs}

    def _from_ref(self, inputs: dict[str, Any]) -> Outputs:
        got = self.oracle.call(self.case, self.oracle.wide(self.case, inputs))
        return {t.name: self._store(self.frame.f64(got[t.name]), t) for t in self.case.outputs}

    def _stored(self, inputs: dict[str, Any]) -> Outputs:
        copies = {n: self.frame.copy(v) for n, v in inputs.items()}
        try:
            got = self.oracle.call(self.case, copies)
        except Exception as fault:  # the contract's own code, on a dtype it may not know
            raise NotApplicable(f"the reference does not run at storage precision: {fault!r}") from fault
        return {t.name: self.frame.cast(got[t.name], t.dtype) for t in self.case.outputs}

    def _before(self, tensor: Tensor) -> Any:
        held = self.arena.poison_view(tensor.name)
        return self.frame.copy(self.inputs[tensor.name] if held is None else held)

    def _equal(self, outputs: Outputs) -> bool:
        return all(bool((outputs[n] == self.right[n]).all()) for n in self.right)

    def _permuted(self) -> Outputs:
        if all(matrix(t.shape)[0] < 2 for t in self.case.outputs):
            raise NotApplicable("every output has one row only")
        return self._each(lambda ref, _: self.xp.roll(ref, 1, 0))

    def _truncated(self) -> Outputs:
        if not any(t.is_float for t in self.case.outputs):
            raise NotApplicable("no floating output")

        def cut(ref: Any, tensor: Tensor) -> Any:
            if not tensor.is_float:
                return ref
            bits = MANTISSA[tensor.dtype]
            step = unit_of(self.frame, tensor.dtype, self.xp.abs(ref)) * 2.0 ** (bits - bits // 2)
            return self.xp.trunc(ref / step) * step

        return self._each(cut)

    def _dropped(self, tensor: Tensor) -> Outputs:
        return self._from_ref({**self.inputs, tensor.name: self.xp.zeros_like(self.inputs[tensor.name])})

    def _skipped(self, *, columns: bool) -> Outputs:
        out = {}
        for tensor in self.case.outputs:
            rows, cols = matrix(tensor.shape)
            value = self.frame.copy(self.right[tensor.name]).reshape(rows, cols)
            before = self._before(tensor).reshape(rows, cols)
            if columns:
                first = cols - max(cols // PART, 1)
                value[:, first:] = before[:, first:]
            elif rows > 1:
                value[-1] = before[-1]
            out[tensor.name] = value.reshape(tensor.shape)
        return out

    def _last_k(self) -> Outputs:
        cut = {}
        for tensor in self.case.inputs:
            value = self.frame.copy(self.inputs[tensor.name])
            if tensor.is_float and tensor.shape and tensor.cols > 1:
                value[..., tensor.cols - max(tensor.cols // PART, 1) :] = 0
            cut[tensor.name] = value
        got = self._from_ref(cut)
        inner = False
        for tensor in self.case.outputs:
            keep = tensor.cols - max(tensor.cols // PART, 1)
            a, b = got[tensor.name], self.right[tensor.name]
            inner |= bool(tensor.shape and (a[..., :keep] != b[..., :keep]).any())
        if not inner:
            raise NotApplicable("no output sums over the inputs' last axis")
        return got

    def _reacts(self, tensor: Tensor) -> Outputs:
        changed = self.other[tensor.name]
        if tensor.role == "static":
            changed = self.xp.flip(self.frame.copy(changed).reshape(-1), (0,)).reshape(tensor.shape)
        return self._from_ref({**self.inputs, tensor.name: changed})

    def _reversed(self) -> Outputs:
        width = max(t.cols for t in self.case.inputs)
        turned = {t.name: self._flip(self.inputs[t.name], t, width) for t in self.case.inputs}
        wide = self._from_flipped(self.oracle.wide(self.case, turned), width)
        for tensor in self.case.outputs:
            ref = self.wants[tensor.name].ref
            gap = self.xp.abs(self.frame.f64(wide[tensor.name]).reshape(ref.shape) - ref)
            if not bool((gap <= 1e-9 * (1.0 + self.xp.abs(ref))).all()):
                raise NotApplicable("the order of the last axis matters to the reference")
        flipped = self._from_flipped({n: self.frame.copy(v) for n, v in turned.items()}, width)
        return {t.name: self.frame.cast(flipped[t.name], t.dtype) for t in self.case.outputs}

    def _flip(self, value: Any, tensor: Tensor, width: int) -> Any:
        if not tensor.shape or tensor.cols != width:
            return value
        return self.xp.flip(self.frame.copy(value), (len(tensor.shape) - 1,))

    def _from_flipped(self, inputs: dict[str, Any], width: int) -> Outputs:
        try:
            got = self.oracle.call(self.case, inputs)
        except Exception as fault:  # the contract's own code, on a dtype it may not know
            raise NotApplicable(f"the reference does not run on flipped inputs: {fault!r}") from fault
        return {t.name: self._flip(got[t.name], t, width) for t in self.case.outputs}
