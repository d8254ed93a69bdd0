"""A small HTTP server for those who watch a run: /metrics, /healthz and /readyz."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final

from shoal.errors import PolicyError
from shoal.observe.observer import Observer

_SILENT_SECONDS: Final = 60.0
"""A run that takes no turn for so long is not healthy: it returns to its loop at least twice a second."""
_TEXT: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


class HealthObserver(Observer):
    """Knows whether a run is under way (ready) and whether it still takes turns (healthy)."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, silent_seconds: float = _SILENT_SECONDS) -> None:
        self._clock, self._silent_seconds = clock, silent_seconds
        self._turn_at = clock()
        self.is_ready = False

    def turn(self) -> None:
        self._turn_at, self.is_ready = self._clock(), True

    @property
    def silent_seconds(self) -> float:
        """Since the last turn."""
        return self._clock() - self._turn_at

    @property
    def is_healthy(self) -> bool:
        """Whether the run has taken a turn recently; before the first one it may be compiling."""
        return not self.is_ready or self.silent_seconds < self._silent_seconds


@contextmanager
def serving(address: str, health: HealthObserver, page: Callable[[], bytes]) -> Iterator[int]:
    """Serve while a block runs, at ``PORT`` (of this machine only) or ``HOST:PORT``; yields the port."""
    host, port = _parts(address)
    handler = type("Handler", (_Handler,), {"health": health, "page": staticmethod(page)})
    try:
        server = ThreadingHTTPServer((host, port), handler)
    except OSError as error:
        raise PolicyError(f"--metrics {address}: cannot listen there ({error.strerror}); choose another port") from None
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, name="shoal metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _parts(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise PolicyError(f"--metrics {address}: must be a port, or a host and a port such as 127.0.0.1:9464")
    return host.strip("[]") or "127.0.0.1", int(port)


class _Handler(BaseHTTPRequestHandler):
    health: HealthObserver
    page: Callable[[], bytes]

    def do_GET(self) -> None:
        """Answer."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, self.page(), _METRICS)
        elif path == "/healthz":
            words = f"no turn for {self.health.silent_seconds:.0f} seconds" if not self.health.is_healthy else "ok"
            self._answer(200 if self.health.is_healthy else 503, words.encode() + b"\n")
        elif path == "/readyz":
            self._answer(200, b"ok\n") if self.health.is_ready else self._answer(503, b"starting\n")
        else:
            self._answer(404, b"there are /metrics, /healthz and /readyz\n")

    def _answer(self, code: int, content: bytes, kind: str = _TEXT) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Requests are not logged."""
