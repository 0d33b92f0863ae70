"""What an uninstall finds beside the manifest: our cache is removed by known names, the rest is named and left."""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from kernelpilot_install.places import Places

DEVICE_LOCK = "device.lock"
_LOCKS = (DEVICE_LOCK, f"{DEVICE_LOCK}.owner")
_TABLES = re.compile(r"knowledge-\d+-[0-9a-f]{16}\.sqlite|\.knowledge-\w+\.tmp")
_DEMO = re.compile(r"kernelpilot-demo(-\d+)?")
_ENTRY_BYTES_MAX = 65536
_RUNTIME = re.compile(r"[0-9a-f]{64}|\.new-\w+")


def clear_cache(at: Places, *, dry_run: bool) -> list[str]:
    """Remove the cache's entries of ours; what anybody else put there stays. Returns the lines to print."""
    try:
        return _clear(at.cache, dry_run=dry_run)
    except OSError as e:
        return [f"leave {at.cache}: {e.strerror or e}"]


def _clear(cache: Path, *, dry_run: bool) -> list[str]:
    names = list(_known(cache))
    if not names:
        return []
    if dry_run:
        return [f"would remove the cache {cache}"]
    with contextlib.ExitStack() as held:
        if not _free(cache / DEVICE_LOCK, held):
            return [f"leave {cache}: a measurement is running; later: rm -r {shlex.quote(str(cache))}"]
        for path in names:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for folder in (cache / "runtime", cache):
            with contextlib.suppress(OSError):
                folder.rmdir()
    stays = cache.exists()
    return [f"remove the cache {cache}" + (": what is not ours in it is left" if stays else "")]


def _known(cache: Path) -> Iterator[Path]:
    if cache.is_symlink() or not cache.is_dir():
        return
    for path in sorted(cache.iterdir()):
        if path.is_file() and (path.name in _LOCKS or _TABLES.fullmatch(path.name)):
            yield path
    runtime = cache / "runtime"
    if runtime.is_dir() and not runtime.is_symlink():
        yield from (p for p in sorted(runtime.iterdir()) if p.is_dir() and _RUNTIME.fullmatch(p.name))


def _free(lock: Path, held: contextlib.ExitStack) -> bool:
    """Take the device lock where there is one; False while a job holds it."""
    if not lock.is_file():
        return True
    file = held.enter_context(lock.open("rb"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def served(at: Places) -> list[str]:
    """Warnings, before the Stop hook is taken out: the loops in the registry go on under no hook from then on."""
    lines = []
    for path in sorted((at.loops / "sessions").glob("*.json")):
        try:
            where = str(json.loads(path.read_bytes()[:_ENTRY_BYTES_MAX])["worktree"])
        except (OSError, ValueError, LookupError, TypeError):
            where = str(path)
        lines.append(
            f"warning: a loop is active, {where}: without the Stop hook nobody judges it; cancel it there first"
        )
    return lines


def others(at: Places, here: Path) -> list[str]:
    """Lines on what an install, a demo or a loop may have made and nobody removes for the user."""
    found = [(at.data, "it holds what the manifest does not list")] if at.data.exists() else []
    found += [(at.loops, "the registry of loops, which an active one needs")] if at.loops.exists() else []
    logs = at.cache.parent / "humanize"
    found += [(logs, "the logs of loops: what reviewers and driven clients printed")] if logs.exists() else []
    demos = sorted(
        {
            p
            for folder in (here, at.clone)
            for p in folder.glob("kernelpilot-demo*")
            if _DEMO.fullmatch(p.name) and p.is_dir()
        }
    )
    found += [(p, "a demo's repo") for p in demos]
    lines = [f"still here: {path}, {what}; rm -r {shlex.quote(str(path))}" for path, what in found]
    if any(p.is_dir() for p in (at.clone / "lib").rglob("__pycache__")):
        remove = f"find {shlex.quote(str(at.clone))} -name __pycache__ -prune -exec rm -r {{}} +"
        lines.append(f"still here: byte code in {at.clone}; {remove}")
    return [*lines, "repos that scaffold or a demo made elsewhere are yours and are not looked for"]
