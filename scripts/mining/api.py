"""GitHub's interface, read only: tags, pages, limits, vanished and renamed things, faults of the server.

The token comes from GITHUB_TOKEN or GH_TOKEN and is written nowhere; the page cache knows it by a hash.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from kernelpilot_helpers.errors import KernelPilotError
from mining.cursor import Cursor

TRIES = 4
GONE = (404, 410, 451)
TOO_LARGE = 406
LIMITED = (403, 429)
UNCHANGED = 304
MOST_PAGES = 1000


class OutOfBudget(KernelPilotError):
    """A limit was reached; what had been read is settled, and the same command goes on (exit 75)."""

    exit_code = 75


class Gone(Exception):
    """The thing is not there for us: deleted, private, or withheld."""


class TooLarge(Exception):
    """The server will not give this much in one answer."""


class GitHub:
    """One connection pool with its budget. ``sleep`` and ``clock`` can be replaced in tests."""

    def __init__(
        self, *, base: str, max_requests: int, max_wait: float, token: str | None = None,
        sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] = time.time, backoff: float = 0.5,
    ) -> None:  # fmt: skip
        self.base = base.rstrip("/")
        self.token = token if token is not None else os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or ""
        self.token_hash = hashlib.sha256(self.token.encode()).hexdigest()[:16] if self.token else ""
        self.left, self.max_wait = max_requests, max_wait
        self.sleep, self.clock = sleep, clock
        self.session = requests.Session()
        self.session.trust_env = False
        retry = Retry(
            total=TRIES, backoff_factor=backoff, backoff_jitter=backoff / 2, status_forcelist=(500, 502, 503, 504),
            allowed_methods=("GET",), raise_on_status=False, respect_retry_after_header=False, redirect=5,
        )  # fmt: skip
        for scheme in ("https://", "http://"):
            self.session.mount(scheme, HTTPAdapter(max_retries=retry))

    def pages(
        self, path: str, cursor: Cursor | None, reduce: Callable[[Any], Any], *, start: str = ""
    ) -> Iterator[tuple[Any, str]]:
        """(what ``reduce`` keeps of a page, address of the next or empty), along ``Link`` until it ends.

        ``reduce`` must keep facts only where a cursor is given: its result is cached beside the tag.
        Raises Gone, TooLarge, OutOfBudget.
        """
        url = start or f"{self.base}{path}"
        seen: set[str] = set()
        while url:
            if url in seen or len(seen) >= MOST_PAGES:
                raise KernelPilotError("pages lead in a circle", where=url, fix="try again later")
            seen.add(url)
            kept, following = self._page(url, cursor, reduce)
            yield kept, following
            url = following

    def _page(self, url: str, cursor: Cursor | None, reduce: Callable[[Any], Any]) -> tuple[Any, str]:
        known = cursor.page(url, self.token_hash) if cursor else None
        answer = self._get(url, etag=known[0] if known else "")
        if answer.status_code == UNCHANGED and known:
            return known[1], known[2]
        try:
            kept = reduce(answer.json())
        except (ValueError, KeyError, TypeError) as error:
            raise KernelPilotError(f"not the answer expected: {error!r}", where=url, fix="try again later") from None
        following = self._following(answer)
        if cursor and answer.headers.get("ETag"):
            cursor.keep_page(url, self.token_hash, answer.headers["ETag"], kept, following)
        return kept, following

    def _following(self, answer: requests.Response) -> str:
        following = str(answer.links.get("next", {}).get("url", ""))
        same = urlsplit(following).netloc in ("", urlsplit(self.base).netloc)
        return following if same else ""

    def _get(self, url: str, *, etag: str) -> requests.Response:
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if etag:
            headers["If-None-Match"] = etag
        while True:
            if self.left <= 0:
                raise OutOfBudget(
                    "--max-requests reached; cursor saved", where=self.base, fix="run the same command again"
                )
            self.left -= 1
            try:
                answer = self.session.get(url, headers=headers, timeout=30)
            except requests.RequestException as error:
                raise OutOfBudget(
                    f"no answer ({type(error).__name__}); cursor saved", where=url, fix="run the same command again"
                ) from None
            if answer.status_code in LIMITED and self._is_limit(answer):
                self._wait(answer)
                continue
            return self._judged(answer, url)

    def _judged(self, answer: requests.Response, url: str) -> requests.Response:
        status = answer.status_code
        if status in GONE:
            raise Gone(url)
        if status in (TOO_LARGE, 422):
            raise TooLarge(url)
        if status >= 500:
            raise OutOfBudget(f"the server answers {status}; cursor saved", where=url, fix="run the same command again")
        if status not in (200, UNCHANGED):
            fix = "check GITHUB_TOKEN (read access to public repositories is enough)"
            raise KernelPilotError(f"answered {status}", where=url, fix=fix)
        return answer

    def _is_limit(self, answer: requests.Response) -> bool:
        """403 may also mean forbidden: a limit says so in its headers; 429 always is one."""
        headers = answer.headers
        return answer.status_code == 429 or "Retry-After" in headers or headers.get("X-RateLimit-Remaining") == "0"

    def _wait(self, answer: requests.Response) -> None:
        headers = answer.headers
        if headers.get("Retry-After", "").isdigit():
            seconds = float(headers["Retry-After"])
        elif headers.get("X-RateLimit-Reset", "").isdigit():
            seconds = max(0.0, float(headers["X-RateLimit-Reset"]) - self.clock()) + 1.0
        else:
            seconds = 60.0
        if seconds > self.max_wait:
            until = f"{seconds:.0f} s to wait, --max-wait is {self.max_wait:.0f}"
            raise OutOfBudget(f"rate limit: {until}; cursor saved", where=self.base, fix="run the same command later")
        self.sleep(seconds)
