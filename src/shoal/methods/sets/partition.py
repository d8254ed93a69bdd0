"""From what a user says about generalization to a partition of items into blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from shoal.errors import PolicyError
from shoal.hierarchies.graph import Graph
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.neighbourhood import Neighbourhood
from shoal.methods.sets.errors import ErrorChoice
from shoal.methods.sets.graph_partition import GraphPartition
from shoal.methods.sets.merges import Move, Partition
from shoal.methods.sets.tree_partition import TreePartition

__all__ = ["Generalize", "GraphPartition", "Move", "Partition", "TreePartition", "make_partition"]

Generalize = Hierarchy | Neighbourhood | Mapping[str, Iterable[str]] | Iterable[tuple[str, str]]


def make_partition(
    generalize: Generalize | object, error: ErrorChoice = None, *, items: Iterable[str] | None = None
) -> Partition:
    """Every item in a block of its own, and which of them may be joined.

    Parameters
    ----------
    generalize
        A hierarchy, places, a graph, a table from a name to its neighbours, or pairs of neighbours.
    error
        ``"distance"`` (places only; their default), ``"ncp"`` (the default elsewhere), or a function of the items
        of a block and their weights that gives the cost of the block.
    items
        The items there are; an open hierarchy needs them, everything else lists its own.
    """
    if isinstance(generalize, Hierarchy):
        return TreePartition(generalize, error, items)
    if isinstance(generalize, Neighbourhood):
        return GraphPartition(generalize, error)
    if isinstance(generalize, Iterable) and not isinstance(generalize, str | bytes):
        return GraphPartition(Graph(cast("Iterable[tuple[str, str]]", generalize)), error)
    raise PolicyError(
        "generalize: give a shoal.Hierarchy, shoal.Places, a table from an item to its neighbours, or pairs of items"
    )
