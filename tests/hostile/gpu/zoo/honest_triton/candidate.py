"""Honest: Triton with autotuning, which runs once a shape, while it may still compile."""

import triton
import triton.language as tl

CONFIGS = [triton.Config({}, num_warps=n) for n in (2, 4, 8)]


@triton.autotune(configs=CONFIGS, key=["cols"], restore_value=["residual"])
@triton.jit
def kernel(x, residual, weight, out, cols, ldx, ldr, ldo, eps, WIDE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDE)
    here = at < cols
    total = tl.load(x + row * ldx + at, mask=here, other=0.0).to(tl.float32)
    total += tl.load(residual + row * ldr + at, mask=here, other=0.0).to(tl.float32)
    total = total.to(residual.dtype.element_ty)
    tl.store(residual + row * ldr + at, total, mask=here)
    total = total.to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(total * total) / cols + eps)
    result = total * scale * tl.load(weight + at, mask=here, other=0.0).to(tl.float32)
    tl.store(out + row * ldo + at, result.to(out.dtype.element_ty), mask=here)


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    rows, cols = x.shape
    sizes = cols, x.stride(0), residual.stride(0), out.stride(0), eps
    kernel[(rows,)](x, residual, weight, out, *sizes, WIDE=triton.next_power_of_2(cols))
