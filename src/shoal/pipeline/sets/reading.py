"""Rows become one set of items per person: everything is read before anything is decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import Decoded, Decoder, Refused
from shoal.errors import InputError
from shoal.hierarchies.tree import is_label
from shoal.methods.sets.records import ReadRecords
from shoal.pipeline.checks.near_labels import NearLabels
from shoal.pipeline.wiring import make_decoder
from shoal.policy import Policy
from shoal.policy.sets import SetSection
from shoal.schema import ROWS
from shoal.sources.input_file import InputFile

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Letter = Callable[[dict[str, Any], pa.RecordBatch | None], None]
_SETTLE_AFTER: Final = 64
_LISTS: Final = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_fixed_size_list)
_NO_PERSON: Final = "missing person identifier; fill the column"
_NO_ITEM: Final = "missing item; fill the column, or leave the row out"
_EMPTY_ITEM: Final = "an item is null, empty or blank; the rest of the row was used, take the item out or fill it in"


@dataclass(frozen=True, slots=True)
class PeopleSets:
    """The set of every person who has an item, in the form a batch method takes, so that nothing is parsed again."""

    people: int
    """All people in order of first appearance (or all rows), also those without an item."""
    numbers: Ints
    """Which of them have an item: those that have a record."""
    records: ReadRecords

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def longest(self) -> int:
        """Items of the largest set."""
        return int(np.diff(self.records.starts).max(initial=0))


def grouped(owners: Ints, items: Codes, labels: tuple[str, ...]) -> tuple[Ints, ReadRecords]:
    """Join the items of each owner, every item once, in order; also return the owners."""
    wide = max(len(labels), 1)
    both = np.unique(owners * wide + items)
    numbers, starts = np.unique(both // wide, return_index=True)
    ends: Ints = np.append(starts, len(both)).astype(np.int64)
    return numbers.astype(np.int64), ReadRecords(ends, (both % wide).astype(np.int32), labels)


class Numbering:
    """Texts numbered in the order in which they first come; of each only the number is kept."""

    def __init__(self) -> None:
        self.names: Any = pa.array([], pa.string())
        self._fresh: list[Any] = []
        self._numbers: list[Codes] = []

    def add(self, texts: Any) -> None:
        """Number some more texts."""
        self._fresh.append(texts.dictionary_encode())
        if len(self._fresh) >= _SETTLE_AFTER:
            self._settle()

    def numbers(self) -> Codes:
        """The number of every text, in order."""
        self._settle()
        return np.concatenate([np.empty(0, np.int32), *self._numbers])

    def _settle(self) -> None:
        known = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), self.names)
        known, *fresh = pa.chunked_array([known, *self._fresh]).unify_dictionaries().chunks
        self._numbers += [part.indices.to_numpy(zero_copy_only=False) for part in fresh]
        self.names, self._fresh = known.dictionary, []


class SetReader:
    """Takes rows apart into people and items; rows that cannot be used become letters, counted by reason.

    Parameters
    ----------
    known
        The items there are; None where any item is one.
    where
        What lists them, to be named in letters.
    letter
        Takes a letter, with the row it is about.
    """

    def __init__(self, policy: Policy, *, known: Collection[str] | None, where: str, letter: Letter) -> None:
        assert isinstance(policy.anonymize, SetSection)
        self.policy = policy
        self.person, self.item = policy.stream.person, policy.anonymize.item
        self.columns = (self.item,) if self.person is None else (self.person, self.item)
        self.rows = 0
        self.refused: Counter[str] = Counter()
        self._known = None if known is None else pa.array(sorted(known), pa.string())
        self.near = None if known is None else NearLabels(known)
        self._unknown = f"an item is not in the {where}; add it there, or its set is published without it"
        self.letter = letter
        self.numbers_rows: bool | None = None
        """Whether ``person = "row"`` numbers the rows; None where the policy does not say so, or nothing was read."""
        self._people, self._items = Numbering(), Numbering()
        self._owners: list[Ints] = []
        self._people_rows = 0

    def files(self, files: Sequence[InputFile], types: dict[str, pa.DataType] | None = None) -> Iterator[Iterator[int]]:
        """For every file what reads it, a batch a step, giving the rows read so far.

        `types` are the types of columns, by default as the first file has them.
        """
        for file in files:
            with make_decoder(self.policy, file, self.columns, types, first_row=self.rows) as decoder:
                self._check_types(decoder.schema, file.name)
                if self.policy.stream.person == ROWS:
                    self.numbers_rows = decoder.numbers_rows
                types = decoder.types
                yield self._batches(decoder, file)

    def _batches(self, decoder: Decoder, file: InputFile) -> Iterator[int]:
        first = 0
        for decoded in decoder.batches():
            self._take(decoded, file.name, first)
            first += decoded.rows
            yield self.rows

    @property
    def people(self) -> Any:
        """Everybody's identifier, in order of first appearance; None if every row is a person's set."""
        if self.person is None:
            return None
        self._people.numbers()
        return self._people.names

    def result(self) -> PeopleSets:
        """Everybody's set."""
        owners: Ints = np.concatenate([np.empty(0, np.int64), *self._owners])
        items = self._items.numbers()
        records = self.rows
        if self.person is not None:
            people = self._people.numbers()
            owners, records = people[owners].astype(np.int64), len(self._people.names)
        return PeopleSets(records, *grouped(owners, items, tuple(self._items.names.to_pylist())))

    # ---- what columns must be

    def _check_types(self, schema: pa.Schema, file: str) -> None:
        kind, where = schema.field(self.item).type, f"{file}: column {self.item!r}"
        single = kind.value_type if _is_list(kind) else kind
        if not (_is_text(single) or pa.types.is_integer(single) or pa.types.is_null(single)):
            raise InputError(f"{where} has type {kind}; items must be texts or whole numbers, or lists of them")
        separator = self.policy.file_source.separator
        if _is_list(kind) and separator is not None:
            raise InputError(f"{where} holds lists, which need no separator; leave [source] separator out")
        if not _is_list(kind) and separator is None and self.person is None:
            raise InputError(
                f"{where} holds single items; name who they are of in [stream] person, or say in [source] separator "
                "what stands between items"
            )
        if self.person is not None and pa.types.is_nested(schema.field(self.person).type):
            raise InputError(
                f"{file}: column {self.person!r} holds lists or objects; name a column of person identifiers"
            )

    # ---- one batch

    def _take(self, decoded: Decoded, file: str, first: int) -> None:
        batch = decoded.batch
        page = _Page(self, decoded, file, first)
        usable = np.ones(batch.num_rows, np.bool_)
        owner_of = decoded.kept + self.rows  # every row is a person's set
        if self.person is not None:
            column = batch.column(self.person)
            people = column.cast(pa.string())
            unnamed = _is_nothing(people) | _is_nan(column)
            page.refuse(unnamed, "null-person", self.person, _NO_PERSON)
            usable = ~unnamed
            self._people.add(people.filter(pa.array(usable)))
            owner_of = np.cumsum(usable) - 1 + self._people_rows  # its place among the rows with a person
        owners, texts = self._entries(batch.column(self.item), usable)
        owners, texts = self._good(page, usable, owners, texts)
        self._owners.append(owner_of[owners])
        self._items.add(texts)
        self._people_rows += int(usable.sum())
        self.rows += decoded.rows
        page.write()

    def _entries(self, column: Any, usable: npt.NDArray[np.bool_]) -> tuple[Ints, Any]:
        """Every item of every usable row: its row and its text."""
        if _is_list(column.type):
            lists = column.cast(pa.large_list(pa.string()))
        elif self.policy.file_source.separator is not None:
            lists = pc.split_pattern(column.cast(pa.string()), self.policy.file_source.separator)
        else:
            rows: Ints = np.flatnonzero(usable & column.is_valid().to_numpy(zero_copy_only=False))
            return rows, column.take(pa.array(rows)).cast(pa.string())
        owners = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        texts = pc.list_flatten(lists)
        if self.policy.file_source.trims:
            texts = pc.utf8_trim_whitespace(texts)
        keep = usable[owners]
        if not _is_list(column.type):  # skip empty items between two separators
            keep &= pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
        return owners[keep], texts.filter(pa.array(keep))

    def _good(self, page: _Page, usable: npt.NDArray[np.bool_], owners: Ints, texts: Any) -> tuple[Ints, Any]:
        """The entries that are items; rows with others get a letter each."""
        has_any = np.zeros(len(usable), np.bool_)
        has_any[owners] = True
        nothing = _is_blank(texts)
        is_alone = not _is_list(page.decoded.batch.column(self.item).type) and self.policy.file_source.separator is None
        page.refuse(usable & ~has_any, "null-item", self.item, _NO_ITEM)
        page.refuse(_rows(owners[nothing], len(usable)), "null-item", self.item, _NO_ITEM if is_alone else _EMPTY_ITEM)
        good = ~nothing
        if self._known is not None:
            unknown = good & ~pc.is_in(texts, value_set=self._known).to_numpy(zero_copy_only=False)
            page.refuse(_rows(owners[unknown], len(usable)), "unknown-item", self.item, self._unknown)
            if self.near is not None and unknown.any():
                self.near.count(texts.filter(pa.array(unknown)))
            good &= ~unknown
        return owners[good], texts.filter(pa.array(good))


