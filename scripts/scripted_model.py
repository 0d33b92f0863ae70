"""A model that says what a script says, on loopback, in the dialects of both clients: no network, no account.

Serves POST /v1/responses (Codex) and POST /v1/messages (Claude Code). A turn of the script is used up by a request
that offers a shell tool or wants its answer in a schema; any other request (a title, a count of tokens) gets a short
fixed answer. A ``Reply`` reads the request before it answers, as a model does; an ``Answer`` is given in the form that
the client asks for.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Event = tuple[str, dict[str, Any]]
SHELLS = ("exec_command", "shell_command", "Bash")
"""Names of the clients' shell tools, and ``ARGUMENT`` their word for the command."""
ARGUMENT = {"exec_command": "cmd", "shell_command": "command", "Bash": "command"}
STRUCTURED = "StructuredOutput"
"""Claude Code's tool for an answer in a schema; Codex takes the text."""
RUNNING = re.compile(r"Process running with session ID (\d+)")
FAILED = {"type": "error", "error": {"type": "invalid_request_error", "message": "scripted"}}
WAITS = itertools.count(1000)
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


@dataclass(frozen=True)
class Answer:
    """The final answer in the client's schema: a tool call where the client has a tool for it, else a text of JSON."""

    data: dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """The agent calls a tool of Claude Code's by its name, whether it was offered or not."""

    name: str
    words: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What the agent makes of the request: ``to`` gets its body."""

    to: Callable[[dict[str, Any]], Say | Shell | Tool]


@dataclass(frozen=True)
class Wait:
    """The agent waits for a command that Codex has put into the background; no turn of the script."""

    session: str


Spoken = Say | Shell | Tool | Fail | Answer | Wait
Turn = Spoken | Reply


class Model:
    """A server that plays one script; ``asked`` holds the bodies of the requests that used a turn.

    Requests that want their answer in a schema are a reviewer's: they have ``reviews`` and ``reviewed`` of their own.
    """

    def __init__(self, turns: Sequence[Turn], reviews: Sequence[Turn] = ()) -> None:
        self.turns, self.reviews = list(turns), list(reviews)
        self.asked: list[dict[str, Any]] = []
        self.reviewed: list[dict[str, Any]] = []
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
        offered = set(_tools(body.get("tools") or []))
        shell = next((name for name in SHELLS if name in offered), "")
        path = http.path.partition("?")[0]
        if wait := _still_running(body):
            turn: Spoken = Wait(wait)
            number = next(WAITS)
        else:
            turn, number = self._next(body, offered) if shell or STRUCTURED in offered else (Say("ok"), 0)
        if isinstance(turn, Answer) and STRUCTURED not in offered:
            turn = Say(json.dumps(turn.data))
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

    def _next(self, body: dict[str, Any], offered: set[str]) -> tuple[Spoken, int]:
        review = STRUCTURED in offered or bool((body.get("text") or {}).get("format"))
        turns, asked = (self.reviews, self.reviewed) if review else (self.turns, self.asked)
        with self._lock:
            asked.append(body)
            number = len(asked)
        turn = turns[number - 1] if number <= len(turns) else Say(SPENT)
        return (turn.to(body) if isinstance(turn, Reply) else turn), number


def _still_running(body: dict[str, Any]) -> str:
    """Number of the shell session that Codex's last tool result says is not over yet; else empty."""
    last = (body.get("input") or [{}])[-1]
    if not isinstance(last, dict) or last.get("type") != "function_call_output":
        return ""
    found = RUNNING.search(json.dumps(last))
    return found.group(1) if found else ""


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


def responses(turn: Spoken, shell: str, number: int) -> Iterator[Event]:
    """One turn as the events of the Responses dialect."""
    ids = {"id": f"item_{number}", "status": "completed"}
    item: dict[str, Any]
    if isinstance(turn, (Shell, Wait)):
        name, words = shell, {ARGUMENT[shell]: turn.command} if isinstance(turn, Shell) else {}
        if isinstance(turn, Wait):
            name, words = "write_stdin", {"session_id": int(turn.session), "chars": ""}
        given = json.dumps({**words, "yield_time_ms": 30000})
        item = {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": given, **ids}
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


def whole_message(turn: Spoken, shell: str, number: int) -> dict[str, Any]:
    """One turn as one object of the Messages dialect."""
    if isinstance(turn, Shell):
        words = {ARGUMENT[shell]: turn.command, "description": "scripted", "timeout": 600_000}
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": shell, "input": words}
    elif isinstance(turn, Tool):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": turn.name, "input": turn.words}
    elif isinstance(turn, Answer):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": STRUCTURED, "input": turn.data}
    else:
        block = {"type": "text", "text": turn.text if isinstance(turn, Say) else ""}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [block],
        "stop_reason": "tool_use" if isinstance(turn, (Shell, Tool, Answer)) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def messages(turn: Spoken, shell: str, number: int) -> Iterator[Event]:
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
