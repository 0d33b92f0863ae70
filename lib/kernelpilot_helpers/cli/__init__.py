"""One file per command; a command's module is imported when it runs, so that ``--help`` stays quick."""

from __future__ import annotations

import importlib

import click

from kernelpilot_helpers import __version__

COMMANDS = {
    "attempt": "measure a variant and record the verdict for ever",
    "bench": "time a variant against the incumbent (not evidence)",
    "build": "compile a variant and show what the compiler says",
    "demo": "play the whole job on the CPU with a scripted writer, inside the loop",
    "dispatch": "choose a variant for each shape and generate the dispatcher",
    "doctor": "check skills, Stop hook, evidence command, the task's Python, GPU and ncu",
    "gate": "check every rule over the evidence: pass, done, findings",
    "knowledge": "search the corpus of CUDA optimization pull requests",
    "ncu": "turn Nsight Compute reports into one bottleneck and one next step",
    "next": "one line: what to do now",
    "job": "export a measuring job, run it on another machine, import the result",
    "ledger": "render and check the ledgers; note source ideas; import an older layout",
    "lock": "audit the task, measure the A/A floor, lock the contract",
    "plan": "write the refined plan from the contract",
    "profile": "profile a correct version on one case with ncu: digest, facts, next step",
    "report": "tell the run as one self-contained HTML page",
    "root": "print the folder of the bundle",
    "scaffold": "make and commit the standalone repo",
    "select": "bring back an earlier version",
    "tune": "measure the selected variants over W into the performance map",
    "try": "quick verify and screen timing of a variant (not evidence)",
    "verify": "check a variant against the reference (not evidence)",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"kernelpilot_helpers.cli.{cmd_name}_command")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or a usage error that names the one most like the word typed."""
        if args and args[0] not in COMMANDS and args[0][:1].isalnum() and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{near[0]}'?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The command table without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kernelpilot")
def group() -> None:
    """KernelPilot's referee: correct, faster, recorded.

    Exit codes: 0 done, 1 a finding or a fault you can mend, 2 usage, 3 a bug of ours, 130 interrupted. Data goes to
    stdout, talk to stderr; every command takes --json.
    """
