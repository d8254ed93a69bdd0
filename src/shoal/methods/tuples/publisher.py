"""Publishes decided tuples, as rows in an order that only the key determines, and as the private trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.publish_order import order_events
from shoal.methods.carried_columns import CarriedColumns
from shoal.methods.quasi_readers import Bools, Ints, Reader
from shoal.methods.release import IS_DEAD, IS_RELEASED, IS_SUPPRESSED, VERDICTS
from shoal.methods.text_keys import Words, key_words
from shoal.methods.tuples.decider.base import Decided
from shoal.methods.tuples.published_columns import ColumnKinds, PublishedColumns
from shoal.methods.tuples.reader import MASK_BITS
from shoal.methods.tuples.sensitive import SensitiveCodes
from shoal.methods.tuples.settings import TupleSettings

_Made = TypeVar("_Made")
_WORTH_PIECES: Final = 4096
"""Fewer rows are published faster by one thread."""
_PIECES: Final = 4
"""Parts in which columns are built; threads share them."""


def at_once(work: Callable[[int], _Made], count: int) -> Callable[[], list[_Made]]:
    """Compute work(0), work(1), … now; the returned function gives all of them. Tasks.start does it in threads."""
    made = [work(number) for number in range(count)]
    return lambda: made


Start = Callable[..., Callable[[], list[Any]]]
"""Begins work(0), work(1), …: at_once, or Tasks.start."""


def in_secret_order(decided: Decided, key: Words, start: Start = at_once) -> Decided:
    """The same decisions by event, those of one event in an order that depends on the secret key."""
    if len(decided) < 2:
        return decided
    rows, events, by_event = np.ascontiguousarray(decided.rows), np.ascontiguousarray(decided.at), None
    if (events[1:] < events[:-1]).any():  # decided in parts at the same time
        by_event = np.argsort(events, kind="stable")
        rows, events = rows[by_event], events[by_event]
    halves, out = _halves(events), np.empty_like(decided.out)

    def order_half(number: int) -> None:
        half = halves[number]
        keys = np.empty((2, half.stop - half.start), dtype=np.int64)
        order = np.empty_like(keys)
        order_events(key, rows[half], events[half], keys, order)
        found = order[0] + half.start
        places = found if by_event is None else by_event[found]
        np.take(decided.out, places, axis=0, out=out[half], mode="clip")  # the other mode copies once more

    start(order_half, len(halves))()
    return replace(decided, out=out)


def _halves(events: Ints) -> list[slice]:
    """Two parts of about the same size that divide no event; one part where there is little to do."""
    count = len(events)
    middle = int(np.searchsorted(events, events[count // 2])) if count >= _WORTH_PIECES else 0
    return [slice(0, middle), slice(middle, count)] if middle else [slice(0, count)]


class TuplePublisher:
    """Turns decisions into rows; keeps the columns that are published unchanged as long as their rows are pending."""

    carried: CarriedColumns

    def __init__(
        self,
        settings: TupleSettings,
        secret: Secret,
        quasi: Sequence[Reader],
        *,
        fills_missing: bool,
        start: Start,
    ) -> None:
        self._key = key_words(secret.subkey("order of published tuples"))
        self._quasi, self._start = quasi, start
        self._hides_missing = settings.missing == "paper" and not fills_missing
        """Whether a row shows only the attributes it carries itself."""
        self._shows_root = settings.suppressed == "root"

    def set_types(self, output_schema: pa.Schema, carried: pa.Schema) -> None:
        """Prepare for output of these types; `carried` are the columns that are published unchanged."""
        self.carried = CarriedColumns(carried)
        self._output_schema = output_schema
        self._names, self._kinds = output_schema.names, output_schema.types
        self._shown = ColumnKinds(self._quasi, self._kinds[: len(self._quasi)])

    def in_order(self, decided: Decided) -> Decided:
        """The decisions in the order in which they are published."""
        return in_secret_order(decided, self._key, self._start)

    # ---- batches

    def rows(self, decided: Decided) -> Callable[[], pa.RecordBatch]:
        """The published rows, built when they are asked for."""
        out, is_published = decided.out, decided.is_released
        if not self._shows_root and not is_published.all():
            out = out[is_published]
        carried = self.carried.take(out[:, t.O_ROW]).columns if self.carried else []
        shown = PublishedColumns(self._shown, decided, out[:, t.O_GROUP], self._is_missing(out[:, t.OUT_MASKS :]))
        parts = _PIECES if len(out) >= _WORTH_PIECES else 1
        made = self._start(lambda part: shown.columns(range(len(self._quasi))[part::parts]), parts)

        def build() -> pa.RecordBatch:
            columns = {a: column for part in made() for a, column in part.items()}
            ordered = [columns[a] for a in range(len(self._quasi))]
            return pa.RecordBatch.from_arrays([*ordered, *carried], schema=self._output_schema)

        return build

    def _is_missing(self, masks: Ints) -> Bools | None:
        """Which rows do not carry each attribute, if they show null there."""
        if not self._hides_missing:
            return None
        bits = [(masks[:, a // MASK_BITS] >> (a % MASK_BITS)) & 1 == 0 for a in range(len(self._quasi))]
        return np.array(bits).T

    # ---- single records

    def records(self, decided: Decided) -> list[dict[str, Any]]:
        """The published rows as records."""
        rows = []
        for i, (row, group) in enumerate(zip(decided.rows.tolist(), decided.groups.tolist(), strict=True)):
            carried = self.carried.take_one(row) if self.carried else ()
            if group >= 0 or self._shows_root:
                shown = [self._cell(a, decided, i, group) for a in range(len(self._quasi))]
                rows.append(dict(zip(self._names, (*shown, *carried), strict=True)))
        return rows

    def _cell(self, a: int, decided: Decided, i: int, group: int) -> Any:
        reader, kind = self._quasi[a], self._kinds[a]
        if group < 0:
            return reader.publish_one(*reader.root(), kind)
        if not decided.shown[group, a]:
            return None
        if self._hides_missing and not (decided.masks[i, a // MASK_BITS] >> (a % MASK_BITS)) & 1:
            return None
        low, high, node = decided.low[group, a], decided.high[group, a], decided.node[group, a]
        return reader.publish_one(float(low), float(high), int(node), kind)


_VERDICT: Final = pa.dictionary(pa.int8(), pa.string())
_REASON: Final = pa.dictionary(pa.int16(), pa.string())
_REFERENCE: Final = pa.list_(pa.struct([("column", pa.string()), ("value", pa.string()), ("count", pa.int64())]))


class TupleTracer:
    """Turns decisions and refusals into trace batches."""

    def __init__(self, settings: TupleSettings, reasons: Sequence[str], codes: Sequence[SensitiveCodes]) -> None:
        self._k, self._codes = settings.k, codes
        self._reasons = pa.array(reasons, type=pa.string())
        fields = [
            ("row", pa.int64()), ("verdict", _VERDICT), ("reason", _REASON), ("group", pa.int64()),
            ("delay", pa.int64()), ("k", pa.int64()), ("reused", pa.bool_()), ("carriers", pa.list_(pa.int32())),
            ("event", pa.int64()),
        ]  # fmt: skip
        self._has_references = settings.remembers > 0
        self.schema = pa.schema([*fields, *([("reference", _REFERENCE)] if self._has_references else [])])

    def trace(self, decided: Decided, dead: Ints, reasons: npt.NDArray[np.int16]) -> pa.RecordBatch:
        """One row for each decision, in the order in which pushing one by one would decide."""
        count, refused = len(decided), len(dead)
        events = np.concatenate((decided.at, dead))
        order = np.argsort(events, kind="stable")
        rows = np.concatenate((decided.rows, dead))[order]
        verdicts = np.where(decided.is_released, IS_RELEASED, IS_SUPPRESSED)
        verdicts = np.concatenate((verdicts, np.full(refused, IS_DEAD))).astype(np.int8)[order]
        why = np.concatenate((np.zeros(count, np.int16), reasons))[order]
        groups = np.concatenate((decided.groups, np.full(refused, t.NO_GROUP)))[order]
        delays = np.concatenate((decided.delays, np.zeros(refused, np.int64)))[order]
        places = pa.array(groups, mask=groups < 0)
        columns = [
            pa.array(rows),
            pa.DictionaryArray.from_arrays(pa.array(verdicts), pa.array(VERDICTS)),
            pa.DictionaryArray.from_arrays(pa.array(why, mask=verdicts != IS_DEAD), self._reasons),
            pa.array(decided.numbers).take(places),
            pa.array(delays),
            pa.repeat(pa.scalar(self._k, pa.int64()), len(rows)),
            pa.array(decided.reused.astype(np.bool_)).take(places),
            _lists(decided.carriers.astype(np.int32)).take(places),
            pa.array(events[order]),
        ]
        if self._has_references:
            columns.append(self._references(groups, decided))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _references(self, groups: Ints, decided: Decided) -> pa.Array:
        """The distribution that each new cluster was compared with, on the first of its rows."""
        seen: set[int] = set()
        found: list[list[dict[str, Any]] | None] = []
        for place in groups.tolist():
            is_first = place >= 0 and place not in seen and not decided.reused[place]
            seen.add(place)
            found.append(self._reference(decided.reference[place]) if is_first else None)
        return pa.array(found, type=_REFERENCE)

    def _reference(self, counts: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
        return [
            {"column": column.name, "value": value, "count": int(count)}
            for column, row in zip(self._codes, counts, strict=True)
            for value, count in zip(column.texts(), row, strict=False)
            if count
        ]


def _lists(rows: npt.NDArray[np.int32]) -> pa.ListArray:
    """One list for each row."""
    offsets = np.arange(0, rows.size + 1, max(rows.shape[1], 1), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.ravel()))
