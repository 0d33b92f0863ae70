"""``kernelpilot plan``."""

from __future__ import annotations

from pathlib import Path

import click

from kernelpilot_helpers.cli import common


@click.command("plan")
@click.option("--check", "only_check", is_flag=True, help="parse the plan that is there and report its faults")
@click.option("--force", is_flag=True, help="write over an edited plan")
@common.repo_option
@common.json_option
def command(only_check: bool, force: bool, repo: Path, as_json: bool) -> int:
    """Write .humanize/kernel-agent/refined-plan.md from the contract, with every acceptance criterion.

    An existing plan is not written over without --force. A fresh clone also gets its .humanize/evidence.json, which
    names this machine's kernelpilot to the loop. Exit 1 when the plan has a fault.
    """
    from kernelpilot_helpers import plan, records, scaffold
    from kernelpilot_helpers.cli.scaffold_command import executable
    from kernelpilot_helpers.referee import workspace

    ws = workspace.open_repo(repo, need_lock=False)
    path = ws.root / plan.PATH
    written = False
    if not only_check and (force or not path.exists()):
        records.write_text(path, plan.render(ws.contract, ws.cases))
        written = True
    if not only_check and not (ws.root / scaffold.EVIDENCE_PATH).exists():
        scaffold.write_evidence(ws.root, executable())
    text = records.read_bytes(path, fix="kernelpilot plan").decode(errors="replace")
    parsed = plan.parse(text, at=plan.PATH)
    faults = plan.check(parsed)
    data = {
        "plan": str(path),
        "written": written,
        "criteria": len(parsed.criteria),
        "tasks": len(parsed.tasks),
        "findings": [{"where": f.where, "what": f.what, "fix": f.fix} for f in faults],
    }
    head = f"{path}: {len(parsed.criteria)} acceptance criteria, {len(parsed.tasks)} tasks"
    lines = [head if written or only_check else f"{head} (kept; --force writes it anew)"]
    lines += [f"  {f.where}: {f.what}" for f in faults]
    common.emit(data, as_json=as_json, text="\n".join(lines))
    return 1 if faults else 0
