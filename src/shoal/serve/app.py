"""The routes of the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from shoal.errors import PolicyError
from shoal.observe.serving import HealthObserver
from shoal.serve.access import Access
from shoal.serve.board import Board
from shoal.serve.events import Intake, read_body
from shoal.serve.released import ReleasedRows
from shoal.sources.http import EVENTS

_TICK_SECONDS: Final = 1.0
_MOST_TRIAL: Final = 10_000
_PAGE: Final = "index.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_GUARD: Final = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_LINES: Final = "application/x-ndjson"
_NO_INTAKE: Final = '404: this run accepts no records over HTTP; the policy needs kind = "http" in [source]\n'
_REFUSAL: Final = (
    "403: this page needs the address with the token that shoal printed when it started. "
    "After a restart the token is another one, unless SHOAL_SERVE_TOKEN sets it.\n"
)

Endpoint = Callable[[Request], Awaitable[Response]]


class Site:
    """Everything the routes answer from."""

    def __init__(
        self,
        board: Board | None,
        released: ReleasedRows,
        access: Access,
        health: HealthObserver,
        metrics: Callable[[], bytes],
        intake: Intake | None = None,
        ask_trial: Callable[[Any], int] | None = None,
    ) -> None:
        self.intake, self.ask_trial = intake, ask_trial
        self._loop: asyncio.AbstractEventLoop | None = None
        self.board, self.released, self.access, self.health, self.metrics = board, released, access, health, metrics
        found = [one.name for one in (files("shoal.serve") / "page").iterdir()]
        self._files = {name: _TYPES[Path(name).suffix] for name in found if Path(name).suffix in _TYPES}

    def app(self) -> Starlette:
        """The application; without a board it has no page."""
        routes = [
            Route("/released", self._guarded(self.stream_released)),
            Route("/metrics", self.show_metrics),
            Route("/healthz", self.show_health),
            Route("/readyz", self.show_ready),
        ]
        accept = self.refuse_events if self.intake is None else self.intake.answer
        routes.append(Route(EVENTS, self._guarded(accept), methods=["POST"]))
        if self.board is not None:
            routes += [
                Route("/", self.show_page),
                Route("/static/{name}", self._guarded(self.show_file)),
                Route("/api/state", self._guarded(self.show_state)),
                Route("/api/history", self._guarded(self.show_history)),
                Route("/api/stream", self._guarded(self.stream_states)),
                Route("/api/whatif", self._guarded(self.start_trial), methods=["POST"]),
            ]
        return Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        ticking = asyncio.create_task(self._tick()) if self.board is not None else None
        yield
        if ticking is not None:
            ticking.cancel()

    async def _tick(self) -> None:
        assert self.board is not None
        while not self.board.is_closed:
            await asyncio.sleep(_TICK_SECONDS)
            self.board.tick(time.time())
            await self.board.announce()

    async def close(self) -> None:
        """End all streams, with the last state first."""
        self.released.close()
        if self.board is not None:
            self.board.tick(time.time())
            await self.board.close()

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        """Answer only those who have the token."""

        async def answer(request: Request) -> Response:
            if not self.access.allows(request):
                return PlainTextResponse(_REFUSAL, 403, headers=_GUARD)
            return await endpoint(request)

        return answer

    async def refuse_events(self, request: Request) -> Response:
        """The answer to records that are sent to a run with another source."""
        return PlainTextResponse(_NO_INTAKE, 404, headers=_GUARD)

    # ---- the page

    async def show_page(self, request: Request) -> Response:
        """The page; the first visit brings the token, which moves to a cookie."""
        token = request.query_params.get("token")
        if token is not None and self.access.opens(token):
            answer = RedirectResponse("/", 303, headers=_GUARD)
            name = self.access.cookie_name(request)
            answer.set_cookie(name, self.access.cookie, httponly=True, samesite="strict", path="/")
            return answer
        if token is not None or not self.access.allows(request):
            return PlainTextResponse(_REFUSAL, 403, headers=_GUARD)
        return self._file(_PAGE)

    async def show_file(self, request: Request) -> Response:
        """A file of the page."""
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        kind = self._files.get(name)
        if kind is None:
            return PlainTextResponse("404: no such file\n", 404, headers=_GUARD)
        content = (files("shoal.serve") / "page" / name).read_bytes()
        return Response(content, media_type=kind, headers={**_GUARD, "Cache-Control": "no-cache"})

    # ---- the state

    async def show_state(self, request: Request) -> Response:
        """The latest snapshot."""
        assert self.board is not None
        return _json(self.board.latest)

    async def show_history(self, request: Request) -> Response:
        """The series of earlier snapshots."""
        assert self.board is not None
        return _json(self.board.history)

    async def stream_states(self, request: Request) -> Response:
        """Every snapshot from now on, and the results of trials."""
        assert self.board is not None
        return StreamingResponse(_events(self.board), media_type="text/event-stream", headers=_GUARD)

    async def start_trial(self, request: Request) -> Response:
        """Begin a trial of other settings; its result comes with the snapshots."""
        assert self.ask_trial is not None
        body = await read_body(request, _MOST_TRIAL)
        try:
            number = self.ask_trial(orjson.loads(body or b""))
        except orjson.JSONDecodeError:
            return _json({"error": 'send settings as JSON, such as {"k": 10}'}, 400)
        except PolicyError as error:
            return _json({"error": str(error)}, 422)
        return _json({"id": number}, 202)

    def announce_trial(self, found: dict[str, Any]) -> None:
        """Send the result of a trial to all pages; called by the thread that made it."""
        if self.board is not None and self._loop is not None and not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self.board.announce(trial=found), self._loop)

    # ---- rows

    async def stream_released(self, request: Request) -> Response:
        """Released rows from now on; the connection breaks off when its reader is too slow."""
        listener = self.released.listen()
        if listener is None:
            return PlainTextResponse("503: too many listeners\n", 503, headers=_GUARD)

        async def lines() -> AsyncIterator[bytes]:
            try:
                while (found := await listener.get()) is not None:
                    yield found
            finally:
                self.released.leave(listener)

        return StreamingResponse(lines(), media_type=_LINES, headers=_GUARD)

    # ---- for machines; counts only, so without a token

    async def show_metrics(self, request: Request) -> Response:
        """Measurements for Prometheus."""
        if not self.access.names_this_machine(request):
            return PlainTextResponse(_REFUSAL, 403, headers=_GUARD)
        return Response(self.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def show_health(self, request: Request) -> Response:
        """Whether the run still takes turns."""
        if self.health.is_healthy:
            return PlainTextResponse("ok\n")
        return PlainTextResponse(f"no turn for {self.health.silent_seconds:.0f} seconds\n", 503)

    async def show_ready(self, request: Request) -> Response:
        """Whether the run is under way."""
        return PlainTextResponse("ok\n") if self.health.is_ready else PlainTextResponse("starting\n", 503)


async def _events(board: Board) -> AsyncIterator[bytes]:
    """Server-sent events: the latest snapshot at once, then each new one."""
    yield b"retry: 1000\n\n"
    number, trial = -1, 0
    while True:
        snapshot, found = (board.latest, None) if number < 0 else await board.next(number, trial)
        if snapshot is not None:
            number = snapshot["number"]
            yield b"event: state\nid: %d\ndata: %b\n\n" % (number, orjson.dumps(snapshot))
        if found is not None:
            trial = found["id"]
            yield b"event: whatif\ndata: %b\n\n" % orjson.dumps(found)
        if board.is_closed:
            return


def _json(content: Any, code: int = 200) -> Response:
    return Response(orjson.dumps(content), code, media_type="application/json", headers=_GUARD)
