"""Read a release or a truth of sets: list columns, joined labels, text lines, or a row for every (person, item)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.counting import shared_codes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import TEXT, Bools, Ints, as_text
from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows
from shoal.errors import PolicyError

_LISTS = pa.large_list(TEXT)
_PLAIN = frozenset({str, type(None)})


@dataclass(frozen=True, slots=True)
class Entries:
    """Every label of every row: its row, and its number (-1: null)."""

    owner: Ints
    label: Ints
    labels: list[str]


def read_rows(what: Any, expected: Format, *, name: str, column: str, person: str | None = None) -> Rows:
    """Read files, tables, or sets in memory as rows."""
    table = _in_memory(what, column, person)
    return read(what if table is None else table, name=name, expected=expected)


def _in_memory(what: Any, column: str, person: str | None) -> Any:
    if isinstance(getattr(what, "blocks", None), Mapping):  # a result: its records in memory
        what = list(what.records)
    if isinstance(what, pa.Array | pa.ChunkedArray):
        return pa.table({column: what})
    if not isinstance(what, list | tuple) or not what:
        return None
    if all(isinstance(record, set | frozenset | list) for record in what):
        return pa.table({column: _from_python(what)})
    if all(isinstance(row, tuple) and len(row) == 2 for row in what):
        persons, items = zip(*what, strict=True)
        return pa.table({person or "person": as_text(list(persons)), column: as_text(list(items))})
    return None


def separator_of(policy: Policy, section: str) -> str | None:
    """Return the separator of labels in a text; None: a tab if the text has one, else blanks."""
    found = policy.section(section).get(
        "separator", "|" if section == "sink" and policy.section("sink").get("kind") == "csv" else None
    )
    if found is not None and (not isinstance(found, str) or not found):
        raise PolicyError(f"[{section}] separator: must be text of at least one character")
    return found


def is_listed(piece: Any) -> bool:
    """Return whether every value of a column is a list."""
    if isinstance(piece, list):
        return all(value is None or isinstance(value, list) for value in piece)
    return _is_list_type(piece.type)


def _is_list_type(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def unfit_rows(rows: Rows, column: str) -> Bools:
    """Mark rows of a text file whose value is neither an item nor, if other rows have lists, a list of items."""
    unfit = np.zeros(len(rows), np.bool_)
    start = 0
    for piece, (_, broken) in zip(rows.pieces(column), rows.parts, strict=True):
        if isinstance(piece, list):
            fits = _is_set_of_items if any(isinstance(value, list) for value in piece) else _can_be_item
            unfit[start : start + len(piece)] = [value is not None and not fits(value) for value in piece]
        start += len(broken)
    return unfit


def nested_rows(rows: Rows, column: str) -> Bools:
    """Mark rows of a text file that contain a list or an object."""
    found: list[Any] = [np.zeros(0, np.bool_)]
    for piece, (_, broken) in zip(rows.pieces(column), rows.parts, strict=True):
        values = piece if isinstance(piece, list) else [None] * len(broken)
        found.append(np.array([isinstance(value, list | dict) for value in values], np.bool_))
    return np.concatenate(found)


def read_entries(
    rows: Rows, column: str, separator: str | None, *, one_item: bool = False, trims: bool = False
) -> Entries:
    """Read the labels of a column: a list per row, a text to split, or (``one_item``) a single label.

    Null is an empty record: CSV cannot distinguish them.
    """
    owners, values, start = [], [], 0
    for piece in rows.pieces(column):
        lists = _as_lists(piece, separator, one_item=one_item, trims=trims)
        owners.append(np.asarray(pc.list_parent_indices(lists).to_numpy(), np.int64) + start)
        values.append(pa.chunked_array([pc.list_flatten(lists)], TEXT))
        start += len(lists)
    if not owners:
        nothing = np.zeros(0, np.int64)
        return Entries(nothing, nothing, [])
    labels, codes = shared_codes(*values)
    return Entries(np.concatenate(owners), np.concatenate(codes), labels)


def _as_lists(piece: Any, separator: str | None, *, one_item: bool, trims: bool) -> Any:
    if isinstance(piece, list):
        if any(isinstance(value, list) for value in piece):
            return _from_python(piece)
        piece = as_text([value if _can_be_item(value) else None for value in piece])
    whole = piece.combine_chunks() if isinstance(piece, pa.ChunkedArray) else piece
    if isinstance(whole, pa.ChunkedArray):  # no chunk at all
        whole = pa.array([], whole.type)
    if _is_list_type(whole.type):
        return _texts_in_lists(whole)
    texts = as_text(whole)
    if one_item:
        return pa.LargeListArray.from_arrays(np.arange(len(texts) + 1), texts)
    return _split(texts, separator, trims=trims)


def _from_python(records: Iterable[Any]) -> Any:
    """Turn collections of labels into Arrow lists; anything else is empty."""
    held = [list(record) if _is_set_of_items(record) else [] for record in records]
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in held], dtype=np.int64)])
    return pa.LargeListArray.from_arrays(pa.array(offsets), as_text(list(chain.from_iterable(held))))


def _is_set_of_items(record: Any) -> bool:
    if not isinstance(record, list | tuple | set | frozenset):
        return False
    return _PLAIN.issuperset(map(type, record)) or all(map(_can_be_item, record))


def _can_be_item(value: Any) -> bool:
    """Return whether a value is text or a 64-bit whole number: no other value of a text file can be an item."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**64
    return is_whole or value is None or isinstance(value, str)


def _texts_in_lists(lists: Any) -> Any:
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False), np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    mask = lists.is_null() if lists.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), as_text(lists.flatten()), mask=mask)


def _split(texts: Any, separator: str | None, *, trims: bool) -> Any:
    if separator is None and pc.any(pc.match_substring(texts, "\t")).as_py():
        separator = "\t"
    parts = pc.utf8_split_whitespace(texts) if separator is None else pc.split_pattern(texts, separator)
    lists = parts.cast(_LISTS)
    labels = pc.utf8_trim_whitespace(pc.list_flatten(lists)) if trims else pc.list_flatten(lists)
    # Skip empty items.
    filled = pc.not_equal(labels, "")
    kept = np.asarray(pc.list_parent_indices(lists).filter(filled).to_numpy(), np.int64)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(kept, minlength=len(lists)))])
    mask = lists.is_null() if lists.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), labels.filter(filled), mask=mask)
