"""What ``--help`` says of each command besides set-up, which has more to say."""

ALL = """\
USAGE: rlcr COMMAND [options]

  setup PLAN [options]     begin a loop (setup-rlcr-loop.sh)
  stop-gate [options]      judge a Stop by hand (rlcr-stop-gate.sh)
  cancel [--force]         end the loop of this worktree (cancel-rlcr-loop.sh)
  cancel-session [options] end the loop with that folder name (cancel-rlcr-session.sh)
  stop --why TEXT          end the loop as STOP, and keep what it reached
  resume                   let a parked loop go on
  adopt --session-id ID    give the loop to another session
  status                   one JSON object about the loop
  evidence [options]       judge the round as a Stop would, and decide nothing; or pin the commands anew
  plan show | amend        the plan as it stands; judge by another one from here on
  drive [options]          run a client from outside, round after round

rlcr COMMAND --help says more. Exit code 2: no such command.
"""
USAGE = {
    "stop-gate": """\
USAGE: rlcr-stop-gate.sh [options]

Judge a Stop by hand, where no Stop hook fires.

  --session-id ID          the session that stops (that of the client, else of the loop in this worktree)
  --project-root DIR       look from there (the current folder)
  --transcript-path P      accepted and without meaning here: no transcript is read
  --json                   print what the client would be told
  -h, --help               this text

Exit code 0: ALLOW. 10: BLOCK, and why. 20: it could not be judged, or is another session's.
""",
    "cancel": """\
USAGE: cancel-rlcr-loop.sh [--force]

End the loop of this worktree. Its files stay, and so do all commits.

  --force                  also when the loop is in FINALIZE, about to complete
  -h, --help               this text

Exit code 0: it is over. 1: there is no loop here. 2: it is in FINALIZE, say --force. 3: anything else.
""",
    "cancel-session": """\
USAGE: cancel-rlcr-session.sh --session-id NAME [--project DIR] [--force]

End the loop whose folder below .humanize/rlcr has this name. Its files stay, and so do all commits.

  --session-id NAME        name of the loop's folder, 2026-11-30_08-00-00 for instance
  --project DIR            the worktree (that of the current folder)
  --force                  also when the loop is in FINALIZE, about to complete
  -h, --help               this text

Exit code 0: it is over. 1: no such loop is active. 2: it is in FINALIZE, say --force. 3: anything else.
""",
    "stop": """\
USAGE: rlcr stop --why TEXT

End the loop of this worktree as STOP, for a reason of yours: what it reached is what there is. A parked loop, too.

Exit code 0: it is over. 1: there is no loop here. 3: anything else.
""",
    "plan": """\
USAGE: rlcr plan show
       rlcr plan amend --why TEXT

show    print the plan that the loop is judged by.
amend   judge by the plan file as it is now. The loop goes back to BUILD, in the same round; what was accepted by the
        old plan is looked at again. The new words and the reason are kept in the journal, where the reviewer sees them.

Exit code 0: done. 1: there is no loop here. 3: anything else.
""",
    "evidence": """\
USAGE: rlcr evidence [--json]
       rlcr evidence --amend --why TEXT

Judge this round as a Stop would, by rules and evidence commands, without deciding anything or counting a block. The
answers of commands that declare "cache": true are kept for a Stop at the same commit.

  --json                   print one JSON object
  --amend --why TEXT       pin .humanize/evidence.json and what it names anew, for a reason that is kept
  -h, --help               this text

Exit code 0: nothing is held against the round (amend: done). 10: something is. 20: it could not be judged.
1: there is no loop here. 3: anything else.
""",
    "resume": """\
USAGE: rlcr resume

Let the parked loop of this worktree go on in the phase in which it was parked. Where the registry does not vouch for
the journal, that goes on record, and what a reviewer accepted before is looked at again.

Exit code 0: it goes on, or runs already. 1: there is no loop here. 3: anything else.
""",
    "adopt": """\
USAGE: rlcr adopt --session-id ID

Give the loop of this worktree to session ID; the session that had it is free from then on, and told at its next Stop.

Exit code 0: it is given. 1: there is no loop here. 3: anything else.
""",
    "status": """\
USAGE: rlcr status [--json]

Print one JSON object about the loop of this worktree: phase, round, blocks, faults (JSON with or without the flag);
how often the hook fired (fired, last_fired), and how often a Stop was judged by hand or driver (asked, last_asked).

Exit code 0: printed. 1: there is no loop here. 3: anything else.
""",
}
