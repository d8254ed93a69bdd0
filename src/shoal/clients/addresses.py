"""Addresses of brokers, as policies write them: host:port, separated by commas."""

from __future__ import annotations

from typing import NamedTuple

from shoal.errors import PolicyError


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def addresses(text: str, *, port: int) -> tuple[Address, ...]:
    """Read addresses; `port` is used where none is given.

    >>> addresses("localhost, 10.0.0.7:7000, [::1]:6379", port=6379)[1:]
    (Address(host='10.0.0.7', port=7000), Address(host='::1', port=6379))

    PolicyError if it is not such a list.
    """
    found = [_address(part.strip(), port) for part in text.split(",") if part.strip()]
    if not found:
        raise PolicyError("brokers: name at least one broker, such as localhost:1234")
    return tuple(found)


def _address(text: str, port: int) -> Address:
    if "@" in text or "/" in text:
        raise PolicyError("brokers: write host:port; users and passwords belong in client and secrets")
    host, colon, given = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        host, given = text, str(port)
    if not given.isdecimal() or not 0 < int(given) < 2**16 or not host:
        raise PolicyError("brokers: write host:port, with a port from 1 to 65535")
    return Address(host.strip("[]"), int(given))
