"""Which operations of the framework itself a candidate calls: one untimed call on watched tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .frames import Frame

SILENT = (
    "view", "alias", "detach", "as_strided", "slice", "select", "reshape", "_unsafe_view", "empty", "permute",
    "transpose", "unsqueeze", "squeeze", "expand", "t", "is_", "sym_", "_local_scalar_dense", "lift_fresh",
)  # fmt: skip
"""torch operations that only describe memory."""


def library_calls(frame: Frame, entry: Callable[..., Any], kwargs: Mapping[str, Any]) -> list[str]:
    """Names of the operations seen during ``entry(**kwargs)``, sorted; best effort."""
    if frame.name == "torch":
        return _torch_calls(entry, kwargs)
    return _numpy_calls(frame, entry, kwargs)


def watched(numpy: Any, seen: set[str]) -> Any:
    """A kind of numpy array that adds the name of every function of numpy used on it to ``seen``."""
    array: Any = numpy.ndarray

    def plain(x: Any) -> Any:
        if isinstance(x, Watched):
            return x.view(array)
        if isinstance(x, tuple | list):
            return type(x)(plain(y) for y in x)
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        return x

    def back(x: Any) -> Any:
        return x.view(Watched) if type(x) is array else x

    class Watched(array):  # type: ignore[misc, unused-ignore]
        __slots__ = ()

        def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
            seen.add(ufunc.__name__)
            return back(getattr(ufunc, method)(*plain(args), **plain(kw)))

        def __array_function__(self, func: Any, types: Any, args: Any, kw: Any) -> Any:
            seen.add(func.__name__)
            return back(func(*plain(args), **plain(kw)))

    Watched.__name__ = Watched.__qualname__ = array.__name__
    return Watched


def _numpy_calls(frame: Frame, entry: Callable[..., Any], kwargs: Mapping[str, Any]) -> list[str]:
    seen: set[str] = set()
    kind = watched(frame.xp, seen)
    entry(**{k: v.view(kind) if isinstance(v, frame.xp.ndarray) else v for k, v in kwargs.items()})
    return sorted(seen)


def _torch_calls(entry: Callable[..., Any], kwargs: Mapping[str, Any]) -> list[str]:
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: set[str] = set()

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kw: Any = None) -> Any:
            name = str(func).removeprefix("aten.").split(".")[0]
            if not name.startswith(("sym_", "is_")) and name not in SILENT:
                seen.add(name)
            return func(*args, **(kw or {}))

    with Watch():
        entry(**kwargs)
    return sorted(seen)
