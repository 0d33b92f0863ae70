"""The part of the referee that runs in the task's own Python: standard library plus numpy or torch, no verdict.

It is copied to a directory named by its content and started as ``python -I <dir>/kernelpilot_runtime JOBDIR``.
A candidate may use one module of it: ``from kernelpilot_runtime import build``.
"""
