"""Where a run on Kafka begins that has no checkpoint, and what the offsets of its group say about runs before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from shoal.errors import InputError
from shoal.sources.kafka.shares import Share

from confluent_kafka import TopicPartition  # isort: skip

Start = Literal["earliest", "latest", "group"]
Limits = Sequence[tuple[int, int]]
DECIDED: Final = "shoal: everything before is decided"
"""The metadata of the offsets that a run leaves when it has ended."""


@dataclass(frozen=True)
class Beginning:
    """Where to begin: with the oldest messages, with those that arrive from now on, or where the group has ended."""

    group: str
    start: Start
    share: Share | None

    def offsets(self, name: str, committed: Callable[[], list[TopicPartition]], limits: Limits) -> list[int]:
        """The first offset of every partition, given where each begins and ends; InputError if it is not known."""
        is_shared = self.share is not None and self.share.worker is not None
        found = committed() if self.start == "group" or is_shared else []
        if self.start == "group":
            for one in found:
                self._require_decided(name, one)
            return [one.offset for one in found]
        if any(one.offset >= 0 for one in found):
            raise InputError(f"{name}: {self._read_before}")
        return [limit[self.start == "latest"] for limit in limits]

    def _require_decided(self, name: str, one: TopicPartition) -> None:
        if one.offset < 0 or one.metadata != DECIDED:
            raise InputError(
                f"{name}: topic {one.topic}, partition {one.partition}: no run of the group {self.group} has ended "
                'here; start = "group" continues behind a run that has ended by until = "end"'
            )

    @property
    def _read_before(self) -> str:
        return (
            f"partitions of {self.share} were read before by the group {self.group}, and there is no checkpoint of "
            "that here. If the checkpoint folder is elsewhere, put it back. If the number of workers has changed: it "
            'can change once all the old ones have ended by until = "end"; then start the new ones with start = '
            '"group" and another checkpoint folder. To start over, name another group and another place to write to'
        )
