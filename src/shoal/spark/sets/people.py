"""Everybody's sets on executors: the driver searches, and asks the parts how many people have which items.

1. Every file is read by one task; the items of a person come together in one part.
2. The parts sort their sets; the driver gets the size and two hashes of each, for its number and the seeds.
3. One task for each part counts while the driver merges items and certifies.
4. The parts replace items by labels, and rows are put in the order of the release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from shoal.errors import InputError, PolicyError
from shoal.methods.base import BatchMethod
from shoal.methods.sets.certificate import Certificate
from shoal.methods.sets.data import Codes, Ints, fingerprint_of
from shoal.methods.sets.km_anonymity import decide_blocks
from shoal.methods.sets.partition import Partition
from shoal.methods.sets.result import check_enough
from shoal.methods.sets.search import Search
from shoal.pipeline.checks.near_labels import near_words
from shoal.pipeline.sets.people import SetFacts
from shoal.pipeline.sets.rare_items import Dropped
from shoal.pipeline.sets.release import labels_of, shuffled
from shoal.pipeline.wiring import make_decoder
from shoal.policy import Policy
from shoal.sources.input_file import InputFile
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import ABOUT, HEAD, unpacked
from shoal.spark.records.columns import PART, SHARD
from shoal.spark.records.frames import mapped, quoted
from shoal.spark.sets.channel import PartServers, RemoteParts
from shoal.spark.sets.part import SetPart
from shoal.spark.sets.reading import (
    DEALT,
    OF_A_FILE,
    PLACE,
    READ,
    SETS,
    SIZE,
    WORDS,
    DealPeople,
    GroupPeople,
    MapItems,
    ReadSetFiles,
    ReadSetRows,
    SetBlock,
    records_of,
)
from shoal.spark.sets.release import SparkSetRelease

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Heads:
    """About every set: its part, where its person first came, its size and its hashes. Part after part."""

    parts: Ints
    places: Ints
    sizes: Ints
    words: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]

    @classmethod
    def of(cls, sets: DataFrame, parts: int) -> Heads:
        """What the driver knows of the sets of a frame."""
        found = {row[SHARD]: unpacked(pa.scalar(bytes(row[HEAD]), pa.binary())) for row in _heads(sets)}
        heads = [found[part] for part in range(parts)]

        def column(name: str) -> npt.NDArray[Any]:
            return np.concatenate([np.asarray(head.column(name)) for head in heads])

        owner = np.repeat(np.arange(parts), [head.num_rows for head in heads])
        return cls(owner, column(PLACE), column(SIZE), (column(WORDS[0]), column(WORDS[1])))

    def by_content(self) -> Ints:
        """The sets in the order of sizes and hashes."""
        return np.lexsort((self.words[1], self.words[0], self.sizes)).astype(np.int64)

    def divided(self, values: npt.NDArray[Any], parts: int) -> list[npt.NDArray[Any]]:
        """Values of all sets, as a list by part."""
        return np.split(values, np.searchsorted(self.parts, np.arange(1, parts)))


def _heads(sets: DataFrame) -> Any:
    return sets.select(SHARD, HEAD).toLocalIterator()


@dataclass(frozen=True, slots=True)
class SetDecision:
    """Blocks of items, what they cost, and the certificate of the guarantee."""

    partition: Partition
    certificate: Certificate

    @property
    def error(self) -> float:
        """The information lost, measured by the chosen error."""
        return float(self.partition.error)

    @property
    def blocks(self) -> dict[str, tuple[str, ...]]:
        """The items of every block, by its label."""
        names, partition = self.partition.names, self.partition
        numbers = np.unique(partition.block_of).tolist()
        return {partition.label(block): tuple(names[item] for item in partition.members(block)) for block in numbers}


@dataclass(frozen=True, slots=True)
class LoadPart:
    """Makes a part of the rows of a partition."""

    kinds: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Callable[[Ints], SetPart]:
        blocks = [SetBlock.of(batch.slice(at, 1)) for batch in batches for at in range(batch.num_rows)]
        block = blocks[0]

        def make(numbers: Ints) -> SetPart:
            return SetPart(block.starts, block.items, numbers, self.kinds)

        return make


@dataclass
class SparkPeople:
    """Everybody's sets on executors; see :class:`shoal.pipeline.sets.people.People`."""

    session: SparkSession
    recipe: Recipe
    policy: Policy | None = None
    facts: SetFacts = field(default_factory=SetFacts)

    def __post_init__(self) -> None:
        self.parts = self.session.sparkContext.defaultParallelism
        """Parts are held by tasks that run at the same time."""

    # ---- reading

    def read(
        self, files: Sequence[InputFile], letter: Callable[..., None], note: Callable[[SetFacts], None]
    ) -> SetFacts:
        """Read all files; refused rows become letters."""
        assert self.policy is not None
        method: Any = self.policy.anonymize
        columns = (method.item,) if self.policy.stream.person is None else (self.policy.stream.person, method.item)
        with make_decoder(self.policy, files[0], columns) as decoder:
            types = decoder.types
            self.facts.counts_rows = self.policy.stream.person is None or decoder.numbers_rows
        work = ReadSetFiles(self.policy, tuple(files), types, self.recipe)
        read = mapped(self.session.range(0, len(files), 1, len(files)), work, READ).persist()
        return self._gather(read, letter)

    def read_frame(self, frame: DataFrame) -> SetFacts:
        """Read a DataFrame with a column of lists, or with people and items."""
        if len(frame.columns) not in (1, 2):
            raise InputError(
                "the DataFrame needs one column of lists, or a column of people and one of items; it has "
                f"{len(frame.columns)} columns, select these"
            )
        work = ReadSetRows(tuple(frame.columns), self.recipe)
        return self._gather(mapped(frame, work, READ).persist(), lambda *_: None)

    def _gather(self, read: DataFrame, letter: Callable[..., None]) -> SetFacts:
        """Number the labels, and bring the items of each person together."""
        labels: dict[str, int] = {}
        rows, near, has_people = {}, Counter[str](), False
        for part, text in sorted(tuple(row) for row in read.select(PART, ABOUT).collect()):
            about = orjson.loads(text)
            for label in about["labels"]:
                labels.setdefault(label, len(labels))
            rows[part], has_people = about["rows"], about["has_people"]
            self.facts.refused.update(about["refused"])
            near.update(about["near"])
            for one, kept in about["letters"]:
                letter(one, records_of(kept))
        numbers = self.session.sparkContext.broadcast(labels)
        dealt = mapped(read, DealPeople(numbers, self.parts), DEALT).repartitionById(self.parts, _shard())
        self._sets = mapped(dealt, GroupPeople(len(labels)), SETS).persist()
        heads = Heads.of(self._sets, self.parts)
        read.unpersist()
        self._places = np.sort(heads.places)
        self._starts = (
            None if has_people else {part: sum(rows[other] for other in rows if other < part) for part in rows}
        )
        facts = self.facts
        facts.rows, facts.labels = sum(rows.values()), tuple(labels)
        facts.people = len(self._places) if has_people else facts.rows
        facts.records, facts.longest = int((heads.sizes > 0).sum()), int(heads.sizes.max(initial=0))
        facts.near = near_words(near, of="unknown items")
        return facts

    def drop_rare(self, least: int) -> tuple[SetFacts, Dropped]:
        """Refuse: executors do not leave items out."""
        raise PolicyError("[anonymize] drop_rare: is not counted across executors; leave it out, or run on one machine")

    def numbers_of(self, places: Ints) -> Ints:
        """The numbers of people by where they first came."""
        if self._starts is None:
            return np.searchsorted(self._places, places)
        starts = np.array([self._starts.get(part, 0) for part in range(max(self._starts, default=0) + 1)])
        return starts[places // OF_A_FILE] + places % OF_A_FILE

    # ---- deciding

    def decide(self, method: BatchMethod, progress: Callable[[str, int, int], None] | None) -> SetDecision:
        """Merge items until the guarantee holds; the driver searches, the parts count."""
        from shoal.spark.sets.supports import DividedSets, DividedSupports

        settings: Any = method.settings
        check_enough(self.facts.records, settings)
        partition: Partition = method.partition_of(sorted(self.facts.labels))  # type: ignore[attr-defined]
        self._names = partition.names
        sets = self._mapped(self._sets, self._numbers_among(self._names), len(self._names)).persist()
        heads = Heads.of(sets, self.parts)
        order = heads.by_content()
        sizes = heads.sizes[order]
        words = tuple(word[order] for word in heads.words)
        known = DividedSets(self._names, np.bincount(sizes), fingerprint_of(words, sizes, self._names))
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))

        def search(parts: RemoteParts) -> SetDecision:
            parts.begin(heads.divided(numbers, self.parts))
            supports = DividedSupports(parts, known)
            fresh: Partition = method.partition_of(sorted(self.facts.labels))  # type: ignore[attr-defined]
            self._weights = supports.people()
            fresh.start(self._weights)
            return SetDecision(*decide_blocks(Search(known, fresh, settings, progress, supports=supports)))

        found: SetDecision = PartServers(sets, self.parts, self.recipe, LoadPart(len(self._names))).use(search)
        self._sets.unpersist()
        self._sets = sets
        return found

    def _numbers_among(self, names: Sequence[str]) -> Codes:
        number_of = {name: number for number, name in enumerate(names)}
        missing = sum(label not in number_of for label in self.facts.labels)
        if missing:
            raise InputError(
                f"{missing:,} items are not known to the generalization; add them to it, or leave them out"
            )
        return np.array([number_of[label] for label in self.facts.labels], np.int32)

    def _mapped(self, sets: DataFrame, number_of: Codes, kinds: int) -> DataFrame:
        return mapped(sets, MapItems(self.session.sparkContext.broadcast(number_of), kinds), SETS)

    # ---- publishing

    def show(
        self,
        blocks: Mapping[str, Collection[str]],
        seed: int,
        shuffle: Callable[[npt.NDArray[np.intp], int], Ints] = shuffled,
    ) -> SparkSetRelease:
        """The sets with the labels of blocks instead of items, in the order of the release."""
        labels, label_of = labels_of(self._names, blocks)
        shown = self._mapped(self._sets, label_of, len(labels)).persist()
        heads = Heads.of(shown, self.parts)
        by_place = np.argsort(heads.places, kind="stable")
        content = np.lexsort((heads.words[1][by_place], heads.words[0][by_place], heads.sizes[by_place]))
        order = shuffle(content, seed)
        positions = np.empty(len(order), np.int64)
        positions[by_place[order]] = np.arange(len(order))
        used = np.unique(label_of[self._weights > 0])
        numbers = self.numbers_of(heads.places[by_place])
        return SparkSetRelease(
            shown,
            heads.divided(positions, self.parts),
            labels,
            used.astype(np.int32),
            self.facts.people,
            numbers,
            order,
        )


def _shard() -> Any:
    from pyspark.sql import functions as f

    return f.col(quoted(SHARD))
