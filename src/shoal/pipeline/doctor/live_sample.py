"""A sample of a system of messages: its first messages, without changing anything there."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.decode.base import Decoded
from shoal.errors import InputError
from shoal.methods.settings import Duration
from shoal.pipeline.live.wiring import make_live_source
from shoal.policy import Policy
from shoal.sources.base import End, Source
from shoal.times import column_ns

_ARRIVED: Final = "shoal: time of the broker"
_SECONDS: Final = 20.0
"""A sample is not waited for longer than this."""


@dataclass(frozen=True, slots=True)
class LiveSample:
    """The first messages of a source."""

    parts: list[Decoded]
    empty: pa.RecordBatch
    is_all: bool
    numbers_rows: bool
    arrived: npt.NDArray[np.int64]
    """The broker's time (ns) of every decoded message; 0 or less where it is not known."""


def take_live_sample(policy: Policy, columns: tuple[str, ...], rows: int) -> LiveSample:
    """Read the first messages, up to the end as it is now; InputError if that is not possible."""
    section = policy.message_source
    arrived = section.timestamp_column or _ARRIVED
    changes = {"until": "end", "start": "earliest", "give_up": Duration("5s"), "timestamp_column": arrived}
    wanted = columns if arrived in columns else (*columns, arrived)
    with closing(make_live_source(replace(policy, source=section.model_copy(update=changes)))) as source:
        source.open(wanted, None)
        schema = source.schema
        parts, is_all = _polled(source, rows)
        numbers_rows = source.numbers_rows
    times = [column_ns(part.batch.column(arrived))[0] for part in parts]
    return LiveSample(
        [replace(part, batch=part.batch.select(list(columns))) for part in parts],
        pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(name) for name in columns])),
        is_all,
        numbers_rows,
        np.concatenate([np.zeros(0, dtype=np.int64), *times]),
    )


def _polled(source: Source, rows: int) -> tuple[list[Decoded], bool]:
    found: list[Decoded] = []
    end = time.monotonic() + _SECONDS
    while sum(part.rows for part in found) < rows and time.monotonic() < end:
        polled = source.poll()
        if isinstance(polled, End):
            return found, True
        if isinstance(polled, Decoded):
            found.append(polled)
    return found, False


def raw_column(policy: Policy, column: str) -> Any | None:
    """A column of the first messages, without conversion; None if they cannot be read."""
    plain = replace(policy, stream=policy.stream.model_copy(update={"time": None, "time_unit": None}))
    try:
        sample = take_live_sample(plain, (column,), 1_000)
    except InputError:
        return None
    return pa.concat_batches([sample.empty, *(part.batch for part in sample.parts)]).column(0)
