"""Read people's sets from any supported input into one list of labels per record."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.hierarchies.tree import is_label
from shoal.methods.sets.data import Codes, Ints, offsets

_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_fixed_size_list)
_SUPPORTED = (
    "give an iterable of sets, an Arrow list column, a path to a file with one record a line, or (person, item) rows"
)


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Records in input order, as codes of labels."""

    starts: Ints
    codes: Codes
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def numbered(self, names: Sequence[str], *, known: npt.NDArray[np.bool_] | None = None) -> Codes:
        """Numbers of the items among the names; raises InputError (with counts, never a value) for unknown items."""
        number_of = {name: number for number, name in enumerate(names)}
        numbers = np.array([number_of.get(label, -1) for label in self.labels], np.int32)
        if known is not None and len(numbers):
            numbers[~known[numbers] & (numbers >= 0)] = -1
        items: Codes = numbers[self.codes] if len(self.codes) else np.empty(0, np.int32)
        missing = np.flatnonzero(items < 0)
        if len(missing):
            rows = np.unique(np.searchsorted(self.starts, missing, side="right") - 1)
            why, remedy = (
                ("that the generalization does not know", "add them to it")
                if known is None
                else ("that no record had when blocks were fitted", "fit again")
            )
            raise InputError(
                f"record {rows[0] + 1}: has an item {why} ({len(missing):,} such items in {len(rows):,} records); "
                f"{remedy}, or leave them out"
            )
        return items


def read_records(given: Any) -> ReadRecords:
    """Records from any supported input; raises InputError with the number of an empty record."""
    read = _read(given)
    empty = np.flatnonzero(np.diff(read.starts) == 0)
    if len(empty):
        raise InputError(f"record {empty[0] + 1}: is empty ({len(empty):,} such records); leave them out")
    return read


def _read(given: Any) -> ReadRecords:
    if isinstance(given, ReadRecords):
        return given
    if isinstance(given, (str, PathLike)):
        return _from_lists(_lines(Path(given)))
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return _from_lists(given)
    if hasattr(given, "__arrow_c_stream__") or isinstance(given, (pa.Table, pa.RecordBatch)):
        return _from_arrow(given)
    if isinstance(given, Iterable) and not isinstance(given, (bytes, dict)):
        return _from_python(list(given))
    raise InputError(f"records: {_SUPPORTED}")


def _lines(path: Path) -> pa.Array:
    """Records of a text file: items separated by spaces or tabs; an empty line is an empty record."""
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"{path.name}: cannot be read as UTF-8 text ({type(error).__name__})") from None
    lines = text.split("\n")
    if lines and not lines[-1].strip():
        lines.pop()
    stripped = pc.utf8_trim_whitespace(pa.array(lines, pa.large_string()))
    split = pc.utf8_split_whitespace(stripped)
    nothing = pc.equal(stripped, "")
    return pc.if_else(nothing, pa.scalar([], split.type), split) if pc.any(nothing).as_py() else split


# ---- Arrow


def _from_arrow(given: Any) -> ReadRecords:
    try:
        table = pa.table(given)
    except pa.ArrowInvalid:  # a column, not a table
        return _from_lists(pa.chunked_array(given))
    if table.num_columns == 1:
        return _from_lists(table.column(0))
    if table.num_columns == 2:
        persons, items = table.columns
        return _from_rows(*_one_item_a_row(persons, items)) if _is_list(items.type) else _from_rows(persons, items)
    raise InputError(f"records: a table of {table.num_columns} columns; give the list column, or person and item alone")


def _is_list(kind: pa.DataType) -> bool:
    return any(is_list(kind) for is_list in _LISTS)


