"""HTTP: records in by way of a log of our own. The web server is in :mod:`shoal.serve`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

from shoal.clients.addresses import addresses
from shoal.errors import PolicyError
from shoal.pipeline.live.common import live_source, logged_messages
from shoal.pipeline.live.parts import Finding, SinkParts, Sinks, SourceParts
from shoal.policy.live.systems import HttpSource as SourceTable
from shoal.sources.http import EVENTS, HttpReader
from shoal.sources.live import LiveSource

PROMISE: Final = (
    "HTTP: no accepted record is lost, and each is decided once; a record whose answer was lost on the way arrives "
    "again when it is sent again (name an id in [source] to refuse repeats)"
)
PORT: Final = 8765
_NAME: Final = "HTTP"
"""Without the address, which may change while a run is stopped."""


def make_source(parts: SourceParts) -> LiveSource:
    """The records that are sent to the policy's address."""
    table, folder = parts.section, parts.folder
    assert isinstance(table, SourceTable)
    if folder is None:
        raise PolicyError(
            "[checkpoint]: is missing; records sent over HTTP are kept next to the checkpoints; add the section"
        )
    logged = logged_messages(_NAME, folder, table.id, table.id_window)
    return live_source(parts, HttpReader(logged, name=_NAME, most_waiting=table.queue))


def make_sinks(parts: SinkParts) -> Sinks:
    """There are none: `GET /released` shows rows that go to another sink."""
    raise PolicyError("[sink] kind: HTTP is a source only; write to a file or another system")


def check_source(parts: SourceParts) -> Iterator[Finding]:
    """Whether the address can be listened at."""
    table = parts.section
    place = addresses(table.listen, port=PORT)[0]
    try:
        socket.create_server((place.host, place.port), family=_family(place.host)).close()
    except OSError as error:
        why = error.strerror or "the name is unknown"
        yield Finding("wrong", f"[source] listen: cannot listen at {table.listen} ({why}); choose another port")
    else:
        yield Finding("good", f"records can be sent to http://{place.host}:{place.port}{EVENTS} while the run lasts")


def check_sinks(parts: SinkParts) -> Iterator[Finding]:
    """Nothing: there are no sinks."""
    yield from ()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
