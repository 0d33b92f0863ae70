"""``dispatch/dispatch.py`` as text: the rules as plain conditions, the axes read off the contract's shapes."""

from __future__ import annotations

import math
import pprint
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from kernelpilot_helpers.contract import Contract, device, dtypes
from kernelpilot_helpers.contract.model import Baseline, Tensor
from kernelpilot_helpers.contract.tensors import flags_of
from kernelpilot_helpers.dispatcher import gpu_skeleton, skeleton
from kernelpilot_helpers.dispatcher.model import BASELINE, ShapeRule, Table
from kernelpilot_helpers.errors import Refused

CANDIDATE = "candidate.py:entry"
CPU_NEEDS = "C versions are compiled at their first call (cc on PATH) into a folder of this process."
GPU_NEEDS = (
    "versions are compiled at their first call on a GPU, for that GPU, into a folder of this process (CUDA C++ by "
    "NVRTC or nvcc, extensions by ninja, c++ and nvcc on PATH); Triton keeps its own cache. Make a call of each shape "
    "before a CUDA graph is captured. Launches go to torch's current stream."
)


def render(contract: Contract, table: Table) -> str:
    """The whole file. Raises Refused for an axis that no tensor shows."""
    tensors = {n: t for n, t in contract.tensors.items() if t.role != "scalar"}
    free = [name for name, axis in contract.axes.items() if axis.expr is None]
    entries = {r.version: CANDIDATE for r in table.rules} | {BASELINE: fallback(contract).fn.removeprefix("baseline/")}
    gpu = device(contract.target) == "gpu"
    plain = {n: dtypes.normalise(t.dtype) for n, t in tensors.items() if not dtypes.flag_of(t.dtype)}
    head = skeleton.HEAD.format(
        about=_about(contract, GPU_NEEDS if gpu else CPU_NEEDS),
        imports=gpu_skeleton.IMPORTS if gpu else "",
        task=contract.task.name,
        example=", ".join(f"{name}=..." for name in free),
        tensors=", ".join(f"{name}={name}" for name in contract.tensors),
        entries=_literal(dict(sorted(entries.items()))),
        dtypes=_literal(plain),
        optional=_literal(tuple(n for n, t in tensors.items() if t.optional)),
        names=_literal(tuple(contract.tensors)),
        align=math.lcm(*(t.align for t in tensors.values())),
    )
    staged = "prepare" in contract.call.stages
    return "".join(
        (
            head,
            f"AXES = {_literal(tuple(free))}\n",
            f"STAGES = {_literal(contract.call.stages)}\n",
            f"STATIC = {_literal(tuple(n for n, t in tensors.items() if t.role == 'static'))}\n",
            f"SCALARS = {_literal(tuple(n for n, t in contract.tensors.items() if t.role == 'scalar'))}\n",
            _choose(contract, table, free),
            _axes(contract, tensors, free),
            _flags(contract),
            _layout(contract, tensors),
            skeleton.PREPARED_CALL if staged else skeleton.CALL + skeleton.BIND,
            skeleton.TAIL,
            gpu_skeleton.GPU if gpu else skeleton.HOST,
        )
    )


def fallback(contract: Contract) -> Baseline:
    """The baseline that serves what no rule covers: the contract's first, which every version was mapped against."""
    return contract.baseline[0]


def fallback_words(contract: Contract) -> str:
    """Which of several baselines is the fallback, and why; empty where there is one."""
    first, *others = contract.baseline
    if not others:
        return ""
    rest = f"the others ({', '.join(b.id for b in others)}) serve no call"
    return f"The baseline is {first.id}, the first of the contract's: the map compares versions with it; {rest}."


def _about(contract: Contract, needs: str) -> str:
    """Why the fallback is what it is and what the folder needs, as lines of the docstring."""
    text = f"{fallback_words(contract)} Needs this folder and what the baseline imports; {needs}".strip()
    return textwrap.fill(text, 116, break_on_hyphens=False)


def _literal(value: object) -> str:
    return pprint.pformat(value, width=108, sort_dicts=False)


def _choose(contract: Contract, table: Table, free: Sequence[str]) -> str:
    lines = [
        "",
        "",
        f"def choose(*, {', '.join(free)}, flags=None):",
        '    """Version for a shape; ``flags`` as ``flags_of`` gives them."""',
        "    flags = {} if flags is None else flags",
        *(f"    {name} = {axis.expr}" for name, axis in contract.axes.items() if axis.expr is not None),
    ]
    allowed = [f"{name} in {_literal(axis.values)}" for name, axis in contract.axes.items() if axis.values is not None]
    inside = " and ".join([*allowed, *(f"({text})" for text in contract.constraints)])
    if inside:
        lines += [f"    if not ({inside}):", "        return FALLBACK"]
    for rule in table.rules:
        lines += [
            *_comment(f"{rule.regime}: {rule.why}"),
            f"    if {_condition(rule)}:",
            f"        return {rule.version!r}",
        ]
    return "\n".join([*lines, "    return FALLBACK", ""])


