"""The one error boundary: every exception becomes an exit code here, and no traceback reaches a user."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

INTERRUPTED = (
    "interrupted; the next kernelpilot command (or: kernelpilot ledger render) records or reports what was under way"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit 0 done, 1 a finding or a fault the user can mend, 2 usage, 3 our bug, 130 Ctrl-C."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(args)
    except KeyboardInterrupt:  # while the program itself was still being read
        return 130
    except ModuleNotFoundError as lost:
        print(  # noqa: T201
            f"kernelpilot: this Python ({sys.executable}) has no {lost.name}: it is not the tool's own\n"
            "  fix: kernelpilot doctor  # the command that ./install.sh made, in the tool's own venv",
            file=sys.stderr,
        )
        return 1
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader went away; that is not an error of ours
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(f"kernelpilot: the output could not be written: {error.strerror}", file=sys.stderr)  # noqa: T201
        return code or 1
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
        if "--json" in args:
            print(json.dumps({"error": _usage(error)}))  # noqa: T201
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print(INTERRUPTED if args[:1] != ["ncu"] else "interrupted", file=sys.stderr)  # noqa: T201
        return 130
    except KernelPilotError as error:
        _fault(error, as_json="--json" in args)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except (OSError, UnicodeError, RecursionError) as error:
        _fault(_of_the_world(error), as_json="--json" in args)
        return 1
    except Exception as error:  # noqa: BLE001 - the boundary
        return _bug(error, args)
    return int(result) if isinstance(result, int) else 0


def _usage(error: Exception) -> dict[str, str]:
    """A usage error under the keys of any other one; ``where`` is the command that was typed."""
    context = getattr(error, "ctx", None)
    where = str(context.command_path) if context is not None else "kernelpilot"
    what = error.format_message() if hasattr(error, "format_message") else str(error)
    return {"what": what, "where": where, "fix": f"{where} --help"}


def _of_the_world(error: Exception) -> Exception:
    """A file or a machine that is not as a command needs it: for the user to mend, and no bug of ours."""
    from kernelpilot_helpers.errors import KernelPilotError  # noqa: PLC0415

    if isinstance(error, OSError):
        what, where = error.strerror or str(error), str(error.filename or "")
        return KernelPilotError(
            what, where=where, fix="make the path a readable file or a writable folder, as it should be"
        )
    if isinstance(error, RecursionError):
        return KernelPilotError("a file is nested too deeply to be read", fix="git status (which file did you change?)")
    return KernelPilotError(
        f"a file or an argument is not UTF-8 text: {error}", fix="git status (which file did you change?)"
    )


def _fault(error: Exception, *, as_json: bool) -> None:
    what, where, fix = (str(getattr(error, name, "")) for name in ("what", "where", "fix"))
    if as_json:
        print(json.dumps({"error": {"what": what, "where": where, "fix": fix}}))  # noqa: T201
    print(f"kernelpilot: {error}", file=sys.stderr)  # noqa: T201


def _bug(error: Exception, args: list[str]) -> int:
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("kernelpilot"):
        raise error  # a dependency is missing: for ``main`` to say

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
