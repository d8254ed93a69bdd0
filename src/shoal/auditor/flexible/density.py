"""How many people a record needs by its place: by the policy's classes, or by people counted in the first records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from shoal.auditor.counting import people_of
from shoal.auditor.flexible.promise import FlexiblePromise, MeasuredDensity, WithUnknown, without_unknown
from shoal.auditor.hierarchies.hierarchy import Taxonomy
from shoal.auditor.hierarchies.ontology import Concepts
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.rows.quasi import LabelColumn, Quasi


def with_measured_density(
    promise: FlexiblePromise, quasi: Sequence[Quasi], first: Relation, person: Ints
) -> FlexiblePromise:
    """Count the people of every cell among the first usable records, and add the k of each to the promise.

    If a run ended its first window earlier than the trace shows, more people are counted here than by the run, and
    less is required, never more.
    """
    found = dict(promise.density)
    for one in quasi:
        if isinstance(one, LabelColumn) and one.name in promise.measured:
            measured, values = promise.measured[one.name], first[one.value]
            cells = values.mapped(_cell(one.rule.tree, text, measured.level) for text in values.texts)
            there = cells.codes >= 0
            people = people_of(cells.codes[there], person[there], len(cells.texts)).tolist()
            counted = dict(zip(cells.texts, people, strict=True))
            # The root's k is that of a cell where nobody is.
            found[one.name] = {
                cell: _class_k(measured, count, promise.k)
                for cell, count in ({one.rule.tree.root: 0} | counted).items()
                if count or cell == one.rule.tree.root
            }
    return replace(promise, density=found)


def _cell(tree: Taxonomy, text: str, level: int | None) -> str | None:
    """Return the label of a value that many levels below the root, the value itself if it is not that deep.

    Return None for a value that is not listed: it has no place of its own.
    """
    path = tree.path(text)
    if isinstance(tree, WithUnknown) and path[0] == tree.label:
        return None
    downward = path[::-1]
    return path[0] if level is None or level >= len(downward) else downward[level]


def _class_k(rule: MeasuredDensity, people: int, otherwise: int) -> int:
    return next((k for fewer_than, k in sorted(rule.classes) if people < fewer_than), otherwise)


def needed_k(promise: FlexiblePromise, quasi: Sequence[Quasi], rows: Relation, known: Bools) -> Ints:
    """Return the k that the record of every row needs, by its true values; the lowest k if the record is not known.

    A value in no density class of its column needs the policy's k; of several columns the largest k counts.
    """
    if not promise.density:
        return np.full(len(known), promise.k, np.int64)
    needed = np.zeros(len(known), np.int64)
    for one in quasi:
        if isinstance(one, LabelColumn) and one.name in promise.density:
            column, classes = rows[one.value], promise.density[one.name]
            by_code = [_nearest(one.rule.tree, text, classes, promise.k) for text in column.texts]
            needed = np.maximum(needed, np.array([*by_code, promise.k], np.int64)[column.codes])
    return np.where(known, needed, promise.lowest_k)


def _nearest(tree: Taxonomy, text: str, classes: Mapping[str, int], otherwise: int) -> int:
    """Return the k of the nearest class; if an ontology has several at the same distance, the largest."""
    path = [label for label in tree.path(text) if label in classes]
    if not path:
        return otherwise
    near = path[:1]
    if isinstance(without_unknown(tree), Concepts) and near[0] not in (text, tree.root):
        leaves = tree.leaf_counts()
        near = [label for label in path if label != tree.root and leaves[label] == leaves[near[0]]]
    return max(classes[label] for label in near)
