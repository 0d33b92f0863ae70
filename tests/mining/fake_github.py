"""A loopback server that answers what it is told, in order, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any, dict[str, str]]


class FakeGitHub:
    """Paths (with query) to answers; the last answer of a path repeats. ``asked`` holds (path, headers)."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []

    def on(self, path: str, status: int = 200, body: Any = None, **headers: str) -> None:
        """Queue one answer; underscores in header names are hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.setdefault(path, []).append((status, body, named))

    def take(self, path: str) -> Answer:
        """The next answer of a path."""
        queue = self.answers.get(path, [(404, {"message": "Not Found"}, {})])
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [path for path, _ in self.asked]


@contextmanager
def serving() -> Iterator[FakeGitHub]:
    """A server on a free port of the loopback."""
    fake = FakeGitHub("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.asked.append((self.path, dict(self.headers)))
            status, body, headers = fake.take(self.path)
            if status == 200 and headers.get("ETag") and self.headers.get("If-None-Match") == headers["ETag"]:
                status, body = 304, None
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
