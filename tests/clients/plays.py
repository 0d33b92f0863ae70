"""Short plays with a real client: whose Stops are judged, which are let go, and when the hook gives up."""

from __future__ import annotations

import hashlib
import json
import re
import shutil

from client_lab import CLONE, CONFIG, PLAN, Lab, hooks_seen, lend_venv, reason, trust
from scripted_model import Fail, Say, Shell

LEFT_OUT = "m32_n4096|m48_n2816|m96_n1408|m128_n1024|m192_n768"
"""Cases of the example without which it is measured in a third of the time: one a regime is left, and one held out."""


def installed(lab: Lab, *, lend: bool) -> None:
    """Install for both clients, and make the locked repo that the sessions work in."""
    if lend:
        lend_venv(lab)
    said = lab.must(str(CLONE / "install.sh"), "--client", "both")
    lab.client = "install"
    for client, path in (("codex", lab.codex / "hooks.json"), ("claude", lab.claude / "settings.json")):
        handlers = json.loads(path.read_text())["hooks"]["Stop"]
        lab.check(f"one Stop hook for {client}", len(handlers) == 1 and "stop-hook" in str(handlers), handlers)
        linked = {p.name for p in (path.parent / "skills").iterdir() if (p / "SKILL.md").is_file()}
        lab.check(f"four skills for {client}", len(linked) == 4, linked)
    lab.check("the closing lines say that Codex has yet to trust the hook", "pending review" in said, said)
    lab.must("kernelpilot", "scaffold", lab.locked.name, "--task", "add_rmsnorm")
    cases = lab.locked / "workloads" / "cases.jsonl"
    cases.write_text("".join(line + "\n" for line in cases.read_text().splitlines() if not re.search(LEFT_OUT, line)))
    lab.must("git", "commit", "-qam", "fewer cases", cwd=lab.locked)
    lab.must("kernelpilot", "plan", cwd=lab.locked)
    lab.must("kernelpilot", "lock", cwd=lab.locked)


def untrusted(lab: Lab) -> None:
    """A hook that nobody has reviewed does not run in Codex; the doctor says so, and a loop can be cancelled."""
    lab.client = "codex"
    lab.fresh("untrusted")
    config = lab.codex / "config.toml"
    kept = config.read_text()
    config.write_text(CONFIG)
    ran = lab.play("begin", [lab.begin(), Say("FIRST")])
    seen = (len(ran.asked), lab.fired())
    lab.check("untrusted, the hook does not run", seen == (2, 0), seen)
    told = lab.doctor("trust")
    lab.check("untrusted, kernelpilot doctor says so", "not trusted" in told or "pending" in told, told)
    done = lab.run(["sh", "-c", lab.cancel()])
    lab.check("a loop is cancelled from another terminal", done.returncode == 0 and lab.entries() == [], done)
    lab.over()
    found = hooks_seen(lab)
    lab.check("Codex lists one Stop hook, untrusted", [h["trustStatus"] for h in found] == ["untrusted"], found)
    config.write_text(kept)


def trusted(lab: Lab) -> None:
    """The user's review of the hook, and what the doctor makes of it."""
    lab.client = "codex"
    trust(lab)
    found = hooks_seen(lab)
    lab.check("after the review it is trusted", [h["trustStatus"] for h in found] == ["trusted"], found)
    told = lab.doctor("trust")
    same = told and "fail" not in told and "warn" not in told
    lab.check("kernelpilot doctor computes the same trust", same, told)
    listed = lab.run([lab.bins["codex"], "debug", "prompt-input", "x"]).stdout
    names = set(re.findall(r"- ([a-z-]+): [^\n]*?\(file: ", listed.replace("\\n", "\n")))
    ours = {p.parent.name for p in CLONE.glob("skills/*/SKILL.md")}
    lab.check("our three skills are listed, the older name is not", names & ours == ours - {"profile-evidence"}, names)


