"""A live stream of synthetic visits, sent to the HTTP source of a run on this machine."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final

import orjson

from shoal.testing.visits import Visits, make_visits

POLICY: Final = """\
[stream]
person = "user"
time = "ts"
time_unit = "ms"

[source]
kind = "http"
types = {{ ts = "int64", user = "string", site = "string" }}

[anonymize]
method = "z-anonymity"
attribute = "site"
z = {z}
window = "5min"

[sink]
kind = "jsonl"
path = "published/"

[checkpoint]
path = "state"
every = "10s"
"""
_SENDS_A_SECOND: Final = 5
_BROKEN: Final = 500
"""One visit of this many names no user, so that there are dead letters."""


class VisitSender:
    """Sends the visits of a synthetic day again and again, with the time of now.

    Parameters
    ----------
    rate
        Visits a second.
    """

    def __init__(self, url: str, token: str, *, people: int, events: int, seed: int, rate: int) -> None:
        self._url, self._rate = url, rate
        self._headers = {"Authorization": f"Bearer {token}"}
        self._visits: Visits = make_visits(people=people, events=events, seed=seed)
        self._next = 0
        self._is_closing = Event()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send while a block runs."""
        thread = Thread(target=self._send_all, name="shoal demo", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_closing.set()
            thread.join(2)

    def _send_all(self) -> None:
        while not self._is_closing.wait(1 / _SENDS_A_SECOND):
            count = max(1, self._rate // _SENDS_A_SECOND)
            # Refused now, or the run is not ready: the same visits are sent again.
            with suppress(OSError):
                self.send(count)

    def send(self, count: int) -> None:
        """Send the next visits; OSError if they were not accepted."""
        now = time.time_ns() // 1_000_000
        numbers = [(self._next + offset) % len(self._visits) for offset in range(count)]
        body = b"".join(orjson.dumps(self.visit(number, now)) + b"\n" for number in numbers)
        request = urllib.request.Request(self._url, body, self._headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()
        self._next += count

    def visit(self, number: int, now: int) -> dict[str, Any]:
        """One visit as a record."""
        day = self._visits
        user = None if number % _BROKEN == 0 else day.people[day.person[number]]
        return {"ts": now, "user": user, "site": day.sites[day.site[number]]}