def _condition(rule: ShapeRule) -> str:
    """Guards and flags as one condition; a rule without a guard covers every shape."""
    parts = [f"{g.low} <= {g.axis} <= {g.high}" for g in rule.guards]
    parts += [f"flags.get({name!r}) == {value!r}" for name, value in rule.flags.items()]
    return " and ".join(parts) or "True"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 110, initial_indent="    # ", subsequent_indent="    # ")


def _used(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Tensors that are always there."""
    return ((n, t) for n, t in tensors.items() if not t.optional)


def _bindings(contract: Contract, tensors: Mapping[str, Tensor], free: Sequence[str]) -> Iterator[str]:
    """One assignment an axis: where it is read. An axis of one value is that value."""
    for axis in free:
        values = contract.axes[axis].values
        found = next(_places(contract, tensors, axis), None)
        if found is None and values is not None and len(values) == 1:
            found = str(values[0])
        if found is None:
            what = f"not supported yet: axis {axis} is no size (or multiple of one) of a tensor that is always there"
            raise Refused(what, where="contract.toml axes", fix=f"give a tensor a size of {axis}")
        yield f"    {axis} = {found}"


def _places(contract: Contract, tensors: Mapping[str, Tensor], axis: str) -> Iterator[str]:
    """Where an axis can be read: as a size, as a stride, or as a size divided by its whole factor."""
    for call, field in (("_size", "shape"), ("_stride", "stride")):
        for name, tensor in _used(tensors):
            for ix, text in enumerate(getattr(tensor, field)):
                factor = _factor(contract, str(text), axis)
                if factor and (factor == 1 or call == "_size"):
                    read = f"{call}(_t, {name!r}, {len(tensor.shape)}, {ix})"
                    yield read if factor == 1 else f"{read} // {factor}"


def _factor(contract: Contract, text: str, axis: str) -> int:
    """Whole number that ``text`` is times the axis: 1 for the axis itself, 0 for anything else."""
    if text in contract.axes and contract.axes[text].expr is not None:
        text = str(contract.axes[text].expr)
    if text == axis:
        return 1
    found = re.fullmatch(rf"{axis} \* (\d+)|(\d+) \* {axis}", text)
    return int(found[1] or found[2]) if found else 0


def _tuple(items: Sequence[str | int]) -> str:
    return f"({', '.join(map(str, items))}{',' if len(items) == 1 else ''})"


def _axes(contract: Contract, tensors: Mapping[str, Tensor], free: Sequence[str]) -> str:
    lines = [
        "",
        "",
        "def axes_of(_t):",
        '    """Sizes of the axes, read off the tensors (a dict by name). ValueError where two tensors disagree."""',
        "    _expect_names(_t)",
        *_bindings(contract, tensors, free),
        *(f"    {name} = {axis.expr}" for name, axis in contract.axes.items() if axis.expr is not None),
        *(f"    _expect(_t, {name!r}, {_tuple(tensor.shape)})" for name, tensor in tensors.items()),
        f"    return {{{', '.join(f'{name!r}: {name}' for name in contract.axes)}}}",
        "",
    ]
    return "\n".join(lines)


def _flags(contract: Contract) -> str:
    uses = []
    for flag, use in flags_of(contract.tensors).items():
        if use == "optional":
            uses.append(f"{flag!r}: _t.get({flag!r}) is not None")
        elif use == "dtype":
            holder = next(n for n, t in contract.tensors.items() if dtypes.flag_of(t.dtype) == flag)
            uses.append(f"{flag!r}: _dtype(_t[{holder!r}])")
        else:
            holder = next(n for n, t in contract.tensors.items() if dtypes.call_of(t.gen) == ("flag", (flag,)))
            uses.append(f"{flag!r}: _t[{holder!r}]")
    head = ["", "", "def flags_of(_t):", '    """What a case calls its flags, read off the arguments."""']
    return "\n".join([*head, f"    return {{{', '.join(uses)}}}", ""])


def _layout(contract: Contract, tensors: Mapping[str, Tensor]) -> str:
    lines = [
        "",
        "",
        f"def _laid_out(_t, {', '.join(contract.axes)}):",
        '    """Whether every tensor lies as the versions were measured: strides and alignment of the contract."""',
        "    return (",
    ]
    tests = [
        f"_lies(_t.get({name!r}), {_tuple(t.stride) if t.stride else None}, {t.align}, {t.offset})"
        for name, t in tensors.items()
    ]
    return "\n".join([*lines, *(f"        {'and ' if ix else ''}{test}" for ix, test in enumerate(tests)), "    )", ""])
