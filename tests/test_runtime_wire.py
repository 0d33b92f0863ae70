"""The channel: a reply is believed only when it answers the command, alone, in time."""

from __future__ import annotations

import json
import os
import threading

import pytest

from kernelpilot_helpers.runtime import wire


def serve(sock, body: bytes | None) -> threading.Thread:
    """Answer one command with ``body`` (``NONCE`` stands for the command's), or close."""

    def go() -> None:
        nonce = json.loads(sock.recv(4096))["nonce"]
        if body is None:
            sock.close()
        elif body:
            sock.sendall(body.replace(b"NONCE", nonce.encode()))

    thread = threading.Thread(target=go)
    thread.start()
    return thread


def ask(body: bytes | None, timeout: float = 2.0):
    ours, theirs = wire.pair()
    thread = serve(theirs, body)
    try:
        return wire.Caller(ours).ask({"op": "x"}, timeout=timeout)
    finally:
        thread.join()
        ours.close()
        theirs.close()


def test_a_true_reply_is_read() -> None:
    assert ask(b'{"ns": 5, "nonce": "NONCE"}\n') == {"ns": 5}


@pytest.mark.parametrize(
    "body",
    [b'{"ns": 5}\n', b'{"ns": 5, "nonce": "0000"}\n', b"hello\n", b"[1]\n",
     b'{"nonce": "NONCE"}\n{"nonce": "NONCE"}\n'],
)  # fmt: skip
def test_anything_else_is_a_forgery(body: bytes) -> None:
    with pytest.raises(wire.Forged):
        ask(body)


def test_silence_ends_in_a_time_out_and_an_end_in_closed() -> None:
    with pytest.raises(wire.TimedOut):
        ask(b"", timeout=0.05)
    with pytest.raises(wire.Closed):
        ask(None)


def test_bytes_that_wait_before_the_command_are_a_forgery() -> None:
    ours, theirs = wire.pair()
    with ours, theirs:
        theirs.sendall(b'{"ns": 1}\n')
        with pytest.raises(wire.Forged, match="unasked"):
            wire.Caller(ours).ask({"op": "x"}, timeout=1.0)


def test_descriptors_travel_with_their_command() -> None:
    ours, theirs = wire.pair()
    read, write = os.pipe()
    with ours, theirs:
        answerer = wire.Answerer(theirs)

        def go() -> None:
            command = answerer.next()
            assert command is not None
            os.write(answerer.fds[0], b"hi")
            os.close(answerer.fds[0])
            answerer.reply(command, {"n": len(answerer.fds)})

        thread = threading.Thread(target=go)
        thread.start()
        assert wire.Caller(ours).ask({"op": "x"}, timeout=2.0, fds=[write]) == {"n": 1}
        thread.join()
    assert os.read(read, 2) == b"hi"
    os.close(read)
    os.close(write)


def test_a_posted_command_is_answered_later_and_the_next_one_waits_for_its_reply() -> None:
    """Breaks when two workers can no longer work at the same time, or an old reply answers a new command."""
    ours, theirs = wire.pair()
    caller, port = wire.Caller(ours), wire.Answerer(theirs)
    caller.post({"op": "slow"})
    assert not caller.answered()
    command = port.next()
    assert command is not None
    port.reply(command, {"ns": 7})
    assert caller.answered()
    with pytest.raises(wire.Forged, match="unasked"):
        caller.post({"op": "next"})
    caller.post({"op": "slow"})
    command = port.next()
    assert command is not None
    port.reply(command, {"ns": 8})
    assert caller.wait(timeout=1.0) == {"ns": 8}
    ours.close()
    theirs.close()
