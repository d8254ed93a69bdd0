"""Columns of texts, whatever numbers their texts have: read, compare, stack; and match the rows of two relations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.counting import shared_codes
from shoal.auditor.reading.columns import Bools, Ints, plain
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Texts, place_of

_MANY: Final = 50_000


class ArrowTexts(Sequence[str]):
    """Very many texts, which Python would need several times their memory for."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, at: Any) -> Any:
        return self._column[at].as_py()

    def __iter__(self) -> Iterator[str]:
        return iter(self._column.to_pylist())

    def index(self, value: str, *_: Any) -> int:
        """The place of a text."""
        found: int = pc.index(self._column, pa.scalar(value, self._column.type)).as_py()
        return found

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and self.index(value) >= 0


def coded(column: Any) -> Texts:
    """Number the texts of a column in order of first appearance."""
    texts, (codes,) = shared_codes(column)
    return Texts(codes, texts)


def texts_of(rows: Rows, name: str) -> Texts:
    """Read a column as texts."""
    column = rows.text(name)
    if pa.types.is_dictionary(column.type):
        return coded(column)
    encoded = column.combine_chunks().dictionary_encode()
    codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), np.int64)
    many = len(encoded.dictionary) > _MANY
    return Texts(codes, ArrowTexts(encoded.dictionary) if many else encoded.dictionary.to_pylist())


def spelt_alike(column: Texts) -> Texts:
    """Give texts that mean the same number, moment or boolean one number, however formats spell them."""
    return column.mapped(map(plain, column.texts))


def shared_numbers(*columns: Texts) -> tuple[list[str], list[Ints]]:
    """Number the texts of some columns together; -1 is a missing text."""
    numbers: dict[str, int] = {}
    found = [
        np.array([*(numbers.setdefault(text, len(numbers)) for text in column.texts), -1], np.int64)[column.codes]
        for column in columns
    ]
    return list(numbers), found


def same_texts(left: Texts, right: Texts) -> Bools:
    """Mark rows in which two columns have the same text, or both none."""
    if left.texts is right.texts:
        return np.asarray(left.codes == right.codes, np.bool_)
    both = set(left.texts).intersection(right.texts)
    if not both:
        return np.asarray((left.codes < 0) & (right.codes < 0), np.bool_)
    numbers = {text: number for number, text in enumerate(both)}
    own, other = (
        np.array([*(numbers.get(text, none) for text in column.texts), -1], np.int64)[column.codes]
        for column, none in ((left, -2), (right, -3))
    )
    same: Bools = own == other
    return same


def same_values(left: Texts, right: Texts) -> Bools:
    """Mark rows in which two columns mean the same, or both have nothing; formats spell numbers in several ways."""
    same = same_texts(left, right)
    return same if same.all() else same_texts(spelt_alike(left), spelt_alike(right))


def stacked(parts: Iterable[Relation]) -> Relation:
    """The rows of some relations with the same columns, one after the other."""
    some = list(parts)
    if len(some) == 1:
        return some[0]
    return Relation({name: _stacked([part[name] for part in some]) for name in (some[0] if some else ())})


def _stacked(columns: list[Any]) -> Any:
    if not isinstance(columns[0], Texts):
        return np.concatenate(columns)
    if all(column.texts is columns[0].texts for column in columns):
        return Texts(np.concatenate([column.codes for column in columns]), columns[0].texts)
    texts, codes = shared_numbers(*columns)
    return Texts(np.concatenate(codes), texts)


def matched(left: Relation, right: Relation, by: str) -> Relation:
    """Every row of the left with the columns of the first row of the right that is equal in one column.

    Where there is none, numbers are -1, fractions NaN, marks False and texts missing.
    """
    wanted, known = left[by], right[by]
    if np.array_equal(wanted, known) and (known[1:] > known[:-1]).all():
        return left.having(**{name: right[name] for name in right if name != by})
    place = place_of(wanted, known)
    return left.having(**{name: _taken(right[name], place) for name in right if name != by})


def _taken(column: Any, place: Ints) -> Any:
    if isinstance(column, Texts):
        return Texts(np.append(column.codes, -1)[place], column.texts)
    missing = {"b": False, "i": -1, "f": np.nan}[column.dtype.kind]
    return np.append(column, np.array([missing], column.dtype))[place]  # place -1 picks the last


def united(left: Relation, right: Relation) -> Relation:
    """The rows of both, one after the other; what one of them does not have is missing in its rows."""
    columns = {name: left[name] for name in left} | {name: right[name] for name in right if name not in left}
    parts = [
        Relation({name: part[name] if name in part else _missing(like, len(part)) for name, like in columns.items()})
        for part in (left, right)
    ]
    return stacked(parts)


def _missing(like: Any, length: int) -> Any:
    empty = like.take(np.zeros(0, np.int64)) if isinstance(like, Texts) else like[:0]
    return _taken(empty, np.full(length, -1))


def kept(rows: Relation, marked: Bools) -> Relation:
    """The marked rows; not copied if these are all."""
    return rows if marked.all() else rows.take(marked)


def only_columns(names: tuple[str, ...], rows: Relation) -> Relation:
    """Some columns of rows; for places that change tables."""
    return rows.only(*names)
