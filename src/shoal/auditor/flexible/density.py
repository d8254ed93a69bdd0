"""The k that a record asks for: that of its density class, or the policy's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.flexible.unknown import listed
from shoal.auditor.hierarchies.hierarchy import Taxonomy
from shoal.auditor.hierarchies.ontology import Concepts
from shoal.auditor.reading.columns import Ints
from shoal.auditor.tuples.promise import LabelRule
from shoal.auditor.tuples.values import Attribute, Labels


def row_k(promise: FlexiblePromise, attributes: Sequence[Attribute], row: Ints) -> Ints:
    """Return the k that the record behind every released row asks for (-1: none known, the least there is).

    A value in no density class of its column asks for the policy's k; of several columns the largest k counts.
    """
    if not promise.density:
        return np.full(len(row), promise.k)
    asked = np.zeros(len(row), np.int64)
    known = row >= 0
    for attribute, rule in zip(attributes, promise.quasi, strict=True):
        if isinstance(attribute, Labels) and isinstance(rule, LabelRule) and rule.name in promise.density:
            classes = promise.density[rule.name]
            by_code = [_nearest(rule.tree, text, classes, promise.k) for text in attribute.texts]
            k = np.array([*by_code, promise.k], np.int64)  # code -1, null, picks the last
            asked[known] = np.maximum(asked[known], k[attribute.true_code[row[known]]])
    return np.where(known, asked, promise.lowest_k)


def _nearest(tree: Taxonomy, text: str, classes: Mapping[str, int], otherwise: int) -> int:
    """Return the k of the nearest class; where an ontology has several that are as near, the largest."""
    path = [label for label in tree.path(text) if label in classes]
    if not path:
        return otherwise
    near = path[:1]
    if isinstance(listed(tree), Concepts) and near[0] not in (text, tree.root):
        leaves = tree.leaf_counts()
        near = [label for label in path if label != tree.root and leaves[label] == leaves[near[0]]]
    return max(classes[label] for label in near)
