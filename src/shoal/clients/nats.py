"""A connection to NATS JetStream that a thread without asyncio can use, and its errors in sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

from shoal.clients.event_loop import EventLoop
from shoal.clients.tls import distrust, tls_context, without_tls
from shoal.clients.trouble import Unreachable, unknown_setting
from shoal.errors import RunError, missing_extra

try:
    from nats.aio.client import Client
    from nats.errors import AuthorizationError, Error, InvalidUserCredentialsError, MaxPayloadError
    from nats.js.client import JetStreamContext
    from nats.js.errors import APIError, NotFoundError
except ImportError:
    raise missing_extra("NATS", package="nats-py", extra="nats") from None

_T = TypeVar("_T")
_CONNECT_SECONDS: Final = 5
CALL_SECONDS: Final = 10.0
_REFUSED: Final = "authorization violation"
"""While it connects, the client reports a refused login as a text of the server."""


class NatsConnection:
    """Connects when it is first used and after every loss.

    Parameters
    ----------
    url
        Servers, separated by commas.
    settings
        By the names of nats-py, and those of :mod:`shoal.clients.tls`; they may contain secrets.
    failure
        Makes the error for trouble that does not pass.
    """

    def __init__(self, url: str, settings: Mapping[str, Any], failure: Callable[[str], RunError]) -> None:
        self._servers = [one.strip() for one in url.split(",")]
        self._settings, self._failure = settings, failure
        self._loop = EventLoop("NATS")
        self._client: Client | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the connection of the last call is still there."""
        return self._client is not None and self._client.is_connected

    def call(self, work: Callable[[Client, JetStreamContext], Coroutine[Any, Any, _T]], seconds: float) -> _T:
        """What an action returns; Unreachable if it should be repeated, on a new connection."""
        try:
            return self._loop.call(self._run(work), seconds)
        except RunError:
            raise
        except TypeError as error:
            raise self._failure(unknown_setting(error)) from None
        except ImportError as error:
            raise self._failure(f"these settings of the client need the package {error.name}; install it") from None
        except (FileNotFoundError, PermissionError):
            raise self._failure("a file that client names cannot be read; check its path") from None
        except (NotFoundError, AuthorizationError, InvalidUserCredentialsError, MaxPayloadError) as error:
            raise self._failure(_sentence(error)) from None
        except (Unreachable, Error, OSError, TimeoutError) as error:
            self.disconnect()
            if distrusted := distrust(error):
                raise self._failure(distrusted) from None
            if _REFUSED in str(error).lower():
                raise self._failure(_sentence(AuthorizationError())) from None
            if isinstance(error, APIError) and error.code is not None and 400 <= error.code < 500:
                raise self._failure(_sentence(error)) from None
            raise Unreachable(str(error) or type(error).__name__) from None

    async def _run(self, work: Callable[[Client, JetStreamContext], Coroutine[Any, Any, _T]]) -> _T:
        if self._client is None or not self._client.is_connected:
            self._client = await self._connect()
        return await work(self._client, self._client.jetstream(timeout=CALL_SECONDS))

    async def _connect(self) -> Client:
        client = Client()

        async def give_up(error: Exception) -> None:
            """End an attempt to connect, which the client would repeat; later errors are reported by the call."""
            if not client.is_connected:
                raise error

        try:
            await client.connect(
                self._servers,
                allow_reconnect=False,
                connect_timeout=_CONNECT_SECONDS,
                error_cb=give_up,
                name="shoal",
                tls=tls_context(self._settings, self._failure),
                **without_tls(self._settings),
            )
        except BaseException:
            with suppress(Exception):
                await asyncio.wait_for(client.close(), 2.0)
            raise
        return client

    def disconnect(self) -> None:
        """Forget the connection: the next call makes a new one."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Unreachable, Error, OSError, TimeoutError):  # it may be lost already
                self._loop.call(client.close(), 2.0)

    def close(self) -> None:
        """Disconnect and end the thread."""
        self.disconnect()
        self._loop.close()


def _sentence(error: Exception) -> str:
    if isinstance(error, AuthorizationError | InvalidUserCredentialsError):
        return "the server refuses the user, password or token; check client and secrets"
    if isinstance(error, MaxPayloadError):
        return "a message is longer than the server allows; raise its max_payload"
    if isinstance(error, NotFoundError):
        return f"the server answers {error.description!r}; create it, or correct its name"
    if isinstance(error, APIError):
        return f"the server answers {error.description!r}"
    return str(error) or type(error).__name__
