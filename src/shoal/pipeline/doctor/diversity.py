"""The doctor's remarks about sensitive columns: whether l, entropy l and t can be kept, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.keys import new_secret
from shoal.decode.base import Decoded
from shoal.pipeline.doctor.remarks import Remark, listed
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import Policy
from shoal.policy.tuples import TupleSection

_DIVERSITY: Final = ("l", "entropy_l", "t")
_MOST_SUPPRESSED: Final = 0.1
"""The share of rows that diversity may cost without a remark."""


def diversity_remarks(method: TupleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    """Remarks about sensitive columns before the method is tried."""
    yield from _sensitive_remarks(method)
    yield from _too_few_remarks(method, batch)
    yield from _reference_remarks(method, batch)


def _sensitive_remarks(method: TupleSection) -> Iterator[Remark]:
    if method.sensitive and all(getattr(method, key) is None for key in _DIVERSITY):
        yield Remark(
            "look", "sensitive",
            f"{listed(list(method.sensitive))}: k people may all have the same value here, which then reveals it; "
            "require diversity with l, entropy_l or t",
        )  # fmt: skip


def _too_few_remarks(method: TupleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    """Warn if more different values are required than there are."""
    for key in ("l", "entropy_l"):
        asked = getattr(method, key) or 1
        for name in method.sensitive:
            seen = len(pc.unique(batch.column(name).drop_null()))
            if asked > seen:
                yield Remark(
                    "look", "sensitive",
                    f"column {name!r}: {seen:,} different value{'s' * (seen != 1)}, fewer than {key} = {asked:g}: "
                    f"nothing can be released before there are that many; lower {key}",
                )  # fmt: skip


def _reference_remarks(method: TupleSection, batch: pa.RecordBatch) -> Iterator[Remark]:
    """Warn of values without a declared share; shares are declared for texts."""
    declared = method.reference if isinstance(method.reference, Mapping) else {}
    for name, shares in declared.items():
        column = batch.column(name)
        is_text = pa.types.is_string(column.type)
        known = pc.is_in(column, value_set=pa.array([*shares, None], pa.string())) if is_text else None
        count = len(column) if known is None else int(np.count_nonzero(~known.to_numpy(zero_copy_only=False)))
        if count:
            kind = "" if is_text else f', whose type {column.type} is not text: read it as "string" in [source] types'
            yield Remark(
                "look", "reference",
                f"column {name!r}: {count:,} values have no share in reference and count as never expected{kind}",
            )  # fmt: skip


def diversity_cost_remarks(policy: Policy, method: TupleSection, tried: Decoded, suppressed: float) -> Iterator[Remark]:
    """Warn if diversity suppresses many rows, by trying the same rows without it."""
    if suppressed <= _MOST_SUPPRESSED:
        return
    free = replace(policy, anonymize=method.model_copy(update=dict.fromkeys(_DIVERSITY)))
    anonymizer = make_anonymizer(free, new_secret())
    anonymizer.bind(tried.batch.schema)
    anonymizer.push_batch(tried.batch, refused=tried.places)
    anonymizer.flush()
    without = anonymizer.counts["suppressed"] / anonymizer.counts["pushed"]
    if suppressed - without > _MOST_SUPPRESSED:
        yield Remark("look", "sensitive", _cost_words(method, tried.batch, suppressed, without))


def _cost_words(method: TupleSection, batch: pa.RecordBatch, suppressed: float, without: float) -> str:
    """What diversity costs, and what to change."""
    keys = [key for key in _DIVERSITY if getattr(method, key) is not None]
    even = {name: _most_frequent(batch.column(name)) for name in method.sensitive}
    name = max(even, key=even.__getitem__)
    return (
        f"{suppressed:.1%} of the rows would be suppressed, and {without:.1%} without {' and '.join(keys)}: "
        f"{even[name]:.0%} of the values of column {name!r} are the same; leave {keys[0]} out, or do not publish it"
    )


def _most_frequent(column: Any) -> float:
    """The share of the most frequent of the known values."""
    known = column.drop_null()
    counts = pc.value_counts(known).field("counts")
    return float(pc.max(counts).as_py() / len(known)) if len(known) else 0.0
