"""KernelPilot's referee: the only code that may say *correct*, *faster*, *profiled* or *done*."""

__version__ = "0.1.0"
