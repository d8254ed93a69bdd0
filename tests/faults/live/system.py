"""A message system in memory: logs, transactions that read-committed readers see as a whole, and numbered streams.

It behaves like Kafka where a sink uses transactions, and like Redis where it uses explicit ids. Nothing is ever lost in
it; what fails is the process that uses it, or the answer on its way back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.errors import OutputError


class Fenced(Exception):
    """Another process has begun to write under the same transactional id."""


@dataclass
class _Transaction:
    epoch: int = 0
    sequence: int = 0
    messages: list[tuple[str, int, bytes]] = field(default_factory=list)
    offsets: tuple[int, str] | None = None


@dataclass
class System:
    """Everything that outlives a process, apart from its checkpoint folder."""

    partitions: int = 2
    visible: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    """By topic and partition: what a reader of committed messages sees."""
    committed: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By transactional id: offset and metadata of its last transaction."""
    _open: dict[str, _Transaction] = field(default_factory=dict)

    # ---- transactions

    def begin(self, name: str) -> int:
        """Fence whoever writes under this transactional id, abort its transaction, return the new epoch."""
        before = self._open.get(name, _Transaction())
        self._open[name] = _Transaction(epoch=before.epoch + 1)
        return before.epoch + 1

    def _mine(self, name: str, epoch: int) -> _Transaction:
        if self._open[name].epoch != epoch:
            raise Fenced
        return self._open[name]

    def produce(self, name: str, epoch: int, sequence: int, topic: str, partition: int, value: bytes) -> None:
        """Add a message to the open transaction; one with a sequence that was seen is a repetition."""
        mine = self._mine(name, epoch)
        if sequence > mine.sequence:
            raise OutputError("a message was left out")
        if sequence == mine.sequence:
            mine.messages.append((topic, partition, value))
            mine.sequence += 1

    def send_offsets(self, name: str, epoch: int, offset: int, metadata: str) -> None:
        """Offsets that become visible with the transaction."""
        self._mine(name, epoch).offsets = (offset, metadata)

    def commit(self, name: str, epoch: int) -> None:
        """Show everything at once; committing once more does nothing."""
        mine = self._mine(name, epoch)
        for topic, partition, value in mine.messages:
            self.visible.setdefault((topic, partition), []).append(value)
        if mine.offsets is not None:
            self.committed[name] = mine.offsets
        mine.messages, mine.offsets = [], None

    def offsets(self, name: str) -> tuple[int, str] | None:
        """The offsets of the last committed transaction."""
        return self.committed.get(name)

    # ---- numbered streams

    def add(self, stream: str, number: int, value: bytes) -> None:
        """Append message `number`; one that is there is left as it is."""
        held = self.visible.setdefault((stream, 0), [])
        if number > len(held):
            raise OutputError("a message was left out")
        if number == len(held):
            held.append(value)

    def held(self, stream: str) -> int:
        """How many messages a stream has."""
        return len(self.visible.get((stream, 0), []))
