"""Several workers share a topic: which partitions are whose, and whether a value is in the partition of its key.

Partitions are assigned by their number, so every worker knows its own without asking the others, and a restart reads
the same ones. A promise that counts people who share a value needs all records of the value at one worker. So a record
whose value belongs to another partition is refused: otherwise two workers would each see a part of its people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import Decoded
from shoal.errors import InputError
from shoal.kernels.partitioners import CRC32, MURMUR2, choose_partitions

Partitioner = Literal["murmur2", "crc32"]
_CODES: Final = {"murmur2": MURMUR2, "crc32": CRC32}


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

    def partitions(self, values: pa.Array, partitions: int) -> npt.NDArray[np.int64]:
        """The partition of every value; the text of a whole number are its digits."""
        return text_partitions(self.texts(values), self.partitioner, partitions)

    def texts(self, values: pa.Array) -> pa.Array:
        """The keys of values, as text; InputError if they are neither text nor whole numbers."""
        if pa.types.is_string(values.type):
            return values
        if not pa.types.is_integer(values.type):
            raise InputError(
                f"column {self.column!r}: is of type {values.type}; a topic can be keyed by text or whole numbers "
                "only, because others can be written in several ways"
            )
        return values.cast(pa.string())


def text_partitions(texts: pa.Array, partitioner: Partitioner, partitions: int) -> npt.NDArray[np.int64]:
    """The partition of every text."""
    out = np.empty(len(texts), dtype=np.int64)
    _, offsets, data = texts.buffers()
    if len(texts):
        starts = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
        content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
        choose_partitions(starts, content, _CODES[partitioner], partitions, out)
    return out


def require_shareable(name: str, share: Share, counts: dict[str, int]) -> None:
    """InputError if topics with so many partitions cannot be shared by so many workers."""
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
