"""A small table of people, as a frame of each library, with a column more or another one."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

PEOPLE = 60
TABLE = pa.table({
    "id": list(range(PEOPLE)), "age": [20 + row % 30 for row in range(PEOPLE)], "sex": ["f", "m"] * 30,
    "ill": ["flu", "gout", "burn"] * 20,
})  # fmt: skip
LIBRARIES = ("pandas", "polars", "pyarrow")


def people(library: str, **columns: Any) -> Any:
    """The people with these columns, each an Arrow array or a list."""
    table = TABLE
    for name, values in columns.items():
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, [values])
        else:
            table = table.append_column(name, [values])
    return in_library(library, table)


def in_library(library: str, table: pa.Table) -> Any:
    if library == "pandas":
        return table.to_pandas()
    return pl.from_arrow(table) if library == "polars" else table


def with_series(**columns: Any) -> pd.DataFrame:
    """A frame of pandas with columns of its own types."""
    return TABLE.to_pandas().assign(**columns)
