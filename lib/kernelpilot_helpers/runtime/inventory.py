"""What ran on the GPU during one call, by the profiler's activity records, and which of it the arm built itself."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

LIBRARY = re.compile(
    r"^(nvjet_|cublas|cudnn|nccl|cask_|sm\d+_xmma_|volta_|turing_|ampere_|(at|c10|at_cuda_detail|pytorch_flash)::"
    r"|PyTorchMemEffAttention|fmha_cutlass|.*::cublas)"
)
"""Where the frameworks' and vendors' own kernels live: a candidate that takes such a name does not own it."""
LIBRARY_TYPE = re.compile(r"(?<![A-Za-z_])(cutlass_\d+_|cublas[A-Z]|PyTorchMemEffAttention)")
"""Template argument of the vendor's instantiations of a public kernel."""
OTHERS = re.compile(r"^(Memcpy|Memset)\b")
WAITS = re.compile(r"^(Context|Stream|Event) (Sync|Wait)|^Stream Wait Event|^Event Record")
BUILT = (".cubin", ".so", ".fatbin", ".ptx", ".o")
NODES = ("memcpy", "memset", "host function", "graph")
"""Words of ``graphs.Program.names`` for what is no kernel."""
WORD = rb"[A-Za-z0-9_$]"
UNNAMED = b"_GLOBAL__N_"
MANGLED = re.compile(r"_Z(L?|(?P<nested>N[rVK]*))(?=\d)")
LENGTH = re.compile(r"\d+")
SYMBOL = re.compile(rb"_Z" + WORD + rb"+")

_warmed: list[bool] = []


class Unwatched(Exception):
    """The profiler cannot be used here; the message says why (event ``note.inventory``)."""


def watch(device: Any, fn: Callable[[], object]) -> tuple[list[list[Any]], int]:
    """Run ``fn`` once and answer ``([[name, count, ns], ...], span_ns)`` of the kernels, copies and fills it started.

    ``fn`` must have been called before (compiled, warmed). ``span_ns`` goes from the first start to the last end.
    The first use in a process costs seconds. Raises Unwatched where there are no activity records; what ``fn``
    raises passes through.
    """
    if not _warmed:
        _warm(device)
        _warmed.append(True)
    return gather(_records(device, fn))


def _warm(device: Any) -> None:
    """Start the profiler on a known kernel, which must be seen."""
    try:
        import torch
        from torch.profiler import ProfilerActivity, supported_activities
    except ImportError as fault:
        raise Unwatched(f"torch has no profiler: {fault}") from fault
    if ProfilerActivity.CUDA not in supported_activities():
        raise Unwatched("this torch records no GPU activity")
    known = torch.zeros(1024, device=device.torch_device)
    seen = [_records(device, lambda: known.add_(1.0)) for _ in range(2)]
    if not seen[-1]:
        raise Unwatched("the profiler did not see a kernel that certainly ran")


def _records(device: Any, fn: Callable[[], object]) -> list[tuple[str, int, int]]:
    """(name, start ns, duration ns) of everything on the GPU while ``fn`` ran."""
    from torch.profiler import ProfilerActivity, profile

    device.synchronize()
    profiler = profile(activities=[ProfilerActivity.CUDA])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a Python that makes errors of warnings is no profiler that does not start
            profiler.__enter__()
    except Exception as fault:  # another profiler holds the hardware, no rights, ...
        raise Unwatched(f"the profiler does not start: {fault}") from fault
    try:
        fn()
        device.synchronize()
    finally:
        profiler.__exit__(None, None, None)
    results = getattr(profiler.profiler, "kineto_results", None)
    if results is None:
        raise Unwatched("the profiler gave no activity records")
    return [(e.name(), e.start_ns(), e.duration_ns()) for e in results.events() if _on_gpu(e)]


def _on_gpu(event: Any) -> bool:
    """A kernel, a copy or a fill; not a wait, and not a range that somebody named."""
    from torch.autograd import DeviceType

    named = getattr(event, "is_user_annotation", None)
    if event.device_type() != DeviceType.CUDA or (named is not None and named()):
        return False
    return event.duration_ns() > 0 and WAITS.match(event.name()) is None


