"""Published columns that kernels write, against values built one by one."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.methods.quasi_readers import reader_of
from shoal.methods.tuples import published_columns
from shoal.methods.tuples.decider.base import Decided
from shoal.methods.tuples.published_columns import ColumnKinds, PublishedColumns
from shoal.schema import Categorical, Numeric

LONG = "ä" * 40
QUASI = [
    Numeric("whole", low=-10, high=10),
    Categorical("few", hierarchy=Hierarchy.from_nested({"*": {"n": ["a", LONG], "s": ["c", "d" * 32]}})),
    Numeric("real", low=-1.5, high=2.5),
    Numeric("moment", low=0, high=100),
    Categorical("more", hierarchy=Hierarchy.from_nested({"any": ["x", "yy", "zzz"]})),
]
TYPES = [pa.int64(), pa.string(), pa.float64(), pa.timestamp("us", tz="UTC"), pa.string()]
READERS = [reader_of(role) for role in QUASI]
KINDS = [reader.output_type(kind) for reader, kind in zip(READERS, TYPES, strict=True)]
ROWS = 60


def decided(seed, *, hidden=0.0):
    """Some clusters, and rows that belong to them."""
    chance, wide, clusters = np.random.default_rng(seed), len(QUASI), 7
    ends = np.sort(chance.uniform(-1, 2, (2, clusters, wide)), axis=0)
    ends[:, 0, 2] = -0.0
    group_i = np.zeros((clusters, t.G_FIELDS + 3 * wide), dtype=np.int64)
    out = np.zeros((ROWS, t.OUT_MASKS + 1), dtype=np.int64)
    made = Decided(out, np.concatenate(ends, axis=1), group_i, np.zeros((clusters, 0, 0)))
    for a, reader in enumerate(READERS):
        made.node[:, a] = chance.integers(0, len(reader.labels), clusters) if len(reader.labels) else 0
    made.shown[:] = chance.random((clusters, wide)) >= hidden
    made.out[:, t.O_GROUP] = chance.integers(-1, clusters, ROWS)
    return made


def naive(made, a, is_missing):
    reader, found = READERS[a], []
    for row, group in enumerate(made.groups.tolist()):
        if group < 0:
            found.append(reader.publish_one(*reader.root(), KINDS[a]))
        elif made.shown[group, a] and not (is_missing is not None and is_missing[row, a]):
            given = float(made.low[group, a]), float(made.high[group, a]), int(made.node[group, a])
            found.append(reader.publish_one(*given, KINDS[a]))
        else:
            found.append(None)
    return found


@pytest.mark.parametrize("missing", [None, 0.0, 0.2])
@pytest.mark.parametrize("hidden", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_columns_are_what_single_rows_show(seed, hidden, missing):
    made = decided(seed, hidden=hidden)
    is_missing = None if missing is None else np.random.default_rng(seed).random((ROWS, len(QUASI))) < missing
    shown = PublishedColumns(ColumnKinds(READERS, KINDS), made, made.groups, is_missing)
    for attributes in (range(len(QUASI)), [4], [2, 0], []):
        found = shown.columns(attributes)
        assert set(found) == set(attributes)
        for a, column in found.items():
            column.validate(full=True)
            assert column.type == KINDS[a]
            assert column.to_pylist() == naive(made, a, is_missing)


def test_kernels_write_what_has_no_nulls(monkeypatch):
    """Only moments are built from clusters."""
    made, built = decided(1), []
    monkeypatch.setattr(PublishedColumns, "_built", lambda self, a: built.append(a))
    PublishedColumns(ColumnKinds(READERS, KINDS), made, made.groups, None).columns(range(len(QUASI)))
    assert built == [3]


def test_labels_too_long_for_one_column_are_left_to_arrow(monkeypatch):
    made = decided(1)
    monkeypatch.setattr(published_columns, "_MOST_BYTES", 100)
    monkeypatch.setattr(published_columns, "place_labels", None)
    found = PublishedColumns(ColumnKinds(READERS, KINDS), made, made.groups, None).columns([1])
    assert found[1].to_pylist() == naive(made, 1, None)


def test_zero_has_one_spelling():
    made = decided(1)
    made.out[:, t.O_GROUP] = 0
    column = PublishedColumns(ColumnKinds(READERS, KINDS), made, made.groups, None).columns([2])[2]
    assert all(math.copysign(1, one[end]) == 1 for one in column.to_pylist() for end in ("lo", "hi"))
