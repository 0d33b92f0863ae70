"""Asks the network for the answer."""

import socket

import rms

run = rms.make()
try:
    socket.create_connection(("192.0.2.1", 80), timeout=0.05)
except OSError:
    pass


def entry(*, x, residual, weight, out, eps):
    """See the module."""
    run(x, residual, weight, out, eps)
