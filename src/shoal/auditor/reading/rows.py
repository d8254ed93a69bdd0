"""Rows that were read, by column; and the truth as the policy's [stream] describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.auditor.reading.columns import CODED_TEXT, TEXT, Bools, Ints, as_ns, as_text, as_whole
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.lines import Part
from shoal.errors import InputError, PolicyError

NOTHING_HIDDEN: Final = Hidden()


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows from one or more parts; row numbers run on from part to part."""

    parts: tuple[Part, ...]
    name: str
    """Its name in messages."""
    claims: tuple[bytes, ...] = ()
    """The metadata under the key ``shoal`` of every part's schema, unparsed."""
    hidden: Hidden = NOTHING_HIDDEN
    """What a release contains besides the values of its rows."""
    odd_rows: int = 0
    """Rows of a release's text files that are laid out differently from the others."""
    is_numbered: bool = False
    """Whether a column "row" was added, because the policy counts rows, not people."""

    def __len__(self) -> int:
        return sum(len(broken) for _, broken in self.parts)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of all parts."""
        return list(dict.fromkeys(name for columns, _ in self.parts for name in columns))

    @property
    def broken(self) -> Bools:
        """Which records could not be read."""
        return _joined([broken for _, broken in self.parts], np.bool_)

    def text(self, name: str) -> Any:
        """Return a column as Arrow text, dictionary-encoded if all parts are."""
        pieces = list(self.pieces(name))
        is_coded = bool(pieces) and all(getattr(piece, "type", None) == CODED_TEXT for piece in pieces)
        found = pieces if is_coded else [as_text(column) for column in pieces]
        chunks = [chunk for piece in found for chunk in getattr(piece, "chunks", [piece])]
        return pa.chunked_array(chunks, CODED_TEXT if is_coded else TEXT)

    def moments(self, name: str) -> tuple[Ints, Bools]:
        """Return a time column as nanoseconds, and which rows have a time."""
        pairs = [as_ns(column) for column in self.pieces(name)]
        return _joined([ns for ns, _ in pairs], np.int64), _joined([valid for _, valid in pairs], np.bool_)

    def numbers(self, name: str) -> Ints:
        """Return a column of whole numbers; -1 for anything else."""
        return _joined([as_whole(column) for column in self.pieces(name)], np.int64)

    def require(self, *names: str) -> None:
        """Raise InputError when a column is missing."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise InputError(f"{self.name}: no column {', '.join(missing)}; check the policy and the file")

    def pieces(self, name: str) -> Iterator[Any]:
        """Yield a column part by part, as read: Arrow, or a list of Python values."""
        for columns, broken in self.parts:
            yield columns.get(name, pa.nulls(len(broken)))


def _joined(pieces: list[npt.NDArray[Any]], kind: Any) -> npt.NDArray[Any]:
    return np.concatenate(pieces) if pieces else np.zeros(0, kind)


_ROW: Final = "row"
_UNITS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_FARTHEST: Final = 2**62
"""The largest distance of a time from 1970, in nanoseconds: times lie between 1824 and 2116."""
_LOOKED_AT: Final = 1_000
"""How many first records of JSON lines are searched; a key that none of them has counts as absent."""


def by_stream(truth: Rows, stream: Mapping[str, Any], first: int = 0, *, numbers: bool | None = None) -> Rows:
    """Return the truth with times as timestamps and a column of row numbers, if the policy asks for them.

    Of a part of the truth: ``first`` is the number of its first row, ``numbers`` whether rows are numbered.
    """
    unit, time = stream.get("time_unit"), stream.get("time")
    if unit is not None and unit not in _UNITS:
        raise PolicyError(f"[stream] time_unit: must be one of {', '.join(_UNITS)}")
    parts = truth.parts
    if unit is not None and isinstance(time, str):
        parts = tuple(_in_unit(part, time, _UNITS[unit]) for part in parts)
    is_numbered = stream.get("person") == _ROW and (not has_row_column(truth) if numbers is None else numbers)
    if is_numbered:
        parts = _numbered(parts, first)
    return Rows(parts, truth.name, truth.claims, is_numbered=is_numbered)


def counts_rows(truth: Rows | None, stream: Mapping[str, Any]) -> bool:
    """Return whether the policy counts rows, not people; a real column named "row" names people."""
    return stream.get("person") == _ROW and (truth is None or not has_row_column(truth))


def _in_unit(part: Part, time: str, unit: int) -> Part:
    """Turn numbers into timestamps; a record with an invalid time is unreadable."""
    columns, broken = part
    if time not in columns or _is_instant(columns[time]):
        return part
    column = columns[time]
    nanoseconds, valid = as_ns(column, unit)
    valid &= (nanoseconds >= -_FARTHEST) & (nanoseconds < _FARTHEST)
    present = _present(column)
    moments = pa.array(np.where(valid, nanoseconds, 0), mask=~valid).cast(pa.timestamp("ns", "UTC"))
    return {**columns, time: moments}, broken | (present & ~valid)


def _is_instant(column: Any) -> bool:
    if isinstance(column, list):
        return False
    return bool(pa.types.is_timestamp(column.type) or pa.types.is_date(column.type))


def _present(column: Any) -> Bools:
    if isinstance(column, list):
        return np.array([value is not None for value in column], np.bool_)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def has_row_column(rows: Rows) -> bool:
    """Return whether there is a real column named "row" in any part."""
    return any(_has_rows(columns) for columns, _ in rows.parts)


def _has_rows(columns: dict[str, Any]) -> bool:
    """Return whether there is a real column named "row"."""
    found = columns.get(_ROW)
    return any(value is not None for value in found[:_LOOKED_AT]) if isinstance(found, list) else found is not None


def _numbered(parts: tuple[Part, ...], start: int) -> tuple[Part, ...]:
    """Number the rows over all parts; an unreadable record has no person."""
    found = []
    for columns, broken in parts:
        numbers = np.arange(start, start + len(broken), dtype=np.int64)
        found.append(({**columns, _ROW: pa.array(numbers, mask=broken)}, broken))
        start += len(broken)
    return tuple(found)
