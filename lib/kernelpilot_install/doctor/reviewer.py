"""Does the reviewer answer? One real model call, so only when it is asked for."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator

from kernelpilot_install.doctor.ask import ask
from kernelpilot_install.doctor.check import Check, Here

PING_S = 180
GRACE_S = 15
_CODE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from rlcr.review.ping import ping
ok, detail = ping(sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]))
print("\\n" + json.dumps({"ok": ok, "detail": detail}))
"""
_TRY = {"codex": "codex exec", "claude": "claude -p"}


def ping(here: Here, client: str) -> Iterator[Check]:
    """The loop's own reviewer call, with its strict schema, on a request that needs no thought."""
    name = f"reviewer-{client}"
    again = f"{shlex.quote(str(here.at.shim))} doctor --client {client} --ping"
    if shutil.which(client, path=here.at.path) is None:
        what = f"no `{client}` on PATH: it cannot review"
        fix = "kernelpilot doctor  # with its folder on PATH; or set the loop up with --reviewer evidence-only"
        yield Check(name=name, status="warn", what=what, fix=fix)
        return
    if not here.ping:
        what = f"whether {client} answers as a reviewer was not asked: that costs one short model call"
        yield Check(name=name, status="warn", what=what, fix=again)
        return
    vendor = here.at.clone / "vendor" / "humanize"
    argv = [sys.executable, "-I", "-B", "-c", _CODE, str(vendor), client, str(here.root or here.folder), str(PING_S)]
    answer = ask(argv, env=here.env, cwd=here.folder, seconds=PING_S + GRACE_S)
    try:
        said = json.loads(answer.out.strip().rpartition("\n")[2])
        ok, detail = said["ok"] is True, str(said["detail"])
    except (ValueError, KeyError, TypeError):
        said_last = answer.err.strip().rpartition("\n")[2]
        ok, detail = False, answer.why or said_last or f"the call exits {answer.code}"
    if ok:
        yield Check(name=name, status="ok", what=detail)
    else:
        fix = f"{_TRY[client]} 'say hello'  # mend what this says (login, model, network), then: {again}"
        yield Check(name=name, status="fail", what=f"no review would come from {client}: {detail}", fix=fix)
