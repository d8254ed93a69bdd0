"""Count distinct people across tasks, by their hashes: marks of a person meet in one task."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from shoal.spark.auditor.engine import Message, result

Key = str | tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class People:
    """Different people of a bin: all, and those in classes of fewer than k."""

    all: int
    exposed: int


def mark_of(key: Key) -> bytes:
    """A mark of a person that no two persons share; empty for no person."""
    return b"" if key is None else blake2b(repr(key).encode(), digest_size=16).digest()


def to_people(marks: Sequence[tuple[bytes, bool]], bins: int) -> Iterator[Message]:
    """Send people to the bins of their marks; each with whether they are exposed."""
    by_bin: dict[int, dict[bytes, bool]] = {}
    for mark, is_exposed in marks:
        own = by_bin.setdefault(int.from_bytes(mark[:4]) % bins, {})
        own[mark] = own.get(mark, False) or is_exposed
    for number, own in by_bin.items():
        yield Message(number, "people", pickle.dumps(own))


def count_people(_number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
    """Count the different people of a bin."""
    everyone: dict[bytes, bool] = {}
    for data in kinds.get("people", ()):
        for mark, is_exposed in pickle.loads(data).items():
            everyone[mark] = everyone.get(mark, False) or is_exposed
    yield result(People(len(everyone), sum(everyone.values())))
