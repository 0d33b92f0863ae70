"""The real clients driven from outside: `rlcr drive` starts them and judges each end of a turn."""

from __future__ import annotations

from client_lab import PATIENCE_S, PLAN, READ, SCRIPTS, Lab, texts
from scripted_model import Model, Say, Shell

LEAVE = {"codex": "--dangerously-bypass-approvals-and-sandbox", "claude": "--dangerously-skip-permissions"}
"""What the user, never the driver, has to say for work without a person."""


def drive_play(lab: Lab) -> None:
    """The client driven from outside: each end of a turn is judged once, although the hook is installed and trusted."""
    lab.fresh(f"{lab.client}-driven")
    argv = [str(SCRIPTS / "rlcr"), "drive", "--agent", lab.client, PLAN, "--reviewer", "evidence-only", "--",
            LEAVE[lab.client]]  # fmt: skip
    work = lab.sh("echo more >> artifacts/research-digest.md && git commit -qam 'a note'")
    env = lab.sh("env | grep -c RLCR_REVIEWER")
    script = [env, Say("FIRST"), work, Say("SECOND"), Shell(lab.cancel()), Say("LAST")]
    with Model(script) as model:
        done = lab.run(argv, lab.repo, lab.point(model.port), seconds=PATIENCE_S)
        asked = model.asked
    said = done.stdout + done.stderr
    lab.check(
        "a loop that its own worker cancels ends the driver with 2", done.returncode == 2 and "CANCEL" in said, said
    )
    # The turn is ended as soon as the loop is over: whether the client still asked for its last words is chance.
    lab.check("three turns of one session", len(asked) in (5, 6), (len(asked), said))
    lab.check("the trusted hook judged nothing: one decision a turn", len(lab.stops()) == 2, lab.stops())
    words = ["\n".join(texts(body)) for body in asked]
    lab.check(
        "the first prompt is the page of round 0", "round-0-prompt.md and do what it says" in words[0], words[0][-600:]
    )
    for number in (2, 4):
        told = READ.findall(words[number]) if number < len(words) else []
        first = bool(told) and told[0].endswith("round-0-prompt.md")
        lab.check(f"request {number + 1} carries the reason, in the session that read the first page",
                  first and "the gate is red" in words[number], told)  # fmt: skip
    lab.check("the worker is no reviewer", any(t.strip().endswith("0") for t in texts(asked[1])), words[1][-400:])
    lab.check("the registry is clean after the end", lab.entries() == [], lab.entries())
    lab.check("and so is the driver's record", not list(lab.sessions.parent.glob("drives/*.json")), "")
    lab.over()
