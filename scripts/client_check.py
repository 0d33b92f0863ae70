"""The real Stop hook in the real clients, without a model: install, trust, block, go on, end.

CODEX_BIN=.../codex CLAUDE_BIN=.../claude KERNELPILOT_PYTHON=.../python python scripts/client_check.py [--out FILE]

Everything happens in a temporary folder with a HOME of its own; a scripted model answers on loopback. A client whose
variable is not set is left out, and the last line says so. KERNELPILOT_PYTHON has numpy.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from client_lab import CANCEL, CLONE, GO, PLAY, SCRIPTS, Lab, play_claude, play_codex, reason, rpc, texts
from scripted_model import Fail, Say, Shell, Turn

BODY = "A figure that `kernelpilot attempt` did not record is not a result"
"""A sentence of the loop's SKILL.md."""
COMMAND = (
    "CODEX_BIN=codex CLAUDE_BIN=claude KERNELPILOT_PYTHON=PYTHON python scripts/client_check.py --out FILE "
    "(the real clients in a private HOME; a scripted model server answers /v1/responses and /v1/messages on loopback)"
)
CARD = "Optimize the add_rmsnorm example"
BEGIN = f"{GO}'{SCRIPTS}/setup-rlcr-loop.sh' .humanize/kernel-agent/refined-plan.md --reviewer evidence-only"
WORK = rf"""{GO}d=$(ls -d .humanize/rlcr/*/) && echo "a note" >> artifacts/research-digest.md
sed -i 's/^## .*/&\n\nnone\n/' "$d/round-0-contract.md"
printf '# Round 0 summary\n\nA note was added; nothing was measured.\n' > "$d/round-0-summary.md"
git commit -qam "a note" """


def whole_loop(lab: Lab, mention: str) -> None:
    """Set up, stop with nothing done, do a round, stop at a red gate, cancel, stop."""
    script: list[Turn] = [Shell(BEGIN), Say("FIRST"), Shell(WORK), Say("SECOND"), Shell(CANCEL), Say("THIRD")]
    ran = PLAY[lab.client](lab, f"{mention} {CARD}", script)
    lab.check(f"{mention} brings the body of our SKILL.md", BODY in "\n".join(texts(ran.asked[:1])), ran.asked[:1])
    lab.check("three stops: two blocked, the third let go", len(ran.asked) == len(script) and ran.code == 0,
              f"{len(ran.asked)} requests, exit {ran.code}\n{ran.out}\n{ran.err}")  # fmt: skip
    lab.check("every answer of the hook was accepted", "Stop Failed" not in ran.err + ran.out, ran.err)
    for number, what in ((3, "rules"), (5, "gate")):
        text = reason(lab, ran, number)
        named = re.search(r"Read (\S+) and do what it says", text)
        lab.check(f"the reason of the red {what} is the next user message", "the gate is red" in text, text)
        lab.check(f"the reason of the red {what} is below 2 KB", 0 < len(text.encode()) <= 2048, len(text.encode()))
        lab.check(f"the page that the reason of the red {what} names exists", named and Path(named[1]).is_file(), text)
    stops = lab.stops()
    lab.check("the second stop was judged by kernelpilot gate", len(stops) == 2 and stops[1]["gate"] is not None, stops)
    lab.check("the registry is clean after the end", lab.entries() == [] and list(lab.loop().glob("cancel-state.md")),
              lab.entries())  # fmt: skip
    lab.over()


def strangers(lab: Lab) -> None:
    """A turn that dies, another session in the same folder, and the first one resumed."""
    ran = PLAY[lab.client](lab, "begin", [Shell(BEGIN), Say("FIRST"), *[Fail(400)] * 30])
    before = lab.fired()
    lab.check("a turn that dies on an error leaves the loop standing", before == 1, (before, ran.out, ran.err))
    found = re.search(r'session(?:_id"| id)\s*:\s*"?([0-9a-f-]{36})', ran.out + ran.err)
    session = found[1] if found else ""
    owner = hashlib.sha256(session.encode()).hexdigest() + ".json"
    lab.check(
        "the loop belongs to the session that the client's shell names", (lab.sessions / owner).is_file(), session
    )
    other = PLAY[lab.client](lab, "what is here?", [Shell(f"{GO}ls"), Say("files")])
    lab.check("another session in the same folder is let go", len(other.asked) == 2 and lab.fired() == before,
              (len(other.asked), lab.fired()))  # fmt: skip
    words = ("resume", session) if lab.client == "codex" else ("--resume", session)
    again = PLAY[lab.client](lab, "go on", [Say("AGAIN"), Shell(CANCEL), Say("LAST")], *words)
    lab.check("the resumed session is held again, until it cancels", len(again.asked) == 3 and lab.entries() == [],
              (len(again.asked), lab.entries(), again.err[-800:]))  # fmt: skip
    lab.over()


def idle(lab: Lab) -> None:
    """An agent that only talks: our own patience ends before any cap of the client."""
    for name, words in (("new words", [f"WORD {n}" for n in range(20)]), ("the same words", ["DONE"] * 20)):
        ran = PLAY[lab.client](lab, "begin", [Shell(BEGIN), *map(Say, words)])
        blocks = len(ran.asked) - 2
        said = ran.out + ran.err
        lab.check(f"an idle agent with {name} is parked within 8 blocks", 2 <= blocks <= 8, f"{blocks} blocks")
        lab.check(f"... and the client's own cap is not reached ({name})", "consecutive times" not in said, said)
        status = lab.stops()[-1]["outcome"] if lab.stops() else ""
        lab.check(f"... and the journal says so ({name})", status == "PARKED", status)
        heard = lab.doctor("", lab.repo)
        lab.check(f"... and kernelpilot doctor names it ({name})", "parked" in heard.lower(), heard)
        shown = "RLCR loop PARKED" in said
        told = f"the client's output {'tells' if shown else 'does not tell'} the user that the loop is parked"
        lab.notes.append(f"{lab.client}: an idle agent with {name}: {blocks} blocks; {told}")
        lab.over()


