"""A crash told by the user's own frames."""

from __future__ import annotations

from kernelpilot_helpers.correctness.traces import last_words, own

CRASH = """Traceback (most recent call last):
  File "/home/u/.cache/kernelpilot/runtime/0a/kernelpilot_runtime/worker.py", line 70, in serve
    body = handlers[command["op"]](command, port.fds)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "<frozen importlib._bootstrap>", line 241, in _call
  File "/home/u/q/.kernelpilot/jobs/v001_x.1/arms/B/candidate.py", line 4, in entry
    helper(x)
  File "/home/u/q/.kernelpilot/jobs/v001_x.1/arms/B/lib/more.py", line 2, in helper
    raise ValueError("my bug")
ValueError: my bug
"""


def test_only_the_users_frames_are_left() -> None:
    """Breaks if a person must read past the runtime's frames, or a frame of their own is dropped."""
    assert own(CRASH).splitlines() == [
        "Traceback (most recent call last):",
        '  File "candidate.py", line 4, in entry',
        "    helper(x)",
        '  File "lib/more.py", line 2, in helper',
        '    raise ValueError("my bug")',
        "ValueError: my bug",
    ]


def test_a_log_that_is_no_traceback_stays_whole() -> None:
    """Breaks if a compiler's words are cut."""
    log = "kernel.c:3:1: error: unknown type name 'flaot'\n    flaot x;\n    ^~~~~"
    assert own(log) == log


def test_the_last_words_say_what_and_where_in_one_line() -> None:
    """Breaks if a refusal carries a traceback that was cut in the middle."""
    assert last_words(CRASH) == "ValueError: my bug (lib/more.py, line 2, in helper)"
    assert last_words("MemoryError") == "MemoryError"
    assert last_words(" \n") == "no message"
    assert len(last_words(CRASH.replace("my bug", "x" * 999))) <= 300
