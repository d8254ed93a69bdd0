"""Values repeated by index, compared with Arrow's take."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.methods.repeated_values import repeated

NUMBERS = pa.array([5, -1, 2**62, 0])
MOMENTS = pa.array([0, 1, 2, 3]).cast(pa.timestamp("us", tz="UTC"))
FLOATS = pa.array([0.5, -1.0, float("inf"), 0.0])
TEXTS = pa.array(["", "Any country", "ä" * 40, "x"])
RANGES = pa.StructArray.from_arrays([NUMBERS, FLOATS], ["lo", "hi"])


@pytest.mark.parametrize(
    "values",
    [
        NUMBERS, MOMENTS, FLOATS, TEXTS, RANGES,
        pa.array(["a", None, "c", "d"]), pa.array([1, None, 3, 4]), pa.array([True, False, True, True]),
        pa.array([1, 2, 3, 4], pa.int16()), pa.array(["", "", "", ""]),
        pa.StructArray.from_arrays([NUMBERS, FLOATS], ["lo", "hi"], mask=pa.array([False, True, False, False])),
        pa.StructArray.from_arrays([NUMBERS, pa.array([1, None, 3, 4])], ["lo", "hi"]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("rows", [[], [3], [1, 1, 0, 3, 2, 1], [2] * 50])
def test_like_arrow(values, rows):
    chosen = np.array(rows, dtype=np.int64)
    for known, indices in ((values, chosen), (values.slice(1), chosen[chosen > 0] - 1)):
        found = repeated(known, indices)
        found.validate(full=True)
        assert found.type == known.type
        assert found.equals(known.take(pa.array(indices)))


def test_texts_too_long_for_one_column_are_left_to_arrow(monkeypatch):
    monkeypatch.setattr("shoal.methods.repeated_values._MOST_BYTES", 100)
    monkeypatch.setattr("shoal.methods.repeated_values.copy_texts", None)
    assert repeated(TEXTS, np.array([2, 2])).to_pylist() == ["ä" * 40] * 2
