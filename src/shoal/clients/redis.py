"""Connections to Redis, and its errors in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from shoal.clients.tls import distrust
from shoal.clients.trouble import Unreachable, unknown_setting
from shoal.errors import PolicyError, RunError, missing_extra

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError:
    raise missing_extra("Redis", package="redis", extra="redis") from None

_TIMEOUT_SECONDS: Final = 10.0
_ARGUMENTS: Final = ", with args beginning with"
"""What follows in an answer of the server may be a password, or a row."""
_REFUSALS: Final = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
    redis.exceptions.NoPermissionError,
)
_PASSING: Final = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.MasterDownError,
    redis.exceptions.TryAgainError,
    redis.exceptions.OutOfMemoryError,
)


def connect(url: str, settings: Mapping[str, Any]) -> redis.Redis:
    """A client; it connects when it is first used. `settings` have the names of redis-py and may contain secrets."""
    options: dict[str, Any] = {"socket_timeout": _TIMEOUT_SECONDS, "socket_connect_timeout": _TIMEOUT_SECONDS}
    options |= {"retry": Retry(NoBackoff(), 0), "client_name": "shoal", **settings}
    # The source and the sink read replies as they are in version 2 of the protocol.
    try:
        client = redis.Redis.from_url(url, **{**options, "protocol": 2, "decode_responses": False})
    except ValueError:
        raise PolicyError(f"url: {url} is not an address of Redis; write it like redis://localhost:6379/0") from None
    client.set_response_callback("XREAD", lambda reply, **_: reply)  # without a dictionary for every entry
    return client


@contextmanager
def reporting(failure: Callable[[str], RunError]) -> Iterator[None]:
    """Raise Unreachable for trouble that may pass, and `failure` for everything else."""
    try:
        yield
    except TypeError as error:
        raise failure(unknown_setting(error)) from None
    except _REFUSALS:
        raise failure("the server refuses the user or the password; check client and secrets") from None
    except _PASSING as error:
        if distrusted := distrust(error, "ssl_ca_certs"):
            raise failure(distrusted) from None
        raise Unreachable(str(error) or type(error).__name__) from None
    except redis.exceptions.RedisError as error:
        raise failure(f"the server answers {_without_arguments(error)!r}; check it, and client and secrets") from None


def _without_arguments(error: Exception) -> str:
    """The server's words without those of the command.

    >>> _without_arguments(Exception("unknown command 'AUTH', with args beginning with: 'hunter2'"))
    "unknown command 'AUTH'"
    """
    return str(error).partition(_ARGUMENTS)[0].partition("\n")[0][:200]


def last_id(client: redis.Redis, stream: str) -> tuple[bytes, int]:
    """The id given last in a stream and how many entries it has; 0-0 and 0 if there is no such stream."""
    if not client.exists(stream):
        return b"0-0", 0
    found: Any = client.xinfo_stream(stream)
    return found["last-generated-id"], found["length"]