def gather(records: Iterable[tuple[str, int, int]]) -> tuple[list[list[Any]], int]:
    """Records summed by name, longest first, and the span over all of them in ns.

    >>> gather([("k", 100, 10), ("Memset (Device)", 90, 5), ("k", 120, 30)])
    ([['k', 2, 40], ['Memset (Device)', 1, 5]], 60)
    """
    found: dict[str, list[Any]] = {}
    first, last = None, 0
    for name, start, ns in records:
        entry = found.setdefault(name, [name, 0, 0])
        entry[1] += 1
        entry[2] += ns
        first = start if first is None else min(first, start)
        last = max(last, start + ns)
    return sorted(found.values(), key=lambda e: (-e[2], e[0])), 0 if first is None else last - first


def path_of(name: str) -> tuple[str, ...]:
    """Namespaces and identifier of a kernel's (demangled or plain) name; empty for copies and fills.

    >>> path_of("void rms<256>(float const*, float*)")
    ('rms',)
    >>> path_of("void (anonymous namespace)::softmax<float, 4>(float*)")
    ('softmax',)
    >>> path_of("std::enable_if<!(false), void>::type gemv::kernel<int, (bool)1>(int)")
    ('gemv', 'kernel')
    """
    if OTHERS.match(name):
        return ()
    depth, kept = 0, []
    for char in name.replace("->", "").partition(" [clone")[0]:
        depth += char in "<("
        if not depth:
            kept.append(char)
        depth -= char in ">)" and depth > 0
    words = "".join(kept).split()
    return tuple(part for part in words[-1].split("::") if part) if words else ()


def mangled_path(name: str) -> tuple[str, ...]:
    """Namespaces and identifier of a mangled name as far as they are plain; empty for another kind of name.

    >>> mangled_path("_ZN2at6native12_GLOBAL__N_15indexIfEEvPT_")
    ('at', 'native', 'index')
    >>> mangled_path("_Z3rmsILi256EEvPKfPf")
    ('rms',)
    """
    head = MANGLED.match(name)
    parts, at = [], head.end() if head else len(name)
    while (digits := LENGTH.match(name, at)) is not None:
        at = digits.end() + int(digits[0])
        parts.append(name[digits.end() : at])
        if head and not head["nested"]:
            break
    return tuple(p for p in parts if not p.startswith(UNNAMED.decode()))


def ours(names: Iterable[str], build_dir: Path) -> dict[str, bool]:
    """Which kernels' code lies in a file that the arm built: cubins, libraries and Triton's cache below its folder.

    A plain name must stand there as a whole word, one with namespaces or template arguments as part of a mangled
    name. Copies, fills and the libraries' own kernels are never the arm's.
    """
    files = sorted(p for p in build_dir.rglob("*") if p.suffix in BUILT and p.is_file() and not p.is_symlink())
    blobs = [p.read_bytes() for p in files]
    symbols = {symbol for blob in blobs for symbol in SYMBOL.findall(blob)}
    return {name: holds(blobs, symbols, name) for name in names}


def holds(blobs: Sequence[bytes], symbols: Collection[bytes], name: str) -> bool:
    """Whether one of the files defines or registers the kernel ``name``; ``symbols`` are their mangled names."""
    parts = path_of(name)
    full = "::".join(mangled_path(name) or parts)
    if not parts or name in NODES or LIBRARY.match(full) or LIBRARY_TYPE.search(name):
        return False
    own = parts[-1].encode()
    if own.startswith(b"_Z"):
        return own in symbols
    lengths = [b"%d%s" % (len(p), p.encode()) for p in parts]
    if any(_in_order(symbol, lengths) for symbol in symbols):
        return True
    whole = re.compile(rb"(?<!" + WORD + rb")" + re.escape(own) + rb"(?!" + WORD + rb")")
    return len(parts) == 1 and any(whole.search(blob) for blob in blobs)


def _in_order(symbol: bytes, parts: Sequence[bytes]) -> bool:
    """Unnamed namespaces with a name of their own, and a class's template arguments, may stand between the parts."""
    at = 0
    for part in parts:
        at = symbol.find(part, at)
        # 13rmsnormalized holds 3rms; the compiler's name of an unnamed namespace may end in any digit.
        while at > 0 and symbol[at - 1 : at].isdigit() and UNNAMED not in symbol:
            at = symbol.find(part, at + 1)
        if at < 0:
            return False
        at += len(part)
    return True
