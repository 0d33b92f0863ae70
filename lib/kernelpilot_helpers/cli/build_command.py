"""``kernelpilot build``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kernelpilot_helpers.cli import scratch_output


@click.command("build")
@scratch_output.options
@click.option("--watch", is_flag=True, help="build again whenever a file of the variant changes (Ctrl-C ends)")
def command(variant: str | None, repo: Path, as_json: bool, watch: bool) -> int:
    """Compile VARIANT's directory as it is now and show what the compiler says.

    For a GPU: registers, spills, shared memory and stack of each kernel, and what changed against the incumbent's
    build. Needs no GPU, no lock, and writes no row. Compiles for the contract's target.arch, else for this machine's
    GPU, else for sm_90a. Ends an import that takes too long: after 120 s, for a GPU after 300 s.

    First word: BUILT, SAME (the incumbent's program), IMPORTED (nothing was compiled: Triton compiles at its first
    call, and not where this Python lacks it), or BROKEN. Exit 1 when it does not build, or when its function does not
    take the contract's tensors.
    """
    code = scratch_output.run("build", variant, repo, as_json=as_json)
    while watch:
        _wait_for_change(repo, variant)
        code = scratch_output.run("build", variant, repo, as_json=as_json)
    return code


def _wait_for_change(repo: Path, variant: str | None) -> None:
    from kernelpilot_helpers.referee import sources, workspace

    ws = workspace.open_repo(repo, need_lock=False)
    folder = ws.root / ws.variants / sources.choose_variant(ws, variant)
    before = _stamps(folder)
    while _stamps(folder) == before:
        time.sleep(0.3)


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    found = ((p, p.stat()) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {str(p): (s.st_mtime_ns, s.st_size) for p, s in found}
