"""The README's sentence is the import order: a module imports only words to its left."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "lib" / "kernelpilot_helpers"


def sentence() -> list[str]:
    """The words of the sentence, read from README."""
    text = (ROOT / "README.md").read_text()
    found = re.search(r"<!-- sentence -->\s*```text\n(.*?)```", text, re.DOTALL)
    assert found, "README.md has no import-order sentence between its marks"
    return re.findall(r"[a-z]+", found[1])


def imports(source: Path) -> list[str]:
    """Words of our package that a file imports."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith(PACKAGE.name):
            tail = (node.module or "").removeprefix(PACKAGE.name).lstrip(".")
            names += [tail.split(".")[0]] if tail else [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level > 1:
            names.append(f"{node.module} by a relative import that leaves its package")
        elif isinstance(node, ast.Import):
            names += [a.name.split(".")[1] for a in node.names if a.name.startswith(PACKAGE.name + ".")]
    return names


def rightward(package: Path, order: list[str]) -> list[str]:
    """Each import that points right, as ``plan -> gate``, and each module that the sentence does not name."""
    known = {*order, "__init__", "__main__", "__pycache__"}
    bad = [
        f"{p.stem} is not in the sentence" for p in package.iterdir() if p.stem not in known and p.name != "py.typed"
    ]
    for source in sorted(package.rglob("*.py")):
        here = source.relative_to(package).parts[0].removesuffix(".py")
        if (
            here in ("__main__", "__init__")
            or source.name == "__main__.py"  # a module run by name hands over to the command line
            or here not in order
            or source.is_relative_to(package / "demo" / "variants")
        ):
            continue
        if source.is_relative_to(package / "scaffold" / "templates"):
            continue
        allowed = {*order[: order.index(here) + 1], "__version__"}
        bad += [f"{source.relative_to(package)} -> {name}" for name in imports(source) if name not in allowed]
    return bad


def test_every_import_points_left() -> None:
    """Breaks when a module imports a word to its right, or is not named in README at all."""
    assert rightward(PACKAGE, sentence()) == []


def test_the_check_sees_a_rightward_import(tmp_path: Path) -> None:
    """Breaks if the check above cannot fail."""
    package = tmp_path / PACKAGE.name
    package.mkdir()
    (package / "errors.py").write_text("from kernelpilot_helpers import policy\n")
    (package / "policy.py").write_text("import kernelpilot_helpers.errors\n")
    assert rightward(package, ["errors", "policy"]) == ["errors.py -> policy"]
    (package / "stray.py").write_text("")
    assert "stray is not in the sentence" in rightward(package, ["errors", "policy"])


def test_the_runtime_uses_only_the_standard_library_and_the_tasks_framework() -> None:
    """Breaks when the runtime, which a GPU box runs without KernelPilot, imports the tool or a dependency of it."""
    import sys

    allowed = {*sys.stdlib_module_names, "numpy", "torch", "cupy", "triton", "kernelpilot_runtime"}
    bad = []
    for source in sorted((PACKAGE / "runtime").glob("*.py")):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                bad += [f"{source.name}: {a.name}" for a in node.names if a.name.split(".")[0] not in allowed]
            elif (
                isinstance(node, ast.ImportFrom)
                and node.level == 0
                and (node.module or "").split(".")[0] not in allowed
            ):
                bad.append(f"{source.name}: {node.module}")
    assert bad == []


def test_pure_modules_touch_no_disk_clock_or_process() -> None:
    """Breaks when a module that must be pure imports what acts on the world."""
    banned = {"os", "subprocess", "time", "shutil", "tempfile", "socket", "random", "secrets"}
    bad = []
    for word in ("contract", "correctness", "benchmark", "plan", "units", "policy", "autotune", "dispatcher", "gate"):
        path = PACKAGE / word
        for source in sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
            for node in ast.walk(ast.parse(source.read_text())):
                if isinstance(node, ast.Import):
                    bad += [f"{word}/{source.name}: {a.name}" for a in node.names if a.name.split(".")[0] in banned]
                elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in banned:
                    bad.append(f"{word}/{source.name}: {node.module}")
    assert bad == []
