"""One value, one spelling: rows with equal values that are written differently can be distinguished."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.rows import Rows

_SENTENCE = "A row spells a value differently from other rows; this distinguishes it."


def check_spelling(
    release: Rows, truth: Rows | None, generalized: Mapping[str, Ints], unchanged: Mapping[str, Ints], notes: Notes
) -> None:
    """Check that a column spells every value in one way; columns are given with the code of every value (-1: null).

    A column that is published unchanged may use the spellings of the truth.
    """
    odd = np.zeros(len(release), np.bool_)
    for name, code in generalized.items():
        odd |= odd_spellings(code, shared_codes(spellings_of(release, name))[1][0])
        odd |= odd_spellings(code, are_text(release, name))
    for name, code in unchanged.items() if truth is not None else ():
        assert truth is not None
        _, (known, shown) = shared_codes(spellings_of(truth, name), spellings_of(release, name))
        odd |= odd_spellings(code, shown) & ~np.isin(shown, known)
        if not _are_mixed(truth, name):
            odd |= odd_spellings(code, are_text(release, name))
    notes.violation("spelling", _SENTENCE, rows=odd)


def odd_spellings(code: Ints, spelling: Ints) -> Bools:
    """Mark rows that spell their value differently from most rows with this value; null has no spelling."""
    odd = np.zeros(len(code), np.bool_)
    rows = np.flatnonzero((code >= 0) & (spelling >= 0))
    width = int(spelling.max(initial=0)) + 1
    pair, turn, count = np.unique(code[rows] * width + spelling[rows], return_inverse=True, return_counts=True)
    value = pair // width
    if len(np.unique(value)) == len(pair):
        return odd
    order = np.lexsort((-count, value))
    usual = np.zeros(len(pair), np.bool_)
    usual[order[np.append(True, np.diff(value[order]) != 0)]] = True
    odd[rows] = ~usual[turn]
    return odd


def spellings_of(rows: Rows, name: str) -> Any:
    """Return a column's exact spelling, as text."""
    chunks: list[Any] = []
    for piece in rows.pieces(name):
        chunks += _chunks(piece)
    return pa.chunked_array(chunks, TEXT)


def are_text(rows: Rows, name: str) -> Ints:
    """Return which JSON values are text (1) and which are not (0); other formats have one type per column (0)."""
    found = [
        np.array([isinstance(value, str) for value in piece] if isinstance(piece, list) else [False] * len(piece))
        for piece in rows.pieces(name)
    ]
    return np.concatenate([np.zeros(0), *found]).astype(np.int64)


def _are_mixed(rows: Rows, name: str) -> bool:
    """Return whether a JSON column mixes text and other values."""
    filled = (value for piece in rows.pieces(name) if isinstance(piece, list) for value in piece if value is not None)
    return len({isinstance(value, str) for value in filled}) > 1


def _chunks(piece: Any) -> Iterable[Any]:
    if isinstance(piece, list):
        spelt = (value if value is None or isinstance(value, str) else json.dumps(value) for value in piece)
        return [pa.array(spelt, TEXT)]
    return [_written(chunk) for chunk in getattr(piece, "chunks", [piece])]


def _written(column: Any) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _written(column.dictionary_decode())
    if pa.types.is_struct(kind):
        fields = [
            pc.fill_null(_written(pc.struct_field(column, at)), pa.scalar("null", TEXT))
            for at in range(kind.num_fields)
        ]
        joined = pc.binary_join_element_wise(*fields, pa.scalar("|", TEXT)) if len(fields) > 1 else fields[0]
        return pc.if_else(column.is_valid(), joined, pa.scalar(None, TEXT))
    if pa.types.is_nested(kind):
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], TEXT)
    try:
        return column.cast(TEXT)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes that are not text
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], TEXT)
