"""Check the blocks file of a release (the items of every label) against the policy and the truth."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from shoal.auditor.findings import Notes
from shoal.auditor.reading.lines import once
from shoal.auditor.sets.partition import holding
from shoal.auditor.sets.promise import RELEASED_COLUMN, Generalization, parts
from shoal.auditor.sets.records import Sets
from shoal.errors import InputError

Blocks = dict[str, list[str]]


def read_blocks(release: Any) -> Blocks | None:
    """Return the items of every label, from a result or from the file next to the release."""
    blocks = getattr(release, "blocks", None)
    if isinstance(blocks, Mapping):
        return {str(label): [str(item) for item in items] for label, items in blocks.items()}
    if not isinstance(release, str | Path):
        return None
    base = str(release).rstrip("/")
    for path, reader in ((Path(base + ".blocks.json"), _of_json), (Path(base + ".blocks.parquet"), _of_parquet)):
        if path.is_file():
            return _checked(reader(path), path)
    return None


def _of_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=once)
    except OSError as error:
        raise InputError(f"{path}: the blocks cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        return None


def _of_parquet(path: Path) -> Any:
    try:
        table = parquet.ParquetFile(path, pre_buffer=False).read(columns=["label", RELEASED_COLUMN], use_threads=False)
        labels, items = (table.column(name).to_pylist() for name in ("label", RELEASED_COLUMN))
        return once(list(zip(labels, items, strict=True)))
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
        return None


def _checked(found: Any, path: Path) -> Blocks:
    if not isinstance(found, dict) or not all(
        isinstance(label, str) and isinstance(items, list) and all(_is_item(item) for item in items)
        for label, items in found.items()
    ):
        raise InputError(f"{path}: not a file of blocks; give the items of every label, each label once")
    return {label: [str(item) for item in items] for label, items in found.items()}


def _is_item(item: Any) -> bool:
    return isinstance(item, str | int) and not isinstance(item, bool)


def own_labels(blocks: Blocks | None, generalization: Generalization) -> set[str]:
    """Return labels that stand only for the item of that name, although an open hierarchy has others below it."""
    if blocks is None or generalization.hierarchy is None or generalization.tree is not None:
        return set()
    return {label for label, items in blocks.items() if set(items) == {label}}


def check_blocks(
    blocks: Blocks, release: Sets, generalization: Generalization, seen: Collection[str] | None, notes: Notes,
    *, has_all: bool = True,
) -> None:  # fmt: skip
    """Check that every item is in one block, and that the policy allows the blocks.

    ``seen`` are the items of the truth that may be released, if there is one. Unless ``has_all``, rare items are
    dropped: the blocks must list exactly those.
    """
    block_of = {item: label for label, items in blocks.items() for item in items}
    twice = sum(len(set(items)) for items in blocks.values()) - len(block_of)
    notes.violation("item-in-two-blocks", "The blocks file lists items in two blocks.", count=twice)
    foreign = np.array([label not in blocks for label in release.labels], np.bool_)
    notes.violation(
        "unknown-label",
        f"The release has {int(foreign.sum())} labels that the blocks file does not have.",
        rows=holding(release, foreign),
    )
    if generalization.way is None:
        return
    known = generalization.names if generalization.names is not None and has_all else seen
    if known is None and generalization.names is not None:  # without the truth, what was dropped is unknown
        foreign_items = len(block_of.keys() - generalization.names)
        notes.violation("foreign-item", "The blocks file lists items that do not exist.", count=foreign_items)
    if known is not None:
        there = set(known)
        lost, added = len(there - block_of.keys()), len(block_of.keys() - there)
        notes.violation("item-without-label", "Items are in no block of the blocks file.", count=lost)
        notes.violation("foreign-item", "The blocks file lists items that do not exist.", count=added)
    if generalization.hierarchy is not None:
        check_below(blocks, generalization, block_of if known is None else known, notes)
    elif generalization.way == "graph":
        _check_contiguity(block_of, generalization, notes)
    elif generalization.way == "places":
        notes.skip("Whether places are contiguous was not checked: the auditor computes no maps.")
    else:
        notes.skip("Whether blocks are nodes of the balanced tree was not checked.")


def check_below(blocks: Blocks, generalization: Generalization, items: Collection[str], notes: Notes) -> None:
    """Check that every block contains exactly the items under its label."""
    assert generalization.hierarchy is not None
    below: dict[str, set[str]] = {label: set() for label in blocks}
    for item in items:
        for step in generalization.hierarchy.path(item):
            if step in below:
                below[step].add(item)
    own = own_labels(blocks, generalization)
    differ = sum(set(items) != below[label] for label, items in blocks.items() if label not in own)
    notes.violation("blocks-differ", "Blocks differ from the items under their labels in the hierarchy.", count=differ)


def _check_contiguity(block_of: Mapping[str, str], generalization: Generalization, notes: Notes) -> None:
    known = {item: label for item, label in block_of.items() if item in (generalization.names or ())}
    within = [(first, second) for first, second in generalization.edges if known.get(first) == known.get(second)]
    whole, torn = set[str](), set[str]()
    for part in parts(known, within):
        label = known[next(iter(part))]
        (torn if label in whole else whole).add(label)
    notes.violation("not-contiguous", "Blocks are not connected in the graph.", count=len(torn))
