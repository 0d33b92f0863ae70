"""A contract and one case to the case of a job: every expression a number, every flag a value."""

from __future__ import annotations

from kernelpilot_helpers.attempt.job import Figure, JobCase, TensorSpec
from kernelpilot_helpers.contract import Case, Contract, device, sizes_of, timed
from kernelpilot_helpers.contract.dtypes import call_of, canonical, default_gen, flag_of, normalise, scalar_of
from kernelpilot_helpers.contract.model import Tensor
from kernelpilot_helpers.contract.sizes import layout


def resolve(contract: Contract, case: Case) -> JobCase:
    """Tensors in call order; optional ones only where the case's flag of that name is true.

    Raises BadRecord when the case does not fit the contract.
    """
    sizes = sizes_of(contract, case)
    return JobCase(
        case_id=case.case_id,
        axes=sizes,
        flags=case.flags,
        tensors=tuple(
            _tensor(name, tensor, case, sizes)
            for name, tensor in contract.tensors.items()
            if not tensor.optional or case.flags.get(name) is True
        ),
        required=case.required,
        edge=case.edge,
        held_out=case.held_out,
        timed=timed(case),
        figure=figure_of(contract, case),
    )


def figure_of(contract: Contract, case: Case) -> Figure:
    """The figure that decides a case: its own, its regime's, else pipelined; the CPU knows only the last."""
    if device(contract.target) == "cpu":
        return "pipelined"
    return case.decide or contract.timing.decide.get(case.regime, "pipelined")


def _tensor(name: str, tensor: Tensor, case: Case, sizes: dict[str, int]) -> TensorSpec:
    picked = flag_of(tensor.dtype)
    dtype = normalise(str(case.flags[picked]) if picked else tensor.dtype)
    if tensor.role == "scalar":
        return TensorSpec(
            name=name, role="scalar", dtype=dtype, shape=(), stride=(), gen="", value=_scalar(tensor, case)
        )
    shape, stride, offset = layout(name, tensor, case, sizes)
    wanted = case.gen.get(name) or tensor.gen
    return TensorSpec(
        name=name,
        role=tensor.role,
        dtype=dtype,
        shape=shape,
        stride=stride,
        offset=offset,
        align=tensor.align,
        gen=canonical(wanted) if wanted else default_gen(dtype),
        residency=tensor.residency or "cold",
    )


def _scalar(tensor: Tensor, case: Case) -> float | int | bool | None:
    call, args = call_of(tensor.gen)
    if call != "flag":
        return scalar_of(tensor.gen, tensor.dtype)
    value: float | int | bool = case.flags[args[0]]
    return float(value) if tensor.dtype.startswith(("float", "bfloat")) else value
