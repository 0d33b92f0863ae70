"""The one place that turns failures into messages and exit codes: 0 done, 1 to mend, 2 usage, 3 a bug, 130 Ctrl-C."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from kernelpilot_install import checks, demo, prerequisites, steps
from kernelpilot_install.options import Options, parse
from kernelpilot_install.places import clone_root, places
from kernelpilot_install.problems import InstallError
from kernelpilot_install.venvs import RealPip


def main(argv: Sequence[str]) -> int:
    """Run the installer; every fault ends in one message on stderr."""
    options = parse(argv)
    try:
        return dispatch(options)
    except InstallError as e:
        return _fault(f"error: {e}", 1)
    except KeyboardInterrupt:
        return _fault("stopped; run the same command again to finish, or ./install.sh --uninstall to undo", 130)
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        fix = "check the path's owner, rights and free space, then run the same command again"
        return _fault(f"error: {where}{e.strerror or e}\n  fix: {fix}", 1)
    except Exception as e:  # noqa: BLE001  # the boundary: a bug of ours must not show a traceback
        if os.environ.get("KERNELPILOT_DEBUG"):
            traceback.print_exc()
        fix = "KERNELPILOT_DEBUG=1 with the same command shows where; please report it"
        return _fault(f"error: a bug in the installer ({type(e).__name__}: {e})\n  fix: {fix}", 3)


def dispatch(o: Options) -> int:
    """The mode's own run; prerequisites come first, for all but uninstall."""
    at = places(os.environ, clone_root())
    if o.mode == "uninstall":
        return steps.uninstall(o, at=at)
    prerequisites.require(at.path)
    if o.mode == "demo":
        return demo.run(o, at=at, env=os.environ, pip=RealPip())
    if o.mode == "test":
        return checks.run(o, at=at, env=os.environ, pip=RealPip())
    return steps.run(o, at=at, env=os.environ, pip=RealPip())


def _fault(message: str, code: int) -> int:
    sys.stdout.flush()
    print(message, file=sys.stderr)
    return code
