"""Partitions of workers, and values that are in the wrong one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.decode.base import Decoded, Refused
from shoal.errors import InputError
from shoal.sources.kafka.shares import Keying, Share, require_shareable
from tests.reference.partitioners import partition_of


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_every_partition_has_one_owner(workers: int) -> None:
    for partition in range(20):
        assert sum(Share(workers, worker).owns(partition) for worker in range(workers)) == 1
    assert all(Share(workers, None).owns(partition) for partition in range(20))


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
@pytest.mark.parametrize("partitioner", ["murmur2", "crc32"])
def test_misplaced_rows(kind: pa.DataType, partitioner: str) -> None:
    values = [str(value) if kind == pa.string() else value for value in (1, 20, -3, 20, 1)]
    column = pa.array([*values, None], kind)
    # Record 2 was refused before, so the batch has records 0, 1, 3, 4, 5, 6.
    decoded = Decoded(pa.record_batch([column], ["site"]), (Refused(2, None, "broken"),), {})
    for partition in range(3):
        found = Keying("site", partitioner).misplaced_rows(decoded, partition, 3)
        expected = [
            record
            for record, value in zip((0, 1, 3, 4, 5), values, strict=True)
            if partition_of(str(value).encode(), 3, partitioner) != partition
        ]
        assert sorted(found) == expected
        assert all(reason.startswith("wrong-partition: the column 'site' belongs to") for reason in found.values())


def test_slices_and_nothing() -> None:
    keying = Keying("site")
    texts = pa.array(["x", "news", "ümlaut", ""])
    expected = [partition_of(text.encode(), 5) for text in ("news", "ümlaut", "")]
    assert keying.partitions(texts.slice(1), 5).tolist() == expected
    assert keying.partitions(texts.slice(4), 5).tolist() == []
    assert keying.misplaced_rows(Decoded(pa.record_batch([texts.slice(4)], ["site"]), (), {}), 0, 5) == {}


def test_numbers_that_are_not_whole_are_no_keys() -> None:
    with pytest.raises(InputError, match="column 'age': is of type double; a topic can be keyed by text or whole"):
        Keying("age").partitions(pa.array([1.5]), 2)


def test_topics_that_cannot_be_shared() -> None:
    require_shareable("Kafka", Share(2, 0), {"a": 4, "b": 4})
    with pytest.raises(InputError, match="a has 4, b has 6"):
        require_shareable("Kafka", Share(2, 0), {"a": 4, "b": 6})
    with pytest.raises(InputError, match="topic a has 1 partitions for 2 workers"):
        require_shareable("Kafka", Share(2, 0), {"a": 1})
