"""One whole kernel loop inside a real client: every fault that the gate finds is mended by the words it was given."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from client_lab import CLONE, READ, Lab, Ran, items, reason, texts
from scripted_model import Reply, Say, Shell, Turn

VARIANTS = CLONE / "lib" / "kernelpilot_helpers" / "demo" / "variants"
PAPERS = Path(__file__).with_name("papers.py")
LEDGER = "artifacts/optimization-ledger.md"
NOTES = "artifacts/research-digest.md"
CARD = "Optimize the add_rmsnorm example on this CPU."
BODY = "A figure that `kernelpilot attempt` did not record is not a result"
"""A sentence of the loop's SKILL.md."""
MENTION = {
    "codex": ("[$humanize-kernel-agent-loop]", "$humanize-kernel-agent-loop"),
    "claude": ("/humanize-kernel-agent-loop",),
}


@dataclass(frozen=True)
class Candidate:
    """What the agent tries, the verdict of a sound referee, and the commands that bring the search to an end."""

    slug: str
    write: str
    """The command that writes it, into the folder ``$V``."""
    verdict: str
    close: tuple[str, ...]


FASTER = Candidate(
    "fused_wide", f"cp {VARIANTS}/fused_wide/*.* $V", "IMPROVED",
    ("kernelpilot tune --max-pairs 6 || kernelpilot tune --max-pairs 6", "kernelpilot dispatch"),
)  # fmt: skip
"""Measured for half a minute, as every claim is."""
RENAMED = Candidate(
    "renamed", "cp baseline/candidate.py $V && echo '# much faster now' >> $V/candidate.py", "SAME",
    (
        "mkdir -p src/add_rmsnorm/variants/again",
        "cp baseline/candidate.py src/add_rmsnorm/variants/again",
        "echo '# faster still' >> src/add_rmsnorm/variants/again/candidate.py",
        "kernelpilot attempt again --motivation 'another name for it'",
        "kernelpilot select v000_baseline --why 'stop: the baseline under another name is no idea'",
    ),
)  # fmt: skip
"""Nothing to measure: the referee sees that it builds to the same program. Two such rounds may end in a stop."""
TRIES = 3


@dataclass
class Agent:
    """A model that reads: it opens the page that it is told to read, and runs the remedy that stands there."""

    lab: Lab
    candidate: Candidate
    script: list[Turn] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    """Number of the request, from 1, that follows a stop, by what the stop is called."""
    pages: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)

    def stop(self, name: str) -> None:
        """Say something and stop; the next request, if there is one, carries the hook's reason."""
        self.script.append(Say(f"This is the end of my turn: {name}."))
        self.at[name] = len(self.script) + 1

    def read(self) -> None:
        """Open the page that the hook's reason names."""
        self.script.append(Reply(self._open))

    def mend(self, rule: str) -> None:
        """Run the remedy that the page just opened gives for a rule."""
        self.script.append(Reply(lambda body: self._mend(rule, body)))

    def run(self, *commands: str) -> None:
        """Run commands in the repo, each only if the one before it succeeded."""
        self.script.append(self.lab.sh(" && ".join(f"{{ {command}; }}" for command in commands)))

    def papers(self, what: str) -> str:
        """The command that fills in the loop's forms."""
        python = self.lab.home / ".local" / "share" / "kernelpilot" / "venv" / "bin" / "python"
        return shlex.join([str(python), str(PAPERS), what])

    def _open(self, body: dict[str, Any]) -> Say | Shell:
        found = READ.findall(_newest(body))
        self.pages.append(found[-1] if found else "")
        return self.lab.sh(f"cat {shlex.quote(found[-1])}") if found else Say("no page was named")

    def _mend(self, rule: str, body: dict[str, Any]) -> Say | Shell:
        found = re.findall(rf"^- gate {rule} .*? -> (kernelpilot [^\n]+)$", _newest(body), re.MULTILINE)
        if not found:
            return Say(f"no remedy for rule {rule} was named")
        remedy = found[-1].replace('"..."', '"one pass over memory instead of five"')
        self.mended.append(remedy)
        # A busy machine is no verdict on the candidate: its row says so, and the same command measures again.
        again = (
            f"for n in $(seq {TRIES}); do said=$({remedy}) || break; case $said in *suspect.*|*machine.*) ;; *) break;;"
        )
        return self.lab.sh(f'{again} esac; done; echo "$said"' if rule == "10" else remedy)


def _newest(body: dict[str, Any]) -> str:
    """The newest texts of a request: a note of the client may stand after a tool's result."""
    return "\n".join(texts(items(body)[-3:])).replace("&quot;", '"').replace("&amp;", "&").replace("&gt;", ">")


