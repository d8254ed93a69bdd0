"""Frames as Arrow: which levels of an index are taken along, and under which name."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pytest

from shoal.errors import InputError
from shoal.frames.frame_input import read_frame

FRAME = pd.DataFrame({"age": [30, 40, 50, 60]})


@pytest.mark.parametrize(("index", "names"), [
    (None, []),
    (pd.Index([7, 3, 9, 8]), []),  # different ones, as the numbers of chosen rows are
    (pd.Index([7, 7, 9, 9]), ["index"]),
    (pd.Index([1, 2, 3, 4], name="patient"), ["patient"]),
    (pd.Index([1, 2, 3, 4], name="age"), []),  # the column goes before it
    (pd.MultiIndex.from_arrays([[1, 1, 2, 2], [1, 2, 1, 2]], names=["patient", "visit"]), ["patient", "visit"]),
    (pd.CategoricalIndex(["b", "b", "a", "a"], name=3), ["3"]),
])  # fmt: skip
def test_levels_that_may_say_who(index: Any, names: list[str]) -> None:
    found = read_frame(FRAME if index is None else FRAME.set_axis(index))
    table = found.table
    assert found.index == tuple(names)
    assert sorted(table.column_names) == sorted(["age", *names])
    assert table.column("age").to_pylist() == [30, 40, 50, 60]
    for place, name in enumerate(names):
        assert table.column(name).to_pylist() == list(index.get_level_values(place))


def test_other_libraries_have_no_index() -> None:
    assert read_frame(pl.from_pandas(FRAME)).index == ()


def test_a_level_of_several_types_is_named_without_a_value() -> None:
    with pytest.raises(InputError, match="'who': has values of several types") as caught:
        read_frame(FRAME.set_axis(pd.Index([1, "Jane Doe", 2, 3], name="who")))
    assert "Jane" not in str(caught.value)
