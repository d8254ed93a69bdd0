"""UCI Adult: people of the 1994 census, prepared as in the FAST and K-VARP papers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.errors import InputError
from shoal.reproduce.data.streams import Stream, find_files, numbered, read_records
from shoal.reproduce.data.trees import ADULT_DOMAINS, ADULT_TREES

FILE: Final = "adult.data"
PUBLISHER: Final = "UCI Machine Learning Repository, Adult"
COLUMNS: Final = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "class",
)  # fmt: skip
FAST_QUASI: Final = (*ADULT_DOMAINS, "education", "marital-status", "workclass", "native-country")
"""The ten quasi-identifiers of the FAST paper, section 5."""
_MISSING: Final = "?"


def read_adult(folder: Path) -> Stream:
    """Read all rows without a missing value, in file order, each a different person."""
    (path,) = find_files(folder, [FILE], publisher=PUBLISHER)
    rows = []
    for line, fields in read_records(path):
        if len(fields) != len(COLUMNS):
            raise InputError(
                f"{path.name}, line {line}: {len(fields)} fields instead of {len(COLUMNS)}; download the file again"
            )
        if _MISSING not in fields:
            rows.append((line, fields))
    if not rows:
        raise InputError(f"{path.name}: no row without a missing value; download the file again")
    columns = {name: _column(path, name, at, rows) for at, name in enumerate(COLUMNS[:-1])}
    return adult_stream(columns, origin=f"{path.name} of the {PUBLISHER}")


def _column(path: Path, name: str, at: int, rows: list[tuple[int, list[str]]]) -> pa.Array:
    if name not in ADULT_DOMAINS:
        return pa.array([fields[at] for _, fields in rows], pa.string())
    numbers = []
    for line, fields in rows:
        if not fields[at].isdecimal():
            raise InputError(
                f"{path.name}, line {line}: column {name!r} is not a whole number; download the file again"
            )
        numbers.append(int(fields[at]))
    return pa.array(numbers, pa.int64())


def adult_stream(columns: dict[str, pa.Array], *, origin: str) -> Stream:
    """Return the columns of Adult as a stream with all fourteen quasi-identifiers."""
    table = numbered(columns, len(columns["age"]))
    return Stream("Adult", origin, table, domains=ADULT_DOMAINS, trees=ADULT_TREES)


def repeat_people(stream: Stream, *, share: float, seed: int) -> Stream:
    """Repeat a share of the rows at random places; a repeated row belongs to the same person."""
    random = np.random.default_rng(seed)
    rows = len(stream)
    again = np.sort(random.choice(rows, size=int(rows * share), replace=False))
    places = np.concatenate((np.arange(rows), random.uniform(0, rows, size=len(again))))
    order = np.concatenate((np.arange(rows), again))[np.argsort(places, kind="stable")]
    return stream.with_table(stream.table.take(pa.array(order)))


def fast_stream(stream: Stream, *, seed: int) -> Stream:
    """Return the FAST paper's data: ten quasi-identifiers, sensitive occupation, one row in ten repeated."""
    return repeat_people(stream.narrowed(FAST_QUASI, ["occupation"]), share=0.1, seed=seed)