def mid_session(lab: Lab) -> None:
    """Claude Code reads its settings anew: a hook that is installed in mid-session holds that session."""
    lab.client = "claude"
    lab.fresh("mid-session")
    settings = lab.claude / "settings.json"
    kept = settings.with_suffix(".kept")
    settings.rename(kept)
    back = Shell(f"mv '{kept}' '{settings}' && sleep 1.5")
    ran = lab.play("begin", [back, lab.begin(), Say("FIRST"), Shell(lab.cancel()), Say("LAST")])
    lab.check("a hook that is installed in mid-session holds that session", len(ran.asked) == 5, len(ran.asked))
    if kept.exists():
        kept.rename(settings)
    lab.over()


def strangers(lab: Lab) -> None:
    """A turn that dies, another session in the same folder, and the first one resumed."""
    lab.fresh(f"{lab.client}-strangers")
    ran = lab.play("begin", [lab.begin(), Say("FIRST"), *[Fail(400)] * 30])
    before = lab.fired()
    lab.check("a turn that dies on an error leaves the loop standing", before == 1, (before, ran.out, ran.err))
    found = re.search(r'session(?:_id"| id)\s*:\s*"?([0-9a-f-]{36})', ran.out + ran.err)
    session = found[1] if found else ""
    owner = hashlib.sha256(session.encode()).hexdigest() + ".json"
    mine = (lab.sessions / owner).is_file()
    lab.check("the loop belongs to the session that the client's shell names", mine, session)
    other = lab.play("what is here?", [lab.sh("ls"), Say("files")])
    seen = (len(other.asked), lab.fired())
    lab.check("another session in the same folder is let go", seen == (2, before), seen)
    words = ("resume", session) if lab.client == "codex" else ("--resume", session)
    again = lab.play("go on", [Say("AGAIN"), Shell(lab.cancel()), Say("LAST")], *words)
    lab.check("the resumed session is held again, until it cancels", len(again.asked) == 3 and lab.entries() == [],
              (len(again.asked), lab.entries(), again.err[-800:]))  # fmt: skip
    lab.over()


def idle(lab: Lab, name: str, words: list[str]) -> None:
    """An agent that only talks: our own patience ends before any cap of the client."""
    lab.fresh(f"{lab.client}-idle-{len(set(words))}")
    ran = lab.play("begin", [lab.begin(), *map(Say, words)])
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


TALK = {"new words": [f"WORD {n}" for n in range(20)], "the same words": ["DONE"] * 20}


def places(lab: Lab) -> None:
    """The loop's repo is a linked worktree, and the session's folder is reached through a symlink."""
    main = lab.fresh(f"{lab.client}-main")
    tree = lab.work / f"{lab.client}-tree"
    lab.must("git", "worktree", "add", "-q", str(tree), "-b", "tried", cwd=main)
    shutil.copytree(main / ".humanize", tree / ".humanize")
    lab.repo = tree
    ran = lab.play("begin", [lab.begin(), Say("FIRST"), Shell(lab.cancel()), Say("LAST")])
    text = reason(lab, ran, 3)
    lab.check("a loop in a linked worktree is held, by its own gate page",
              len(ran.asked) == 4 and f"Read {tree}/.humanize" in text and lab.entries() == [],
              (len(ran.asked), text, lab.entries()))  # fmt: skip
    lab.over()
    seen = lab.top / f"{lab.client}-seen"
    seen.symlink_to(lab.work)
    lab.fresh(f"{lab.client}-linked")
    lab.repo = seen / lab.repo.name
    script = [lab.sh(f"test -f {PLAN}"), lab.begin(), Say("FIRST"), Shell(lab.cancel()), Say("LAST")]
    ran = lab.play("begin", script, cwd=seen)
    lab.check("a loop below a symlinked folder is held", len(ran.asked) == 5 and lab.entries() == [],
              (len(ran.asked), reason(lab, ran, 4), lab.entries()))  # fmt: skip
    lab.over()
