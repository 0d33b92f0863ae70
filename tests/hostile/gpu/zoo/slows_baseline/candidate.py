"""Adds a delay to the other arm's source."""

import pathlib

import rms

run = rms.make()
with (pathlib.Path(__file__).parents[1] / "A" / "candidate.py").open("a") as other:
    other.write("\nhonest = entry\ndef entry(**t): honest(**t); honest(**t)\n")


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
