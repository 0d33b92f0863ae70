"""``kernelpilot job export|run|import``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kernelpilot_helpers.cli import common


@click.group("job")
def command() -> None:
    """Measure on another machine that needs nothing of KernelPilot.

    `export` writes a bundle; on the other machine `python3 -I kernelpilot_runtime jobs/*` runs it (that Python needs
    torch or numpy); `import` judges what came back and records the row.
    """


@command.command("export")
@click.argument("variant", required=False)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="FILE.tar.gz or a new folder")
@click.option("--motivation", "-m", "text", required=True, help="why this candidate should be faster, in one line")
@click.option("--kind", type=click.Choice(("research", "profile", "benchmark", "review", "reset")))
@click.option("--digest", default="", help="profile digest that this edit answers")
@click.option("--source", "sources", multiple=True, help="source-idea key")
@click.option("--slug", help="name in the version label (default: the variant's folder)")
@click.option("--tier", type=click.Choice(("screen", "accept", "claim")), default="accept", show_default=True)
@click.option("--max-pairs", type=click.IntRange(min=2), help="cross-over pairs of the single look")
@common.repo_option
@common.json_option
def export(variant: str | None, out: Path, repo: Path, as_json: bool, **options: Any) -> int:
    """Commit VARIANT and write the bundle that measures it."""
    from kernelpilot_helpers.cli.attempt_command import motivation_of
    from kernelpilot_helpers.referee import attempt as attempts
    from kernelpilot_helpers.referee import portable
    from kernelpilot_helpers.referee.floor import utc_now

    motivation = motivation_of(options.pop("text"), options.pop("kind"), options.pop("digest"), options.pop("sources"))
    request = attempts.Request(variant=variant, motivation=motivation, **options)
    done = portable.export(repo, request, out, clock=utc_now)
    data = {"bundle": str(done.path), "command": done.command}
    common.emit(data, as_json=as_json, text=f"{done.path}\n  on the other machine, in its folder: {done.command}")
    return 0


@command.command("run")
@click.argument("bundle", type=click.Path(path_type=Path, exists=True))
@click.option("--python", "python", help="the Python to measure with (default: as for attempt)")
@common.json_option
def run(bundle: Path, python: str | None, as_json: bool) -> int:
    """Run every job of BUNDLE (a folder) on this machine; results are written into it."""
    import shlex

    from kernelpilot_helpers.errors import Refused
    from kernelpilot_helpers.executors import absent
    from kernelpilot_helpers.referee import portable

    if not bundle.is_dir():
        fix = f"tar -xzf {shlex.quote(str(bundle))}  # then name the folder"
        raise Refused("results are written into a folder", where=str(bundle), fix=fix)
    argv = tuple(shlex.split(python)) if python else common.task_argv(None)
    if portable.on_gpu(bundle):
        fix = f"kernelpilot job run {shlex.quote(str(bundle))}  # on a machine with an NVIDIA GPU"
        absent.require_here(where=str(bundle), fix=fix)
        lab = common.lab_with(argv, framework="torch")
        absent.require_cuda(lab)
    else:
        lab = common.lab_with(argv)
    results = portable.run_bundle(bundle, lab, common.progress())
    text = "\n".join(f"{name}: {words}" for name, words in results.items())
    common.emit({"bundle": str(bundle), "jobs": results}, as_json=as_json, text=text)
    return 0 if all(words == "done" for words in results.values()) else 1


@command.command("import")
@click.argument("bundle", type=click.Path(path_type=Path, exists=True))
@common.repo_option
@common.json_option
def import_(bundle: Path, repo: Path, as_json: bool) -> int:
    """Judge the results in BUNDLE and record the row, by the same decisions as `kernelpilot attempt`."""
    from kernelpilot_helpers.cli.attempt_command import as_object, words
    from kernelpilot_helpers.referee import importing
    from kernelpilot_helpers.referee.floor import utc_now

    recorded = importing.import_bundle(repo, bundle, clock=utc_now)
    common.emit(as_object(recorded), as_json=as_json, text=words(recorded))
    return 0
