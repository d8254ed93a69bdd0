"""Ask an application directly, without a server."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

BASE = "http://127.0.0.1:8765"


class Client:
    """Sends single requests to an application. Answers come whole, so streams need a server."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("POST", path, **options)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def once() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url=BASE) as client:
                return await client.request(method, path, **options)

        return asyncio.run(once())
