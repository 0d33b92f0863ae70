"""The command line: one frozen record, parsed without abbreviations."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Mode = Literal["install", "demo", "test", "uninstall"]
TORCH_SPEC = "torch==2.13.0"

ABOUT = """\
Without a mode: a venv for the tool, the command ~/.local/bin/kernelpilot, the skills of the clients
found on this machine, and a manifest of every change. A second run changes only what is out of date.
"""
EXAMPLES = """\
examples:
  ./install.sh --dry-run            print every change and make none
  ./install.sh --demo               the main job on the CPU, touching no client setting
  ./install.sh --test               linters, types and all tests
  ./install.sh --test -k splice     some tests only: arguments of pytest
  ./install.sh --uninstall          remove what the manifest lists and is still ours
"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for."""

    mode: Mode = "install"
    dry_run: bool = False
    dev: bool = False
    replace: bool = False
    client: str | None = None
    """codex, claude, both or none; None is: the clients found."""
    project: Path | None = None
    """Put the skills into this folder's .codex and .claude instead of the user's."""
    trust_hook: bool = False
    """Record in Codex that our Stop hook is trusted; never without being asked for by this name."""
    torch: str | None = None
    directory: Path | None = None
    """Where the demo goes."""
    pytest_args: tuple[str, ...] = ()


def parser() -> argparse.ArgumentParser:
    """The parser; ``--help`` is generated from it."""
    p = argparse.ArgumentParser(
        prog="./install.sh",
        description=ABOUT,
        epilog=EXAMPLES,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mode = p.add_mutually_exclusive_group()
    mode.add_argument("--demo", action="store_true", help="set up privately and run the demo to its report")
    mode.add_argument("--test", action="store_true", help="set up and run the checks; the rest goes to pytest")
    mode.add_argument("--uninstall", action="store_true", help="undo the install, file by file")
    p.add_argument("--dry-run", action="store_true", help="print the changes, make none")
    p.add_argument("--client", choices=("codex", "claude", "both", "none"), help="default: those found")
    scope = p.add_mutually_exclusive_group()
    scope.add_argument("--user", action="store_true", help="skills for this user (the default)")
    scope.add_argument("--project", metavar="DIR", type=Path, help="skills into DIR/.codex, DIR/.claude only")
    p.add_argument("--replace", action="store_true", help="take over an install made from another clone")
    p.add_argument(
        "--trust-hook", action="store_true", help="record in Codex that our Stop hook is trusted, unreviewed"
    )
    p.add_argument("--dev", action="store_true", help="the venv goes to .venv in the clone, with the linters")
    p.add_argument("--humanize", metavar="DIR", help=argparse.SUPPRESS)
    p.add_argument("--torch", metavar="SPEC", help=f"with --test: pip's words for torch ({TORCH_SPEC})")
    p.add_argument("--dir", metavar="DIR", type=Path, help="with --demo: its folder (./kernelpilot-demo)")
    return p


def parse(argv: Sequence[str]) -> Options:
    """Options of a command line. Exits 2 on a usage error, 0 after ``--help``, as argparse does."""
    p = parser()
    ns, rest = p.parse_known_args(argv)
    if rest and not ns.test:
        p.error(f"unknown argument: {rest[0]}")
    mode: Mode = "demo" if ns.demo else "test" if ns.test else "uninstall" if ns.uninstall else "install"
    if ns.humanize is not None:
        p.error(
            "--humanize is not supported: the gate reads the journal that only this bundle's own vendor/humanize "
            "writes; leave the flag out"
        )
    if ns.dir is not None and mode != "demo":
        p.error("--dir belongs to --demo")
    if ns.torch is not None and mode != "test":
        p.error("--torch belongs to --test")
    if ns.trust_hook:
        _may_trust(p, mode, ns)
    return Options(
        mode=mode,
        dry_run=ns.dry_run,
        dev=ns.dev,
        replace=ns.replace,
        trust_hook=ns.trust_hook,
        client=ns.client,
        project=None if ns.project is None else ns.project.resolve(),
        torch=ns.torch,
        directory=ns.dir,
        pytest_args=tuple(rest[1:] if rest[:1] == ["--"] else rest),
    )


def _may_trust(p: argparse.ArgumentParser, mode: Mode, ns: argparse.Namespace) -> None:
    """``--trust-hook`` belongs to an install that registers the hook for the user of Codex."""
    if mode != "install":
        p.error(f"--trust-hook belongs to a plain install, not to --{mode}")
    if ns.project is not None:
        p.error("--trust-hook: --project registers no Stop hook that could be trusted")
    if ns.client in {"claude", "none"}:
        p.error(f"--trust-hook is about Codex, and --client {ns.client} leaves it out")
