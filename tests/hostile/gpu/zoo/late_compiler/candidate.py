"""Calls the compiler in the middle of its work, where no build is allowed."""

import subprocess

import rms

run = rms.make()
COUNT = [0]


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    COUNT[0] += 1
    if COUNT[0] == 8:
        subprocess.run(["nvcc", "--version"], check=False, capture_output=True)
    run(x, residual, weight, out, eps)
