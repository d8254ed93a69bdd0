"""The doctor's remarks for methods on sets: people, items, unusable rows, and how many people stand out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.errors import InputError, PolicyError
from shoal.observe.observer import Observer
from shoal.pipeline.doctor.remarks import Level, Remark, files_remark, row_remark
from shoal.pipeline.sets.people import set_reader
from shoal.pipeline.sets.reading import PeopleSets, SetReader
from shoal.pipeline.sets.release import DEFAULT_SEPARATOR, check_separator
from shoal.pipeline.warmup import UNIQUENESS, must_compile
from shoal.pipeline.wiring import make_files
from shoal.policy import Policy
from shoal.policy.sets import SetSection

_UNIQUENESS_SAMPLES: Final = 2_000
_OFTEN: Final = 0.05
_MANY_REFUSED: Final = 0.5
_REASONS: Final = {
    "unreadable": "cannot be read",
    "null-person": "have no person",
    "null-item": "have no item, or an empty one",
    "unknown-item": "have an item that the generalization does not list; their sets would be published without it",
}


def set_remarks(policy: Policy, rows: int, observer: Observer) -> Iterator[Remark]:
    """Remarks about a sample of sets; raises InputError if the source cannot be read."""
    method = policy.anonymize
    assert isinstance(method, SetSection)
    if any(place.is_standard for place in policy.file_source.path):
        yield Remark("look", "source", "standard input cannot be read before the run; no sample was taken")
        return
    files = make_files(policy)
    yield files_remark(len(files))
    first: list[dict[str, Any]] = []

    def keep_first(letter: dict[str, Any], _: pa.RecordBatch | None) -> None:
        if not first:
            first.append(letter)

    reader = set_reader(policy, keep_first)
    try:
        is_all = _sample(reader, files, rows)
    except InputError as error:
        yield Remark("wrong", "source", str(error))
        return
    if not reader.rows:
        yield Remark("look", "sample", "there are no rows")
        return
    yield Remark("good", "sample", f"{'all' if is_all else 'the first'} {reader.rows:,} rows were read")
    if reader.numbers_rows is not None:
        yield row_remark(numbers_rows=reader.numbers_rows)
    yield from _refused_remarks(reader, first)
    sets = reader.result()
    if len(sets) and must_compile(UNIQUENESS):
        observer.compiling()
    yield from _set_remarks(policy, method, sets, is_all=is_all)


def _sample(reader: SetReader, files: list[Any], rows: int) -> bool:
    """Read the first rows; check only the columns of the remaining files."""
    for batches in reader.files(files):
        while reader.rows < rows and next(batches, None) is not None:
            pass
    return reader.rows < rows


def _refused_remarks(reader: SetReader, first: list[dict[str, Any]]) -> Iterator[Remark]:
    for reason, count in reader.refused.items():
        is_most = count > _MANY_REFUSED * reader.rows
        hint = "; is this the right column, and the right file?" if is_most else ""
        level: Level = "wrong" if is_most else "look"
        yield Remark(level, "rows", f"{count:,} of {reader.rows:,} rows {_REASONS[reason]}{hint}")
    if reader.near is not None and (words := reader.near.words(of="unknown items")):
        yield Remark("look", "rows", words)
    for letter in first:
        column = f"column {letter['column']!r}: " if letter["column"] else ""
        yield Remark("look", "rows", f"the first such: row {letter['row']:,}, {column}{letter['reason']}")


def _set_remarks(policy: Policy, method: SetSection, sets: PeopleSets, *, is_all: bool) -> Iterator[Remark]:
    most = max(method.k) if isinstance(method.k, list) else method.k
    seen = f"{len(sets):,} records with {len(sets.records.labels):,} different items, k = {most:,}"
    if len(sets) >= most:
        yield Remark("good", "records", seen)
    elif is_all:
        yield Remark("wrong", "records", f"{seen}: too few to hide anybody; choose a smaller k, or add records")
    else:
        yield Remark("look", "records", f"{seen}: too few to hide anyone in the sample; the whole input needs more")
    if not len(sets):
        return
    if sets.longest < method.m:
        most = f"no record in the sample has more than {sets.longest} items"
        yield Remark("look", "sizes", f"{most}; a larger m, such as {method.m}, promises no more")
    if policy.file_sink.kind == "csv":
        yield from _separator_remarks(policy, method, sets)
    yield from _recoding_remarks(policy, method)
    yield from _rare_remarks(method, sets)
    yield from _uniqueness_remarks(method, sets)


def _recoding_remarks(policy: Policy, method: SetSection) -> Iterator[Remark]:
    """What local recoding needs: levels, and a trace for the auditor."""
    tree = policy.hierarchies.get(method.item)
    if method.recoding != "local":
        return
    if tree is not None and tree.is_open:
        yield Remark("wrong", "recoding", '"local" needs a hierarchy that lists its items; this one accepts any')
    elif policy.trace is None:
        yield Remark(
            "look",
            "recoding",
            "labels differ from record to record: without a [trace] the audit cannot check that they are true",
        )


def _rare_remarks(method: SetSection, sets: PeopleSets) -> Iterator[Remark]:
    """Items that too few people have: what dropping them loses, or would lose."""
    single = method.k[0] if isinstance(method.k, list) else method.k
    least = method.drop_rare or single
    people = np.bincount(sets.records.codes, minlength=len(sets.records.labels))
    is_rare = people < least
    if not is_rare.any():
        return
    share = f"{people[is_rare].sum() / people.sum():.1%} of what people have"
    rare = f"{int(is_rare.sum()):,} of {len(people):,} items have fewer than {least} people ({share})"
    if method.drop_rare is not None:
        yield Remark("good", "items", f"{rare} and are dropped")
    elif method.generalize.way in ("hierarchy", "balanced"):
        yield Remark("good", "items", f"{rare} and are merged with others; drop_rare = {least} would drop them instead")


def _separator_remarks(policy: Policy, method: SetSection, sets: PeopleSets) -> Iterator[Remark]:
    tree, neighbours = policy.hierarchies.get(method.item), method.generalize.neighbours
    known = tree.labels if tree is not None else neighbours.names if neighbours is not None else ()
    try:
        check_separator({*sets.records.labels, *known}, policy.file_sink.separator or DEFAULT_SEPARATOR)
    except PolicyError as error:
        yield Remark("wrong", "sink", str(error))


def _uniqueness_remarks(method: SetSection, sets: PeopleSets) -> Iterator[Remark]:
    """How many people an attacker who knows some of their items would find in the raw data."""
    from shoal.methods.sets.uniqueness import uniqueness  # compiles kernels, so import it only if needed

    size = min(method.m, sets.longest)
    found = uniqueness(sets.records, size, adversary="person", samples=_UNIQUENESS_SAMPLES)
    share = f"{found.share:.0%} of the sets of {size} items of a random person belong to this person alone"
    yield Remark("look" if found.share >= _OFTEN else "good", "uniqueness", f"in the raw data about {share}")
