"""A schema registry in a thread, with Confluent's HTTP interface."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Registry:
    """Schemas by number; `failures` requests fail first, with status 503."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.failures = 0
        self.credentials: str | None = None
        self.url = ""

    def add(self, schema: Any, **others: Any) -> int:
        self.schemas.append({"schema": json.dumps(schema), **others})
        return len(self.schemas)

    def answer(self, method: str, path: str, body: bytes, authorization: str | None) -> tuple[int, Any]:
        self.requests.append(f"{method} {path}")
        if self.failures:
            self.failures -= 1
            return 503, {}
        if self.credentials is not None:
            expected = "Basic " + base64.b64encode(self.credentials.encode()).decode()
            if authorization != expected:
                return 401, {"error_code": 401}
        if method == "POST":
            given = json.loads(body)
            described = [one["schema"] for one in self.schemas]
            number = described.index(given["schema"]) + 1 if given["schema"] in described else 0
            number = number or self.add(json.loads(given["schema"]))
            self.schemas[number - 1]["schema"] = given["schema"]
            self.subjects.setdefault(path.split("/")[2], []).append(number)
            return 200, {"id": number}
        if path == "/config":
            return 200, {"compatibilityLevel": "BACKWARD"}
        number = int(path.rsplit("/", 1)[1])
        return (200, self.schemas[number - 1]) if 0 < number <= len(self.schemas) else (404, {"error_code": 40403})


@contextlib.contextmanager
def serving() -> Iterator[Registry]:
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, answer = registry.answer(self.command, self.path, body, self.headers.get("Authorization"))
            content = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _do

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
