"""Carry out a plain install or an uninstall; the only module that walks a plan."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kernelpilot_install import grant, leftovers, trust
from kernelpilot_install.changes import Change, Tools, Venv, folders
from kernelpilot_install.files import crash_point, locked, temporary
from kernelpilot_install.manifest import Book, Entry
from kernelpilot_install.options import Options
from kernelpilot_install.places import Places
from kernelpilot_install.plan import clients, closing, plan_install
from kernelpilot_install.undo import carry_out, judge
from kernelpilot_install.venvs import Pip, Recipe, outdated


@contextlib.contextmanager
def opened(at: Places) -> Iterator[Book]:
    """The manifest under the installer's lock; the data folder is made and noted first."""
    made = folders([at.data])
    with locked(at.lock):
        book = Book(at.manifest)
        book.note(*(Entry(kind="dir", path=str(f.path)) for f in made))
        yield book


def carry(changes: Iterable[Change], book: Book, pip: Pip) -> None:
    """Make the changes in order; any kill between two of them is mended by running again."""
    for i, change in enumerate(changes):
        crash_point(f"change-{i}")
        change.make(Tools(book=book, pip=pip))


def run(o: Options, *, at: Places, env: Mapping[str, str], pip: Pip) -> int:
    """A plain install. Returns 0, or 1 with findings. Raises InstallError before anything is touched."""
    if o.trust_hook:
        grant.possible(at, clients(o, at, env))
    if o.dry_run:
        return _print_plan(o, at, env, pip)
    plan_install(o, at, env, Book(at.manifest).manifest, pip)
    with opened(at) as book:
        plan = plan_install(o, at, env, book.manifest, pip)
        book.belongs_to(at.clone)
        carry(plan.changes, book, pip)
        _undo(plan.stale, book)
    for change in plan.changes:
        print(f"done: {change.describe()}")
    for entry in plan.stale:
        print(f"removed: {entry.path} (not in this version)")
    if not plan.changes and not plan.stale:
        print("everything is up to date: nothing changed")
    for finding in plan.findings:
        print(f"finding: {finding}")
    if o.trust_hook:
        print("\n".join(grant.grant(at, env)))
    print("\n".join(closing(plan, at)))
    return 1 if plan.findings else 0


def _print_plan(o: Options, at: Places, env: Mapping[str, str], pip: Pip) -> int:
    plan = plan_install(o, at, env, Book(at.manifest).manifest, pip)
    lines = [c.describe() for c in [*folders([at.data]), *plan.changes]] if plan.changes else []
    lines += [f"remove {e.path} (not in this version)" for e in plan.stale]
    lines += ["ask Codex to record that our Stop hook is trusted"] if o.trust_hook else []
    for line in dict.fromkeys(lines):
        print(f"would {line}")
    for line in plan.findings:
        print(f"finding: {line}")
    for line in plan.notes:
        print(line)
    print("dry run: nothing was changed" if lines else "everything is up to date: nothing to change")
    return 1 if plan.findings else 0


def ensure(recipes: Iterable[Recipe], book: Book, pip: Pip) -> None:
    """Bring venvs up to date outside a plain install (demo, test)."""
    for recipe in recipes:
        why = outdated(recipe, pip)
        if why:
            carry([*folders([recipe.path.parent]), Venv(recipe=recipe, why=why)], book, pip)


def uninstall(o: Options, *, at: Places) -> int:
    """Undo the manifest, newest first, then remove it. Returns 1 when something had to be left."""
    if not at.manifest.is_file():
        if not o.dry_run:
            with contextlib.suppress(OSError):
                at.data.rmdir()
        print(f"nothing is installed: there is no {at.manifest}")
        _rest(o, at)
        return 0
    if o.dry_run:
        print("".join(f"{line}\n" for line in leftovers.served(at)), end="")
        for entry in reversed(Book(at.manifest).manifest.entries):
            verdict = judge(entry)
            if verdict.act != "gone" or entry.kind == "dir":
                print(f"would {_words(entry, verdict.act, verdict.why)}")
        print("\n".join(leftovers.clear_cache(at, dry_run=True)) or "no cache of ours to remove")
        print("dry run: nothing was changed")
        return 0
    print("".join(f"{line}\n" for line in leftovers.served(at)), end="", flush=True)
    in_codex = trust.left_behind(at)
    own = {str(p) for p in (at.data, *at.data.parents)}
    with locked(at.lock):
        book = Book(at.manifest)
        newest_first = book.manifest.entries[::-1]
        outer = [e for e in newest_first if e.path in own]
        left = _undo([e for e in newest_first if e.path not in own], book)
        for path in (temporary(at.manifest), at.manifest, at.lock):
            path.unlink(missing_ok=True)
    for entry in outer:
        carry_out(entry, judge(entry))
    with contextlib.suppress(OSError):
        at.data.rmdir()
    if any(Path(e.path).is_relative_to(at.codex) for e in newest_first):
        print("restart Codex: a running one still shows what was removed")
        print("".join(f"{line}\n" for line in in_codex), end="")
    _rest(o, at)
    print("uninstalled" if not left else f"uninstalled, but {left} left as named above")
    return 1 if left else 0


def _rest(o: Options, at: Places) -> None:
    for line in (*leftovers.clear_cache(at, dry_run=o.dry_run), *leftovers.others(at, Path.cwd())):
        print(line)


def _undo(entries: Iterable[Entry], book: Book) -> int:
    """Undo entries one by one, each dropped from the manifest once it is done; returns how many were left."""
    left = 0
    for i, entry in enumerate(entries):
        crash_point(f"undo-{i}")
        verdict = judge(entry)
        carry_out(entry, verdict)
        book.forget(entry.path)
        if verdict.act != "gone":
            print(_words(entry, verdict.act, verdict.why))
        left += verdict.act == "left"
    return left


def _words(e: Entry, act: str, why: str) -> str:
    if act == "left":
        return f"leave {e.path}: {why}"
    if act == "restore":
        return f"take our Stop hook out of {e.path}"
    return f"remove {e.path}" + (" if it is empty then" if e.kind == "dir" and act == "gone" else "")
