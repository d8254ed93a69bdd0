"""From rows to everybody's sets on executors: files or rows are read, then the items of each person come together."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.kernels.sets.records import fingerprint_rows
from shoal.methods.sets.data import Codes, Ints, gathered, offsets, sorted_sets
from shoal.methods.sets.records import ReadRecords, read_records
from shoal.methods.text_keys import key_words, person_keys
from shoal.pipeline.sets.people import set_reader
from shoal.policy import Policy
from shoal.sources.input_file import InputFile
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import ABOUT, BODY, HEAD, one_row, packed, unpacked
from shoal.spark.records.columns import KEYS, PART, SHARD

READ: Final = pa.schema([(PART, pa.int32()), (ABOUT, pa.string()), (BODY, pa.binary())])
"""What one task has read: labels, counts and letters as JSON, and the sets of people in codes of its labels."""
DEALT: Final = pa.schema([(SHARD, pa.int32()), (BODY, pa.binary())])
SETS: Final = pa.schema([(SHARD, pa.int32()), (HEAD, pa.binary()), (BODY, pa.binary())])
"""A part of everybody's sets: about each set where its person first came, its size and two hashes; and the items."""
PLACE, SIZE, WORDS, ITEMS = "place", "size", ("first", "second"), "items"
OF_A_FILE: Final = 1 << 40
"""A person's place is that of the file, times this, and the place among the people of the file."""
_PURPOSE: Final = "people of sets"
_RECORD: Final = re.compile(r"^record [\d,]+: ")


@dataclass(frozen=True, slots=True)
class SetBlock:
    """Some people's sets."""

    places: Ints
    starts: Ints
    items: Codes

    def __len__(self) -> int:
        return len(self.places)

    @classmethod
    def of(cls, row: pa.RecordBatch) -> SetBlock:
        """From a row of Spark."""
        head, body = unpacked(row.column(HEAD)[0]), unpacked(row.column(BODY)[0])
        sizes = np.asarray(head.column(SIZE))
        return cls(np.array(head.column(PLACE)), offsets(sizes), np.array(body.column(ITEMS)))

    def row(self, part: int) -> pa.RecordBatch:
        """As a row of Spark, its sets sorted by size and hashes."""
        count = len(self.places)
        first, second, sizes = np.empty(count, np.uint64), np.empty(count, np.uint64), np.diff(self.starts)
        fingerprint_rows(self.starts, self.items, first, second)
        order = np.lexsort((second, first, sizes)).astype(np.int64)
        _, items = gathered(self.starts, self.items, order)
        head = pa.record_batch({
            PLACE: self.places[order], SIZE: sizes[order], WORDS[0]: first[order], WORDS[1]: second[order],
        })  # fmt: skip
        return one_row(SETS, {SHARD: part, HEAD: packed(head), BODY: packed(pa.record_batch({ITEMS: items}))})


@dataclass(frozen=True, slots=True)
class ReadSetFiles:
    """Reads the sets of files on an executor, as one machine does."""

    policy: Policy
    files: tuple[InputFile, ...]
    types: dict[str, pa.DataType]
    recipe: Recipe

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield self._read(number)

    def _read(self, number: int) -> pa.RecordBatch:
        letters: list[tuple[dict[str, Any], str | None]] = []
        keeps = self.policy.dead_letters.keep_rows

        def letter(about: dict[str, Any], record: pa.RecordBatch | None) -> None:
            kept = packed(record)[0].as_py() if keeps and record is not None else None
            letters.append((about, None if kept is None else b64encode(kept).decode()))

        reader = set_reader(self.policy, letter)
        for reading in reader.files([self.files[number]], self.types):
            for _ in reading:
                pass
        sets = reader.result()
        about = {
            "rows": reader.rows, "refused": reader.refused, "near": reader.near.found if reader.near else {},
            "labels": sets.records.labels, "letters": letters, "has_people": reader.people is not None,
        }  # fmt: skip
        keys = None
        if reader.people is not None and not reader.numbers_rows:
            keys = person_keys(reader.people, key_words(self.recipe.secret().subkey(_PURPOSE)))[0]
        if reader.people is None:  # rows without an item belong to no person
            body = people_batch(number, sets.numbers, sets.records, None)
        else:
            body = people_batch(
                number, np.arange(sets.people), _with_nothing(sets.people, sets.numbers, sets.records), keys
            )
        return one_row(READ, {PART: number, ABOUT: orjson.dumps(about).decode(), BODY: packed(body)})


def _with_nothing(people: int, numbers: Ints, records: ReadRecords) -> ReadRecords:
    """The records of all people, empty ones for those without an item."""
    sizes = np.zeros(people, np.int64)
    sizes[numbers] = np.diff(records.starts)
    return ReadRecords(offsets(sizes), records.codes, records.labels)


def people_batch(file: int, numbers: Ints, records: ReadRecords, keys: Ints | None) -> pa.RecordBatch:
    """People with their keys, places and items; without keys every place is a person of its own."""
    places = file * OF_A_FILE + numbers
    if keys is None:
        keys = np.stack((places, np.zeros_like(places)), axis=1)
    items = pa.LargeListArray.from_arrays(pa.array(records.starts), pa.array(records.codes))
    return pa.record_batch({KEYS[0]: keys[:, 0], KEYS[1]: keys[:, 1], PLACE: places, ITEMS: items})


