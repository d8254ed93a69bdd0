"""Everybody's sets in the memory of this process: read, decided, and shown as they are published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from shoal.methods.base import BatchMethod
from shoal.methods.sets.local_result import LocalKmResult
from shoal.methods.sets.records import ReadRecords
from shoal.pipeline.sets.rare_items import Dropped, drop_rare_items
from shoal.pipeline.sets.reading import PeopleSets, SetReader
from shoal.pipeline.sets.release import bound_to, generalized, release_batches, release_order, trace_table
from shoal.policy import Policy
from shoal.policy.sets import SetSection
from shoal.sources.input_file import InputFile


@dataclass(slots=True)
class SetFacts:
    """What was read, in numbers."""

    rows: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Refused rows by reason."""
    people: int = 0
    """All people, also those without an item."""
    records: int = 0
    """People with an item."""
    longest: int = 0
    labels: tuple[str, ...] = ()
    """The items, in order of first appearance."""
    counts_rows: bool = False
    """Whether every row is a record, because nothing says whose it is."""
    near: str | None = None
    """What to say about items that the generalization lists in another spelling."""


class Shown(Protocol):
    """The sets as they are published."""

    @property
    def labels(self) -> Sequence[str]:
        """Labels of all blocks, in alphabetical order."""

    @property
    def used(self) -> int:
        """Number of labels that occur."""

    def __len__(self) -> int: ...

    def batches(self, schema: pa.Schema, separator: str | None) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the release."""

    def bound_to(self, certificate: Mapping[str, Any]) -> str:
        """The digest that binds a certificate to them."""

    def trace(self) -> pa.RecordBatch:
        """Private: where each person's set is."""


class People(Protocol):
    """Everybody's sets, in this process or elsewhere."""

    def read(
        self, files: Sequence[InputFile], letter: Callable[..., None], note: Callable[[SetFacts], None]
    ) -> SetFacts:
        """Read all files; refused rows become letters; `note` is called with what was read so far."""

    def drop_rare(self, least: int) -> tuple[SetFacts, Dropped]:
        """Leave out items that fewer than `least` people have."""

    def decide(self, method: BatchMethod, progress: Callable[[str, int, int], None]) -> Any:
        """Merge items until the guarantee holds: blocks, their error and a certificate."""

    def show(self, blocks: Mapping[str, Collection[str]], seed: int) -> Shown:
        """The sets with the labels of blocks instead of items."""


class LocalPeople:
    """Everybody's sets in the memory of this process."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._own: ReadRecords | None = None
        """The sets as published, where every record has labels of its own precision."""

    def read(
        self, files: Sequence[InputFile], letter: Callable[..., None], note: Callable[[SetFacts], None]
    ) -> SetFacts:
        reader, facts = set_reader(self._policy, letter), SetFacts()
        for batches in reader.files(files):
            for facts.rows in batches:
                facts.refused = reader.refused
                note(facts)
        self._sets = reader.result()
        facts.rows, facts.refused = reader.rows, reader.refused
        facts.near = reader.near.words(of="unknown items") if reader.near is not None else None
        facts.counts_rows = self._policy.stream.person is None or bool(reader.numbers_rows)
        self._facts = facts
        return self._counted()

    def _counted(self) -> SetFacts:
        facts, sets = self._facts, self._sets
        facts.people, facts.records = sets.people, len(sets)
        facts.longest, facts.labels = sets.longest, sets.records.labels
        return facts

    def drop_rare(self, least: int) -> tuple[SetFacts, Dropped]:
        self._sets, dropped = drop_rare_items(self._sets, least)
        return self._counted(), dropped

    def decide(self, method: BatchMethod, progress: Callable[[str, int, int], None]) -> Any:
        result = method.anonymize(self._sets.records, progress=progress)
        self._own = result.shown if isinstance(result, LocalKmResult) else None
        return result

    def show(self, blocks: Mapping[str, Collection[str]], seed: int) -> LocalShown:
        shown = self._own if self._own is not None else generalized(self._sets.records, blocks)
        return LocalShown(self._sets, shown, seed)


class LocalShown:
    """The sets as they are published, in the memory of this process."""

    def __init__(self, sets: PeopleSets, shown: ReadRecords, seed: int) -> None:
        self._sets, self._shown, self._order = sets, shown, release_order(shown, seed)
        self.labels, self.used = shown.labels, len(np.unique(shown.codes))

    def __len__(self) -> int:
        return len(self._shown)

    def batches(self, schema: pa.Schema, separator: str | None) -> Iterator[pa.RecordBatch]:
        return release_batches(self._shown, self._order, schema, separator)

    def bound_to(self, certificate: Mapping[str, Any]) -> str:
        return bound_to(self._shown, certificate)

    def trace(self) -> pa.RecordBatch:
        return trace_table(self._sets.people, self._sets.numbers, self._order)


def known_items(policy: Policy, method: SetSection) -> frozenset[str] | None:
    """The items that the generalization lists; None if it accepts any."""
    tree, neighbours = policy.hierarchies.get(method.item), method.generalize.neighbours
    if neighbours is not None:
        return frozenset(neighbours.names)
    if tree is None or tree.is_open:
        return None
    inner = set(tree.parents.tolist())
    return frozenset(label for node, label in enumerate(tree.labels) if node not in inner)


def set_reader(policy: Policy, letter: Any) -> SetReader:
    """The reader for the sets of a policy."""
    method = policy.anonymize
    assert isinstance(method, SetSection)
    return SetReader(policy, known=known_items(policy, method), where=method.generalize.way, letter=letter)
