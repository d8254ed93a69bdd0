"""Count on arrays: people in sliding windows, keys on two sides, steps of paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.hierarchies.hierarchy import Ladder
from shoal.auditor.reading.columns import TEXT, Bools, Ints


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


def dense(*keys: Ints) -> Ints:
    """Number the different combinations of some keys from 0."""
    combined = np.unique(keys[0], return_inverse=True)[1]
    for key in keys[1:]:
        values, inverse = np.unique(key, return_inverse=True)
        combined = np.unique(combined * len(values) + inverse, return_inverse=True)[1]
    return combined


def pair_codes(left: tuple[Ints, ...], right: tuple[Ints, ...]) -> tuple[Ints, Ints]:
    """Number the combinations of keys on two sides together."""
    joined = dense(*(np.concatenate(sides) for sides in zip(left, right, strict=True)))
    return joined[: len(left[0])], joined[len(left[0]) :]


def crowds(value: Ints, person: Ints, time: Ints, window: int, *, ties_together: bool) -> Ints:
    """Count, for every row, the different persons with the same value at times from time - window on.

    Rows come in the order they were decided; among rows of one value times never fall. A row counts itself
    and the rows before it; with ``ties_together`` also later rows of the same time (the most that any order
    of equal times could count).

    Every row stands for its person from its own place until the person's next row of that value, or until the
    window has passed it: +1 where it starts, -1 where it ends, and a running sum gives all counts at once.
    """
    if not len(value):
        return np.zeros(0, np.int64)
    order = np.argsort(value, kind="stable")
    value, person, time = value[order], person[order], time[order]
    moments, rank = np.unique(time, return_inverse=True)
    stamp = value * len(moments) + rank  # rises with value, then time
    outlived = np.searchsorted(moments, _later(time, window), side="right")
    expiry = np.searchsorted(stamp, value * len(moments) + outlived)
    slot = np.searchsorted(stamp, stamp) if ties_together else np.arange(len(value))
    end = np.minimum(expiry, _next_slot(value, person, slot))
    change = np.bincount(slot, minlength=len(value) + 1) - np.bincount(end, minlength=len(value) + 1)
    counts = np.empty(len(value), np.int64)
    counts[order] = np.cumsum(change)[slot]
    return counts


def _later(time: Ints, window: int) -> Ints:
    top = np.iinfo(np.int64).max
    return np.where(time > top - window, top, time + np.minimum(window, top - np.maximum(time, 0)))


def _next_slot(value: Ints, person: Ints, slot: Ints) -> Ints:
    """Return where the same person shows the same value next; the end if never."""
    pair = value * (int(person.max()) + 1) + person
    order = np.argsort(pair, kind="stable")
    following = np.full(len(slot), len(slot), np.int64)
    same = pair[order[1:]] == pair[order[:-1]]
    following[order[:-1][same]] = slot[order[1:][same]]
    return following


def surplus(known: Ints, shown: Ints) -> tuple[Bools, Bools]:
    """Mark the shown keys that are not known at all, and those shown more often than known."""
    size = int(max(known.max(initial=-1), shown.max(initial=-1))) + 1
    available = np.bincount(known, minlength=size)[shown]
    order = np.argsort(shown, kind="stable")
    ranked = shown[order]
    turn = np.empty(len(shown), np.int64)
    turn[order] = np.arange(len(shown)) - np.searchsorted(ranked, ranked)
    return available == 0, (available > 0) & (turn >= available)


def lone_links(known: Ints, shown: Ints) -> Ints:
    """Link shown rows to known rows where the key stands once on both sides; -1 elsewhere."""
    size = int(max(known.max(initial=-1), shown.max(initial=-1))) + 1
    place = np.full(size, -1, np.int64)
    place[known] = np.arange(len(known))
    lone = (np.bincount(known, minlength=size) == 1) & (np.bincount(shown, minlength=size) == 1)
    return np.where(lone, place, -1)[shown]


class Paths:
    """For every label, by number, the labels above it: from itself to the root."""

    def __init__(self, labels: list[str], ladder: Ladder) -> None:
        numbers = {label: number for number, label in enumerate(labels)}
        nodes: list[int] = []
        starts = [0]
        for label in labels:
            nodes.extend(numbers.setdefault(step, len(numbers)) for step in ladder.path(label))
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
        """Return the step at which a published label stands on the path; -1 when it does not."""
        owner, step, node = self.expand(codes)
        level = np.full(len(codes), -1, np.int64)
        hit = node == published[owner]
        level[owner[hit]] = step[hit]
        return level
