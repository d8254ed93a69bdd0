"""Dead letters of records that were refused on Spark: where each is, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from shoal.methods.base import StreamMethod
from shoal.pipeline.dead_letters import LATE, LATE_ON_A_LIVE_STREAM
from shoal.spark.outcome import Outcome
from shoal.spark.records.columns import BAD, LINE, ROW
from shoal.spark.records.numbering import NumberedRows

_REFUSED_WHILE_PENDING: Final = "ahead"

Letter = tuple[dict[str, Any], pa.RecordBatch | None]
"""A dead letter, and the record if it could be decoded."""


def dead_letters(
    outcome: Outcome,
    rows: NumberedRows,
    method: StreamMethod,
    place: Callable[[int, int | None], dict[str, Any]],
    *,
    keep_rows: bool = True,
    is_live: bool = False,
) -> tuple[list[Letter], int]:
    """The letters in the order of the records, and how many of them could not be decoded.

    `place` says where a record is, by its number and its line. A record of an earlier micro-batch is named by its
    number alone. Without `keep_rows` no value of a record reaches the driver. `is_live`: records come from a system of
    messages, whose letters say more about late ones.
    """
    found = {} if outcome.refused is None else outcome.refused.sort_by("row").to_pydict()
    numbers = np.array(found.get("row", []), dtype=np.int64)
    old = int(np.searchsorted(numbers, rows.first))
    refused = rows.picked(numbers[old:], with_values=keep_rows)
    # One machine has forgotten the place of a record that waited to be sorted and was refused then.
    sorts_rows = method.method == "z-anonymity" and bool(method.guarantee.max_delay_ns)
    letters: list[Letter] = []
    for row, reason in zip(numbers[:old].tolist(), found.get("reason", []), strict=False):
        column, why = _explained(method, reason, is_live=is_live)
        letters.append(({"row": row + 1, "column": column, "reason": why}, None))
    unreadable, records = 0, refused.select(rows.types.names).combine_chunks() if keep_rows else None
    about = (refused.column(name).to_pylist() for name in (ROW, LINE, BAD))
    for number, (row, line, bad, reason) in enumerate(zip(*about, found.get("reason", [])[old:], strict=True)):
        unreadable += bad is not None
        column, why = orjson.loads(bad) if bad else _explained(method, reason, is_live=is_live)
        has_waited = reason == _REFUSED_WHILE_PENDING and sorts_rows
        letter = place(row, None if has_waited else line)
        is_lost = bad is not None or has_waited
        record = None if records is None or is_lost else records.slice(number, 1).to_batches()[0]
        letters.append(({**letter, "column": column, "reason": why}, record))
    return letters, unreadable


def letters_by_number(outcome: Outcome, method: Any) -> tuple[list[Letter], int]:
    """The letters of rows of a DataFrame, in its order: they are named by their number, from 1 on."""
    found = [] if outcome.refused is None else outcome.refused.sort_by("row").to_pylist()
    letters: list[Letter] = []
    for one in found:
        column, why = _explained(method, one["reason"], is_live=False)
        letters.append(({"row": one["row"] + 1, "column": column, "reason": why}, None))
    return letters, 0


def text_of(letters: list[Letter]) -> bytes:
    """Letters as lines of JSON, without the records."""
    return b"".join(orjson.dumps(letter, option=orjson.OPT_APPEND_NEWLINE) for letter, _ in letters)


def _explained(method: StreamMethod, reason: str, *, is_live: bool) -> tuple[str | None, str]:
    refusal = method.explain(reason)
    return refusal.column, LATE_ON_A_LIVE_STREAM if is_live and reason == LATE else refusal.sentence
