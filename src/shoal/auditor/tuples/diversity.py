"""Check how diverse the sensitive values of every class and cluster are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.numbers import Floats
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.tables import Rows
from shoal.auditor.tuples.classes import Classes
from shoal.auditor.tuples.distances import (
    References,
    Sets,
    distinct,
    effective,
    gather,
    growing,
    growth_sizes,
    ordered,
    refer,
    variation,
)
from shoal.auditor.tuples.meaning import meaning
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import Recorded

_ROUNDING: Final = 1e-7
_NUMBERS: Final = ("int64", "float64")
_NUMBER = re.compile(r"-?[0-9]+e-?[0-9]+")
_ENDLESS: Final = ("'inf", "'-inf")
"""How shoal.auditor.tuples.meaning spells numbers that are infinite."""
_MOST_ENTRIES: Final = 200_000_000
_ENTRIES_AT_ONCE: Final = 4_000_000
_SENTENCES: Final = {
    "below-l": "A class or cluster has fewer different sensitive values than promised.",
    "below-entropy-l": "The sensitive values of a class or cluster are less even than promised.",
    "above-t": "The sensitive values of a class or cluster are further from the reference than promised.",
}


@dataclass(frozen=True, slots=True)
class Sensitive:
    """One sensitive column: values as numbers, in their order where they have one; null is the first."""

    name: str
    number_of: dict[str, int]
    is_ordered: bool
    true: Ints
    shown: Ints
    kind: str | None
    """The type that the policy declares for the column."""

    @property
    def width(self) -> int:
        """How many numbers there are."""
        return len(self.number_of) + 1

    def number(self, text: str | None) -> int:
        """Return the number of a value as any side spells it."""
        meant = None if text is None else meaning(text, self.kind)
        return 0 if meant is None else self.number_of[meant]


@dataclass(frozen=True, slots=True)
class Grown:
    """The clusters as they grew: for judged released rows the cluster and how often it had been reused."""

    row: Ints
    cluster: Ints
    step: Ints
    count: int
    """How many clusters there are."""

    def rows_of(self, clusters: Ints) -> Ints:
        """Return the released rows of some clusters."""
        named = np.zeros(self.count, np.bool_)
        named[clusters] = True
        return self.row[named[self.cluster]]


def read_sensitive(
    promise: TuplePromise, release: Rows, truth: Rows, recorded: Recorded | None
) -> tuple[Sensitive, ...]:
    """Read the sensitive columns of both sides and all values they are held against."""
    further: dict[str, set[str]] = {name: set(promise.diversity.declared.get(name, ())) for name in promise.sensitive}
    if recorded is not None:
        for column, value in zip(recorded.column, recorded.value, strict=True):
            if value is not None and column in further:
                further[column].add(value)
    return tuple(_sensitive(name, promise, release, truth, further[name]) for name in promise.sensitive)


def _sensitive(name: str, promise: TuplePromise, release: Rows, truth: Rows, further: set[str]) -> Sensitive:
    kind = promise.declared_types.get(name)
    texts, (true, shown) = shared_codes(truth.text(name), release.text(name))
    meant = [meaning(text, kind) for text in texts]
    known = {meaning(text, kind) for text in further} - {None}
    every = list(dict.fromkeys(text for text in (*meant, *sorted(map(str, known))) if text is not None))
    numbers = [_exact(text) for text in every]
    says_numbers = kind in _NUMBERS or any(map(_is_numeric, (*truth.pieces(name), *release.pieces(name))))
    known_numbers = [number for number in numbers if number is not None]
    is_ordered = says_numbers and len(known_numbers) == len(every)
    order = sorted(range(len(every)), key=known_numbers.__getitem__) if is_ordered else list(range(len(every)))
    place = np.empty(len(every) + 1, np.int64)
    place[order] = 1 + np.arange(len(every))
    place[-1] = 0  # null
    number_of = {text: int(place[at]) for at, text in enumerate(every)}
    of_text = np.array([*(0 if text is None else number_of[text] for text in meant), 0], np.int64)  # -1 picks the last
    return Sensitive(name, number_of, is_ordered, of_text[true], of_text[shown], kind)


def _exact(meant: str) -> Decimal | None:
    """Return the number that a meaning says, with all its digits; None where it says none."""
    if meant in _ENDLESS:
        return Decimal(meant[1:])
    return Decimal(meant) if _NUMBER.fullmatch(meant) else None


def _is_numeric(piece: Any) -> bool:
    if isinstance(piece, list):
        filled = [value for value in piece if value is not None]
        return bool(filled) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in filled)
    kind = piece.type.value_type if pa.types.is_dictionary(piece.type) else piece.type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def read_growth(cluster: Ints, formed: Bools, event: Ints | None, count: int) -> Grown:
    """Number the steps in which clusters grew: the event that formed a cluster, then every event that reused it.

    Where events are not known, every reused row is a step of its own.
    """
    rows = np.flatnonzero(cluster >= 0)
    own = cluster[rows]
    order = np.lexsort((np.arange(len(rows)) if event is None else event[rows], own))
    if event is None:
        later = ~formed[rows][order]
    else:
        later = np.append(False, np.diff(event[rows][order]) != 0)[: len(rows)]
    total = np.cumsum(later.astype(np.int64))
    start = np.searchsorted(own[order], own[order])
    step = np.empty(len(rows), np.int64)
    step[order] = total - total[start] + (later[start] if event is None else 0)
    return Grown(rows, own, step, count)


def measure_diversity(sensitive: Sequence[Sensitive], classes: Classes, clusters: Ints | None, notes: Notes) -> None:
    """Write down l, entropy l and t (against all rows in classes) of the worst class, as pycanon counts them.

    The same of the worst cluster where the trace tells the cluster of every released row (-1: none).
    """
    rows = np.flatnonzero(classes.judged)
    if not sensitive or not len(rows):
        return
    notes.metrics.update(_worst(sensitive, classes.of_row, rows))
    if clusters is not None and (clusters[rows] >= 0).any():
        notes.metrics["worst_cluster"] = _flat(_worst(sensitive, clusters, rows))


def _worst(sensitive: Sequence[Sensitive], of_row: Ints, rows: Ints) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {"l": {}, "entropy_l": {}, "t": {}}
    inside, zero = rows[of_row[rows] >= 0], np.zeros(len(rows), np.int64)
    for column in sensitive:
        sets = gather(of_row[inside], column.shown[inside], int(of_row.max()) + 1)
        table = refer(zero, column.shown[rows], np.ones(len(rows)), count=1, width=column.width)
        there = sets.sizes > 0
        found["l"][column.name] = int(distinct(sets)[there].min())
        found["entropy_l"][column.name] = float(effective(sets)[there].min())
        away = _away(column, sets, table, np.zeros(sets.count, np.int64))
        found["t"][column.name] = float(away[there].max())
    return found


def _flat(found: dict[str, dict[str, float]]) -> dict[str, float]:
    return {f"{name} {column}": value for name, columns in found.items() for column, value in columns.items()}


def _away(column: Sensitive, sets: Sets, references: References, of_set: Ints) -> Floats:
    measure = ordered if column.is_ordered else variation
    return measure(sets, references, of_set)


def check_diversity(
    sensitive: Sequence[Sensitive],
    classes: Classes,
    grown: Grown | None,
    recorded: dict[str, References] | None,
    promise: TuplePromise,
    notes: Notes,
) -> None:
    """Check what is promised of every class, and of every cluster whenever a row left by it."""
    wanted = promise.diversity
    if wanted.l is None and wanted.entropy_l is None and wanted.t is None:
        return
    found = {code: np.zeros(len(classes.of_row), np.bool_) for code in _SENTENCES}
    rows = np.flatnonzero(classes.judged)
    for column in sensitive:
        sets = gather(classes.of_row[rows], column.shown[rows], len(classes.rows))
        declared = _declared(column, promise)
        for code, marked in _failures(column, sets, declared, np.zeros(sets.count, np.int64), promise).items():
            found[code] |= classes.marked(marked)
        if grown is not None and len(grown.row):
            references = declared if recorded is None else recorded[column.name]
            for sets, cluster in _as_they_grew(column, grown, notes):
                of_set = np.zeros(sets.count, np.int64) if recorded is None else cluster
                for code, marked in _failures(column, sets, references, of_set, promise).items():
                    found[code][grown.rows_of(cluster[marked])] = True
    for code, rows_found in found.items():
        notes.violation(code, _SENTENCES[code], rows=rows_found)


def _as_they_grew(column: Sensitive, grown: Grown, notes: Notes) -> Iterator[tuple[Sets, Ints]]:
    """Yield the sets of clusters after every step, some clusters at a time, and the cluster of every set."""
    value = column.shown[grown.row]
    sizes = growth_sizes(grown.cluster, value, grown.step, grown.count)
    if sizes.sum() > _MOST_ENTRIES or sizes.max() > _ENTRIES_AT_ONCE:
        notes.skip("Whether clusters stayed diverse as rows reused them was checked only at the end: too many values.")
        yield gather(grown.cluster, value, grown.count), np.arange(grown.count)
        return
    chunk = np.cumsum(sizes) // _ENTRIES_AT_ONCE
    order = np.argsort(grown.cluster, kind="stable")
    for number in np.unique(chunk).tolist():
        first, after = np.searchsorted(chunk, [number, number + 1]).tolist()
        rows = order[slice(*np.searchsorted(grown.cluster[order], [first, after]).tolist())]
        sets, own = growing(grown.cluster[rows] - first, value[rows], grown.step[rows], after - first)
        yield sets, own + first


def _declared(column: Sensitive, promise: TuplePromise) -> References | None:
    shares = promise.diversity.declared.get(column.name)
    if shares is None:
        return None
    value = np.array([column.number(text) for text in shares], np.int64)
    weight = np.array(list(shares.values()), np.float64)
    return refer(np.zeros(len(value), np.int64), value, weight, count=1, width=column.width)


def _failures(
    column: Sensitive, sets: Sets, references: References | None, of_set: Ints, promise: TuplePromise
) -> dict[str, Bools]:
    wanted, there = promise.diversity, sets.sizes > 0
    failed = {}
    if wanted.l is not None:
        failed["below-l"] = there & (distinct(sets) < wanted.l)
    if wanted.entropy_l is not None:
        failed["below-entropy-l"] = there & (effective(sets) < wanted.entropy_l * (1 - _ROUNDING))
    if wanted.t is not None and references is not None:
        # A cluster without a reference is told of elsewhere.
        there = there & (np.diff(references.begin)[of_set] > 0)
        failed["above-t"] = there & (_away(column, sets, references, of_set) > wanted.t + _ROUNDING)
    return failed
