"""``--demo``: set up without touching the user's clients or command, then run the main job to its report."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kernelpilot_install import taskpython
from kernelpilot_install.options import Options
from kernelpilot_install.places import Places
from kernelpilot_install.plan import tool_recipe
from kernelpilot_install.private import private_environment
from kernelpilot_install.problems import InstallError
from kernelpilot_install.steps import ensure, opened
from kernelpilot_install.venvs import Pip, Recipe, read_stamp

FOLDER = "kernelpilot-demo"


def task_recipe(at: Places) -> Recipe:
    """A small Python for tasks: numpy only. The demo never downloads torch."""
    lock = at.clone / "requirements-task.lock"
    return Recipe(path=at.data / "task-venv", title="tasks (numpy)", requirements=(lock,))


def demo_recipe(o: Options, at: Places) -> Recipe:
    """The tool's venv; one of its own when that one runs another clone, which a demo must not re-point."""
    recipe = tool_recipe(at, dev=o.dev)
    stamp = read_stamp(recipe.path)
    if stamp is not None and stamp.get("clone") != str(at.clone):
        return replace(recipe, path=at.data / "demo-venv", title="the demo")
    return recipe


def fresh(wanted: Path) -> Path:
    """``wanted``, numbered when that exists."""
    folder, n = wanted, 1
    while folder.exists() or folder.is_symlink():
        n += 1
        folder = wanted.with_name(f"{wanted.name}-{n}")
    return folder


def by_hand(at: Places) -> bool:
    """True when the user made the venv for tasks with the printed line: used as it is, and never rebuilt."""
    task = task_recipe(at)
    if read_stamp(task.path) is not None or not task.python.exists():
        return False
    return taskpython.probe([str(task.python)], taskpython.NUMPY) is not None


def _vacant(o: Options, at: Places) -> Path:
    """The folder for this run. Raises InstallError when the one named holds something."""
    free = fresh(Path.cwd() / FOLDER)
    if o.directory is None:
        if free.name != FOLDER:
            print(f"- {FOLDER} is kept as an earlier run left it; this one goes to {free.name}")
        return free
    if o.directory.is_symlink() or (o.directory.exists() and (not o.directory.is_dir() or any(o.directory.iterdir()))):
        again = f"{shlex.quote(str(at.clone / 'install.sh'))} --demo --dir"
        raise InstallError(
            "is there and not empty: a demo needs a folder of its own",
            where=str(o.directory),
            fix=f"{again} {shlex.quote(str(fresh(o.directory.absolute())))}",
        )
    return o.directory


def run(o: Options, *, at: Places, env: Mapping[str, str], pip: Pip) -> int:
    """Set up, run, and pass the demo's exit code on (128 + signal when it was killed)."""
    found = taskpython.find(env, taskpython.NUMPY_OR_TORCH, never=at.data)
    if env.get("KERNELPILOT_PYTHON") and (found is None or found.source != "KERNELPILOT_PYTHON"):
        print(f"note: KERNELPILOT_PYTHON={env['KERNELPILOT_PYTHON']} has no numpy or torch, so it is not used")
    tool, task = demo_recipe(o, at), task_recipe(at)
    folder = _vacant(o, at)
    command = found.command if found else shlex.quote(str(task.python))
    argv = [str(tool.path / "bin" / "kernelpilot"), "demo", "--dir", str(folder)]
    recipes = [tool] if found or by_hand(at) else [tool, task]
    if o.dry_run:
        for r in recipes:
            print(f"would make sure of the venv {r.path}")
        print(f"would run {shlex.join(argv)}\n  with KERNELPILOT_PYTHON={command} and a private HOME")
        print("dry run: nothing was changed")
        return 0
    with opened(at) as book:
        ensure(recipes, book, pip)
    print(f"- the demo, in {folder}; its task Python: {command} ({found.source if found else 'numpy only'})")
    with private_environment(env) as private:
        private["KERNELPILOT_PYTHON"] = command
        code = subprocess.run(argv, env=private, check=False, stdin=subprocess.DEVNULL).returncode
    return code if code >= 0 else 128 - code
