"""What ``--help`` says of each command besides set-up, which has more to say."""

ALL = """\
USAGE: rlcr COMMAND [options]

  setup PLAN [options]     begin a loop (setup-rlcr-loop.sh)
  stop-gate [options]      judge a Stop by hand (rlcr-stop-gate.sh)
  cancel [--force]         end the loop of this worktree (cancel-rlcr-loop.sh)
  resume                   let a parked loop go on
  adopt --session-id ID    give the loop to another session
  status                   one JSON object about the loop

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

Exit code 0: ALLOW. 10: BLOCK, and why. 20: it could not be judged.
""",
    "cancel": """\
USAGE: cancel-rlcr-loop.sh [--force]

End the loop of this worktree. Its files stay, and so do all commits.

  --force                  also when the loop is in FINALIZE, about to complete
  -h, --help               this text

Exit code 0: it is over. 1: there is no loop here. 2: it is in FINALIZE, say --force. 3: anything else.
""",
    "resume": """\
USAGE: rlcr resume

Let the parked loop of this worktree go on in the phase in which it was parked.

Exit code 0: it goes on. 1: there is no loop here. 3: anything else.
""",
    "adopt": """\
USAGE: rlcr adopt --session-id ID

Give the loop of this worktree to session ID; the session that had it is free from then on.

Exit code 0: it is given. 1: there is no loop here. 3: anything else.
""",
    "status": """\
USAGE: rlcr status [--json]

Print one JSON object about the loop of this worktree: phase, round, blocks, faults (JSON with or without the flag).

Exit code 0: printed. 1: there is no loop here. 3: anything else.
""",
}
