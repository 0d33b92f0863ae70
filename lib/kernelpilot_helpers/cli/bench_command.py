"""``kernelpilot bench``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import common, scratch_output


@click.command("bench")
@click.option("--ceilings", is_flag=True, help="measure what this GPU can do at best, and keep it")
@click.option("--refresh", is_flag=True, help="with --ceilings: measure again although figures are kept")
@scratch_output.options
def command(variant: str | None, repo: Path, as_json: bool, ceilings: bool, refresh: bool) -> int:
    """Time VARIANT's directory as it is now against the incumbent; nothing is recorded.

    Exit 1 when it does not build or is wrong. Not evidence: `kernelpilot attempt` records.
    """
    if not ceilings:
        if refresh:
            raise click.UsageError("--refresh goes with --ceilings")
        return scratch_output.run("bench", variant, repo, as_json=as_json)
    if variant is not None:
        raise click.UsageError("--ceilings measures the GPU, not a variant: leave VARIANT out")
    return _ceilings(repo, as_json=as_json, refresh=refresh)


def _ceilings(repo: Path, *, as_json: bool, refresh: bool) -> int:
    import msgspec

    from kernelpilot_helpers import proc
    from kernelpilot_helpers.errors import KernelPilotError
    from kernelpilot_helpers.executors import absent
    from kernelpilot_helpers.referee import ceilings

    gpu = None if refresh else ceilings.here()
    found = ceilings.cached(*gpu) if gpu is not None else None
    kept = found is not None
    if found is None:
        absent.require_here(where="bench --ceilings", fix=f"{ceilings.FIX}  # on a machine with an NVIDIA GPU")
        try:
            argv = common.task_argv(proc.toplevel(repo))
        except KernelPilotError:  # a GPU can be measured outside any repo
            argv = common.task_argv(None)
        lab = common.lab_with(argv, framework="torch")
        absent.require_cuda(lab)
        found = ceilings.measure(lab)
    data = {**msgspec.to_builtins(found), "cached": kept, "path": str(ceilings.path(found.gpu_uuid))}
    more = "  kept from before; --refresh measures again" if kept else f"  kept in {data['path']}"
    common.emit(data, as_json=as_json, text=f"{ceilings.table(found)}\n{more}")
    return 0
