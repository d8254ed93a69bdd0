"""A stream of Redis as the log of a sink: entries get ids of their own, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import redis

from shoal.clients.redis import last_id, reporting
from shoal.errors import OutputError
from shoal.sinks.messages import Start, another_writer, lost_messages

_APPEND: Final = """
local last = '0-0'
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then last = info[i + 1] end
  end
end
local head, number, maximum, width = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if last ~= head .. '-' .. string.format('%.0f', number) then return last end
for i = 5, #ARGV, width do
  number = number + 1
  local id = head .. '-' .. string.format('%.0f', number)
  if width == 1 then
    redis.call('XADD', KEYS[1], id, 'value', ARGV[i])
  elseif ARGV[i + 1] == '' then
    redis.call('XADD', KEYS[1], id, 'value', ARGV[i])
  else
    redis.call('XADD', KEYS[1], id, 'value', ARGV[i], 'key', string.sub(ARGV[i + 1], 2))
  end
end
if maximum > 0 then redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', maximum) end
return ''
"""
"""Appends all entries or none: none if the stream does not end with the id that was expected, which it then returns.

ARGV: both halves of the expected id, the length to trim the stream to (0: do not), the words for each entry (its value,
and its key with a byte before it, or nothing if it has none), and these words.
"""


class RedisWriter:
    """Appends to one stream.

    Entry number n has the id (a, b + 1 + n), where (a, b) is the last id before the run: 0-0 in a new stream.

    Parameters
    ----------
    max_length
        Remove old entries beyond about this many; None keeps all.
    """

    def __init__(self, client: redis.Redis, stream: str, *, name: str, max_length: int | None = None) -> None:
        self.name = name
        self._client, self._stream, self._max_length = client, stream, max_length or 0
        self._append = client.register_script(_APPEND)
        self._tried: int | None = None
        """The first of the messages that were sent without an answer."""

    def open(self, start: Start | None) -> tuple[Start, int]:
        with reporting(self._failure):
            last, length = last_id(self._client, self._stream)
        if start is None:
            if length:
                raise self._failure(
                    f"stream {self._stream} has {length:,} entries that are not of this run; name an empty stream, or "
                    "put the checkpoint folder back"
                )
            start = last.decode()
        self._head, self._first = _halves(str(start))
        return start, self._held(last)

    def _held(self, last: bytes) -> int:
        head, number = _halves(last.decode())
        if head != self._head:
            raise lost_messages(self.name) if int(head) < int(self._head) else another_writer(self.name)
        return number - self._first

    def count(self) -> int | None:
        with reporting(self._failure):
            return last_id(self._client, self._stream)[1] if self._client.exists(self._stream) else None

    def write(self, number: int, values: Sequence[bytes], keys: Sequence[bytes | None] | None) -> None:
        words: Sequence[bytes] = values
        if keys is not None:
            pairs = zip(values, keys, strict=True)
            words = [word for value, key in pairs for word in (value, b"" if key is None else b" " + key)]
        width = 1 if keys is None else 2
        was_tried, self._tried = self._tried == number, number
        with reporting(self._failure):
            reply: Any = self._append(
                keys=[self._stream], args=[self._head, self._first + number, self._max_length, width, *words]
            )
        if reply:
            self._require_ours(reply, number, len(values), was_tried=was_tried)
        self._tried = None

    def _require_ours(self, last: bytes, number: int, count: int, *, was_tried: bool) -> None:
        """The stream does not end before these messages: an earlier attempt must have appended them, all at once."""
        held = self._held(last)
        if held < number:
            raise lost_messages(self.name)
        if held != number + count or not was_tried:
            raise another_writer(self.name)

    def flush(self) -> None:
        """Nothing to wait for: every append was answered."""

    def close(self) -> None:
        self._client.close()

    def _failure(self, why: str) -> OutputError:
        return OutputError(f"{self.name}: {why}")


def _halves(entry: str) -> tuple[str, int]:
    head, number = entry.split("-")
    return head, int(number)
