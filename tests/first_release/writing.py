"""Tables to files, byte for byte the same every time."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tests.first_release.expected import Reading


def write(path: Path, table: Mapping | list, reading: Reading) -> None:
    if reading.format == "parquet":
        parquet.write_table(pa.table({name: _array(values) for name, values in table.items()}), path)
    else:
        path.write_bytes(_text(table, reading).encode(reading.encoding))


def _array(values: Iterable | pa.Array) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(list(values))


def _text(table: Mapping | list, reading: Reading) -> str:
    if isinstance(table, list) and (not table or isinstance(table[0], str)):
        return "".join(f"{line}\n" for line in table)
    names, rows = _rows(table)
    if reading.format == "jsonl":
        return "".join(json.dumps(_present(names, row), ensure_ascii=False) + "\n" for row in rows)
    return _csv(names, rows, reading)


def _rows(table: Mapping | list) -> tuple[list[str], list[tuple]]:
    pairs = list(table.items()) if isinstance(table, Mapping) else table
    return [name for name, _ in pairs], list(zip(*(list(values) for _, values in pairs), strict=True))


def _present(names: list[str], row: tuple) -> dict:
    return {name: value for name, value in zip(names, row, strict=True) if value is not None}


def _csv(names: list[str], rows: list[tuple], reading: Reading) -> str:
    out = io.StringIO()
    style = csv.QUOTE_NONNUMERIC if reading.is_quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=reading.separator, quoting=style, lineterminator="\n")
    if reading.has_header:
        writer.writerow(names[1:] if reading.is_header_short else names)
    for row in rows:
        writer.writerow([_cell(value, reading) for value in row])
    return out.getvalue()


def _cell(value: object, reading: Reading) -> object:
    """A float with the decimal sign of the file; None as nothing."""
    if isinstance(value, float) and reading.decimal != ".":
        return repr(value).replace(".", reading.decimal)
    return "" if value is None else value
