"""How much a micro-batch reads at most, so that a start with a large backlog does not take everything at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from shoal.methods.settings import Duration
from shoal.sources.compression import detect

MOST_RECORDS: Final = 20_000_000
"""Of a micro-batch, if ``[checkpoint] every`` is a duration. The numbers of late records and the steps of time that the
driver holds and broadcasts then take less than a gigabyte, and what executors store of the records fits on their disks;
twenty times fewer would be dominated by the fixed cost of a micro-batch."""
MOST_FILES: Final = 10_000
"""Of a micro-batch: each file is a task, and the driver keeps the state of every task."""
_BYTES_OF_A_RECORD: Final = 100
"""Assumed of text, whose records are not counted before they are read: a line of a log or an event in JSON."""
_TIMES_COMPRESSED: Final = 5
"""Assumed of text in gzip or zstd: how many times smaller it is."""


def most_records(every: Any) -> int:
    """The bound that `[checkpoint] every` gives: a number of records, or the default next to a duration."""
    return MOST_RECORDS if isinstance(every, Duration) else int(every)


def shares(available: Sequence[int], most: int) -> list[int]:
    """Divide a number of records in proportion to what is available, at least one for each that has any.

    They are `most` together at the most, unless more have records than that: then it is one for each.

    >>> shares([10, 0, 30], 8)
    [2, 0, 5]
    >>> shares([3, 4], 8)
    [3, 4]
    """
    total, logs = sum(available), sum(map(bool, available))
    if total <= most:
        return list(available)
    left = max(0, most - logs)
    return [1 + left * (count - 1) // max(1, total - logs) if count else 0 for count in available]


def first_files(names: Iterable[str], kind: str, most: int) -> Iterator[str]:
    """The first files that together have about as many records as a micro-batch may have; at least one."""
    records = 0
    for at, name in enumerate(names):
        records += _records(Path(name), kind)
        if at and (records > most or at >= MOST_FILES):
            return
        yield name


def _records(path: Path, kind: str) -> int:
    """How many records a file has: counted in its footer, else estimated by its size."""
    try:
        if kind == "parquet":
            return int(pq.read_metadata(path).num_rows)
        if kind == "arrow":
            return int(ds.dataset(path, format="ipc").count_rows())
    except (OSError, pa.ArrowException):
        pass  # compressed, a stream without a footer or damaged: the task that decodes it reports what is wrong
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            is_compressed = detect(file.read(4)) != "none"
    except OSError:
        return 0  # gone: the message about it comes when it is to be read
    return size * (_TIMES_COMPRESSED if is_compressed else 1) // _BYTES_OF_A_RECORD
