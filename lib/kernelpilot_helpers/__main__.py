"""The one error boundary: every exception becomes an exit code here, and no traceback reaches a user."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit 0 done, 1 a finding or a fault the user can mend, 2 usage, 3 our bug, 130 Ctrl-C."""
    args = list(sys.argv[1:] if argv is None else argv)
    code = _run(args)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader went away; that is not an error of ours
    return code


def _run(args: list[str]) -> int:
    import click  # noqa: PLC0415 - python -m kernelpilot_helpers.runtime must not need it

    from kernelpilot_helpers.cli import group  # noqa: PLC0415
    from kernelpilot_helpers.errors import KernelPilotError  # noqa: PLC0415

    try:
        result = group.main(args=args, prog_name="kernelpilot", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return int(stop.exit_code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("interrupted; what was recorded stays recorded", file=sys.stderr)  # noqa: T201
        return 130
    except KernelPilotError as error:
        _fault(error, as_json="--json" in args)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001 - the boundary
        return _bug(error, args)
    return int(result) if isinstance(result, int) else 0


def _fault(error: Exception, *, as_json: bool) -> None:
    what, where, fix = (str(getattr(error, name, "")) for name in ("what", "where", "fix"))
    if as_json:
        print(json.dumps({"error": {"what": what, "where": where, "fix": fix}}))  # noqa: T201
    print(f"kernelpilot: {error}", file=sys.stderr)  # noqa: T201


def _bug(error: Exception, args: list[str]) -> int:
    import tempfile  # noqa: PLC0415
    import traceback  # noqa: PLC0415

    with tempfile.NamedTemporaryFile("w", prefix="kernelpilot-crash-", suffix=".log", delete=False) as log:
        log.write(f"kernelpilot {' '.join(args)}\n{traceback.format_exc()}")
    print(  # noqa: T201
        f"kernelpilot: this is a bug of ours: {type(error).__name__}: {error}\n  the details are in {log.name}; "
        "please attach that file to a report",
        file=sys.stderr,
    )
    return 3


if __name__ == "__main__":
    sys.exit(main())
