"""The doctor's remarks about the time column: its unit, its order, its gaps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.pipeline.doctor.live_sample import raw_column
from shoal.pipeline.doctor.remarks import Level, Remark
from shoal.pipeline.wiring import make_files, raw_decoder
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSource
from shoal.policy.tuples import TupleSection
from shoal.schema import NANOSECONDS
from shoal.times import UNIT_NAMES, UNITS, column_ns

_SECOND: Final = 1_000_000_000
_YEAR: Final = 366 * 86_400 * _SECOND
_MODERN: Final = (631_152_000 * _SECOND, 4_102_444_800 * _SECOND)
"""From 1990 to 2100: numbers of one unit only fall into this range."""
_MOST: Final = 0.5


def time_remarks(policy: Policy, column: str, batch: pa.RecordBatch) -> Iterator[Remark]:
    """Remarks about the times of a sample."""
    wrong_unit = unit_problem(policy, column)
    if wrong_unit is not None:
        yield Remark("wrong", "time", wrong_unit)
        return
    if not policy.anonymize.runs_on_time:
        return
    times, usable = column_ns(batch.column(column))
    known = times[usable]
    if not len(known):
        yield Remark(
            "wrong", "time",
            f"column {column!r}: no row has a usable time; name the right column, or convert it: times are timestamps, "
            "ISO 8601 text (2018-01-31 17:49) or numbers since 1970",
        )  # fmt: skip
        return
    if policy.stream.time_unit is not None and is_in_1970(known):
        yield Remark("look", "time", in_1970_words(column, policy.stream.time_unit))
    newest = np.maximum.accumulate(known)
    behind = newest - known
    yield from _order_remarks(policy, column, behind, length=int(known.max() - known.min()))
    if np.count_nonzero(behind) <= _MOST * len(behind):  # without any order gaps mean nothing
        yield from _gap_remarks(policy, np.diff(newest))


# ---- the unit


def unit_problem(policy: Policy, column: str) -> str | None:
    """A sentence if the numbers of the time column most likely have another unit than the policy states, else None."""
    method = policy.anonymize
    needs_unit = policy.stream.time_unit is None and method.column_types().get(column) == "timestamp"
    if not (method.runs_on_time or needs_unit):
        return None
    numbers = _raw_numbers(policy, column)
    unit = policy.stream.time_unit or "s"
    likely = likely_unit(numbers)
    if likely is None or (likely == unit and not needs_unit):
        return None
    years = [str(np.datetime64(int(end * UNITS[likely]), "ns"))[:4] for end in (numbers.min(), numbers.max())]
    when = years[0] if years[0] == years[1] else f"{years[0]} to {years[1]}"
    why = "are not read as times" if needs_unit else f"are read as {UNIT_NAMES[unit]} since 1970, which makes no sense"
    return (
        f"column {column!r}: its numbers {why}; as {UNIT_NAMES[likely]} they are in {when}: "
        f'set time_unit = "{likely}" in [stream]'
    )


def likely_unit(numbers: npt.NDArray[np.float64]) -> str | None:
    """The unit in which most numbers are times between 1990 and 2100; None if there is none.

    >>> likely_unit(np.array([1.7e12])), likely_unit(np.array([5.0]))
    ('ms', None)
    """
    if not len(numbers):
        return None
    middle = float(np.median(numbers))
    return next((unit for unit, size in UNITS.items() if _MODERN[0] <= middle * size <= _MODERN[1]), None)


def is_in_1970(times: npt.NDArray[np.int64]) -> bool:
    """Whether all times (in nanoseconds) are within a year of 1970."""
    return bool(len(times)) and bool(np.abs(times).max() < _YEAR)


def in_1970_words(column: str, unit: str) -> str:
    """The warning that all times are in 1970."""
    return (
        f'column {column!r}: in {UNIT_NAMES[unit]} (time_unit = "{unit}") its times are in 1970; if they have another '
        "unit, every window and deadline is wrong: correct time_unit in [stream]"
    )


def _raw_numbers(policy: Policy, column: str) -> npt.NDArray[np.float64]:
    """The finite numbers among the first times of the first file, or the first messages, unconverted."""
    if isinstance(policy.source, MessageSource):
        column_read = raw_column(policy, column)
        numbers = np.zeros(0) if column_read is None else _numbers(column_read)
        return numbers[np.isfinite(numbers)]
    try:
        with raw_decoder(policy, make_files(policy)[0], column) as decoder:
            first = next(iter(decoder.batches()), None)
    except InputError:
        first = None
    numbers = np.zeros(0) if first is None else _numbers(first.batch.column(0))
    return numbers[np.isfinite(numbers)]


def _numbers(column: Any) -> npt.NDArray[np.float64]:
    if pa.types.is_string(column.type):
        is_number = pc.match_substring_regex(column, r"^[+-]?[0-9]+([.][0-9]+)?$")
        column = pc.if_else(is_number, column, pa.scalar(None, pa.string())).cast(pa.float64())
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.zeros(0)
    values = column.cast(pa.float64(), safe=False)
    return np.asarray(pc.fill_null(values, np.nan).to_numpy(zero_copy_only=False), np.float64)


# ---- the order


def _order_remarks(policy: Policy, column: str, behind: npt.NDArray[np.int64], *, length: int) -> Iterator[Remark]:
    longest = int(behind.max())
    if not longest:
        return
    share, needed = np.count_nonzero(behind) / len(behind), duration_text(longest)
    unsorted = f"rows are not sorted by {column!r}: {share:.1%} come after a newer one, up to {needed} late"
    if isinstance(policy.anonymize, TupleSection):
        words = "their time in the stream is that of the newest row before them; sort the input to avoid it"
        yield Remark("look", "time", f"{unsorted}; {words}")
        return
    lateness = getattr(policy.anonymize, "lateness", None)
    late = np.count_nonzero(behind > (lateness.ns if lateness is not None else 0)) / len(behind)
    if not late:
        yield Remark("good", "time", f"{unsorted}; lateness is long enough for them")
        return
    remedy = f'sort the input by {column!r}, or set lateness = "{needed}", which is enough for these rows'
    if 2 * longest > length:
        remedy = f"sort the input by {column!r} (rows are not in time order at all: no lateness would help)"
    level: Level = "wrong" if late > _MOST else "look"
    yield Remark(level, "time", f"{unsorted}; {late:.1%} would be refused as late: {remedy}")


def _gap_remarks(policy: Policy, gaps: npt.NDArray[np.int64]) -> Iterator[Remark]:
    max_gap = getattr(policy.anonymize, "max_gap", None)
    if max_gap is not None and np.count_nonzero(gaps > max_gap.ns):
        yield Remark(
            "look", "time",
            f"{np.count_nonzero(gaps > max_gap.ns):,} gaps are longer than max_gap; until a second person confirms the "
            f"new time, rows after such a gap go to the dead letters; if such gaps are normal, set "
            f'max_gap = "{duration_text(int(gaps.max()))}"',
        )  # fmt: skip


def duration_text(ns: int) -> str:
    """A duration for a policy, rounded up to whole units, at least two of them.

    >>> duration_text(1), duration_text(90 * 10**9), duration_text(7200 * 10**9), duration_text(3 * 86_400 * 10**9 + 1)
    ('1s', '90s', '2h', '4d')
    """
    seconds = -(-ns // _SECOND)
    for unit in ("d", "h", "min", "s"):
        size = NANOSECONDS[unit] // _SECOND
        count = -(-seconds // size)
        if count > 2 or (count > 1 and seconds % size == 0):
            return f"{count}{unit}"
    return f"{seconds}s"