def hooks_seen(lab: Lab) -> list[dict[str, Any]]:
    """The hooks that Codex sees, with their trust."""
    listed = rpc(lab, ("hooks/list", {"cwds": [str(lab.work)]}))[0] or {"data": []}
    return [hook for folder in listed["data"] for hook in folder["hooks"]]


def codex(lab: Lab) -> None:
    """Everything that holds for Codex."""
    ran = play_codex(lab, "begin", [Shell(BEGIN), Say("FIRST")])
    lab.check(
        "untrusted, the hook does not run", len(ran.asked) == 2 and lab.fired() == 0, (len(ran.asked), lab.fired())
    )
    lab.check("untrusted, kernelpilot doctor says so", "not trusted" in lab.doctor("trust") or "pending" in
              lab.doctor("trust"), lab.doctor(""))  # fmt: skip
    done = lab.run(["sh", "-c", CANCEL])
    lab.check("a loop is cancelled from another terminal", done.returncode == 0 and lab.entries() == [], done)
    lab.over()
    found = hooks_seen(lab)
    lab.check("Codex lists one Stop hook, untrusted", [h["trustStatus"] for h in found] == ["untrusted"], found)
    edits = [{"keyPath": "hooks.state", "mergeStrategy": "upsert",
              "value": {h["key"]: {"trusted_hash": h["currentHash"]}}} for h in found]  # fmt: skip
    rpc(lab, ("config/batchWrite", {"edits": edits, "reloadUserConfig": True}))
    lab.check("after the review it is trusted", [h["trustStatus"] for h in hooks_seen(lab)] == ["trusted"], found)
    lab.check("kernelpilot doctor computes the same trust", "fail" not in lab.doctor("trust") and
              "warn" not in lab.doctor("trust") and lab.doctor("trust"), lab.doctor(""))  # fmt: skip
    listed = lab.run([os.environ["CODEX_BIN"], "debug", "prompt-input", "x"]).stdout
    names = set(re.findall(r"- ([a-z-]+): [^\n]*?\(file: ", listed.replace("\\n", "\n")))
    ours = {p.parent.name for p in CLONE.glob("skills/*/SKILL.md")}
    lab.check("our three skills are listed, the older name is not", names & ours == ours - {"profile-evidence"}, names)
    whole_loop(lab, "$humanize-kernel-agent-loop")
    strangers(lab)
    idle(lab)


def claude(lab: Lab) -> None:
    """Everything that holds for Claude Code."""
    settings = lab.claude / "settings.json"
    kept = settings.with_suffix(".kept")
    settings.rename(kept)
    ran = play_claude(lab, "begin", [Shell(f"mv '{kept}' '{settings}' && sleep 3"), Shell(BEGIN), Say("FIRST"),
                                     Shell(CANCEL), Say("LAST")])  # fmt: skip
    lab.check("a hook that is installed in mid-session holds that session", len(ran.asked) == 5, len(ran.asked))
    if kept.exists():
        kept.rename(settings)
    lab.over()
    whole_loop(lab, "/humanize-kernel-agent-loop")
    strangers(lab)
    idle(lab)


def installed(lab: Lab) -> None:
    """Install for both clients, and make the locked repo that the sessions work in."""
    said = lab.must(str(CLONE / "install.sh"), "--client", "both")
    lab.client = "install"
    for client, path in (("codex", lab.codex / "hooks.json"), ("claude", lab.claude / "settings.json")):
        handlers = json.loads(path.read_text())["hooks"]["Stop"]
        lab.check(f"one Stop hook for {client}", len(handlers) == 1 and "stop-hook" in str(handlers), handlers)
        linked = {p.name for p in (path.parent / "skills").iterdir() if (p / "SKILL.md").is_file()}
        lab.check(f"four skills for {client}", len(linked) == 4, linked)
    lab.check("the closing lines say that Codex has yet to trust the hook", "pending review" in said, said)
    lab.must("kernelpilot", "scaffold", "repo", "--task", "add_rmsnorm")
    lab.must("kernelpilot", "plan", cwd=lab.repo)
    lab.must("kernelpilot", "lock", cwd=lab.repo)


def main() -> int:
    """Run what the environment names; 0 when nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the checks to this file as well")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder")
    options = parser.parse_args()
    given = [
        (name, play) for name, play in (("codex", codex), ("claude", claude)) if f"{name.upper()}_BIN" in os.environ
    ]
    top = Path(tempfile.mkdtemp(prefix="kernelpilot-clients-")).resolve()
    lab = Lab(top, os.environ.get("KERNELPILOT_PYTHON", sys.executable))
    try:
        installed(lab)
        versions = {n: lab.must(os.environ[f"{n.upper()}_BIN"], "--version").splitlines()[0] for n, _ in given}
        for lab.client, play in given:
            play(lab)
    finally:
        print(f"kept {top}") if options.keep else shutil.rmtree(top, ignore_errors=True)
    failed = sum(not c["passed"] for c in lab.checks)
    if options.out:
        record = {
            "command": COMMAND,
            "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
            "os": platform.platform(),
            "python": platform.python_version(),
            "clients": versions,
            "passed": len(lab.checks) - failed,
            "failed": failed,
            "notes": lab.notes,
            "checks": lab.checks,
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(f"note {note}" for note in lab.notes))
    left_out = [n for n in ("codex", "claude") if n not in dict(given)]
    print(
        f"{len(lab.checks) - failed} passed, {failed} failed"
        + (f"; left out: {', '.join(left_out)}" if left_out else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
