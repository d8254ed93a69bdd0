"""A connection to the streams of RabbitMQ that a thread without asyncio can use, and its errors in sentences."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from shoal.clients.addresses import Address
from shoal.clients.event_loop import EventLoop
from shoal.clients.tls import distrust, tls_context, without_tls
from shoal.clients.trouble import Unreachable, unknown_setting
from shoal.errors import RunError, missing_extra

try:
    from rstream import exceptions
    from rstream.client import Client
except ImportError:
    raise missing_extra("RabbitMQ", package="rstream", extra="rabbitmq") from None

_T = TypeVar("_T")
CALL_SECONDS: Final = 10.0
_FRAME_BYTES: Final = 8 * 1024 * 1024
_HEARTBEAT_SECONDS: Final = 30
_REFUSALS: Final = {
    exceptions.AuthenticationFailure: "the server refuses the user or the password; check client and secrets",
    exceptions.SASLAuthenticationFailureLoopback: (
        "the user guest may connect from the server's own machine only; name another user in client"
    ),
    exceptions.VirtualHostAccessFailure: "the user may not use the virtual host; check vhost in client",
    exceptions.AccessRefused: "the user may not use the stream; change its permissions",
    exceptions.StreamDoesNotExist: "there is no such stream; create it",
    exceptions.PreconditionFailed: "the stream exists with other properties; name another one, or delete it",
    exceptions.FrameTooLarge: "a message is longer than the server allows; raise its stream.frame_max",
}
_LOG: Final = logging.getLogger("rstream")


class RabbitConnection:
    """Connects when it is first used and after every loss, to one of several brokers.

    Parameters
    ----------
    settings
        ``username``, ``password``, ``vhost``, ``heartbeat`` and those of :mod:`shoal.clients.tls`.
    failure
        Makes the error for trouble that does not pass.
    """

    def __init__(
        self, brokers: Sequence[Address], settings: Mapping[str, Any], failure: Callable[[str], RunError]
    ) -> None:
        self._brokers, self._settings, self._failure = brokers, settings, failure
        self._loop = EventLoop("RabbitMQ")
        self._client: Client | None = None
        if not _LOG.handlers:  # the call that fails reports it
            _LOG.addHandler(logging.NullHandler())
            _LOG.propagate = False

    @property
    def is_connected(self) -> bool:
        """Whether the connection of the last call is still there."""
        return self._client is not None and self._client.is_connection_alive()

    def call(self, work: Callable[[Client], Coroutine[Any, Any, _T]], seconds: float) -> _T:
        """What an action returns; Unreachable if it should be repeated, on a new connection."""
        try:
            return self._loop.call(self._run(work), seconds)
        except RunError:
            raise
        except TypeError as error:
            raise self._failure(unknown_setting(error)) from None
        except tuple(_REFUSALS) as error:
            raise self._failure(_REFUSALS[type(error)]) from None
        except (Unreachable, exceptions.ServerError, exceptions.ClientError, OSError, TimeoutError) as error:
            self.disconnect()
            if distrusted := distrust(error):
                raise self._failure(distrusted) from None
            raise Unreachable(str(error) or type(error).__name__) from None

    async def _run(self, work: Callable[[Client], Coroutine[Any, Any, _T]]) -> _T:
        if self._client is None or not self._client.is_connection_alive():
            self._client = await self._connect()
        return await work(self._client)

    async def _connect(self) -> Client:
        given = without_tls(self._settings)
        user = {"username": given.pop("username", "guest"), "password": given.pop("password", "guest")}
        vhost = given.pop("vhost", "/")
        address = random.choice(self._brokers)  # a broker without a copy of the stream is not asked again and again
        client = Client(
            address.host,
            address.port,
            ssl_context=tls_context(self._settings, self._failure),
            frame_max=_FRAME_BYTES,
            connection_name="shoal",
            connection_closed_handler=lambda _: None,
            **{"heartbeat": _HEARTBEAT_SECONDS, **given},
        )
        try:
            await client.start()
            await client.authenticate(vhost=vhost, **user)
        except BaseException:
            with suppress(Exception):
                await client.close()
            raise
        return client

    def disconnect(self) -> None:
        """Forget the connection: the next call makes a new one."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Unreachable, exceptions.ServerError, exceptions.ClientError, OSError, TimeoutError):
                self._loop.call(asyncio.wait_for(client.close(), 2.0), 3.0)

    def close(self) -> None:
        """Disconnect and end the thread."""
        self.disconnect()
        self._loop.close()
