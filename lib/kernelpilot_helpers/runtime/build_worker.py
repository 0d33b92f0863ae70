"""The worker of an arm that is compiled for a GPU and not run: no GPU, no context, perhaps no torch."""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from . import build
from .forge import arch_name
from .worker import Loaded

STOOD_IN = ("torch", "triton")
STOOD_IN_EVENT = "build.stood_in"
"""Kind of the event that names a framework the candidate imports and this Python lacks."""
MAJOR, MINOR = 75, 76
"""Device attributes, numbered as in ``cuda.h``."""


class BuildOnly(Loaded):
    """Imports the candidate so that it builds. Frameworks that this Python lacks are stood in for by name."""

    def prepare_build(self, session: build.Session) -> None:
        """See Loaded."""
        session.gpu, session.arch = True, arch_here()

    def load(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """See Loaded."""
        lacking = [name for name in STOOD_IN if importlib.util.find_spec(name) is None]
        sys.meta_path.append(StandIns(lacking, lambda name: self._guard.note(STOOD_IN_EVENT, name)))
        with self._guard.compiling():
            return super().load(command, fds)


def arch_here() -> str:
    """What this machine's first GPU executes, asked without a context; empty where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return ""
    for value, attribute in ((major, MAJOR), (minor, MINOR)):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device):
            return ""
    return arch_name(major.value, minor.value)


class Named:
    """Anything that a missing framework would have had: its name, good as a key, a decorator or a default."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Named:
        if name.startswith("__"):
            raise AttributeError(name)
        found = Named(f"{self._name}.{name}")
        setattr(self, name, found)  # the same thing at the next look: it may be a key
        return found

    def __call__(self, *args: Any, **_options: Any) -> Any:
        """A decorator gives back what it decorates, anything else itself."""
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getitem__(self, _index: Any) -> Named:
        return self

    def __repr__(self) -> str:
        return self._name


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Named:
        if name.startswith("__"):
            raise AttributeError(name)
        found = Named(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``names`` and everything below them after every other finder has failed."""

    def __init__(self, names: Sequence[str], tell: Callable[[str], None]) -> None:
        self._names = tuple(names)
        self._tell = tell

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """See MetaPathFinder."""
        if fullname.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """See Loader."""
        if spec.name in self._names:
            self._tell(spec.name)
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing runs."""
