"""`POST /events`: JSON lines become records of the HTTP source, accepted once they are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from shoal.clients.trouble import Unreachable
from shoal.sources.http import HttpReader

MOST_BYTES: Final = 8 * 1024 * 1024
_LATER: Final = {"Retry-After": "1"}


class Intake:
    """Stores what requests bring. Requests that wait at the same time are stored, and synced, together."""

    def __init__(self, reader: HttpReader) -> None:
        self._reader = reader
        self._waiting: list[tuple[Sequence[bytes], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Response:
        """Accept the records of one request, all or none."""
        if request.headers.get("content-encoding", "identity") != "identity":
            return _answer(415, "send the lines as they are, without Content-Encoding")
        body = await read_body(request, MOST_BYTES)
        if body is None:
            return _answer(413, f"the body is longer than {MOST_BYTES:,} bytes; send fewer records at once")
        if body.lstrip()[:1] == b"[":
            return _answer(400, "send one JSON object per line, not a list")
        records = [line for line in body.splitlines() if line.strip()]
        wrong = _first_without_object(body)
        if wrong is not None:
            return _answer(
                400, f"line {wrong} is not a JSON object; correct it and send all lines again, none was stored"
            )
        if not self._reader.is_open:
            return _answer(503, "the run is not ready; send it again", _LATER)
        if not self._reader.has_room:
            return _answer(429, "too many records wait; send it again later", _LATER)
        try:
            await self._store(records)
        except Unreachable as trouble:
            return _answer(503, f"nothing was stored ({trouble}); send it again", _LATER)
        return _json(200, {"accepted": len(records)})

    async def _store(self, records: Sequence[bytes]) -> None:
        if not records:
            return
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((records, stored))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        await stored

    async def _write(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._reader.accept, [record for records, _ in taken for record in records])
            except Exception as error:
                for _, stored in taken:
                    if not stored.done():
                        stored.set_exception(error)
            else:
                for _, stored in taken:
                    if not stored.done():
                        stored.set_result(None)


def _first_without_object(body: bytes) -> int | None:
    """The number of the first line, from 1, that is neither blank nor a JSON object."""
    for number, line in enumerate(body.splitlines(), 1):
        if line.strip():
            try:
                if not isinstance(orjson.loads(line), dict):
                    return number
            except orjson.JSONDecodeError:
                return number
    return None


async def read_body(request: Request, most: int) -> bytes | None:
    """The body; None if it is too long, which is found out before it is all read."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)


def _answer(code: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return _json(code, {"error": sentence}, headers)


def _json(code: int, content: dict[str, object], headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(content) + b"\n", code, media_type="application/json", headers=headers)