class _Page:
    """The letters of one batch, written in the order of its rows."""

    def __init__(self, reader: SetReader, decoded: Decoded, file: str, first: int) -> None:
        self.decoded = decoded
        self._reader, self._file, self._first = reader, file, first
        self._found: list[tuple[Refused, bool]] = [(one, False) for one in decoded.refused]
        if decoded.refused:
            reader.refused["unreadable"] += len(decoded.refused)

    def refuse(self, rows: npt.NDArray[np.bool_], reason: str, column: str, sentence: str) -> None:
        """Add a letter for each of these decoded rows."""
        places = self.decoded.kept[rows].tolist()
        self._found += [(Refused(row, column, sentence), True) for row in places]
        if places:
            self._reader.refused[reason] += len(places)

    def write(self) -> None:
        """Write the letters."""
        lines = self.decoded.lines
        for one, is_readable in sorted(self._found, key=lambda found: found[0].row):
            letter: dict[str, Any] = {"file": self._file, "row": self._first + one.row + 1}
            if lines is not None:
                letter["line"] = int(lines[one.row])
            record = self.decoded.records([one.row]) if is_readable else None
            self._reader.letter({**letter, "column": one.column, "reason": one.reason}, record)


def _rows(owners: Ints, count: int) -> npt.NDArray[np.bool_]:
    rows = np.zeros(count, np.bool_)
    rows[owners] = True
    return rows


def _is_nothing(texts: Any) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(texts, ""), True).to_numpy(zero_copy_only=False)  # noqa: FBT003
    return found.copy()


def _is_nan(column: Any) -> npt.NDArray[np.bool_]:
    if not pa.types.is_floating(column.type):
        return np.zeros(len(column), np.bool_)
    found: npt.NDArray[np.bool_] = pc.fill_null(pc.is_nan(column), False).to_numpy(zero_copy_only=False)  # noqa: FBT003
    return found


def _is_blank(texts: Any) -> npt.NDArray[np.bool_]:
    """Null, or only white space: such labels cannot be distinguished."""
    different = texts.dictionary_encode()
    is_blank = pa.array([not is_label(text) for text in different.dictionary.to_pylist()], pa.bool_())
    found: npt.NDArray[np.bool_] = pc.fill_null(is_blank.take(different.indices), True).to_numpy(zero_copy_only=False)  # noqa: FBT003
    return found.copy()


def _is_list(kind: pa.DataType) -> bool:
    return any(is_list(kind) for is_list in _LISTS)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
