"""Honest: eight elements a load where the addresses allow it, one where they do not."""

from kernelpilot_runtime import build

MODULE = build.nvrtc("kernel.cu")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    rows, cols = x.shape
    wide = all(t.data_ptr() % 16 == 0 and t.stride(0) % 8 == 0 for t in (x, residual, out)) and cols % 8 == 0
    wide = wide and weight.data_ptr() % 16 == 0
    sizes = rows, cols, x.stride(0), residual.stride(0), out.stride(0)
    MODULE.kernel("wide" if wide else "narrow")((rows, 1, 1), (256, 1, 1), (x, residual, weight, out, *sizes, float(eps)))
