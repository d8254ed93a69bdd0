"""Hypothesis strategies for event streams: few or many people, ties, gaps, late and invalid records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st

from shoal.times import column_ns

SECOND: Final = 1_000_000_000
EVENT_SCHEMA: Final = pa.schema(
    [("ts", pa.timestamp("ns")), ("user", pa.string()), ("site", pa.string()), ("device", pa.string())]
)
"""Columns of the streams: time, person, attribute, and a carried column."""

SITES: Final = ("a.news.example", "b.news.example", "c.shop.example", "news.example", "d.example", "")
PEOPLE: Final = ("ann", "bob", "cat", "dan", "eve")


def steps_ns(window_ns: int, lateness_ns: int = 0) -> st.SearchStrategy[int]:
    """Draw the time between two events: zero, short, a window ± 1 ns, or negative."""
    forward = (0, 0, 1, window_ns // 7, window_ns - 1, window_ns, window_ns + 1)
    backward = (-1, -lateness_ns, -lateness_ns - 1) if lateness_ns else (-1,)
    return st.sampled_from((*forward, *backward))


def people(*, wide: bool = False) -> st.SearchStrategy[str]:
    """Draw names of people: one of five, or any text if `wide`."""
    return st.text(min_size=1, max_size=12) if wide else st.sampled_from(PEOPLE)


@st.composite
def event_records(
    draw: st.DrawFn,
    *,
    window_ns: int = 10 * SECOND,
    lateness_ns: int = 0,
    sites: Sequence[str | None] = SITES,
    wide: bool = False,
    broken: bool = True,
    most: int = 40,
) -> list[dict[str, Any]]:
    """Draw records {ts, user, site, device} in arrival order; ts in nanoseconds, None where it is missing."""
    one = st.tuples(steps_ns(window_ns, lateness_ns), people(wide=wide), st.sampled_from(sites))
    time, records = 0, []
    for step, user, site in draw(st.lists(one, max_size=most)):
        time += step
        records.append({"ts": time, "user": user, "site": site, "device": user[:1] + "-phone"})
    if broken and records:
        for number, column in draw(st.lists(st.tuples(st.integers(0, most), _BROKEN), max_size=4)):
            records[number % len(records)][column] = None
    return records


_BROKEN: Final = st.sampled_from(("ts", "user", "site"))


def as_table(records: Sequence[dict[str, Any]]) -> pa.Table:
    """Records of event_records as a table."""
    return pa.Table.from_pylist(list(records), schema=EVENT_SCHEMA)


def as_records(table: pa.Table, *, time: str = "ts") -> list[dict[str, Any]]:
    """A table as records whose times are nanoseconds."""
    times, usable = column_ns(table.column(time).combine_chunks())
    return [
        {**row, time: int(when) if is_usable else None}
        for row, when, is_usable in zip(table.to_pylist(), times, usable, strict=True)
    ]


@st.composite
def cuts(draw: st.DrawFn, rows: int) -> list[int]:
    """Draw where to cut a stream of `rows` rows into batches; a repeated position gives an empty batch."""
    inner = draw(st.lists(st.integers(0, rows), max_size=6))
    return [0, *sorted(inner), rows]
