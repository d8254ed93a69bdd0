"""Problems that only the records show: a wrong unit of time, carried columns that single people out."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from shoal.pipeline.checks.identifying import CarryCheck
from shoal.pipeline.doctor.times import in_1970_words, is_in_1970
from shoal.policy import Policy
from shoal.sources.base import Source
from shoal.times import column_ns


class RecordChecks:
    """Warnings about the records of a run, each given once."""

    def __init__(self, policy: Policy) -> None:
        self._stream = policy.stream
        self._has_checked_unit = policy.stream.time_unit is None
        self._carry_check = CarryCheck(policy)

    def before_run(self, source: Source) -> Iterator[str | None]:
        """Sentences about the first records, if the source can show them twice."""
        yield from self._carry_check.before_run(source)

    def on_batch(self, batch: pa.RecordBatch, *, is_first: bool) -> Iterator[str | None]:
        """Sentences about a batch."""
        time = self._stream.time
        if not self._has_checked_unit and time in batch.schema.names and batch.num_rows:
            self._has_checked_unit = True
            times, usable = column_ns(batch.column(time))
            if is_in_1970(times[usable]):  # in a wrong unit, windows are a thousand times too long
                yield in_1970_words(str(time), self._stream.time_unit or "s")
        if is_first:
            yield from self._carry_check.on_first_block(batch)
