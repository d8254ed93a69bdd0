"""Measures how identifying the columns are that are published unchanged, on the first rows of the input.

A column is *identifying* when more than 5% of the rows have a value that fewer than k (z) different people have. The
rows must come from at least 20·k people: with fewer, ordinary columns look identifying too, and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import PolicyError
from shoal.policy import Policy
from shoal.policy.z import ZAnonymitySection
from shoal.sources.base import Source

SAMPLE_ROWS: Final = 100_000
MOST_RARE_ROWS: Final = 0.05
LEAST_PEOPLE: Final = 20
"""Times k."""
REMEDY: Final = (
    "leave it out, make it coarser, make it a quasi-identifier, or accept it with carry_identifying = true in [stream]"
)
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measured:
    """People per value of one column, or of several together."""

    name: str
    letter: str
    k: int
    rows: int
    people: int
    rare_rows: int
    """Rows whose value fewer than k people have."""
    values: int
    lone_values: int
    """Values that one person has."""

    @property
    def is_identifying(self) -> bool:
        """Whether too many rows have a value that too few people have."""
        return self.rare_rows > MOST_RARE_ROWS * self.rows

    @property
    def has_evidence(self) -> bool:
        """Whether there are enough people to judge by."""
        return self.people >= LEAST_PEOPLE * self.k

    def words(self) -> str:
        """The result as text, without values."""
        return (
            f"{self.rare_rows / self.rows:.1%} of {self.rows:,} rows have a value that fewer than "
            f"{self.letter} = {self.k:,} people have, {self.lone_values / self.values:.1%} of its values belong to "
            "one person"
        )


def promised_crowd(policy: Policy) -> tuple[str, int]:
    """The parameter (k or z) and the number of people that the method promises."""
    method = policy.anonymize
    if isinstance(method, ZAnonymitySection):
        return "z", min(column.z for column in method.columns.values())
    return "k", int(getattr(method, "k"))  # noqa: B009 - every other method on rows has one


def person_columns(policy: Policy) -> tuple[str, ...]:
    """The columns that identify the person: several in a sanitization process with maid."""
    maid = policy.sanitize.maid if policy.sanitize is not None else ()
    return maid or (str(policy.stream.person),)


def measure(name: str, columns: list[Any], persons: list[Any], crowd: tuple[str, int]) -> Measured | None:
    """Count people per value; rows without a person are ignored; None if there are no others."""
    known = np.zeros(len(persons[0]), np.bool_)
    for column in persons:
        known |= column.is_valid().to_numpy(zero_copy_only=False)
    person, value = numbered(persons)[known], numbered(columns)[known]
    if not len(person):
        return None
    width = int(person.max()) + 1
    people = np.bincount(np.unique(value * width + person) // width)
    letter, k = crowd
    return Measured(
        name=name, letter=letter, k=k, rows=len(person), people=len(np.unique(person)),
        rare_rows=int((people[value] < k).sum()), values=int((people > 0).sum()), lone_values=int((people == 1).sum()),
    )  # fmt: skip


def refuse_identifying(policy: Policy, batch: pa.RecordBatch | pa.Table) -> list[str]:
    """Raise PolicyError when a carried column is identifying; return warnings if there are too few people to judge."""
    measured = [found for found in measure_carried(policy, batch) if found.is_identifying]
    problems = [f"[stream] carry: {refusal(found)}" for found in measured if found.has_evidence]
    if problems:
        raise PolicyError(problems)
    return [f"[stream] carry: {doubt(found)}" for found in measured]


def refusal(found: Measured) -> str:
    """Why a policy cannot run, and what to do."""
    return f"column {found.name!r}: {found.words()}: published unchanged, it singles people out; {REMEDY}"


def doubt(found: Measured) -> str:
    """Why a column that is not refused deserves a look."""
    return (
        f"column {found.name!r}: {found.words()}; {found.people:,} people are too few to judge by "
        f"({LEAST_PEOPLE * found.k:,} are needed), so it is not refused"
    )


class CarryCheck:
    """Refuses identifying carried columns before a run publishes anything."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._is_due = bool(policy.stream.carry) and not policy.stream.carry_identifying

    def before_run(self, source: Source) -> list[str]:
        """Measure the first rows of a source that can be read twice; return warnings, raise when refused."""
        sample = first_rows(self._policy, source) if self._is_due else None
        if sample is None:
            return []
        self._is_due = False
        return refuse_identifying(self._policy, sample)

    def on_first_block(self, batch: pa.RecordBatch) -> list[str]:
        """Measure the first block of a pipe, unless the source was measured; return warnings, raise when refused."""
        if not self._is_due:
            return []
        self._is_due = False
        found = refuse_identifying(self._policy, batch)
        people = next((found.people for found in measure_carried(self._policy, batch)), 0)
        letter, k = promised_crowd(self._policy)
        if people < LEAST_PEOPLE * k:
            found.append(
                f"[stream] carry: it was not measured whether the columns single people out: the first block of the "
                f"pipe has {people:,} people, but {LEAST_PEOPLE} times {letter} are needed; "
                "shoal audit measures the release"
            )
        return found


def measure_carried(policy: Policy, batch: pa.RecordBatch | pa.Table) -> Iterator[Measured]:
    """Measure every carried column."""
    yield from _measured(policy, batch, policy.stream.carry)


def measure_sensitive(policy: Policy, batch: pa.RecordBatch | pa.Table) -> Iterator[Measured]:
    """Measure every sensitive column that is published unchanged."""
    generalized = getattr(policy.anonymize, "quasi", {})
    names = (name for name in getattr(policy.anonymize, "sensitive", ()) if name not in generalized)
    yield from _measured(policy, batch, tuple(names))


def _measured(policy: Policy, batch: pa.RecordBatch | pa.Table, names: tuple[str, ...]) -> Iterator[Measured]:
    persons = [batch.column(name) for name in person_columns(policy)]
    for name in names:
        found = measure(name, [batch.column(name)], persons, promised_crowd(policy))
        if found is not None:
            yield found


def first_rows(policy: Policy, source: Source) -> pa.Table | None:
    """The person and the carried columns of the first rows; None if the source can be read only once."""
    return source.first_rows(tuple(dict.fromkeys((*person_columns(policy), *policy.stream.carry))), SAMPLE_ROWS)


def _flat(columns: list[Any]) -> Iterator[Any]:
    """The columns as arrays; a published range is a struct, and becomes one array for each end."""
    for column in columns:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        yield from whole.flatten() if pa.types.is_struct(whole.type) else (whole,)


def _encoded(column: Any) -> Any:
    try:
        return column.dictionary_encode()
    except pa.ArrowNotImplementedError:  # lists and what holds them
        texts = (None if value is None else repr(value) for value in column.to_pylist())
        return pa.array(texts, pa.string()).dictionary_encode()


def numbered(columns: list[Any]) -> Ints:
    """Number the combinations of values from 0; null is a value."""
    combined = np.zeros(len(columns[0]), np.int64)
    for column in _flat(columns):
        encoded = _encoded(column)
        codes = np.asarray(pc.fill_null(encoded.indices, len(encoded.dictionary)), np.int64)
        combined = np.unique(combined * (len(encoded.dictionary) + 1) + codes, return_inverse=True)[1]
    return combined
