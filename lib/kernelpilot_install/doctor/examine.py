"""All checks in order; what a check trips over becomes its answer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from kernelpilot_install.doctor import (
    commits,
    features,
    gpu_task,
    leftover,
    limits,
    loop,
    machine,
    reviewer,
    seen,
    stops,
    trusting,
    visible,
)
from kernelpilot_install.doctor.check import Check, Here
from kernelpilot_install.manifest import Book
from kernelpilot_install.places import clients_found
from kernelpilot_install.problems import InstallError


def examine(here: Here) -> list[Check]:
    """Every check, the ones about clients only for the clients served."""
    found = [
        *_guarded("tools", partial(machine.tools, here)),
        *_guarded("command", partial(machine.command, here)),
        *_guarded("clients", partial(_clients, here)),
        *_guarded("nested-skills", partial(leftover.nested, here)),
        *_guarded("placeholders", partial(leftover.placeholders, here)),
        *_guarded("evidence", partial(loop.evidence, here)),
        *_guarded("heartbeat", partial(loop.heartbeat, here)),
        *_guarded("task-python", partial(machine.task_python, here)),
        *_guarded("commit", partial(commits.possible, here)),
        *_guarded("git-identity", partial(machine.git_identity, here)),
        *_guarded("gpu", partial(machine.gpu, here)),
        *_guarded("gpu-task", partial(gpu_task.able, here)),
        *_guarded("ncu", partial(machine.ncu, here)),
        *_guarded("disk", partial(machine.disk, here)),
    ]
    return list(dict.fromkeys(found))


def _clients(here: Here) -> Iterator[Check]:
    """Skills, hook and trust of each client that is asked for, or that an install served."""
    asked = {"both": ("codex", "claude"), None: ()}.get(here.client, (here.client,) if here.client else ())
    roots = {"codex": here.at.codex, "claude": here.at.claude}
    entries = Book(here.at.manifest).manifest.entries
    found = clients_found(here.at, here.env)
    install = f"{shlex.quote(str(here.at.clone / 'install.sh'))} --client"
    if not asked and not found:
        what = "no client was found: neither Codex nor Claude Code has a folder or a program here"
        yield Check(name="clients", status="warn", what=what, fix=f"{install} both  # once one of them is installed")
    for client, root in roots.items():
        served = any(Path(e.path).is_relative_to(root) and Path(e.path) != root for e in entries)
        if client in asked or (not asked and served):
            yield from _client(here, client, root)
        elif not asked and client in found:
            what = f"{client} is here, but nothing was installed for it"
            yield Check(name="clients", status="warn", what=what, fix=f"{install} {client}")


def _client(here: Here, client: str, root: Path) -> Iterator[Check]:
    yield from _guarded(f"skills-{client}", partial(seen.links, here, client, root))
    if client == "codex":
        yield from _guarded("skills-codex", partial(seen.codex_doubles, here))
        yield from _guarded("skills-codex", partial(seen.codex_switched_off, here))
        yield from _guarded("visible-codex", partial(visible.codex, here))
    else:
        yield from _guarded("skills-claude", partial(seen.claude_doubles, here))
    yield from _guarded(f"hook-{client}", partial(stops.registered, here, client, root))
    yield from _guarded(f"timeout-{client}", partial(limits.order, here, client, root))
    if client == "codex":
        yield from _guarded("feature-codex", partial(features.codex, here))
        yield from _guarded("trust-codex", partial(trusting.codex_trust, here))
    else:
        yield from _guarded("cap-claude", partial(limits.caps, here))
    yield from _guarded(f"reviewer-{client}", partial(reviewer.ping, here, client))


def _guarded(name: str, check: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from check()
    except InstallError as e:
        what = f"{e.where}: {e.what}" if e.where else e.what
        yield Check(name=name, status="fail", what=what, fix=e.fix.replace("; nothing was changed", ""))
    except (OSError, ValueError, RecursionError) as e:
        looks = f"ls -ld {shlex.quote(str(getattr(e, 'filename', None) or '.'))}"
        yield Check(name=name, status="fail", what=f"could not be looked at: {e}", fix=f"{looks}  # check its rights")