def _one_item_a_row(persons: pa.ChunkedArray, lists: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    whole = lists.combine_chunks()
    row = _first_null(whole)
    if row is not None:
        raise InputError(f"row {row + 1}: the list of items is null; leave the row out")
    owners = persons.combine_chunks().take(pc.list_parent_indices(whole))
    return pa.chunked_array([owners]), pa.chunked_array([pc.list_flatten(whole)])


def _from_lists(column: pa.Array | pa.ChunkedArray) -> ReadRecords:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not _is_list(whole.type):
        raise InputError(f"records: a column of {whole.type} holds no sets; {_SUPPORTED}")
    row = _first_null(whole)
    if row is not None:
        raise InputError(f"record {row + 1}: is null; leave it out")
    starts = offsets(pc.list_value_length(whole).to_numpy(zero_copy_only=False))
    return ReadRecords(starts, *_encoded(pc.list_flatten(whole), starts))


def _encoded(values: pa.Array, starts: Ints, what: str = "record") -> tuple[Codes, tuple[str, ...]]:
    """Codes and labels of items, without labels that no record has."""
    at = _first_null(values)
    if at is not None:
        raise InputError(f"record {_row_of(at, starts)}: has an item that is null; leave it out")
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if values.type == pa.string_view():
        values = values.cast(pa.large_string())
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    kind = encoded.dictionary.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise InputError(f"records: items are {kind}; items must be texts or whole numbers")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    is_used = np.zeros(len(encoded.dictionary), np.bool_)
    is_used[codes] = True
    codes = (np.cumsum(is_used) - 1).astype(np.int32)[codes]
    labels = tuple(str(label) for label in encoded.dictionary.filter(pa.array(is_used)).to_pylist())
    blank = np.array([not is_label(label) for label in labels], np.bool_)
    if blank.any():
        row = _row_of(np.flatnonzero(blank[codes])[0], starts)
        raise InputError(f"{what} {row}: has an item that is empty or blank; leave it out")
    return codes, labels


def _row_of(position: int | np.integer[Any], starts: Ints) -> int:
    """Number of the record that an item belongs to, from 1."""
    return int(np.searchsorted(starts, position, side="right"))


def _first_null(column: pa.Array | pa.ChunkedArray) -> int | None:
    """Position of the first null; it may be in a dictionary, which `null_count` ignores."""
    if not column.null_count and not pa.types.is_dictionary(column.type):
        return None
    positions = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
    return int(positions[0]) if len(positions) else None


def _from_rows(persons: pa.ChunkedArray, items: pa.ChunkedArray) -> ReadRecords:
    """One record per person, in order of first appearance: all of a person's rows are one set."""
    for name, column in (("person", persons), ("item", items)):
        row = _first_null(column)
        if row is not None:
            raise InputError(f"row {row + 1}: the {name} is null; leave the row out")
    whole = persons.combine_chunks()
    encoded = (whole.cast(pa.large_string()) if whole.type == pa.string_view() else whole).dictionary_encode()
    kinds = encoded.dictionary.dictionary_encode().indices.to_numpy(zero_copy_only=False)  # it may repeat a person
    people = kinds[encoded.indices.to_numpy(zero_copy_only=False)].astype(np.int64)
    codes, labels = _encoded(items.combine_chunks(), np.arange(len(people) + 1), "row")
    _, first, numbers = np.unique(people, return_index=True, return_inverse=True)
    ranks = np.argsort(np.argsort(first))[numbers]  # a dictionary may list people in any order
    order = np.argsort(ranks, kind="stable")
    return ReadRecords(offsets(np.bincount(ranks)), codes[order], labels)


# ---- Python


def _from_python(records: list[Any]) -> ReadRecords:
    if records and all(isinstance(record, tuple) and len(record) == 2 for record in records):
        persons, items = zip(*records, strict=True)
        return _from_rows(pa.chunked_array([_texts(persons, "person")]), pa.chunked_array([_texts(items, "item")]))
    if records and all(_is_pair(record) for record in records):
        raise InputError(
            "records: every one is a list of two; give tuples if they are (person, item) rows, sets if they are sets"
        )
    lists = []
    for number, record in enumerate(records):
        if isinstance(record, (str, bytes, Mapping)) or not isinstance(record, Iterable):
            raise InputError(f"record {number + 1}: not a set of items; {_SUPPORTED}")
        lists.append(list(record))
    starts = offsets([len(one) for one in lists])
    flat = list(chain.from_iterable(lists))
    wrong = next((at for at, item in enumerate(flat) if not _is_item(item)), None)
    if wrong is not None:
        raise InputError(f"record {_row_of(wrong, starts)}: has an item that is neither text nor a whole number")
    return ReadRecords(starts, *_encoded(_as_text(flat), starts))


def _is_pair(record: object) -> bool:
    """Whether it could be a row as well as a set: a person's name must never be published as an item."""
    return isinstance(record, (list, np.ndarray)) and len(record) == 2


def _is_item(item: object) -> bool:
    return isinstance(item, (str, int, np.integer)) and not isinstance(item, bool)


def _texts(values: Sequence[Any], name: str) -> pa.Array:
    for row, value in enumerate(values):
        if not _is_item(value):
            raise InputError(f"row {row + 1}: the {name} is neither text nor a whole number")
    return _as_text(values)


def _as_text(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array([str(value) for value in values], pa.large_string())
    except UnicodeEncodeError:
        raise InputError("records: a text holds half a character (a lone surrogate) and cannot be written") from None
