"""A server of the live page without a run: tests decide when a snapshot is sent, and when the server ends."""

from __future__ import annotations

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import shoal
from tests.browser.snapshots import Story, what_if

PAGE = Path(shoal.__file__).parent / "serve" / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
END = None


class PageServer:
    """Serves the page on a free port; `send` gives a snapshot to every open page."""

    def __init__(self, story: Story) -> None:
        self.story, self.token = story, "right"
        self.asked: list[dict[str, float]] = []
        self.answers = True  # to what-if requests
        self.most_k = 50
        self.is_down = False
        self._streams: list[queue.Queue[str | None]] = []
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def send(self, snapshot: dict[str, Any] | None = None) -> dict[str, Any]:
        with self._lock:
            sent = self.story.next() if snapshot is None else snapshot
            self._broadcast("state", sent, sent["number"])
            return sent

    def go_down(self) -> None:
        """End all streams and answer nothing any more; the port stays ours."""
        self.is_down = True
        with self._lock:
            for stream in self._streams:
                stream.put(END)
            self._streams.clear()

    def come_back(self, token: str) -> None:
        """Answer again, as after a restart."""
        self.token, self.is_down = token, False

    def close(self) -> None:
        self.go_down()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _broadcast(self, event: str, data: dict[str, Any], number: int) -> None:
        for stream in self._streams:
            stream.put(f"event: {event}\nid: {number}\ndata: {json.dumps(data)}\n\n")

    def _answer_what_if(self, settings: dict[str, float]) -> int:
        with self._lock:
            self.asked.append(settings)
            if self.answers:
                self._broadcast("whatif", what_if(settings, len(self.asked)), len(self.asked))
            return len(self.asked)

    def _subscribe(self) -> queue.Queue[str | None]:
        with self._lock:
            stream: queue.Queue[str | None] = queue.Queue()
            self._streams.append(stream)
            latest = self.story.snapshot()
            stream.put(f"retry: 1000\nevent: state\nid: {latest['number']}\ndata: {json.dumps(latest)}\n\n")
            return stream

    def _handler(server) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # no connection outlives the server

            def log_message(self, *_: Any) -> None:
                pass

            def reply(self, status: int, kind: str, body: bytes, **headers: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", "default-src 'self'")
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(body)

            def reply_json(self, status: int, data: Any) -> None:
                self.reply(status, "application/json", json.dumps(data).encode())

            def allowed(self) -> bool:
                return f"shoal={server.token}" in self.headers.get("Cookie", "")

            def do_GET(self) -> None:
                if server.is_down:
                    return
                path, _, query = self.path.partition("?")
                if path == "/" and query == f"token={server.token}":
                    cookie = f"shoal={server.token}; HttpOnly; SameSite=Strict; Path=/"
                    self.reply(303, "text/plain", b"", Location="/", Set_Cookie=cookie)
                elif not self.allowed():
                    self.reply(403, "text/plain", b"Open the address that shoal printed.")
                elif path == "/" or path.startswith("/static/"):
                    file = PAGE / ("index.html" if path == "/" else path.removeprefix("/static/"))
                    self.reply(200, TYPES[file.suffix], file.read_bytes())
                elif path == "/api/state":
                    self.reply_json(200, server.story.snapshot())
                elif path == "/api/history":
                    self.reply_json(200, server.story.history[-600:])
                elif path == "/api/stream":
                    self.stream()
                else:
                    self.reply(404, "text/plain", b"")

            def stream(self) -> None:
                stream = server._subscribe()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                try:
                    while (text := stream.get()) is not END:
                        self.wfile.write(text.encode())
                        self.wfile.flush()
                except OSError:  # the page was closed
                    pass

            def do_POST(self) -> None:
                settings = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not self.allowed():
                    self.reply(403, "text/plain", b"")
                elif settings["k"] > server.most_k:
                    self.reply_json(400, {"error": f"The sample has too few people for k = {settings['k']}."})
                else:
                    self.reply_json(202, {"id": server._answer_what_if(settings)})

        return Handler
