"""Number texts and combinations, and compare how often keys occur on two sides."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.hierarchies.hierarchy import Hierarchy
from shoal.auditor.reading.columns import TEXT, Bools, Ints, plain
from shoal.auditor.reading.rows import Rows


def shared_codes(*columns: Any) -> tuple[list[str], list[Ints]]:
    """Number the different texts of some columns together; null is -1."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    if chunks and any(pa.types.is_dictionary(chunk.type) for chunk in chunks):
        texts, codes = _shared_codes_of_coded(chunks)
        return texts, np.split(codes, np.cumsum([len(column) for column in columns])[:-1])
    encoded = pa.chunked_array(chunks, TEXT).combine_chunks().dictionary_encode()
    codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), np.int64)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return encoded.dictionary.to_pylist(), np.split(codes, ends)


def _shared_codes_of_coded(chunks: list[Any]) -> tuple[list[str], Ints]:
    """Number texts that are coded, chunk by chunk, without writing them out; in order of first appearance."""
    coded = [chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode() for chunk in chunks]
    numbers: dict[str, int] = {}
    parts = []
    for chunk in coded:
        code = np.asarray(pc.fill_null(chunk.indices, -1).to_numpy(zero_copy_only=False), np.int64)
        texts = chunk.dictionary.to_pylist()
        order = _by_appearance(code, len(texts))
        known = np.full(len(texts) + 1, -1, np.int64)  # the last place is for null
        for place in order.tolist():
            text = texts[place]
            if text is not None:
                known[place] = numbers.setdefault(text, len(numbers))
        parts.append(known[code])
    return list(numbers), np.concatenate([np.zeros(0, np.int64), *parts])


def _by_appearance(code: Ints, count: int) -> Ints:
    """Return the numbers that occur, in order of first appearance."""
    first = np.full(count + 1, len(code), np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    order = np.argsort(first[:count], kind="stable")
    found: Ints = order[first[order] < len(code)]
    return found


def spelt_codes(name: str, truth: Rows, release: Rows) -> tuple[list[str], Ints, Ints]:
    """Number a column's values on both sides, whatever spelling each uses; return the texts as well. Null is -1."""
    labels, (known, shown) = shared_codes(truth.text(name), release.text(name))
    texts, (same,) = shared_codes(pa.chunked_array([[plain(label) for label in labels]], TEXT))
    spelling = np.append(same, -1)  # code -1 picks the last
    return texts, spelling[known], spelling[shown]


def is_someone(person: Ints, persons: list[str]) -> Bools:
    """Return which person codes are identifiers that are not empty."""
    return np.array([bool(text) for text in persons] + [False])[person]  # code -1 picks the last


def dense(*keys: Ints) -> Ints:
    """Number the different combinations of some keys from 0."""
    combined = np.unique(keys[0], return_inverse=True)[1]
    for key in keys[1:]:
        values, inverse = np.unique(key, return_inverse=True)
        combined = np.unique(combined * len(values) + inverse, return_inverse=True)[1]
    return combined


def numbered(values: Any) -> tuple[Any, Ints]:
    """Return the different values and, for every value, the number of its own among them (in order of appearance)."""
    encoded = pa.array(values).dictionary_encode()
    return encoded.dictionary.to_numpy(zero_copy_only=False), encoded.indices.to_numpy(zero_copy_only=False).astype(
        np.int64
    )


_MOST_PACKED: Final = 2**62


def combined(columns: list[Ints], length: int) -> Ints:
    """Number the different combinations of some columns of numbers from -1 on."""
    packed, size = np.zeros(length, np.int64), 1
    for column in columns:
        width = int(column.max(initial=-1)) + 2
        if size * width > _MOST_PACKED:
            different, packed = numbered(packed)
            size = len(different)
        packed, size = packed * width + column + 1, size * width
    return numbered(packed)[1]


def people_of(group: Ints, person: Ints, count: int = 0) -> Ints:
    """Count the different persons of every group; both are numbers from 0."""
    width = int(person.max(initial=0)) + 1
    return np.bincount(different(group * width + person) // width, minlength=count)


def different(values: Ints) -> Ints:
    """Return the different numbers, rising; np.unique hashes them, which takes far longer for many."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


def sum_by(group: Ints, numbers: Ints | Bools, count: int) -> Ints:
    """Sum numbers by group. Sums of people stay far below 2**53, up to which floats are whole."""
    return np.bincount(group, weights=numbers, minlength=count).astype(np.int64)


def pair_codes(left: tuple[Ints, ...], right: tuple[Ints, ...]) -> tuple[Ints, Ints]:
    """Number the combinations of keys on two sides together."""
    joined = dense(*(np.concatenate(sides) for sides in zip(left, right, strict=True)))
    return joined[: len(left[0])], joined[len(left[0]) :]


def surplus(known: Ints, shown: Ints) -> tuple[Bools, Bools]:
    """Mark the shown keys that are not known at all, and those shown more often than known."""
    size = int(max(known.max(initial=-1), shown.max(initial=-1))) + 1
    available = np.bincount(known, minlength=size)[shown]
    order = np.argsort(shown, kind="stable")
    ranked = shown[order]
    turn = np.empty(len(shown), np.int64)
    turn[order] = np.arange(len(shown)) - np.searchsorted(ranked, ranked)
    return available == 0, (available > 0) & (turn >= available)


class Paths:
    """For every label, by number, the labels above it: from itself to the root."""

    def __init__(self, labels: list[str], hierarchy: Hierarchy) -> None:
        numbers = {label: number for number, label in enumerate(labels)}
        nodes: list[int] = []
        starts = [0]
        for label in labels:
            nodes.extend(numbers.setdefault(step, len(numbers)) for step in hierarchy.path(label))
            starts.append(len(nodes))
        self._nodes = np.array(nodes, np.int64)
        self._starts = np.array(starts, np.int64)

    def length(self, codes: Ints) -> Ints:
        """Return how many labels a path has; 0 for null and for what the hierarchy does not know."""
        lengths = np.append(np.diff(self._starts), 0)  # code -1 picks the last
        return lengths[codes]

    def expand(self, codes: Ints, last: Ints | None = None) -> tuple[Ints, Ints, Ints]:
        """Return (owner, step, label) for every step of every path, up to step ``last``."""
        length = self.length(codes)
        if last is not None:
            length = np.minimum(length, last + 1)
        owner = np.repeat(np.arange(len(codes)), length)
        step = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length)
        return owner, step, self._nodes[self._starts[codes[owner]] + step]

    def level(self, codes: Ints, published: Ints) -> Ints:
        """Return the step of a published label on the path; -1 if it is not on it."""
        owner, step, node = self.expand(codes)
        level = np.full(len(codes), -1, np.int64)
        hit = node == published[owner]
        level[owner[hit]] = step[hit]
        return level
