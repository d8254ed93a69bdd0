"""The doctor's remarks about columns that are published unchanged: how many people share their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import Decoded
from shoal.errors import ShoalError
from shoal.methods.release import RELEASED, SUPPRESSED, Release
from shoal.pipeline.checks.identifying import (
    Ints,
    Measured,
    doubt,
    first_rows,
    measure,
    measure_carried,
    measure_sensitive,
    numbered,
    person_columns,
    promised_crowd,
    refusal,
)
from shoal.pipeline.doctor.remarks import Remark
from shoal.pipeline.wiring import make_source
from shoal.policy import Policy
from shoal.policy.tuples import TupleSection
from shoal.policy.z import ZAnonymitySection

_MOST = 0.5
_LEAST_ROWS = 10


def unchanged_remarks(policy: Policy, batch: pa.RecordBatch | pa.Table) -> Iterator[Remark]:
    """Measure carried and sensitive columns by themselves."""
    carried = list(measure_carried(policy, batch))
    yield from (_carried(policy, found) for found in carried if found.is_identifying)
    yield from _together(policy, batch, "carry", carried, "the carried columns together: {}; carry fewer of them")
    sensitive = list(measure_sensitive(policy, batch))
    words = "the sensitive columns together: {}: anyone who knows several of one person finds the row"
    yield from _together(policy, batch, "sensitive", sensitive, words)
    for found in sensitive:
        if found.is_identifying:
            yield Remark(
                "look",
                "sensitive",
                f"column {found.name!r}: {found.words()}: anyone who knows such a value finds the row",
            )


def _carried(policy: Policy, found: Measured) -> Remark:
    links = " and links their pseudonyms" if policy.anonymize.PUBLISHES_PSEUDONYMS else ""
    if policy.stream.carry_identifying:
        words = f"{found.words()}: carried unchanged, it singles people out{links}, as carry_identifying = true accepts"
        return Remark("look", "carry", f"column {found.name!r}: {words}")
    if not found.has_evidence:
        return Remark("look", "carry", doubt(found))
    return Remark("wrong", "carry", refusal(found))


def _together(
    policy: Policy, batch: pa.RecordBatch | pa.Table, about: str, alone: Sequence[Measured], words: str
) -> Iterator[Remark]:
    """Several columns none of which is identifying alone."""
    if len(alone) < 2 or any(found.is_identifying for found in alone):
        return
    found = measure(
        about, [batch.column(one.name) for one in alone], [batch.column(name) for name in person_columns(policy)],
        promised_crowd(policy),
    )  # fmt: skip
    if found is not None and found.is_identifying:
        yield Remark("look", about, words.format(found.words()))


def file_remarks(policy: Policy) -> Iterator[Remark]:
    """The same for a person made of several columns, where the method is not tried."""
    if not policy.stream.carry:
        return
    try:
        sample = first_rows(policy, make_source(policy))
    except ShoalError:
        return  # reported where files are looked at
    if sample is not None:
        yield from (_carried(policy, found) for found in measure_carried(policy, sample) if found.is_identifying)


def released_remarks(policy: Policy, tried: Decoded, releases: Sequence[Release]) -> Iterator[Remark]:
    """Check the classes that the method would publish of the sample: carried columns, and people with many rows."""
    rows = pa.concat_tables([pa.Table.from_batches([release.rows]) for release in releases])
    persons = _persons(policy, tried, releases)
    if not rows.num_rows or len(persons[0]) != rows.num_rows:
        return
    classes = [rows.column(name) for name in _class_columns(policy)]
    yield from _divided(policy, rows, classes, persons)
    method = policy.anonymize
    if not isinstance(method, ZAnonymitySection) and getattr(method, "suppressed", "drop") == "drop":
        can_cap = isinstance(method, TupleSection) and method.missing != "paper"
        yield from share_remarks(numbered(classes), numbered(persons), can_cap=can_cap)


def _divided(policy: Policy, rows: pa.Table, classes: list[Any], persons: list[Any]) -> Iterator[Remark]:
    """Carried columns that divide classes."""
    for name in policy.stream.carry:
        found = measure(name, [*classes, rows.column(name)], persons, promised_crowd(policy))
        if found is not None and found.is_identifying:
            yield Remark(
                "look", "carry",
                f"column {name!r}: {found.rare_rows / found.rows:.1%} of published rows have a value that fewer than "
                f"{found.letter} = {found.k:,} people of their class have: anyone who knows it finds fewer people",
            )  # fmt: skip


def _class_columns(policy: Policy) -> tuple[str, ...]:
    method = policy.anonymize
    return tuple(method.columns if isinstance(method, ZAnonymitySection) else getattr(method, "quasi"))  # noqa: B009


def _persons(policy: Policy, tried: Decoded, releases: Sequence[Release]) -> list[pa.Array]:
    """The true person of every published row, from the trace."""
    shown = [RELEASED, SUPPRESSED] if getattr(policy.anonymize, "suppressed", "drop") == "root" else [RELEASED]
    traces = [release.trace for release in releases]
    marks = [pc.is_in(trace.column("verdict").cast(pa.string()), pa.array(shown)) for trace in traces]
    numbers = [trace.column("row").filter(mark) for trace, mark in zip(traces, marks, strict=True)]
    place = np.concatenate([np.asarray(one, np.int64) for one in numbers])
    people = tried.records(place)
    return [people.column(name) for name in person_columns(policy)]


def share_remarks(of_class: Ints, person: Ints, *, can_cap: bool) -> Iterator[Remark]:
    """Find classes in which one person has more than half of the rows; both arguments have a number per row, from 0."""
    sizes = np.bincount(of_class)
    width = int(person.max()) + 1
    pair, rows = np.unique(of_class * width + person, return_counts=True)
    share = rows / sizes[pair // width]
    owned = (share > _MOST) & (sizes[pair // width] >= _LEAST_ROWS)
    if owned.any():
        yield Remark(
            "look", "share",
            f"in {np.count_nonzero(owned):,} of {len(sizes):,} classes one person has more than half of the rows, up "
            f"to {share[owned].max():.0%}: k people protect little there{'; cap it with max_share' if can_cap else ''}",
        )  # fmt: skip
