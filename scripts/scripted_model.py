"""A model that says what a script says, on loopback, in the dialects of both clients: no network, no account.

Serves POST /v1/responses (Codex) and POST /v1/messages (Claude Code). A turn of the script is used up by a request
that offers a shell tool; any other request (a title, a count of tokens) gets a short fixed answer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Event = tuple[str, dict[str, Any]]
SHELLS = ("exec_command", "shell_command", "Bash")
"""Names of the clients' shell tools, and ``ARGUMENT`` their word for the command."""
ARGUMENT = {"exec_command": "cmd", "shell_command": "command", "Bash": "command"}
FAILED = {"type": "error", "error": {"type": "invalid_request_error", "message": "scripted"}}
SPENT = "the script is at its end"


@dataclass(frozen=True)
class Say:
    """The agent says this and stops."""

    text: str


@dataclass(frozen=True)
class Shell:
    """The agent runs this with its shell tool."""

    command: str


@dataclass(frozen=True)
class Fail:
    """The request fails with this HTTP status, so the client gives the turn up."""

    status: int


Turn = Say | Shell | Fail


class Model:
    """A server that plays one script; ``asked`` holds the bodies of the requests that used a turn."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = list(turns)
        self.asked: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
                pass

            def do_POST(self) -> None:
                model.answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Model:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, http: BaseHTTPRequestHandler) -> None:
        """Answer one request in its own dialect."""
        body = json.loads(http.rfile.read(int(http.headers.get("content-length") or 0)) or b"{}")
        shell = next((name for name in SHELLS if name in set(_tools(body.get("tools") or []))), "")
        path = http.path.partition("?")[0]
        turn, number = self._next(body) if shell else (Say("ok"), 0)
        if isinstance(turn, Fail) or not path.endswith(("/responses", "/messages")):
            status = turn.status if isinstance(turn, Fail) else 404
            _send(http, status, "application/json", json.dumps(FAILED))
            return
        events = responses(turn, shell, number) if path.endswith("/responses") else messages(turn, shell, number)
        if path.endswith("/messages") and not body.get("stream"):
            _send(http, 200, "application/json", json.dumps(whole_message(turn, shell, number)))
            return
        text = "".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events)
        _send(http, 200, "text/event-stream", text)

    def _next(self, body: dict[str, Any]) -> tuple[Turn, int]:
        with self._lock:
            self.asked.append(body)
            number = len(self.asked)
            return (self.turns[number - 1] if number <= len(self.turns) else Say(SPENT)), number


def _tools(tools: Sequence[dict[str, Any]]) -> Iterator[str]:
    for tool in tools:
        yield str(tool.get("name"))
        yield from _tools(tool.get("tools") or [])


def _send(http: BaseHTTPRequestHandler, status: int, kind: str, text: str) -> None:
    data = text.encode()
    http.send_response(status)
    http.send_header("content-type", kind)
    http.send_header("content-length", str(len(data)))
    http.end_headers()
    http.wfile.write(data)


def responses(turn: Turn, shell: str, number: int) -> Iterator[Event]:
    """One turn as the events of the Responses dialect."""
    ids = {"id": f"item_{number}", "status": "completed"}
    if isinstance(turn, Shell):
        words = json.dumps({ARGUMENT[shell]: turn.command, "yield_time_ms": 30000})
        item: dict[str, Any] = {
            "type": "function_call",
            "call_id": f"call_{number}",
            "name": shell,
            "arguments": words,
            **ids,
        }
    else:
        text = turn.text if isinstance(turn, Say) else ""
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "role": "assistant", "content": [part], **ids}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    answer = {"id": f"answer_{number}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield "response.created", {"response": {**answer, "status": "in_progress", "output": []}}
    yield "response.output_item.added", {"output_index": 0, "item": item}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": answer}


def whole_message(turn: Turn, shell: str, number: int) -> dict[str, Any]:
    """One turn as one object of the Messages dialect."""
    if isinstance(turn, Shell):
        words = {ARGUMENT[shell]: turn.command, "description": "scripted"}
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": shell, "input": words}
    else:
        block = {"type": "text", "text": turn.text if isinstance(turn, Say) else ""}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [block],
        "stop_reason": "tool_use" if isinstance(turn, Shell) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def messages(turn: Turn, shell: str, number: int) -> Iterator[Event]:
    """One turn as the events of the Messages dialect."""
    whole = whole_message(turn, shell, number)
    block = whole["content"][0]
    yield "message_start", {"message": {**whole, "content": [], "stop_reason": None}}
    empty: dict[str, Any]
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield "content_block_start", {"index": 0, "content_block": empty}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    yield (
        "message_delta",
        {"delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}, "usage": whole["usage"]},
    )
    yield "message_stop", {}
