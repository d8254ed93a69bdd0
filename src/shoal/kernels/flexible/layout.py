"""Arrays of a round of the flexible method: pending rows, candidates, and the assignment of rows to them.

Rows are numbered by arrival, and blocks and tuples list theirs in this order. A block is one label for each normal
quasi-identifier; a tuple is a block with one label for each sparse quasi-identifier. Labels of all sparse attributes
are numbered together, values included. Losses are integers, so the order of additions does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SCALE = 1 << 30
"""The loss of a row whose labels say nothing."""
UNLABELLED = 2 * SCALE
"""The loss of a row that stays pending."""
MISSING = -1
"""The code of a missing value at every depth; no other label covers it."""
PENDING = -1
END = -1
NOWHERE = -1
"""The place of a label that is not a candidate."""

BLOCKS, BLOCK_ROWS, TUPLES, TUPLE_ROWS, IS_FULL = range(5)
SIZES = 5
"""Number of blocks, rows of blocks, tuples and rows of tuples in use, and whether there was no space for more."""

BLOCK, BEGIN, STOP, LOSS, PUBLISHED, PEOPLE, CROWD, K_S = range(8)
"""Numbers of a tuple: its block, begin and end of its rows, whether it is published, people assigned to it, people
that have its labels, people it needs. Blocks have them too; their K_S is for each of their labels."""
NEED, CANDIDATE, NEXT, FIRST_TUPLE, LAST_TUPLE = range(8, 13)
"""Further numbers of a block: people it needs; the next attribute to divide it by; its tuples."""
TUPLE_NUMBERS, BLOCK_NUMBERS = 8, 13

LABEL_ROWS, LABEL_SUM, NEXT_PLACE = range(3)
"""Numbers of a label while tuples are enumerated: rows, a checksum of the rows, the place of the next row."""
LABEL_NUMBERS = 4

MOVES, TOP, TAKES, VERSION, ENTRIES = range(5)
COUNTS = 5
NEXT_QUEUED, IS_QUEUED, FAILED = range(3)
TRIED, CHANGED, IS_LISTED = range(3)
NEXT_ENTRY, ENTRY_TUPLE, ENTRY_PLACE = range(3)
BUCKETS = 65536
"""A bound is less than 2 to the power of 64; each power has 1024 buckets."""


class Labels(NamedTuple):
    """What lies above each value of the sparse attributes, and what labels lose."""

    starts: np.ndarray
    above: np.ndarray
    """By value, from `starts` on: the value itself, all labels above it, and the root if it may be published."""
    rank: np.ndarray
    """The order of preference: values, then fewest leaves, then the property's priority, then the name."""
    by_rank: np.ndarray
    loss: np.ndarray
    k_s: np.ndarray
    """Number of people a label needs, by the number its block needs."""


class Pending(NamedTuple):
    """Pending rows: `paths` and `losses` have a line for each depth of each normal quasi-identifier."""

    paths: np.ndarray
    losses: np.ndarray
    first: np.ndarray
    """The line of each attribute's root; one more for the end."""
    floors: np.ndarray
    """The coarsest depth of each attribute that may be published."""
    values: np.ndarray
    persons: np.ndarray
    crowds: np.ndarray
    """Number of people each label needs, in lines like `paths`: the largest number of any value below it."""
    least: np.ndarray
    """Number of people every block needs, and the smallest number that any block needs."""


class Blocks(NamedTuple):
    """Blocks; the rows of one are contiguous in `rows`."""

    depths: np.ndarray
    info: np.ndarray
    """By block: its numbers."""
    rows: np.ndarray
    slots: np.ndarray
    """By place in `rows`: a number for the person within the block."""
    counts: np.ndarray
    """By slot: the person's rows that are assigned to the block."""
    finest: np.ndarray
    """By place in `rows`: the least loss of any of the row's tuples in the block."""


class Tuples(NamedTuple):
    """Blocks with labels of the sparse attributes; like blocks, with the slot of each row in its block."""

    info: np.ndarray
    labels: np.ndarray
    rows: np.ndarray
    slots: np.ndarray
    block_slots: np.ndarray
    counts: np.ndarray
    is_filled: np.ndarray
    """By tuple: whether it is published or enough people are assigned to it."""


class Scratch(NamedTuple):
    """Scratch space."""

    seen: np.ndarray
    """By person: the last count in which they were counted."""
    slot_of: np.ndarray
    tick: np.ndarray
    labels: np.ndarray
    """By label: its numbers."""
    present: np.ndarray
    """Labels that occur."""
    sums: np.ndarray
    """A table of checksums and their ticks; those of another tick are empty."""
    sort_keys: np.ndarray
    sort_rows: np.ndarray
    depth: np.ndarray
    key: np.ndarray
    place_of: np.ndarray
    """By row: its place in the block that is looked at."""


class Assignment(NamedTuple):
    """The tuple of each row, and the moves that may still be taken back."""

    tuple_of: np.ndarray
    """By row: its tuple, PENDING if there is none."""
    place_of: np.ndarray
    """By row: its place in the rows of its tuple."""
    loss_of: np.ndarray
    """By row: the loss of its tuple, UNLABELLED if there is none."""
    moves: np.ndarray
    """Rows that were moved, their tuples and places before: three lines."""
    buckets: np.ndarray
    """By bucket: its first candidate, END if there is none."""
    candidates: np.ndarray
    """By candidate: the next one in its bucket, whether it is in one, the version in which it could not be opened."""
    states: np.ndarray
    """By tuple: the last call of `take` that tried to close it, the last version in which rows joined or left it,
    whether its rows have entries."""
    counts: np.ndarray
    """Number of moves, the best bucket, number of calls of `take`, of changes that were kept, of entries."""
    heads: np.ndarray
    """By row: the first entry of the list of its tuples that were ever open, END if there is none."""
    entries: np.ndarray
    """By entry: the next one of the row, a tuple, the place of the row in it."""


class Published(NamedTuple):
    """What is published."""

    given: np.ndarray
    """By sparse attribute and row: the label."""
    block_of: np.ndarray
    """By row: its block, PENDING if there is none."""
    group_of: np.ndarray
    rows: np.ndarray
    """Scratch space: rows by their labels."""