@dataclass(frozen=True, slots=True)
class ReadSetRows:
    """Reads the sets of a DataFrame on an executor: a column of lists, or people and items."""

    columns: tuple[str, ...]
    recipe: Recipe

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        part = context.partitionId()
        rows = list(batches)
        if not sum(batch.num_rows for batch in rows):
            return
        yield self._read(part, pa.Table.from_batches(rows).combine_chunks())

    def _read(self, part: int, table: pa.Table) -> pa.RecordBatch:
        *person, item = (table.column(name).combine_chunks() for name in self.columns)
        keys = None
        if person:
            keys, is_named = person_keys(person[0], key_words(self.recipe.secret().subkey(_PURPOSE)))
            if not is_named.all():
                count = int((~is_named).sum())
                raise InputError(
                    f"column {self.columns[0]!r}: {count:,} rows lack a person; fill it, or leave them out"
                )
        if not pa.types.is_list(item.type) and not pa.types.is_large_list(item.type):
            item = pa.LargeListArray.from_arrays(np.arange(len(item) + 1), item)
        try:
            records = read_records(item)
        except InputError as error:
            raise InputError(f"column {self.columns[-1]!r}: a record {_RECORD.sub('', str(error))}") from None
        about = {
            "rows": len(table),
            "refused": {},
            "near": {},
            "labels": records.labels,
            "letters": [],
            "has_people": bool(person),
        }
        body = people_batch(part, np.arange(len(table)), records, keys)
        return one_row(READ, {PART: part, ABOUT: orjson.dumps(about).decode(), BODY: packed(body)})


@dataclass(frozen=True, slots=True)
class DealPeople:
    """Sends the rows of a person to one part, with the numbers of labels among all labels."""

    labels: Any
    """Broadcast: the number of each label."""
    parts: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for about, body in zip(batch.column(ABOUT), batch.column(BODY), strict=True):
                people, own = unpacked(body), orjson.loads(about.as_py())["labels"]
                numbers = np.array([self.labels.value[label] for label in own], np.int32)
                lists = people.column(ITEMS)
                items = pa.LargeListArray.from_arrays(lists.offsets, pa.array(numbers[np.asarray(lists.values)]))
                people = people.set_column(people.schema.get_field_index(ITEMS), ITEMS, items)
                shards = (np.asarray(people.column(KEYS[0])).view(np.uint64) % np.uint64(self.parts)).astype(np.int32)
                for shard in range(self.parts):
                    own_rows = np.flatnonzero(shards == shard)
                    if len(own_rows):
                        yield one_row(DEALT, {SHARD: shard, BODY: packed(people.take(pa.array(own_rows)))})


@dataclass(frozen=True, slots=True)
class GroupPeople:
    """Brings the items of each person together; every item counts once."""

    kinds: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        rows = [unpacked(body) for batch in batches for body in batch.column(BODY)]
        yield self.grouped(rows).row(context.partitionId())

    def grouped(self, rows: Sequence[pa.RecordBatch]) -> SetBlock:
        """One set per person."""
        if not rows:
            return SetBlock(np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32))
        table = pa.Table.from_batches(rows).combine_chunks()
        keys = np.stack([np.asarray(table.column(name)) for name in KEYS])
        order = np.lexsort(keys)
        persons = np.zeros(len(order), np.int64)
        persons[order[1:]] = np.cumsum((np.diff(keys[:, order], axis=1) != 0).any(axis=0))
        count = int(persons.max(initial=-1)) + 1
        places = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(places, persons, np.asarray(table.column(PLACE)))
        lists = table.column(ITEMS).combine_chunks()
        owners = persons[np.asarray(pc.list_parent_indices(lists))]
        starts, items = owned(owners, np.asarray(pc.list_flatten(lists)), count, self.kinds)
        return SetBlock(places, starts, items)


def owned(owners: Ints, items: Codes, count: int, kinds: int) -> tuple[Ints, Codes]:
    """The items of each of `count` owners, ascending, each once."""
    by_owner = np.argsort(owners, kind="stable")
    starts = offsets(np.bincount(owners, minlength=count))
    return sorted_sets(starts, items[by_owner].astype(np.int32), kinds)


@dataclass(frozen=True, slots=True)
class MapItems:
    """Replaces the items of every set by other numbers, and leaves out empty sets."""

    number_of: Any
    """Broadcast: the new number of each item."""
    kinds: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at, part in enumerate(batch.column(SHARD).to_pylist()):
                yield self.mapped(SetBlock.of(batch.slice(at, 1))).row(part)

    def mapped(self, block: SetBlock) -> SetBlock:
        """The sets with other numbers."""
        has_items = np.diff(block.starts) > 0
        sizes = np.diff(block.starts)[has_items]
        starts, items = sorted_sets(offsets(sizes), self.number_of.value[block.items].astype(np.int32), self.kinds)
        return SetBlock(block.places[has_items], starts, items)


def records_of(kept: str | None) -> pa.RecordBatch | None:
    """The record of a letter."""
    return None if kept is None else unpacked(pa.scalar(b64decode(kept), pa.binary()))
