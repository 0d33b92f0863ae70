"""Start the runtime as a plain script: no folder of it stays on ``sys.path``, whatever its own name is."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

NAME = "kernelpilot_runtime"


def load() -> None:
    """Import this folder as ``kernelpilot_runtime``: the name by which candidates know it."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [p for p in sys.path if p and Path(p).resolve() != here]
    init = here / "__init__.py"
    spec = importlib.util.spec_from_file_location(NAME, init, submodule_search_locations=[str(here)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    load()
    from kernelpilot_runtime.main import main

    raise SystemExit(main(sys.argv[1:], script=str(Path(__file__).resolve().parent)))
