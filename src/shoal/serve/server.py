"""The web server in a thread of its own, next to a run in the main thread."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Final

import uvicorn

from shoal.errors import PolicyError
from shoal.serve.app import Site
from shoal.serve.released import TooSlow

_GRACE_SECONDS: Final = 1
_SEND_BYTES: Final = 128 * 1024
_JOIN_SECONDS: Final = 5


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; PolicyError if that is impossible."""
    if not 0 <= port <= 65_535:
        raise PolicyError(f"--port {port}: must be from 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it: what is sent to a reader that does not read is bounded, and cheap.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
    try:
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        why = error.strerror or "the name is unknown"
        raise PolicyError(f"cannot listen at {host}:{port} ({why}); choose another with --port and --host") from None
    return made


@contextmanager
def serving(site: Site, listening: socket.socket) -> Iterator[None]:
    """Serve while a block runs; all streams end with it."""
    options = {"log_config": None, "access_log": False, "server_header": False, "lifespan": "on"}
    config = uvicorn.Config(site.app(), timeout_graceful_shutdown=_GRACE_SECONDS, **options)  # type: ignore[arg-type]
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    server = _Server(config, site)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]}, name="shoal serve", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_JOIN_SECONDS)
        listening.close()


def _is_news(record: logging.LogRecord) -> bool:
    """A reader that is too slow is cut off by an exception, which is nothing to report."""
    return record.exc_info is None or not isinstance(record.exc_info[1], TooSlow)


class _Server(uvicorn.Server):
    """Ends its streams before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, site: Site) -> None:
        super().__init__(config)
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._site.close()
        await asyncio.sleep(0)
        await super().shutdown(sockets)
