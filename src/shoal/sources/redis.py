"""Streams of Redis: entries in the order of their ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import redis

from shoal.clients.redis import last_id, reporting
from shoal.decode.messages import Messages
from shoal.errors import InputError
from shoal.sources.reader import Fetched, Id, Needs

_ENTRIES: Final = 10_000
"""Entries of one stream that are fetched at once."""
_KEY_FIELD: Final = b"key"


class RedisReader:
    """Reads streams. The place of an entry is its id.

    Parameters
    ----------
    client
        From :func:`shoal.clients.redis.connect`.
    field
        The field of an entry that holds the message.
    from_latest
        Start with entries that arrive from now on.
    until_end
        Read up to the end as it is when reading starts.
    """

    def __init__(
        self,
        client: redis.Redis,
        streams: Sequence[str],
        *,
        name: str,
        field: str = "value",
        from_latest: bool = False,
        until_end: bool = False,
        entries: int = _ENTRIES,
    ) -> None:
        self._client, self.name, self.topics = client, name, tuple(streams)
        self._field = field.encode()
        self._from_latest, self._until_end, self._entries = from_latest, until_end, entries
        self._after: list[bytes] = []
        self._ends: list[bytes] = []
        self._silent: set[int] = set()

    def connect(self) -> Sequence[str]:
        return self.topics

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        self._needs = needs
        with reporting(self._failure):
            ends = [last_id(self._client, stream)[0] for stream in self.topics]
            for stream, place, end in zip(self.topics, after, ends, strict=True):
                if place is not None:
                    self._require_entry(stream, str(place).encode(), end)
        start = ends if self._from_latest else [b"0-0"] * len(ends)
        self._after = [
            begin if place is None else str(place).encode() for place, begin in zip(after, start, strict=True)
        ]
        self._ends = ends if self._until_end else []
        return [one.decode() for one in self._after]

    def _require_entry(self, stream: str, place: bytes, end: bytes) -> None:
        """The last entry that was read must still be there, unless it is the last one ever: none is missing then."""
        if place in (b"0-0", end) or self._client.xrange(stream, place, place, count=1):
            return
        raise self._failure(
            f"the entry {place.decode()} of stream {stream}, which was read last, was removed, and so may be later "
            "ones; restore the stream, or start over with a new checkpoint folder"
        )

    def fetch(self, logs: Collection[int], seconds: float) -> Iterable[Fetched]:
        wanted = [log for log in logs if not self.has_ended(log)]
        if not wanted:
            return []
        names = [self.topics[log] for log in wanted]
        places = [self._after[log] for log in wanted]
        with reporting(self._failure):
            reply: Any = self._client.execute_command(  # type: ignore[no-untyped-call]
                "XREAD", "COUNT", self._entries, "BLOCK", max(1, int(seconds * 1000)), "STREAMS", *names, *places
            )
        fetched = [self._fetched(names, wanted, *one) for one in reply or ()]
        self._silent = self._silent.union(wanted) - {one.log for one in fetched}
        return fetched

    def _fetched(self, names: list[str], logs: list[int], name: bytes, entries: list[Any]) -> Fetched:
        log = logs[names.index(name.decode())]
        self._after[log] = entries[-1][0]
        if self._ends and _order(entries[-1][0]) > _order(self._ends[log]):
            entries = [entry for entry in entries if _order(entry[0]) <= _order(self._ends[log])]
        ids = np.array([entry[0] for entry in entries], dtype=np.bytes_)
        return Fetched(log, self._messages(entries), ids)

    def _messages(self, entries: list[Any]) -> Messages:
        needs = self._needs
        values = [_field(fields, self._field) for _, fields in entries]
        keys = [_field(fields, _KEY_FIELD) for _, fields in entries] if needs.keys else None
        times = [int(at.split(b"-")[0]) * 1_000_000 for at, _ in entries] if needs.times else None
        headers = [_pairs(fields) for _, fields in entries] if needs.headers else None
        return Messages(values, keys, times, headers)

    def is_read(self, log: int) -> bool:
        return log in self._silent

    def has_ended(self, log: int) -> bool:
        return bool(self._ends) and _order(self._after[log]) >= _order(self._ends[log])

    def keep(self, after: Sequence[Id]) -> None:
        """Nothing to do: entries stay until the stream is trimmed."""

    def leave(self, after: Mapping[str, Id]) -> None:
        """Nothing to do: only Kafka has a place to note it."""

    def lag(self) -> int | None:
        """Unknown: Redis counts the entries behind an id for groups of consumers only."""
        return None

    def place(self, log: int, at: Id) -> dict[str, Any]:
        return {"stream": self.topics[log], "id": at}

    def close(self) -> None:
        self._client.close()

    def _failure(self, why: str) -> InputError:
        return InputError(f"{self.name}: {why}")


def _order(entry: bytes) -> tuple[int, ...]:
    return tuple(map(int, entry.split(b"-")))


def _field(fields: list[bytes] | None, name: bytes) -> bytes | None:
    """The value of a field; None if an entry does not have it, or was deleted while it was read."""
    if not fields:
        return None
    if fields[0] == name:
        return fields[1]
    return next((fields[i + 1] for i in range(2, len(fields), 2) if fields[i] == name), None)


def _pairs(fields: list[bytes] | None) -> list[tuple[str, bytes]]:
    found = fields or []
    return [(found[i].decode(errors="replace"), found[i + 1]) for i in range(0, len(found), 2)]