def kernel_loop(lab: Lab, mention: str, candidate: Candidate) -> None:
    """From the first sentence to COMPLETE: four red gates, each mended by the words that the agent was given."""
    lab.fresh(f"{lab.client}-{candidate.slug}-{len(list(lab.work.iterdir()))}")
    agent = _script(Agent(lab, candidate))
    ran = lab.play(f"{mention} {CARD}", agent.script)
    lab.check(f"{mention} brings the body of our SKILL.md", BODY in "\n".join(texts(ran.asked[:1])), ran.asked[:1])
    played = len(ran.asked) == len(agent.script) and ran.code == 0
    lab.check("the whole script was played and the client ended well", played,
              f"{len(ran.asked)} of {len(agent.script)} requests, exit {ran.code}\n{_told(ran)}")  # fmt: skip
    lab.check("every answer of the hook was accepted", "Stop Failed" not in ran.err + ran.out, ran.err)
    _red(lab, ran, agent)
    if played:
        _ended(lab, agent)
    lab.over()


def _script(agent: Agent) -> Agent:
    slug, folder = agent.candidate.slug, f"src/add_rmsnorm/variants/{agent.candidate.slug}"
    agent.script.append(agent.lab.begin())
    agent.stop("nothing done")
    agent.read()
    write = f"V={folder}; mkdir -p $V && {agent.candidate.write}"
    agent.run(agent.papers("0"), write, f"git add {folder} {NOTES}", f"git commit -qm 'a fast kernel: {slug}'")
    agent.stop("a candidate without a row")
    agent.read()
    agent.mend("10")
    agent.stop("round 0 done")
    agent.read()
    boast = f"echo 'Everything is ten times faster now.' >> {LEDGER}"
    agent.run(agent.papers("1"), *agent.candidate.close, boast, f"git commit -qm 'a prettier ledger' {LEDGER}")
    agent.stop("a boast in a ledger")
    agent.read()
    agent.mend("11")
    agent.stop("round 1 done")
    agent.read()
    agent.run(agent.papers("final"))
    agent.stop("no inventory")
    agent.read()
    agent.mend("31")
    agent.stop("the end")
    return agent


def _told(ran: Ran) -> str:
    last = items(ran.asked[-1])[-3:] if ran.asked else []
    return json.dumps(last)[-900:] + ran.err[-500:]


def _red(lab: Lab, ran: Ran, agent: Agent) -> None:
    """What the agent was told at each red gate, and that it was enough to mend it."""
    for name, words in (
        ("nothing done", ("round-0-summary.md", "still the empty form")),
        ("a candidate without a row", (f"variants/{agent.candidate.slug}", "kernelpilot attempt")),
        ("a boast in a ledger", (LEDGER, "kernelpilot ledger")),
        ("no inventory", ("artifacts/FINAL.md", "kernelpilot report --final")),
    ):
        text = reason(lab, ran, agent.at[name])
        said = "the gate is red" in text and all(word in text for word in words)
        lab.check(f"{name}: the finding and its remedy are the next user message, below 2 KB",
                  said and len(text.encode()) <= 2048, text)  # fmt: skip
    pages = [Path(page) for page in agent.pages]
    lab.check("every page that a reason names exists", pages and all(p.is_file() for p in pages), pages)
    wanted = ["attempt", "ledger", "report"]
    lab.check("the agent ran three remedies, as they stood on the page",
              [m.split()[1] for m in agent.mended] == wanted, agent.mended)  # fmt: skip


def _ended(lab: Lab, agent: Agent) -> None:
    """What stands on disk afterwards."""
    rows = [json.loads(line) for line in (lab.repo / "artifacts" / "lineage.jsonl").read_text().splitlines()]
    tried = [row for row in rows if row.get("kind") == "attempt"]
    verdicts = [row["verdict"] for row in tried]
    right = verdicts[-1:] == [agent.candidate.verdict] and set(verdicts) <= {"AMBIGUOUS", agent.candidate.verdict}
    lab.check(
        f"the attempt is on record, {agent.candidate.verdict}", right, [(r["verdict"], r["reason"]) for r in tried]
    )
    judged = [
        (line["round"], line["phase"], line["data"]["outcome"], (line["data"].get("gate") or {}).get("pass"))
        for line in lab.lines() if line.get("event") == "intent"
    ]  # fmt: skip
    wanted = [
        (0, "BUILD", "block", False), (0, "BUILD", "block", False), (1, "BUILD", "block", True),
        (1, "BUILD", "block", False), (1, "FINALIZE", "block", True),
        (1, "FINALIZE", "block", False), (1, "COMPLETE", "COMPLETE", True),
    ]  # fmt: skip
    lab.check("seven stops, and every decision the one that the evidence calls for", judged == wanted, judged)
    states = sorted(p.name for p in lab.loop().glob("*state.md"))
    lab.check("the loop is COMPLETE", states == ["complete-state.md"], states)
    lab.check("the registry is empty", lab.entries() == [], lab.entries())
    gate = lab.run(["kernelpilot", "gate", "--final"], lab.repo)
    lab.check("kernelpilot gate --final passes", gate.returncode == 0, gate.stdout + gate.stderr)
    following = lab.run(["kernelpilot", "next"], lab.repo)
    lab.check("kernelpilot next says that it is finished", following.stdout.startswith("finished"), following)
