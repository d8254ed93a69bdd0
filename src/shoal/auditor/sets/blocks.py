"""Read the blocks file of a release (the items of every label), and check it against the policy and the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from shoal.auditor.findings import Notes
from shoal.auditor.reading.lines import once
from shoal.auditor.sets.promise import RELEASED_COLUMN, Generalization, SetPromise, parts
from shoal.auditor.sets.records import sets_check
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


# ---- checks

_MOVED: Final = "Readers cannot know what a label stands for. Publish the blocks file of the run that made the release."


@sets_check("item-in-two-blocks", "The blocks file lists items in two blocks.", by="none", advice=_MOVED)
def in_two_blocks(blocks: Blocks) -> int:
    """Count the items of more than one block."""
    return sum(len(set(items)) for items in blocks.values()) - len(listed(blocks))


@sets_check("item-in-two-blocks", "Blocks overlap, and none contains the other.", by="none", advice=_MOVED)
def overlapping(blocks: Blocks) -> int:
    """Count the pairs of blocks that share an item although neither contains the other."""
    own = {label: frozenset(items) for label, items in blocks.items()}
    holders: dict[str, list[str]] = {}
    for label in sorted(own, key=lambda label: len(own[label])):
        for item in own[label]:
            holders.setdefault(item, []).append(label)
    pairs = {pair for chain in holders.values() for pair in pairwise(chain)}
    return sum(not own[small] <= own[large] for small, large in pairs)


@sets_check("item-without-label", "Items are in no block of the blocks file.", by="none", advice=_MOVED)
def in_no_block(blocks: Blocks, items: Set[str]) -> int:
    """Count the items that no block lists."""
    return len(items - listed(blocks))


@sets_check("foreign-item", "The blocks file lists items that do not exist.", by="none", advice=_MOVED)
def foreign(blocks: Blocks, items: Set[str]) -> int:
    """Count the listed items that are none of the items."""
    return len(listed(blocks) - items)


@sets_check(
    "blocks-differ", "Blocks differ from the items under their labels in the hierarchy.", by="none", advice=_MOVED
)
def differing_blocks(blocks: Blocks, generalization: Generalization, items: Set[str]) -> int:
    """Count the blocks that do not list exactly the items under their label."""
    assert generalization.hierarchy is not None
    below: dict[str, set[str]] = {label: set() for label in blocks}
    for item in items:
        for step in generalization.hierarchy.path(item):
            if step in below:
                below[step].add(item)
    own = own_labels(blocks, generalization)
    return sum(set(items) != below[label] for label, items in blocks.items() if label not in own)


@sets_check(
    "not-contiguous", "Blocks are not connected in the graph.", by="none", needs=("generalize",),
    advice="A label is promised to be one area of the graph. Run the method again; do not join labels by hand.",
)  # fmt: skip
def torn(blocks: Blocks, generalization: Generalization) -> int:
    """Count the blocks of more than one connected part."""
    label_of = {item: label for label, items in blocks.items() for item in items}
    known = {item: label for item, label in label_of.items() if item in (generalization.names or ())}
    within = [(first, second) for first, second in generalization.edges if known.get(first) == known.get(second)]
    whole, broken = set[str](), set[str]()
    for part in parts(known, within):
        label = known[next(iter(part))]
        (broken if label in whole else whole).add(label)
    return len(broken)


def listed(blocks: Blocks) -> set[str]:
    """Return all items of all blocks."""
    return {item for items in blocks.values() for item in items}


def check_blocks(blocks: Blocks, promise: SetPromise, seen: Set[str] | None, notes: Notes) -> None:
    """Check which items the blocks file lists; ``seen`` are the items of the truth that may be released, if known.

    Where rare items are dropped, the blocks must list exactly those that are not.
    """
    generalization = promise.generalization
    if not promise.is_local:
        notes.findings += in_two_blocks(blocks)
        if generalization.way is None:
            return
    names, has_all = generalization.names, promise.drop_rare is None
    known = names if names is not None and has_all else seen
    lost = seen if promise.is_local else known
    added = names if known is None and not promise.is_local else known  # without a truth, what was dropped is unknown
    notes.findings += [] if lost is None else in_no_block(blocks, lost)
    notes.findings += [] if added is None else foreign(blocks, added)
    if generalization.hierarchy is not None:
        items = listed(blocks) if known is None else known
        notes.findings += differing_blocks(blocks, generalization, items)
        return
    if promise.is_local:
        notes.findings += overlapping(blocks)
    elif generalization.way == "graph":
        notes.findings += torn(blocks, generalization)
    if generalization.way == "places" and not promise.is_local:
        notes.skip("Whether places are contiguous was not checked: the auditor computes no maps.")
    elif generalization.way != "graph" or promise.is_local:
        notes.skip("Whether blocks are nodes of the balanced tree was not checked.")
