"""Several workers share a topic: which partitions are whose, and whether a value is in the partition of its key.

Partitions are assigned by their number, so every worker knows its own without asking the others, and a restart reads
the same ones. A promise that counts people who share a value needs all records of the value at one worker. So a record
whose value belongs to another partition is refused: otherwise two workers would each see a part of its people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from shoal.decode.base import Decoded
from shoal.encode.partitions import Partitioner, key_texts, text_partitions
from shoal.errors import InputError


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one worker. Worker None stands for all of them, as the doctor does."""

    workers: int
    worker: int | None

    def __str__(self) -> str:
        return f"worker {self.worker} of {self.workers}"

    def owns(self, partition: int) -> bool:
        """Whether this worker reads a partition."""
        return self.worker is None or partition % self.workers == self.worker


@dataclass(frozen=True, slots=True)
class Keying:
    """How a topic is keyed: by which column, and how clients turn a key into a partition."""

    column: str
    partitioner: Partitioner = "murmur2"

    @property
    def misplaced(self) -> str:
        """Why a record in a wrong partition is refused."""
        return (
            f"wrong-partition: the column {self.column!r} belongs to another partition of the topic, so the topic is "
            "not keyed by it; write a topic that is with shoal repartition"
        )

    def misplaced_rows(self, decoded: Decoded, partition: int, partitions: int) -> dict[int, str]:
        """Records whose value does not belong to this partition, with the reason.

        A record without a value may be anywhere: no promise counts it.
        """
        if self.column not in decoded.batch.schema.names:
            return {}  # only the doctor reads fewer columns than the method needs
        column = decoded.batch.column(self.column)
        # Most values repeat, so each is looked at once.
        encoded = column.dictionary_encode()
        chosen = self.partitions(encoded.dictionary, partitions)
        is_wrong = np.append(chosen != partition, False)  # the last entry is for missing values
        codes = pc.fill_null(encoded.indices, len(chosen)).to_numpy(zero_copy_only=False)
        return dict.fromkeys(decoded.kept[is_wrong[codes]].tolist(), self.misplaced)

    def partitions(self, values: Any, partitions: int) -> npt.NDArray[np.int64]:
        """The partition of every value; InputError if they are neither text nor whole numbers."""
        return text_partitions(key_texts(values, self.column), self.partitioner, partitions)


def require_shareable(name: str, share: Share, counts: dict[str, int]) -> None:
    """InputError if topics with these numbers of partitions cannot be shared by the workers."""
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{topic} has {count}" for topic, count in counts.items())
        raise InputError(
            f"{name}: topics that several workers share need the same number of partitions, so that a value is in the "
            f"same one in each: {listed}; write topics that are alike with shoal repartition"
        )
    least = min(counts.values())
    if least < share.workers:
        raise InputError(
            f"{name}: topic {next(iter(counts))} has {least} partitions for {share.workers} workers, so some would "
            "have none; lower [source] workers, or write a topic with more partitions with shoal repartition"
        )
