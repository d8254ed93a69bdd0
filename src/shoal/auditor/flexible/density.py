"""How many people a record needs by its place: by the policy's classes, or by people counted in the first records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.flexible.promise import FlexiblePromise, MeasuredDensity, WithUnknown, without_unknown
from shoal.auditor.hierarchies.hierarchy import Taxonomy
from shoal.auditor.hierarchies.ontology import Concepts
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.rows.attributes import Attribute, Labels
from shoal.auditor.rows.rules import LabelRule


def with_measured_density(
    promise: FlexiblePromise, attributes: Sequence[Attribute], person: Ints, usable: Bools, came: int | None
) -> FlexiblePromise:
    """Count the people of every cell among the first usable records, and add the k of each to the promise.

    ``came`` is the number of usable records before the first release. If a run ended its first window earlier than
    that, more people are counted here than by the run, and less is required, never more.
    """
    first = np.flatnonzero(usable)[: promise.window if came is None else min(promise.window, max(came, 0))]
    found = dict(promise.density)
    for attribute, rule in zip(attributes, promise.quasi, strict=True):
        if isinstance(attribute, Labels) and isinstance(rule, LabelRule) and rule.name in promise.measured:
            cells = [_cell(rule.tree, text, promise.measured[rule.name].level) for text in attribute.texts]
            pairs = set(zip(attribute.true_code[first].tolist(), person[first].tolist(), strict=True))
            visits = {(cells[code], who) for code, who in pairs if code >= 0}
            people = Counter(cell for cell, _ in visits if cell is not None)
            found[rule.name] = _classes(promise.measured[rule.name], people, rule.tree.root, promise.k)
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


def _classes(rule: MeasuredDensity, people: Mapping[str, int], root: str, otherwise: int) -> dict[str, int]:
    """Return the k of every cell with people; the root's is that of a cell with none."""
    found = {root: _class_k(rule, 0, otherwise)}
    return found | {cell: _class_k(rule, count, otherwise) for cell, count in people.items()}


def _class_k(rule: MeasuredDensity, people: int, otherwise: int) -> int:
    return next((k for fewer_than, k in sorted(rule.classes) if people < fewer_than), otherwise)


def measure_classes(promise: FlexiblePromise, k: Ints, usable: Bools, notes: Notes) -> None:
    """Report how many records need each k, if that was measured."""
    if promise.measured:
        needed, counts = np.unique(k[usable], return_counts=True)
        notes.metrics["records_by_k"] = {str(each): int(count) for each, count in zip(needed, counts, strict=True)}


def row_k(promise: FlexiblePromise, attributes: Sequence[Attribute], row: Ints) -> Ints:
    """Return the k that the record of every released row needs (-1: unknown record, the lowest k).

    A value in no density class of its column needs the policy's k; of several columns the largest k counts.
    """
    if not promise.density:
        return np.full(len(row), promise.k)
    needed = np.zeros(len(row), np.int64)
    known = row >= 0
    for attribute, rule in zip(attributes, promise.quasi, strict=True):
        if isinstance(attribute, Labels) and isinstance(rule, LabelRule) and rule.name in promise.density:
            classes = promise.density[rule.name]
            by_code = [_nearest(rule.tree, text, classes, promise.k) for text in attribute.texts]
            k = np.array([*by_code, promise.k], np.int64)  # code -1, null, picks the last
            needed[known] = np.maximum(needed[known], k[attribute.true_code[row[known]]])
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
