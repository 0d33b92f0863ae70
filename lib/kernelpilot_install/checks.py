"""``--test``: set up, then linters, types, generated pages and all tests; every check runs, any failure counts."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kernelpilot_install import taskpython
from kernelpilot_install.demo import by_hand, task_recipe
from kernelpilot_install.manifest import Book
from kernelpilot_install.options import TORCH_SPEC, Options
from kernelpilot_install.places import Places
from kernelpilot_install.plan import tool_recipe
from kernelpilot_install.private import private_environment
from kernelpilot_install.problems import InstallError
from kernelpilot_install.steps import ensure, opened
from kernelpilot_install.venvs import Pip, Recipe, outdated

DISK_BYTES = 8 * 10**9
"""Free space asked for before torch is fetched: the default index's build unpacks to over 5 GB."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One command of the run."""

    title: str
    argv: tuple[str, ...]


def tested_recipe(o: Options, at: Places) -> Recipe:
    """The tool with the dev requirements: beside the tool's venv, or the clone's .venv with ``--dev``."""
    recipe = tool_recipe(at, dev=True)
    return recipe if o.dev else replace(recipe, path=at.data / "test-venv", title="the tests")


def torch_recipe(o: Options, at: Places) -> Recipe:
    """The venv for torch tests."""
    return Recipe(path=at.data / "task-venv-torch", title="tasks (torch)", packages=(o.torch or TORCH_SPEC,))


def run(o: Options, *, at: Places, env: Mapping[str, str], pip: Pip) -> int:
    """Returns 0 when every check passed, else 1. pytest's own summaries are the last things printed."""
    tool = tested_recipe(o, at)
    if o.dry_run:
        for r in (tool, task_recipe(at), torch_recipe(o, at)):
            print(f"would make sure of the venv {r.path}")
        for c in (*_static(tool.path, at.clone), *_pytest(tool.path, o)):
            print(f"would run {shlex.join(c.argv[:6])}{' ...' if len(c.argv) > 6 else ''}")
        print("dry run: nothing was changed")
        return 0
    with opened(at) as book:
        ensure([tool] if by_hand(at) else [tool, task_recipe(at)], book, pip)
        torch = _torch_python(o, at, env, book, pip)
    static = () if o.pytest_args else _static(tool.path, at.clone)
    with private_environment(env) as private:
        private.pop("KERNELPILOT_PYTHON", None)
        private.pop("KERNELPILOT_TORCH_PYTHON", None)
        private.setdefault("KERNELPILOT_TEST_NUMPY_PYTHON", str(task_recipe(at).python))
        if torch is not None:
            private.setdefault("KERNELPILOT_TEST_TORCH_PYTHON", torch)
        failed = [c.title for c in static if not _passes(c, at.clone, private)]
        if static:
            print(f"\nbefore pytest: {len(static) - len(failed)} of {len(static)} checks passed", flush=True)
            print("".join(f"  FAILED: {title}\n" for title in failed), end="", flush=True)
        tested = [_passes(c, at.clone, private, say_time=False) for c in _pytest(tool.path, o)]
    return 0 if all(tested) and not failed else 1


def _torch_python(o: Options, at: Places, env: Mapping[str, str], book: Book, pip: Pip) -> str | None:
    """An interpreter with torch: found, or made; None with a printed reason."""
    if o.torch is None:
        variable = "KERNELPILOT_TORCH_PYTHON"
        found = taskpython.find(env, taskpython.TORCH, variable=variable, never=at.data)
        if found is not None:
            print(f"- torch: {found.command} ({found.source})", flush=True)
            return found.command
    recipe = torch_recipe(o, at)
    try:
        if outdated(recipe, pip):
            free = shutil.disk_usage(at.data).free
            print(
                f"- torch: {recipe.packages[0]} into {recipe.path}: about 1 GB as a CPU build, over 5 GB as the "
                f"default index's; {free / 1e9:.0f} GB are free",
                flush=True,
            )
            if free < DISK_BYTES:
                print(f"  skipped: {DISK_BYTES / 1e9:.0f} GB are asked for; the torch tests will be skipped")
                return None
            ensure([recipe], book, pip)
    except InstallError as e:
        print(f"  no torch: {e}\n  the torch tests will be skipped", flush=True)
        return None
    if taskpython.probe([str(recipe.python)], taskpython.TORCH) is None:
        print(f"  no torch: {recipe.python} cannot import it; the torch tests will be skipped", flush=True)
        return None
    return str(recipe.python)


def shell_files(clone: Path) -> list[str]:
    """Files of the checkout that shellcheck should read: ``*.sh`` and those whose first line names a sh or bash."""
    argv = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=clone, capture_output=True, text=True, check=False).stdout
    return [name for name in sorted(set(listed.split("\0"))) if name and _is_shell(clone / name)]


def _is_shell(path: Path) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as f:
        first = f.readline(128)
    words = first[2:].split() if first.startswith(b"#!") else []
    names = {w.rsplit(b"/", 1)[-1] for w in words}
    return path.suffix == ".sh" or bool(names & {b"sh", b"bash", b"dash"})


def _static(venv: Path, clone: Path) -> tuple[Check, ...]:
    program = venv / "bin"
    python = str(program / "python")
    checks = [
        Check(title="ruff check", argv=(str(program / "ruff"), "check", "--quiet", ".")),
        Check(title="ruff format", argv=(str(program / "ruff"), "format", "--check", "--quiet", ".")),
        Check(title="mypy --strict", argv=(python, "-m", "mypy")),
        Check(title="shellcheck", argv=(str(program / "shellcheck"), *shell_files(clone))),
    ]
    if (clone / "scripts" / "gen_docs.py").is_file():
        checks.append(Check(title="generated pages", argv=(python, "scripts/gen_docs.py", "--check")))
    return tuple(checks)


def _pytest(venv: Path, o: Options) -> tuple[Check, ...]:
    """The tests that time nothing, two at a time, then those that measure; or the user's own choice of tests."""
    start = (str(venv / "bin" / "python"), "-m", "pytest")
    if o.pytest_args:
        return (Check(title="pytest", argv=(*start, *o.pytest_args)),)
    return (
        Check(title="pytest, two at a time", argv=(*start, "-m", "not measures", "-n", "2", "--dist", "loadfile")),
        Check(title="pytest, what measures", argv=(*start, "-m", "measures")),
    )


def _passes(c: Check, clone: Path, env: Mapping[str, str], *, say_time: bool = True) -> bool:
    print(f"\n== {c.title}", flush=True)
    start = time.monotonic()
    try:
        code = subprocess.run(c.argv, cwd=clone, env=dict(env), check=False).returncode
    except OSError as e:
        print(f"could not start: {e}", flush=True)
        code = 1
    if say_time:
        word = "passed" if code == 0 else f"FAILED (exit {code})"
        print(f"{word} in {time.monotonic() - start:.0f} s", flush=True)
    return code == 0
